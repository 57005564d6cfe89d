//! What is refused, with what to do about it, and the exit code that belongs to it.

use insta::assert_snapshot;

use crate::place::Place;

const ONE: &str = "steps: {hello: {run: echo hello}}";

#[test]
fn a_file_that_is_not_there_is_bad_input() {
    assert_snapshot!(Place::new().laneway("run gone.yaml"), @"");
}

#[test]
fn a_directory_is_no_workflow() {
    assert_snapshot!(Place::new().laneway("run ."), @"");
}

#[test]
fn a_bad_document_is_shown_with_its_place_and_runs_nothing() {
    let place = Place::with("bad.yaml", "steps:\n  a: {run: echo a, needs: [a]}\n");
    assert_snapshot!(place.laneway("run bad.yaml"), @"");
    assert!(!place.path(".laneway").exists());
}

#[test]
fn looking_back_without_a_store_says_so_and_makes_none() {
    let place = Place::new();
    for command in
        ["runs", "show last", "logs last", "events last", "explain last", "cancel last", "retry last"]
    {
        let outcome = place.laneway(command);
        assert_eq!(outcome.code, Some(3), "{outcome}");
        assert!(outcome.stderr.contains("hint: run a workflow first"), "{outcome}");
    }
    assert_snapshot!(place.laneway("runs"), @"");
    assert!(!place.path(".laneway").exists());
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let place = Place::with("hello.yaml", ONE);
    place.write("notes.txt", &"not a database\n".repeat(100));
    assert_snapshot!(place.laneway("run hello.yaml --store notes.txt"), @"");
    assert_eq!(place.read("notes.txt"), "not a database\n".repeat(100));
}

#[test]
fn an_unknown_kind_of_store_is_refused() {
    assert_snapshot!(Place::with("hello.yaml", ONE).laneway("run hello.yaml --store redis://here"), @"");
    assert_snapshot!(Place::with("hello.yaml", ONE).laneway("run hello.yaml --store postgres://here"), @"");
}

const TYPED: &str = "
params:
  date: {type: string, required: true}
  depth: {type: integer, default: 2}
  mode: {type: string, enum: [fast, slow], default: fast}
steps: {hello: {run: echo hello}}
";

#[test]
fn parameters_are_refused_before_a_run_exists_all_at_once() {
    let place = Place::with("typed.yaml", TYPED);
    assert_snapshot!(place.laneway("run typed.yaml"), @"");
    assert_snapshot!(place.laneway("run typed.yaml -p date=x -p dept=3"), @"");
    assert_snapshot!(place.laneway("run typed.yaml -p depth=deep -p mode=slowly"), @"");
    assert_snapshot!(place.laneway("run typed.yaml -p date"), @"");
    assert!(!place.path(".laneway").exists());
}

#[test]
fn a_bad_file_of_parameters_is_shown_with_its_place() {
    let place = Place::with("typed.yaml", TYPED);
    place.write("params.yaml", "- date\n");
    assert_snapshot!(place.laneway("run typed.yaml --params-file params.yaml"), @"");
    assert_snapshot!(place.laneway("run typed.yaml --params-file gone.yaml"), @"");
}

#[test]
fn a_limit_below_one_is_refused() {
    let place = Place::with("hello.yaml", ONE);
    assert_eq!(place.laneway("run hello.yaml --max-parallel 0").code, Some(2));
    let mut command = place.command(&["run", "hello.yaml"]);
    command.env("LANEWAY_MAX_PARALLEL", "0");
    assert_snapshot!(place.outcome("run hello.yaml (LANEWAY_MAX_PARALLEL=0)", command), @"");
}

#[test]
fn groups_can_be_planned_and_not_yet_run() {
    let place = Place::with(
        "groups.yaml",
        "steps: {a: {run: echo a}, b: {run: echo b}}\ngroups: {both: {steps: [a, b]}}\n",
    );
    assert_eq!(place.laneway("plan groups.yaml").code, Some(0));
    assert_snapshot!(place.laneway("run groups.yaml"), @"");
}

#[test]
fn runs_and_steps_that_are_not_there_are_refused_with_a_hint() {
    let place = Place::with("hello.yaml", ONE);
    place.laneway("run hello.yaml");
    assert_snapshot!(place.laneway("show nope"), @"");
    assert_snapshot!(place.laneway("logs last helo"), @"");
    assert_snapshot!(place.laneway("explain last helo"), @"");
    assert_snapshot!(place.laneway("logs last hello --attempt 7"), @"");
    assert_snapshot!(place.laneway("start nightly --wait"), @"");
    assert_snapshot!(place.laneway("start hello"), @"");
    assert_snapshot!(place.laneway("retry last"), @"");
    assert_snapshot!(place.laneway("skip last hello"), @"");
    assert_snapshot!(place.laneway("run --resume last"), @"");
    assert_snapshot!(place.laneway("runs --status done"), @"");
}

#[test]
fn a_short_id_must_name_one_run() {
    let place = Place::with("hello.yaml", ONE);
    // Seventeen runs: two of them begin with the same digit.
    for _ in 0..17 {
        place.laneway("run hello.yaml");
    }
    let runs = place.json("runs --json --limit 100");
    let tails: Vec<String> = runs
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| crate::place::text(&run["run"]).rsplit('-').next().expect("five parts").to_owned())
        .collect();
    let digit = tails
        .iter()
        .map(|tail| &tail[..1])
        .find(|digit| tails.iter().filter(|tail| tail.starts_with(digit)).count() > 1)
        .expect("seventeen ids, sixteen digits");
    let outcome = place.laneway(&format!("show {digit}"));
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.contains("names more than one run"), "{outcome}");
    assert!(outcome.stderr.contains("hint: type more of the id"), "{outcome}");
    for tail in &tails {
        assert_eq!(place.laneway(&format!("show {}", &tail[..8])).code, Some(0));
    }
}

#[test]
fn usage_errors_exit_with_two() {
    let place = Place::new();
    assert_eq!(place.laneway("run").code, Some(2));
    assert_eq!(place.laneway("rum build.yaml").code, Some(2));
    assert_eq!(place.laneway("").code, Some(2));
    assert_eq!(place.laneway("run build.yaml --resume last").code, Some(2));
    assert_eq!(place.laneway("run build.yaml --kill-grace 5").code, Some(2));
    assert_eq!(place.laneway("--version").code, Some(0));
    assert_eq!(place.laneway("run --help").code, Some(0));
}
