use super::*;
#[test]
fn dump() {
    let cases: Vec<(String, String)> =
        serde_json::from_str(&std::fs::read_to_string("/tmp/gen/cases.json").unwrap()).unwrap();
    let mut out = Vec::new();
    for (name, yaml) in cases {
        let source = Source { file: "flow.yaml".into(), default_name: "flow".into(), text: yaml.clone() };
        let r = match compile(&source) {
            Ok(_) => "OK!".to_owned(),
            Err(e) => e.render(false),
        };
        out.push((name, yaml, r));
    }
    std::fs::write("/tmp/gen/out.json", serde_json::to_string(&out).unwrap()).unwrap();
}
