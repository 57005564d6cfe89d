//! A file of parameters, as `--params-file` takes it: one YAML or JSON object, read under the same bounds
//! as a workflow. What the values must be is decided by `params::bind`.

use serde_json::{Map, Value};

use super::finding::{Finding, Findings};
use super::reader::Reader;
use super::yaml::{self, Data};
use super::{Diagnostics, Source, checked};

/// The object that the file holds.
pub fn read_params(source: &Source) -> Result<Map<String, Value>, Diagnostics> {
    let checked = checked(source)?;
    let mut findings = Findings::default();
    let Some(tree) = yaml::parse(checked.all, &mut findings) else {
        return Err(Diagnostics::new(&source.file, Some(&checked), findings));
    };
    let root = tree.node(tree.root);
    if !matches!(root.data, Data::Map(_)) {
        let wrong = Finding::new("a file of parameters must hold one object", root.span);
        findings.push(wrong.hint("write `name: value` lines"));
    }
    let mut reader = Reader { text: &source.text, tree: &tree, findings, sites: Vec::new(), step: None };
    match (reader.json(tree.root), reader.findings.is_empty()) {
        (Value::Object(params), true) => Ok(params),
        (_, _) => Err(Diagnostics::new(&source.file, Some(&checked), reader.findings)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, String> {
        let source = Source { file: "p.yaml".into(), default_name: "p".into(), text: text.into() };
        read_params(&source).map(Value::Object).map_err(|diagnostics| diagnostics.all[0].message.clone())
    }

    #[test]
    fn yaml_and_json_are_read_with_their_types() {
        let expected = json!({ "date": "2026-11-15", "depth": 2, "tags": ["a"] });
        assert_eq!(read("date: \"2026-11-15\"\ndepth: 2\ntags: [a]\n"), Ok(expected.clone()));
        assert_eq!(read(&expected.to_string()), Ok(expected));
    }

    #[test]
    fn anything_but_an_object_is_refused() {
        assert_eq!(read("[1, 2]"), Err("a file of parameters must hold one object".to_owned()));
        assert!(read("a: 1\na: 2\n").is_err());
    }
}
