//! `laneway run` in a pipe: plain lines, JSON lines, parameters, outputs, failures and their exit codes.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::place::{Place, text};

const CHAIN: &str = r#"
steps:
  fetch: {run: "echo fetching; echo file=data.csv >> $LANEWAY_OUTPUT"}
  parse:
    needs: [fetch]
    run: echo "parsing $FILE"
    env: {FILE: "${{ steps.fetch.output.file }}"}
"#;

#[test]
fn a_run_in_a_pipe_prints_plain_lines_and_a_summary() {
    let place = Place::with("etl.yaml", CHAIN);
    assert_snapshot!(place.laneway("run etl.yaml"), @r"
    $ laneway run etl.yaml
    exit code 0
    ----- stdout
    [clock] run [id] of etl submitted
    [clock] fetch started
    [clock] fetch succeeded in [took]
    [clock] parse started
    [clock] parse succeeded in [took]
    ✓ etl [id] succeeded in [took]: 2 succeeded
    ----- stderr
    ");
    assert_snapshot!(place.laneway("logs last"), @r"
    $ laneway logs last
    exit code 0
    ----- stdout
    fetch | fetching
    parse | parsing data.csv
    ----- stderr
    ");
    assert_eq!(place.read(".laneway/.gitignore"), "*\n");
}

#[test]
fn a_run_as_json_is_one_event_a_line_and_ends_with_run_finished() {
    let place = Place::with("etl.yaml", CHAIN);
    let outcome = place.laneway("run etl.yaml --json");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(outcome.stderr, "");
    let events: Vec<Value> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON on every line")).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let last = events.last().expect("events");
    assert_eq!(last["event"], json!("run_finished"));
    assert_eq!(last["status"], json!("succeeded"));
    assert_eq!(last["reason"], Value::Null);
    assert_eq!(last["run"], events[0]["run"]);
    let record = place.laneway("events last --json").stdout;
    assert_eq!(outcome.stdout, record, "what was told is what is recorded");
}

#[test]
fn a_failed_run_shows_the_last_lines_of_the_failed_step_and_exits_with_one() {
    let place = Place::with(
        "build.yaml",
        "
steps:
  test:
    run: |
      for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done
      echo 'assertion failed'
      exit 3
  package: {needs: [test], run: echo never}
",
    );
    assert_snapshot!(place.laneway("run build.yaml"), @r"
    $ laneway run build.yaml
    exit code 1
    ----- stdout
    [clock] run [id] of build submitted
    [clock] test started
    [clock] test failed in [took]: exit code 3
    [clock] run halts because test failed: nothing new starts
    [clock] package skipped: another step failed

    ✗ test, its last lines (laneway logs [id] test):
      │ line 4
      │ line 5
      │ line 6
      │ line 7
      │ line 8
      │ line 9
      │ line 10
      │ line 11
      │ line 12
      │ assertion failed

    ✗ build [id] failed in [took]: 1 failed, 1 skipped (test failed: exit code 3); next: laneway logs [id] test, laneway retry [id]
    ----- stderr
    ");
    assert_eq!(place.statuses(), "test=failed package=skipped");
}

#[test]
fn a_retry_is_told_with_its_delay() {
    let place = Place::with(
        "flaky.yaml",
        "
steps:
  flaky:
    run: test -e again || { touch again; exit 75; }
    retry: {max: 2, backoff: 20ms}
",
    );
    assert_snapshot!(place.laneway("run flaky.yaml"), @r"
    $ laneway run flaky.yaml
    exit code 0
    ----- stdout
    [clock] run [id] of flaky submitted
    [clock] flaky started
    [clock] flaky failed in [took]: exit code 75; retry in [took]
    [clock] flaky started, attempt 2
    [clock] flaky succeeded in [took]
    ✓ flaky [id] succeeded in [took]: 1 succeeded
    ----- stderr
    ");
}

#[test]
fn a_timeout_is_told_as_such_and_clean_up_still_runs() {
    let place = Place::with(
        "slow.yaml",
        "
steps:
  slow: {run: sleep 60, timeout: 100ms}
  clean: {needs: [slow], when: all_done, run: echo cleaned}
",
    );
    assert_snapshot!(place.laneway("run slow.yaml --kill-grace 1s"), @r"
    $ laneway run slow.yaml --kill-grace 1s
    exit code 1
    ----- stdout
    [clock] run [id] of slow submitted
    [clock] slow started
    [clock] slow failed in [took]: ran longer than [took]
    [clock] run halts because slow failed: nothing new starts
    [clock] clean started
    [clock] clean succeeded in [took]

    ✗ slow printed nothing

    ✗ slow [id] failed in [took]: 1 succeeded, 1 failed (slow failed: ran longer than [took]); next: laneway logs [id] slow, laneway retry [id]
    ----- stderr
    ");
}

#[test]
fn only_five_failures_are_shown_in_full() {
    let mut document = "on_failure: continue\nmax_parallel: 1\nsteps:\n".to_owned();
    for step in 1..=7 {
        document.push_str(&format!("  s{step}: {{run: exit {step}}}\n"));
    }
    let outcome = Place::with("many.yaml", &document).laneway("run many.yaml");
    assert_eq!(outcome.code, Some(1));
    assert_eq!(outcome.stdout.matches("printed nothing").count(), 5, "{outcome}");
    assert!(outcome.stdout.contains("2 more steps failed"), "{outcome}");
}

const TYPED: &str = r#"
params:
  date: {type: string, required: true}
  depth: {type: integer, default: 2}
  tags: {type: list, default: []}
steps:
  show:
    run: echo "$DATE $DEPTH $TAGS"
    env: {DATE: "${{ params.date }}", DEPTH: "${{ params.depth }}", TAGS: "${{ params.tags }}"}
"#;

#[test]
fn parameters_come_from_the_command_line_and_from_a_file_and_the_line_wins() {
    let place = Place::with("typed.yaml", TYPED);
    place.write("params.yaml", "date: from-file\ntags: [a, b]\n");
    assert_eq!(place.laneway("run typed.yaml -p date=today -p depth=3").code, Some(0));
    assert_eq!(place.laneway("logs last show").stdout, "today 3 []\n");
    assert_eq!(place.laneway("run typed.yaml --params-file params.yaml -p date=typed").code, Some(0));
    assert_eq!(place.laneway("logs last show").stdout, "typed 2 [\"a\",\"b\"]\n");
    place.write("params.json", r#"{"date": "from-json", "depth": 9}"#);
    assert_eq!(place.laneway("run typed.yaml --params-file params.json").code, Some(0));
    assert_eq!(place.laneway("logs last show").stdout, "from-json 9 []\n");
}

/// Steps that note how many of them run at once.
const WIDE: &str = "
steps:
  a: &probe {run: \"mkdir one && sleep 0.05 && rmdir one\"}
  b: *probe
  c: *probe
";

#[test]
fn max_parallel_one_runs_one_step_after_the_other() {
    let place = Place::with("wide.yaml", WIDE);
    let outcome = place.laneway("run wide.yaml --max-parallel 1");
    assert_eq!(outcome.code, Some(0), "two at once would find the directory: {outcome}");
}

#[test]
fn the_flag_wins_over_the_document_and_the_document_over_the_environment() {
    let max_parallel = |document: &str, flag: &[&str], env: &str| {
        let place = Place::with("one.yaml", &format!("{document}\nsteps: {{a: {{run: echo}}}}"));
        let mut command = place.command(&["run", "one.yaml", "--dry-run", "--json"]);
        command.args(flag).env("LANEWAY_MAX_PARALLEL", env);
        let outcome = place.outcome("run one.yaml --dry-run --json", command);
        let shown: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        shown["max_parallel"].as_u64()
    };
    assert_eq!(max_parallel("max_parallel: 2", &["--max-parallel", "7"], "3"), Some(7));
    assert_eq!(max_parallel("max_parallel: 2", &[], "3"), Some(2));
    assert_eq!(max_parallel("", &[], "3"), Some(3));
    assert_eq!(max_parallel("", &[], ""), Some(4));
}

#[test]
fn steps_run_in_the_directory_of_their_file_wherever_the_caller_is() {
    let place = Place::new();
    std::fs::create_dir(place.path("flows")).expect("a directory");
    place.write("flows/here.yaml", "steps: {where: {run: pwd}}");
    assert_eq!(place.laneway("run flows/here.yaml").code, Some(0));
    let here = place.path("flows").canonicalize().expect("the directory");
    assert_eq!(place.laneway("logs last where").stdout, format!("{}\n", here.display()));
}

#[test]
fn another_store_is_used_when_it_is_named() {
    let place = Place::with("etl.yaml", CHAIN);
    assert_eq!(place.laneway("run etl.yaml --store state/mine.db").code, Some(0));
    assert!(!place.path(".laneway").exists());
    assert_eq!(place.json("runs --json --store state/mine.db").as_array().map(Vec::len), Some(1));
    let mut command = place.command(&["runs"]);
    command.env("LANEWAY_STORE", "state/mine.db");
    assert_eq!(place.outcome("runs", command).code, Some(0));
}

#[test]
fn start_runs_a_known_workflow_again_where_it_ran() {
    let place = Place::with("typed.yaml", TYPED);
    place.laneway("run typed.yaml -p date=first");
    std::fs::remove_file(place.path("typed.yaml")).expect("the store has the document");
    assert_eq!(place.laneway("start typed --wait -p date=second").code, Some(0));
    assert_eq!(place.laneway("logs last").stdout, "second 2 []\n");
    assert_eq!(place.json("runs --json --workflow typed").as_array().map(Vec::len), Some(2));
    assert_eq!(place.laneway("start typed --dry-run -p date=third").code, Some(0));
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2), "a dry run makes none");
}

#[test]
fn a_reader_that_goes_away_stops_neither_the_run_nor_the_program_with_an_error() {
    let place = Place::with("etl.yaml", CHAIN);
    place.pipe("gone");
    // The reader closes the pipe at once; the program writes to a pipe that nobody reads.
    let script = format!("{} run etl.yaml > gone; echo code $?", env!("CARGO_BIN_EXE_laneway"));
    let mut shell = place.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(place.path("")).env_clear();
    command.envs(shell.env("USER", "ada").get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn();
    drop(std::fs::File::open(place.path("gone")).expect("the pipe opens when the shell does"));
    let output = child.expect("a shell").wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "code 0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(place.statuses(), "fetch=succeeded parse=succeeded");
}

#[test]
fn a_workflow_is_read_from_stdin() {
    let place = Place::with("etl.yaml", CHAIN);
    let mut command = place.command(&["run", "-"]);
    command.stdin(std::fs::File::open(place.path("etl.yaml")).expect("the file"));
    assert_eq!(place.outcome("run -", command).code, Some(0));
    assert_eq!(text(&place.json("show last --json")["workflow"]), "stdin");
}

#[test]
fn a_step_that_removes_the_store_ends_the_run_in_words() {
    let place = Place::with("w.yaml", "steps: {a: {run: rm -r .laneway}, b: {needs: a, run: echo b}}");
    let outcome = place.laneway("run w.yaml");
    assert_eq!(outcome.code, Some(3), "{outcome}");
    assert!(outcome.stderr.contains(".laneway/laneway.db was removed or replaced"), "{outcome}");
    assert!(!outcome.stdout.contains("a succeeded"), "{outcome}");
    assert!(!outcome.stderr.contains('\u{1b}'), "warnings have no colours in a pipe: {outcome}");
}

#[test]
fn what_a_failed_step_printed_cannot_move_the_cursor() {
    let script = r"printf '\033[2J\033[31mred\n10%%\r99%%\n'; exit 1";
    let place = Place::with("w.yaml", &format!("steps:\n  a:\n    run: {script}\n"));
    let outcome = place.laneway("run w.yaml");
    assert!(outcome.stdout.contains("  │ red\n  │ 99%\n"), "{outcome}");
}
