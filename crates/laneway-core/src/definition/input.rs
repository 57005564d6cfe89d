//! The input of a remote worker (`with` of a `queue`): any JSON, in whose strings `${{ … }}` may stand. Owns reading and
//! evaluating it; what an expression may read is checked where all of them are.

use serde_json::{Map, Value};

use super::finding::Finding;
use super::reader::{Field, Reader};
use super::scalar::{Scalar, scalar};
use super::yaml::Data;
use crate::expression::{Error, Scope, Template};

/// What all of it may hold once it is evaluated: it travels with every claim.
pub const MAX_INPUT: usize = 1 << 20;

/// One value of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A number, a boolean or nothing, as written.
    Literal(Value),
    /// A string; one that is a single expression keeps the type of that.
    Text(Template),
    List(Vec<Self>),
    /// In document order.
    Map(Vec<(String, Self)>),
}

impl Input {
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, Error> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Text(template) => template.evaluate(scope),
            Self::List(items) => items.iter().map(|item| item.evaluate(scope)).collect(),
            Self::Map(entries) => {
                let each = entries.iter().map(|(name, value)| Ok((name.clone(), value.evaluate(scope)?)));
                each.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
        }
    }

    /// Everything in it that is evaluated.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, value)| value.templates()).collect(),
        }
    }
}

/// All of `with`; an error names the value it stands in.
pub fn evaluate_input(with: &[(String, Input)], scope: &Scope) -> Result<Map<String, Value>, String> {
    let mut input = Map::new();
    for (name, value) in with {
        let value = value.evaluate(scope).map_err(|error| format!("`with.{name}`: {error}"))?;
        input.insert(name.clone(), value);
    }
    let size = serde_json::to_string(&input).map_or(usize::MAX, |text| text.len());
    if size > MAX_INPUT {
        return Err(format!("`with` is {size} bytes long, and a worker is given {MAX_INPUT} at most"));
    }
    Ok(input)
}

impl Reader<'_> {
    /// Names are those of variables, as everywhere; below them stands what JSON can say.
    pub(super) fn input(&mut self, field: Field<'_>) -> Vec<(String, Input)> {
        let Some(entries) = self.entries(field, "a mapping of names to values") else {
            return Vec::new();
        };
        let mut input = Vec::with_capacity(entries.len());
        for entry in entries {
            self.check_variable(entry);
            input.extend(self.input_value(entry).map(|value| (entry.name.to_owned(), value)));
        }
        input
    }

    /// The tree's bound on depth bounds the recursion.
    pub(super) fn input_value(&mut self, field: Field<'_>) -> Option<Input> {
        let tree = self.tree;
        match &tree.node(field.value).data {
            data @ Data::Scalar { .. } => match scalar(data) {
                Some(Scalar::Null) => Some(Input::Literal(Value::Null)),
                Some(Scalar::Bool(value)) => Some(Input::Literal(value.into())),
                Some(Scalar::Number(number)) => Some(Input::Literal(number.into())),
                Some(Scalar::NotFinite) => {
                    let finding = self.wrong(field, "a number that JSON can say");
                    self.findings.push(Finding::hint(finding, "put it in quotes"));
                    None
                }
                Some(Scalar::Text) | None => self.template(field).map(Input::Text),
            },
            Data::List(items) => {
                let item = |value| Field { value, ..field };
                Some(Input::List(items.iter().filter_map(|id| self.input_value(item(*id))).collect()))
            }
            Data::Map(flat) => {
                let entries = self.pairs(flat).into_iter();
                let each =
                    entries.filter_map(|entry| Some((entry.name.to_owned(), self.input_value(entry)?)));
                Some(Input::Map(each.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{Action, Source, compile};

    fn with(text: &str) -> Result<Vec<(String, Input)>, String> {
        let text = format!(
            "params: {{n: {{type: integer, default: 3}}}}\nsteps: {{a: {{queue: mail/send, with: {text}}}}}\n"
        );
        let source = Source { file: "f.yaml".into(), default_name: "f".into(), text };
        let plan = compile(&source).map_err(|refusal| refusal.render(false))?;
        match &plan.workflow.steps[0].action {
            Action::Queue { queue, with } => {
                assert_eq!(queue, "mail/send");
                Ok(with.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn input_is_json_and_expressions_in_it_keep_their_types() {
        let with =
            with(r#"{to: [ada, "n${{ params.n }}"], n: "${{ params.n }}", deep: {x: 1.5, y: null, z: [true, "7"]}}"#)
                .expect("a document");
        let scope: Scope = [("params".to_owned(), json!({"n": 3}))].into_iter().collect();
        let expected = json!({"to": ["ada", "n3"], "n": 3, "deep": {"x": 1.5, "y": null, "z": [true, "7"]}});
        assert_eq!(Value::Object(evaluate_input(&with, &scope).expect("values")), expected);
    }

    #[test]
    fn what_a_worker_cannot_be_given_is_refused_at_its_place() {
        for (text, why) in [
            ("{a: [{b: \"${{ params.m }}\"}]}", "there is no parameter `m`"),
            ("{a: {b: \"${{ secrets.x }}\"}}", "secret"),
            ("{\"a b\": 1}", "cannot be the name of a variable"),
            ("{a: .inf}", "must be a number that JSON can say"),
            ("[a]", "must be a mapping of names to values"),
        ] {
            let refusal = with(text).expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
        let scope = [("params".to_owned(), json!({"n": "x".repeat(MAX_INPUT)}))].into_iter().collect();
        let much = with("{a: \"${{ params.n }}\"}").expect("a document");
        assert!(evaluate_input(&much, &scope).expect_err("too much").contains("a worker is given"));
    }
}
