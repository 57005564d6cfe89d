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
    assert_snapshot!(place.laneway("validate build.yaml bad.yaml gone.yaml"), @r"
    $ laneway validate build.yaml bad.yaml gone.yaml
    exit code 2
    ----- stdout
    build.yaml: ok, build has 3 steps
    ----- stderr
    error: a step has no key `neds`
     --> bad.yaml:2:20
      |
    2 |   a: {run: echo a, neds: [b]}
      |                    ^^^^
      |
      = help: did you mean `needs`?

    error: step `b` needs `c`, which is not a step
     --> bad.yaml:3:15
      |
    3 |   b: {needs: [c], run: echo b}
      |               ^
    error: there is no file gone.yaml
    hint: `laneway init` writes one to begin with; `laneway start` runs a workflow that was applied, by its name
    ");
    assert!(!place.path(".laneway").exists(), "validate makes no store");
}

/// Mistakes that people make who are new to it, each with what to write instead.
#[test]
fn validate_answers_the_mistakes_of_newcomers() {
    let place = Place::new();
    for (name, text) in [
        ("weekday", "schedule: {cron: \"0 2 * * MONDAY\"}\nsteps: {a: {run: make}}\n"),
        ("minute", "schedule: {cron: \"61 * * * *\"}\nsteps: {a: {run: make}}\n"),
        ("matrix", "steps:\n  a: {run: make, matrix: {os: [linux, mac]}}\n"),
        (
            "map",
            "params: {l: {type: list, required: true}}\nsteps:\n  a: {run: make, env: {X: \"${{ params.l | map('upper') }}\"}}\n",
        ),
        ("list", "steps:\n  - name: Build\n    run: make\n"),
        ("jobs", "jobs: {build: {run: make}}\n"),
        ("uses", "steps:\n  a: {uses: actions/checkout@v4}\n"),
        ("depends", "steps:\n  a: {run: make}\n  b: {run: make, depends_on: [a]}\n"),
        ("when", "steps:\n  a: {run: make}\n  b: {run: make, needs: [a], when: on_failure}\n"),
        ("colon", "steps:\n  a: {run: echo: hi}\n"),
        (
            "callback",
            "secrets: {key: {env: KEY}}\nsteps: {a: {run: make}}\nhooks: {failed: [{post: \"https://x.org/${{ secrets.kez }}\"}]}\n",
        ),
    ] {
        place.write(&format!("{name}.yaml"), text);
    }
    assert_snapshot!(place.laneway(
        "validate weekday.yaml minute.yaml matrix.yaml map.yaml list.yaml jobs.yaml uses.yaml depends.yaml \
         when.yaml colon.yaml callback.yaml"
    ), @r##"
    $ laneway validate weekday.yaml minute.yaml matrix.yaml map.yaml list.yaml jobs.yaml uses.yaml depends.yaml when.yaml colon.yaml callback.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: `cron` must be a pattern such as "0 2 * * *", not the string `0 2 * * MONDAY`
     --> weekday.yaml:1:18
      |
    1 | schedule: {cron: "0 2 * * MONDAY"}
      |                  ^^^^^^^^^^^^^^^^
      |
      = help: `MONDAY` is no weekday: write `MON`, or `1`
    error: `cron` must be a pattern such as "0 2 * * *", not the string `61 * * * *`
     --> minute.yaml:1:18
      |
    1 | schedule: {cron: "61 * * * *"}
      |                  ^^^^^^^^^^^^
      |
      = help: `61` is no minute: write 0 to 59
    error: `matrix` is not supported yet
     --> matrix.yaml:2:18
      |
    2 |   a: {run: make, matrix: {os: [linux, mac]}}
      |                  ^^^^^^
      |
      = help: write `for_each` with the combinations: `for_each: [{os: linux, py: "3.12"}]`, read as `${{ item.os }}`
    error: there is no filter `map`
     --> map.yaml:3:43
      |
    3 |   a: {run: make, env: {X: "${{ params.l | map('upper') }}"}}
      |                                           ^^^
      |
      = help: an expression has no loops: `for_each` makes a task for each item, and a script can compute a list with `jq`
    error: `steps` must be a mapping of names to steps, not a list
     --> list.yaml:2:3
      |
    2 |   - name: Build
      |   ^^^^^^^^^^^^^
      |
      = help: give each step a name: `steps: {build: {run: …}, test: {needs: [build], run: …}}`; steps without `needs` start at once
    error: the workflow has no `steps`
     --> jobs.yaml:1:1
      |
    1 | jobs: {build: {run: make}}
      | ^
      |
      = help: add at least one: `steps: {hello: {run: echo hello}}`

    error: a workflow has no key `jobs`
     --> jobs.yaml:1:1
      |
    1 | jobs: {build: {run: make}}
      | ^^^^
      |
      = help: the word here is `steps`: `steps: {build: {run: make}, test: {needs: [build], run: make test}}`
    error: a step has no key `uses`
     --> uses.yaml:2:7
      |
    2 |   a: {uses: actions/checkout@v4}
      |       ^^^^
      |
      = help: nothing is fetched from a marketplace: `run` is a script, `image` its container, `workflow` another workflow
    error: a step has no key `depends_on`
     --> depends.yaml:3:18
      |
    3 |   b: {run: make, depends_on: [a]}
      |                  ^^^^^^^^^^
      |
      = help: the word here is `needs`: `needs: [build]` starts the step when `build` has succeeded
    error: `when` must be one of all_succeeded, all_done, all_failed, one_succeeded, one_failed, always, not the string `on_failure`
     --> when.yaml:3:36
      |
    3 |   b: {run: make, needs: [a], when: on_failure}
      |                                    ^^^^^^^^^^
      |
      = help: write `one_failed`: it starts when a step that it needs has failed
    error: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'
     --> colon.yaml:2:16
      |
    2 |   a: {run: echo: hi}
      |                ^
      |
      = help: a value that contains `: ` needs quotes: run: "echo: hi"
    error: there is no secret `kez`
     --> callback.yaml:3:44
      |
    3 | hooks: {failed: [{post: "https://x.org/${{ secrets.kez }}"}]}
      |                                            ^^^^^^^^^^^
      |
      = help: did you mean `key`?
    "##);
    let mut preview = place.command(&["schedule", "preview", "--cron", "61 * * * *"]);
    preview.env("COLUMNS", "100");
    assert_snapshot!(place.outcome("schedule preview --cron '61 * * * *'", preview), @r##"
    $ laneway schedule preview --cron '61 * * * *'
    exit code 2
    ----- stdout
    ----- stderr
    error: invalid value '61 * * * *' for '--cron <PATTERN>': `61` is no minute: write 0 to 59

    For more information, try '--help'.
    "##);
}

#[test]
fn validate_exits_with_zero_when_all_is_well() {
    assert_snapshot!(Place::with("build.yaml", BUILD).laneway("validate build.yaml"), @r"
    $ laneway validate build.yaml
    exit code 0
    ----- stdout
    build.yaml: ok, build has 3 steps
    ----- stderr
    ");
}

#[test]
fn validate_gives_its_verdict_as_json() {
    let place = Place::with("build.yaml", BUILD);
    assert_eq!(
        place.json("validate build.yaml --json"),
        json!({ "file": "build.yaml", "valid": true, "workflow": "build", "errors": [], "warnings": [] })
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
    assert_snapshot!(place.outcome("validate - < build.yaml", command), @r"
    $ laneway validate - < build.yaml
    exit code 0
    ----- stdout
    stdin: ok, stdin has 3 steps
    ----- stderr
    ");
}

#[test]
fn plan_shows_levels_lanes_and_the_critical_path() {
    assert_snapshot!(Place::with("build.yaml", BUILD).laneway("plan build.yaml"), @r"
    $ laneway plan build.yaml
    exit code 0
    ----- stdout
    build: 3 steps in 2 levels, width 2

    levels
      0  lint, test
      1  package

    lanes
      3, each a step of its own: lint, test, package

    files, in a submitted run: the steps whose changes a step sees
      package: lint, test

    critical path: 2 steps: lint -> package
    pre-warm: nothing, no lane is parallel
    ----- stderr
    ");
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
    assert_snapshot!(place.laneway("graph build.yaml -o build.svg"), @r"
    $ laneway graph build.yaml -o build.svg
    exit code 0
    ----- stdout
    ----- stderr
    ");
    assert!(place.read("build.svg").starts_with("<svg"), "the ending of the file says the format");
}

#[test]
fn a_graph_that_cannot_be_written_says_where() {
    let place = Place::with("build.yaml", BUILD);
    assert_snapshot!(place.laneway("graph build.yaml -o no/such/place.svg"), @r"
    $ laneway graph build.yaml -o no/such/place.svg
    exit code 2
    ----- stdout
    ----- stderr
    error: no/such/place.svg cannot be written
      caused by: No such file or directory (os error 2)
    ");
}

#[test]
fn schema_is_a_json_schema_that_accepts_the_document() {
    let schema = Place::new().json("schema");
    let validator = jsonschema::validator_for(&schema).expect("a well-formed schema");
    assert!(validator.is_valid(&json!({ "steps": { "a": { "run": "echo" } } })));
    assert!(!validator.is_valid(&json!({ "steps": { "a": { "rum": "echo" } } })));
}

/// In a real shell, with the script that people load.
#[test]
fn runs_and_steps_are_completed_in_bash() {
    let place = Place::with("flow.yaml", "steps: {fetch: {run: 'true'}, format: {run: 'true'}}\n");
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    place.write("laneway.bash", &place.laneway("completions bash").stdout);
    let run = place.json("show last --json")["run"].as_str().expect("an id").to_owned();
    let complete = |line: &str| {
        let script = format!(
            "laneway() {{ {program} \"$@\"; }}; . ./laneway.bash\n\
             COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _laneway_with_runs laneway \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            program = env!("CARGO_BIN_EXE_laneway"),
        );
        let mut command = std::process::Command::new("bash");
        command.args(["--norc", "-c", &script]).current_dir(place.path(""));
        let outcome = place.outcome(line, command);
        assert_eq!(outcome.stderr, "", "{outcome}");
        outcome.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let short = &run[run.len() - 12..run.len() - 4];
    assert_eq!(complete("laneway show ''"), ["last", short]);
    assert_eq!(complete("laneway show la"), ["last"]);
    assert_eq!(complete("laneway explain last ''"), ["fetch", "format"]);
    assert_eq!(complete(&format!("laneway logs {short} fo")), ["format"]);
    let elsewhere = complete("laneway --store other.db cancel ''");
    assert!(!elsewhere.contains(&"last".to_owned()), "runs of another store: {elsewhere:?}");
    assert!(complete("laneway sho").contains(&"show".to_owned()), "commands are completed as before");
    assert!(complete("laneway show --js").contains(&"--json".to_owned()));
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
    assert_snapshot!(place.outcome("run etl.yaml --dry-run -p 'name=Ada Lovelace'", command), @r#"
    $ laneway run etl.yaml --dry-run -p 'name=Ada Lovelace'
    exit code 0
    ----- stdout
    etl would run 4 steps, at most 2 at once:
      with name = "Ada Lovelace"
      with deep = false

    fetch
      echo "$WHO"
      echo files=2 >> "$LANEWAY_OUTPUT"
      WHO='Ada Lovelace'

    parse  after fetch
      ./parse --for 'Ada Lovelace' '${{ steps.fetch.output.files }}'
      WHO='Ada Lovelace'

    dig  after fetch  skipped: `params.deep` is false
      echo digging
      WHO='Ada Lovelace'

    report  after parse, dig  when all_done
      echo done
      WHO='Ada Lovelace'
    ----- stderr
    "#);
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

#[test]
fn plan_names_variables_that_a_worker_would_not_have() {
    let document = "env: {STAGE: test}\nsecrets: {key: {env: API_KEY}}\nsteps:\n  a: {run: 'echo $HOME $STAGE $REGION ${PROFILE:-x}; N=1; echo $N'}\n  b: {run: 'curl \"$HOST/x\"', env: {K: '${{ secrets.key }}'}}\n";
    let place = Place::with("deploy.yaml", document);
    let plan = place.laneway("plan deploy.yaml").stdout;
    let told = plan.split("\nvariables that").nth(1).unwrap_or_else(|| panic!("{plan}"));
    assert!(told.ends_with("\n  a: REGION\n  b: HOST\n  secret key: API_KEY\n"), "{plan}");
    place.write("laneway.toml", "pass_env = [\"REGION\"]\n");
    let plan = place.json("plan deploy.yaml --json");
    assert_eq!(
        plan["variables"],
        json!([{ "step": "b", "names": ["HOST"] }, { "secret": "key", "names": ["API_KEY"] }])
    );
}
