//! A file of parameters, as `--params-file` takes it: one YAML or JSON object, read under the same bounds
//! as a workflow. What the values must be is decided by `params::bind`.

use serde_json::{Map, Value};

use super::finding::{Finding, Findings};
use super::reader::Reader;
use super::yaml::{Data, Tree};
use super::{Diagnostics, Source, finish, parsed};

/// The object that the file holds.
pub fn read_params(source: &Source) -> Result<Map<String, Value>, Diagnostics> {
    let mut findings = Findings::default();
    let params = parsed(source, &mut findings).and_then(|tree| object(&source.text, &tree, &mut findings));
    finish(source, params, findings)
}

fn object(text: &str, tree: &Tree<'_>, findings: &mut Findings) -> Option<Map<String, Value>> {
    let root = tree.node(tree.root);
    if !matches!(root.data, Data::Map(_)) {
        let wrong = Finding::new("a file of parameters must hold one object", root.span);
        findings.push(wrong.hint("write `name: value` lines"));
        return None;
    }
    let mut reader = Reader {
        text,
        tree,
        findings: Findings::default(),
        sites: Vec::new(),
        named: Vec::new(),
        step: None,
        is_env: false,
        is_hook: false,
        is_callback: false,
        shell: crate::shell::Shell::Sh,
    };
    let value = reader.json(tree.root);
    findings.append(reader.findings);
    match value {
        Value::Object(params) => Some(params),
        _ => None,
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
