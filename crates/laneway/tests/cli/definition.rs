//! Commands that read a document and run nothing: validate, plan, graph, schema, completions, --dry-run.

use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::json;

use crate::place::Place;

const BUILD: &str = "
steps:
  lint: {run: echo lint}
  test: {run: echo test}
  package: {needs: [lint, test], run: echo package}
";

#[test]
fn validate_tells_of_every_file() {
    let place = Place::with("build.yaml", BUILD);
    place.write("bad.yaml", "steps:\n  a: {run: echo a, neds: [b]}\n  b: {needs: [c], run: echo b}\n");
    assert_snapshot!(place.laneway("validate build.yaml bad.yaml gone.yaml"), @"");
    assert!(!place.path(".laneway").exists(), "validate makes no store");
}

#[test]
fn validate_exits_with_zero_when_all_is_well() {
    assert_snapshot!(Place::with("build.yaml", BUILD).laneway("validate build.yaml"), @"");
}

#[test]
fn validate_gives_its_verdict_as_json() {
    let place = Place::with("build.yaml", BUILD);
    assert_eq!(
        place.json("validate build.yaml --json"),
        json!({ "file": "build.yaml", "valid": true, "workflow": "build", "errors": [] })
    );
    place.write("bad.yaml", "steps: {a: {run: echo, neds: [b]}}");
    let verdict = place.json("validate bad.yaml --json");
    assert_eq!(verdict["valid"], json!(false));
    assert_eq!(verdict["errors"][0]["line"], json!(1));
    assert_eq!(place.laneway("validate bad.yaml --json").code, Some(2));
}

#[test]
fn validate_reads_stdin() {
    let place = Place::with("build.yaml", BUILD);
    let mut command = place.command(&["validate", "-"]);
    command.stdin(Stdio::from(std::fs::File::open(place.path("build.yaml")).expect("the file")));
    assert_snapshot!(place.outcome("validate - < build.yaml", command), @"");
}

#[test]
fn plan_shows_levels_lanes_and_the_critical_path() {
    assert_snapshot!(Place::with("build.yaml", BUILD).laneway("plan build.yaml"), @"");
}

#[test]
fn plan_as_json_has_the_promised_shape() {
    let plan = Place::with("build.yaml", BUILD).json("plan build.yaml --json");
    assert_eq!(plan["order"], json!(["lint", "test", "package"]));
    assert_eq!(plan["levels"], json!([["lint", "test"], ["package"]]));
    assert_eq!(plan["lanes"], json!([{ "step": "lint" }, { "step": "test" }, { "step": "package" }]));
    assert_eq!(plan["critical_path"], json!(["lint", "package"]));
    assert!(plan["prewarm"].is_object());
}

#[test]
fn graph_is_drawn_in_three_formats() {
    let place = Place::with("build.yaml", BUILD);
    assert!(place.laneway("graph build.yaml").stdout.starts_with("digraph"));
    assert!(place.laneway("graph build.yaml --format mermaid").stdout.starts_with("flowchart"));
    assert_snapshot!(place.laneway("graph build.yaml -o build.svg"), @"");
    assert!(place.read("build.svg").starts_with("<svg"), "the ending of the file says the format");
}

#[test]
fn a_graph_that_cannot_be_written_says_where() {
    let place = Place::with("build.yaml", BUILD);
    assert_snapshot!(place.laneway("graph build.yaml -o no/such/place.svg"), @"");
}

#[test]
fn schema_is_a_json_schema_that_accepts_the_document() {
    let schema = Place::new().json("schema");
    let validator = jsonschema::validator_for(&schema).expect("a well-formed schema");
    assert!(validator.is_valid(&json!({ "steps": { "a": { "run": "echo" } } })));
    assert!(!validator.is_valid(&json!({ "steps": { "a": { "rum": "echo" } } })));
}

#[test]
fn completions_exist_for_the_shells() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = place.laneway(&format!("completions {shell}"));
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.stdout.contains("laneway"), "{shell}");
    }
}

const FORESEEN: &str = r#"
params:
  name: {type: string, required: true}
  deep: {type: boolean, default: false}
env: {WHO: "${{ params.name }}"}
steps:
  fetch:
    run: |
      echo "$WHO"
      echo files=2 >> "$LANEWAY_OUTPUT"
  parse:
    needs: [fetch]
    command: [./parse]
    args: ["--for", "${{ params.name }}", "${{ steps.fetch.output.files }}"]
  dig: {needs: [fetch], if: "${{ params.deep }}", run: echo digging}
  report: {needs: [parse, dig], when: all_done, run: echo done}
"#;

#[test]
fn dry_run_shows_what_would_run_and_makes_nothing() {
    let place = Place::with("etl.yaml", FORESEEN);
    let mut command = place.command(&["run", "etl.yaml", "--dry-run", "-p", "name=Ada Lovelace"]);
    command.env("LANEWAY_MAX_PARALLEL", "2");
    assert_snapshot!(place.outcome("run etl.yaml --dry-run -p 'name=Ada Lovelace'", command), @"");
    assert!(!place.path(".laneway").exists(), "--dry-run makes no store");
}

#[test]
fn dry_run_as_json_tells_values_and_conditions() {
    let place = Place::with("etl.yaml", FORESEEN);
    let shown = place.json("run etl.yaml --dry-run --json -p name=ada");
    assert_eq!(
        shown["steps"][1]["argv"],
        json!(["./parse", "--for", "ada", "${{ steps.fetch.output.files }}"])
    );
    assert_eq!(shown["steps"][2]["condition"], json!(false));
    assert_eq!(shown["params"], json!({ "name": "ada", "deep": false }));
}
