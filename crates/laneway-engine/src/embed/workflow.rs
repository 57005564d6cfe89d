//! Workflows that are made in code, or read from a document. Both are documents to the store: whatever looks at a run sees the same.

use std::time::Duration;

use laneway_core::definition::{Source, compile};
use laneway_core::plan::Plan;
use serde_json::{Map, Value, json};

use super::Error;

/// What is to run. Made in code it holds what a document would, and the same is refused, when it is submitted.
#[derive(Debug, Clone)]
pub struct Workflow {
    name: String,
    text: Text,
}

#[derive(Debug, Clone)]
enum Text {
    Read(String),
    Made { head: Map<String, Value>, steps: Map<String, Value> },
}

/// A step that is made in code.
#[derive(Debug, Clone)]
pub struct Step {
    name: String,
    keys: Map<String, Value>,
}

impl Workflow {
    pub fn new(name: &str) -> Self {
        let made = Text::Made { head: Map::new(), steps: Map::new() };
        Self { name: name.to_owned(), text: made }
    }

    /// A document in YAML or JSON. Its own `name` wins.
    pub fn from_document(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: Text::Read(text.to_owned()) }
    }

    /// Adds a step, in the place of a former one of that name. To one that was read nothing is added.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        if let Text::Made { steps, .. } = &mut self.text {
            steps.insert(step.name, Value::Object(step.keys));
        }
        self
    }

    /// A parameter, as a document says it: `json!({"type": "integer", "required": true})`.
    #[must_use]
    pub fn param(mut self, name: &str, definition: Value) -> Self {
        if let Text::Made { head, .. } = &mut self.text {
            let params = head.entry("params").or_insert_with(|| json!({}));
            params[name] = definition;
        }
        self
    }

    /// Any other key of a workflow, as a document says it: `.set("max_parallel", json!(2))`.
    #[must_use]
    pub fn set(mut self, key: &str, value: Value) -> Self {
        if let Text::Made { head, .. } = &mut self.text {
            head.insert(key.to_owned(), value);
        }
        self
    }

    /// As it is stored.
    pub fn document(&self) -> String {
        match &self.text {
            Text::Read(text) => text.clone(),
            Text::Made { head, steps } => {
                let mut document = Map::from_iter([("name".to_owned(), json!(self.name))]);
                document.extend(head.clone());
                document.insert("steps".to_owned(), Value::Object(steps.clone()));
                Value::Object(document).to_string()
            }
        }
    }

    pub(super) fn compile(&self) -> Result<(Plan, String), Error> {
        let (file, default_name) = (format!("<{}>", self.name), self.name.clone());
        let source = Source { file, default_name, text: self.document() };
        match compile(&source) {
            Ok(plan) => Ok((plan, source.text)),
            Err(found) => Err(Error::Document(found.render(false))),
        }
    }
}

impl Step {
    fn new(name: &str, key: &str, value: Value) -> Self {
        Self { name: name.to_owned(), keys: Map::from_iter([(key.to_owned(), value)]) }
    }

    /// Calls a function of an engine.
    pub fn function(name: &str, function: &str) -> Self {
        Self::new(name, "function", json!(function))
    }

    /// A script for `sh -e`.
    pub fn script(name: &str, script: &str) -> Self {
        Self::new(name, "run", json!(script))
    }

    /// A program and its arguments, without a shell.
    pub fn command<'a>(name: &str, argv: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(name, "command", argv.into_iter().collect())
    }

    /// Runs a script or program in a container of this image.
    #[must_use]
    pub fn image(self, image: &str) -> Self {
        self.set("image", json!(image))
    }

    #[must_use]
    pub fn needs<'a>(self, steps: impl IntoIterator<Item = &'a str>) -> Self {
        self.set("needs", steps.into_iter().collect())
    }

    /// A value of the function's input, by name: a text, a number or a boolean. A text that is one `${{ … }}` keeps the type of what it
    /// reads, which may be anything.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let with = self.keys.entry("with").or_insert_with(|| json!({}));
        with[name] = match value.into() {
            // A document would make a text of these.
            value @ (Value::Number(_) | Value::Bool(_)) => json!(format!("${{{{ {value} }}}}")),
            other @ (Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) => other,
        };
        self
    }

    /// A variable of a script or program, in which `${{ … }}` may stand.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        let env = self.keys.entry("env").or_insert_with(|| json!({}));
        env[name] = json!(value);
        self
    }

    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set("timeout", json!(format!("{}ms", timeout.as_millis())))
    }

    /// How many attempts may follow one that failed, and how long after it the first of them.
    #[must_use]
    pub fn retry(self, max: u32, backoff: Duration) -> Self {
        self.set("retry", json!({ "max": max, "backoff": format!("{}ms", backoff.as_millis()) }))
    }

    /// Any other key of a step, as a document says it: `.set("cache", json!(true))`.
    #[must_use]
    pub fn set(mut self, key: &str, value: Value) -> Self {
        self.keys.insert(key.to_owned(), value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_that_is_made_is_the_document_that_says_the_same() {
        let made = Workflow::new("order")
            .param("amount", json!({ "type": "integer", "required": true }))
            .set("max_parallel", json!(2))
            .step(Step::script("z", "echo hello").env("A", "b").timeout(Duration::from_secs(5)))
            .step(
                Step::function("pay", "charge")
                    .needs(["z"])
                    .with("amount", "${{ params.amount }}")
                    .with("twice", true)
                    .retry(3, Duration::from_millis(50)),
            );
        let (made, _) = made.compile().expect("a good workflow");
        let read = Workflow::from_document(
            "order",
            r#"
params: {amount: {type: integer, required: true}}
max_parallel: 2
steps:
  z: {run: echo hello, env: {A: b}, timeout: 5s}
  pay: {needs: [z], function: charge, with: {amount: "${{ params.amount }}", twice: "${{ true }}"}, retry: {max: 3, backoff: 50ms}}
"#,
        );
        let (read, _) = read.compile().expect("a good document");
        assert_eq!(made.workflow, read.workflow);
    }

    #[test]
    fn what_a_document_may_not_say_code_may_not_either() {
        let wrong = Workflow::new("order").step(Step::function("pay", "charge").needs(["nobody"]));
        let Err(Error::Document(why)) = wrong.compile() else { panic!("it is wrong") };
        assert!(why.contains("nobody"), "{why}");
    }
}
