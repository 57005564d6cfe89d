//! Paths in a document in which expressions may stand: of artifacts, of inputs, and the directory of a step. They are rendered
//! when a step starts, and what was rendered never leads out of where it belongs.

use super::model::Step;
use crate::artifact::ArtifactPattern;
use crate::expression::{Part, Scope, Template};
use crate::growth::parse_name;

/// One entry of `artifacts`.
#[derive(Debug, Clone, PartialEq)]
pub enum ArtifactPath {
    /// The same for every attempt.
    Fixed(ArtifactPattern),
    /// Known when the step starts.
    Rendered(Template),
}

impl ArtifactPath {
    /// Returns the pattern for an attempt.
    ///
    /// # Errors
    ///
    /// An expression that cannot be evaluated, and a value that leads out or that is a pattern itself.
    pub fn pattern(&self, scope: &Scope) -> Result<ArtifactPattern, String> {
        let template = match self {
            Self::Fixed(pattern) => return Ok(pattern.clone()),
            Self::Rendered(template) => template,
        };
        let wrong = |why: String| format!("`artifacts`: {why}");
        for expression in template.expressions() {
            let value = Template { parts: vec![Part::Expression(expression.clone())] };
            let value = value.render(scope).map_err(|error| wrong(error.to_string()))?;
            if let Some(sign) = value.chars().find(|sign| matches!(sign, '*' | '?')) {
                let source = &expression.source;
                return Err(wrong(format!(
                    "the value of `{source}` has a `{sign}`, which would match other files"
                )));
            }
        }
        let path = template.render(scope).map_err(|error| wrong(error.to_string()))?;
        ArtifactPattern::parse(&path)
            .map_err(|why| wrong(format!("`{path}` is no path of an artifact: {why}")))
    }

    /// Returns it as it is written.
    pub fn source(&self) -> String {
        match self {
            Self::Fixed(pattern) => pattern.as_str().to_owned(),
            Self::Rendered(template) => template.source(),
        }
    }

    /// Returns its template, if it has expressions.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Self::Fixed(_) => None,
            Self::Rendered(template) => Some(template),
        }
    }
}

impl Step {
    /// Returns the directory in which an attempt works, relative to that of the run.
    ///
    /// # Errors
    ///
    /// An expression that cannot be evaluated, and a value that leads out.
    pub fn workdir(&self, scope: &Scope) -> Result<Option<String>, String> {
        let Some(template) = &self.workdir else { return Ok(None) };
        if let Some(fixed) = template.fixed() {
            return Ok(Some(fixed.to_owned()));
        }
        let path = template.render(scope).map_err(|error| format!("`workdir`: {error}"))?;
        let is_rooted = matches!(template.parts.first(), Some(Part::Text(text)) if text.starts_with('/'));
        let why = if path.is_empty() {
            "it is empty"
        } else if path.starts_with('/') && !is_rooted || path.split('/').any(|part| part == "..") {
            "it leads out of the directory of the run"
        } else {
            return Ok(Some(path));
        };
        Err(format!("`workdir`: `{path}` is no directory for the step: {why}"))
    }

    /// Returns the steps whose artifacts an attempt is given, or single items of them.
    ///
    /// # Errors
    ///
    /// An expression that cannot be evaluated, and a name that is none of a step it needs.
    pub fn inputs(&self, scope: &Scope) -> Result<Vec<String>, String> {
        let name = |template: &Template| {
            if let Some(fixed) = template.fixed() {
                return Ok(fixed.to_owned());
            }
            let name = template.render(scope).map_err(|error| format!("`inputs`: {error}"))?;
            let (step, _) = parse_name(&name);
            if !self.needs.iter().any(|need| need == step) {
                return Err(format!(
                    "`inputs`: `{name}` is none of the steps that it needs, nor an item of one"
                ));
            }
            Ok(name)
        };
        self.files().inputs.iter().map(name).collect()
    }

    /// Templates of its paths, which are rendered when it starts.
    pub fn path_templates(&self) -> impl Iterator<Item = &Template> {
        let files = self.files();
        let artifacts = files.artifacts.iter().filter_map(ArtifactPath::template);
        artifacts.chain(&files.inputs).chain(&self.workdir)
    }
}

/// Whether the name of an input asks for what a task has left: of the step itself, or of one of its items.
pub fn is_input(name: &str, task: &str) -> bool {
    name == task || name == parse_name(task).0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn scope(item: Value, index: u32) -> Scope {
        let Value::Object(scope) = json!({"item": item, "index": index}) else { unreachable!("an object") };
        scope
    }

    fn step(workdir: &str) -> Step {
        let mut workflow = crate::plan::sample::workflow::<&str>(&[("a", &["parse"])]);
        let mut step = workflow.steps.remove(0);
        step.workdir = Some(Template::parse(workdir).expect("a template"));
        step
    }

    #[test]
    fn rendered_artifact_stays_below_the_directory_and_matches_nothing_else() {
        let path =
            ArtifactPath::Rendered(Template::parse("out/${{ item }}-${{ index }}/*.txt").expect("valid"));
        let pattern = |item: &str| path.pattern(&scope(json!(item), 3)).map(|pattern| pattern.to_string());
        assert_eq!(pattern("a"), Ok("out/a-3/*.txt".to_owned()));
        for (item, why) in [("../../etc", "leads out"), ("*", "match other files"), ("a//b", "empty part")] {
            assert!(pattern(item).expect_err(item).contains(why), "{item}");
        }
        let whole = ArtifactPath::Rendered(Template::parse("${{ item }}").expect("valid"));
        assert!(whole.pattern(&scope(json!("/etc/passwd"), 0)).expect_err("absolute").contains("relative"));
    }

    #[test]
    fn rendered_directory_stays_below_that_of_the_run() {
        let dir = |text: &str, item: Value| step(text).workdir(&scope(item, 3));
        assert_eq!(dir("../shared", json!("")), Ok(Some("../shared".to_owned())));
        assert_eq!(dir("parts/${{ item.name }}", json!({"name": "a"})), Ok(Some("parts/a".to_owned())));
        assert_eq!(dir("/data/${{ index }}", json!("")), Ok(Some("/data/3".to_owned())));
        for item in ["..", "/etc", "a/../../b", ""] {
            assert!(dir("${{ item }}", json!(item)).is_err(), "{item}");
        }
        assert!(dir("/data/${{ item }}", json!("../etc")).is_err());
    }

    #[test]
    fn rendered_input_is_a_step_that_is_needed_or_an_item_of_it() {
        let mut step = step("x");
        let files = step.files.get_or_insert_default();
        files.inputs = vec![Template::parse("${{ item }}[${{ index }}]").expect("valid")];
        assert_eq!(step.inputs(&scope(json!("parse"), 3)), Ok(vec!["parse[3]".to_owned()]));
        assert!(step.inputs(&scope(json!("other"), 3)).is_err());
        assert!(is_input("parse", "parse[3]") && is_input("parse[3]", "parse[3]") && is_input("a", "a"));
        assert!(!is_input("parse[2]", "parse[3]") && !is_input("parse[3]", "parse"));
    }
}
