//! What a deployment says where a document is silent. The keys are added to the text of the document
//! when it comes in, so that they are part of its version: every node, a replay and a reader of the
//! document see the policies that were in force.

use serde_json::{Value, json};

use super::Source;
use super::finding::Findings;
use super::model::OnFailure;
use super::yaml::{self, Data};

/// Keys for documents that do not have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentDefaults {
    pub on_failure: Option<OnFailure>,
    /// As a document writes it, such as `1h`.
    pub step_timeout: Option<String>,
    pub step_retry: Option<u32>,
}

impl DocumentDefaults {
    /// Adds the keys that the document does not have. A document that cannot be read stays as it is, and is
    /// rejected for what is wrong with it.
    #[must_use]
    pub fn complete(&self, source: Source) -> Source {
        let text = self.completed(&source.text).unwrap_or_default();
        if text.is_empty() { source } else { Source { text, ..source } }
    }

    fn completed(&self, text: &str) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let tree = yaml::parse(text, &mut Findings::default())?;
        let root = tree.node(tree.root);
        let Data::Map(flat) = &root.data else { return None };
        let known: Vec<&str> = yaml::Tree::pairs(flat).map(|(key, _)| tree.key(key)).collect();
        let missing = self.missing(&known);
        let start = root.span.start as usize;
        if missing.is_empty() {
            None
        } else if text[start..].starts_with('{') {
            // It may be JSON.
            let keys: String = missing.iter().map(|(key, value)| format!("\"{key}\": {value}, ")).collect();
            Some(format!("{}{{{keys}{}", &text[..start], &text[start + 1..]))
        } else {
            Some(append(text, start, &missing))
        }
    }

    fn missing(&self, known: &[&str]) -> Vec<(&'static str, Value)> {
        // A level that fails is always canceled as a whole.
        let has_rule = known.contains(&"execution");
        let on_failure = self.on_failure.filter(|_| !has_rule);
        let all = [
            ("on_failure", on_failure.map(|value| json!(value.as_str()))),
            ("step_timeout", self.step_timeout.as_ref().map(|value| json!(value))),
            ("step_retry", self.step_retry.map(|max| json!({ "max": max }))),
        ];
        all.into_iter()
            .filter(|(key, _)| !known.contains(key))
            .filter_map(|(key, value)| Some((key, value?)))
            .collect()
    }
}

/// Adds keys behind all others of a block mapping whose first key begins at `start`.
fn append(text: &str, start: usize, missing: &[(&str, Value)]) -> String {
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[line..start];
    let indent = if indent.trim().is_empty() { indent } else { "" };
    let trimmed = text.trim_end();
    // The end of the document may be marked.
    let body = trimmed.strip_suffix("\n...").unwrap_or(trimmed);
    let mut completed = format!("{body}\n{indent}# Defaults of this deployment:\n");
    for (key, value) in missing {
        completed.push_str(&format!("{indent}{key}: {value}\n"));
    }
    completed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::definition::{compile, read};

    fn source(text: &str) -> Source {
        Source { file: "f.yaml".to_owned(), default_name: "f".to_owned(), text: text.to_owned() }
    }

    fn all() -> DocumentDefaults {
        DocumentDefaults {
            on_failure: Some(OnFailure::Continue),
            step_timeout: Some("1h".to_owned()),
            step_retry: Some(2),
        }
    }

    #[test]
    fn what_a_document_does_not_say_is_added_behind_it() {
        let text = "steps:\n  a:\n    run: |\n      echo a\n\n";
        let completed = all().complete(source(text)).text;
        assert_eq!(
            completed,
            "steps:\n  a:\n    run: |\n      echo a\n# Defaults of this deployment:\non_failure: \"continue\"\n\
             step_timeout: \"1h\"\nstep_retry: {\"max\":2}\n"
        );
        let again = all().complete(source(&completed)).text;
        assert_eq!(again, completed, "nothing is added twice");
        let own = "on_failure: halt\nsteps: {a: {run: x}}\nstep_retry: {max: 0}";
        assert_eq!(
            all().complete(source(own)).text,
            "on_failure: halt\nsteps: {a: {run: x}}\nstep_retry: {max: 0}\n# Defaults of this deployment:\nstep_timeout: \"1h\"\n"
        );
        assert_eq!(DocumentDefaults::default().complete(source(text)).text, text);
    }

    #[test]
    fn every_form_of_a_document_means_the_same_afterwards() {
        let forms = [
            "steps:\n  a: {run: x}\n",
            "---\nsteps:\n  a: {run: x}\n",
            "---\nsteps:\n  a: {run: x}\n...\n",
            "  steps:\n    a: {run: x}\n",
            "# first\n\nsteps: {a: {run: x}} # last",
            "{steps: {a: {run: x}}}",
            " {\"steps\": {\"a\": {\"run\": \"x\"}}}\n",
            "\u{feff}steps:\n  a: {run: x}\n",
        ];
        for form in forms {
            let completed = all().complete(source(form));
            let workflow =
                read(&completed).unwrap_or_else(|refused| panic!("{form}: {}", refused.render(false)));
            let step = &workflow.steps[0];
            assert_eq!(workflow.on_failure, OnFailure::Continue, "{form}");
            assert_eq!((step.timeout, step.retry.max), (Some(Duration::from_secs(3600)), 2), "{form}");
        }
    }

    #[test]
    fn levels_and_documents_that_cannot_be_read_stay_as_they_are() {
        let levels = "execution: levels\nsteps: {a: {run: x}}\n";
        let completed = all().complete(source(levels));
        assert!(!completed.text.contains("on_failure"));
        compile(&completed).unwrap_or_else(|refused| panic!("{}", refused.render(false)));
        for wrong in ["", "steps: [", "- a", "7"] {
            assert_eq!(all().complete(source(wrong)).text, wrong);
        }
    }
}
