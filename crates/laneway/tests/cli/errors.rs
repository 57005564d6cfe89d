//! What is refused, with what to do about it, and the exit code that belongs to it.

use insta::assert_snapshot;

use crate::place::Place;

const ONE: &str = "steps: {hello: {run: echo hello}}";

#[test]
fn a_parameter_given_twice_is_refused() {
    let place = Place::with("p.yaml", "params: {n: {type: integer}}\nsteps: {a: {run: 'true'}}");
    assert_snapshot!(place.laneway("run p.yaml -p n=1 -p n=2"), @r"
    $ laneway run p.yaml -p n=1 -p n=2
    exit code 2
    ----- stdout
    ----- stderr
    error: parameter `n` is given more than once
    hint: a list is one value: -p NAME='[1, 2]'
    ");
}

#[test]
fn a_file_that_is_not_there_is_bad_input() {
    assert_snapshot!(Place::new().laneway("run gone.yaml"), @r"
    $ laneway run gone.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: there is no file gone.yaml
    hint: `laneway init` writes one to begin with; `laneway start` runs a workflow that was applied, by its name
    ");
}

#[test]
fn a_directory_is_no_workflow() {
    assert_snapshot!(Place::new().laneway("run ."), @r"
    $ laneway run .
    exit code 2
    ----- stdout
    ----- stderr
    error: . cannot be read: it is a directory
    hint: name a file
    ");
}

#[test]
fn a_bad_document_is_shown_with_its_place_and_runs_nothing() {
    let place = Place::with("bad.yaml", "steps:\n  a: {run: echo a, needs: [a]}\n");
    assert_snapshot!(place.laneway("run bad.yaml"), @r"
    $ laneway run bad.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: step `a` needs itself
     --> bad.yaml:2:28
      |
    2 |   a: {run: echo a, needs: [a]}
      |                            ^
      |
      = help: remove `a` from its own `needs`
    ");
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
    assert_snapshot!(place.laneway("runs"), @r"
    $ laneway runs
    exit code 3
    ----- stdout
    ----- stderr
    error: there is no store at .laneway/laneway.db
    hint: run a workflow first, or name another store with --store
    ");
    assert!(!place.path(".laneway").exists());
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let place = Place::with("hello.yaml", ONE);
    place.write("notes.txt", &"not a database\n".repeat(100));
    assert_snapshot!(place.laneway("run hello.yaml --store notes.txt"), @r"
    $ laneway run hello.yaml --store notes.txt
    exit code 3
    ----- stdout
    ----- stderr
    error: notes.txt is not a Laneway store
    hint: name another file with --store; this one was left as it is
    ");
    assert_eq!(place.read("notes.txt"), "not a database\n".repeat(100));
}

#[test]
fn an_unknown_kind_of_store_is_refused() {
    assert_snapshot!(Place::with("hello.yaml", ONE).laneway("run hello.yaml --store redis://here"), @r"
    $ laneway run hello.yaml --store redis://here
    exit code 2
    ----- stdout
    ----- stderr
    error: `redis://` is not a kind of store; give a path, sqlite://PATH or postgres://USER@HOST/DATABASE
    hint: the default is .laneway/laneway.db
    ");
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
    assert_snapshot!(place.laneway("run typed.yaml"), @r"
    $ laneway run typed.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: parameter `date` is required; give it with `-p date=VALUE`
    ");
    assert_snapshot!(place.laneway("run typed.yaml -p date=x -p dept=3"), @r"
    $ laneway run typed.yaml -p date=x -p dept=3
    exit code 2
    ----- stdout
    ----- stderr
    error: the workflow has no parameter `dept`; did you mean `depth`?
    ");
    assert_snapshot!(place.laneway("run typed.yaml -p depth=deep -p mode=slowly"), @r"
    $ laneway run typed.yaml -p depth=deep -p mode=slowly
    exit code 2
    ----- stdout
    ----- stderr
    error: 3 parameters are wrong:
      parameter `depth` must be an integer, not `deep`
      parameter `mode` must be one of fast, slow, not `slowly`
      parameter `date` is required; give it with `-p date=VALUE`
    ");
    assert_snapshot!(place.laneway("run typed.yaml -p date"), @r"
    $ laneway run typed.yaml -p date
    exit code 2
    ----- stdout
    ----- stderr
    error: `-p date` is not a parameter
    hint: write it as -p NAME=VALUE
    ");
    assert!(!place.path(".laneway").exists());
}

#[test]
fn a_bad_file_of_parameters_is_shown_with_its_place() {
    let place = Place::with("typed.yaml", TYPED);
    place.write("params.yaml", "- date\n");
    assert_snapshot!(place.laneway("run typed.yaml --params-file params.yaml"), @r"
    $ laneway run typed.yaml --params-file params.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: a file of parameters must hold one object
     --> params.yaml:1:1
      |
    1 | - date
      | ^^^^^^
      |
      = help: write `name: value` lines
    ");
    assert_snapshot!(place.laneway("run typed.yaml --params-file gone.yaml"), @r"
    $ laneway run typed.yaml --params-file gone.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: there is no file gone.yaml
    hint: -p NAME=VALUE gives a parameter without a file
    ");
}

#[test]
fn a_limit_below_one_is_refused() {
    let place = Place::with("hello.yaml", ONE);
    assert_eq!(place.laneway("run hello.yaml --max-parallel 0").code, Some(2));
    let mut command = place.command(&["run", "hello.yaml"]);
    command.env("LANEWAY_MAX_PARALLEL", "0");
    assert_snapshot!(place.outcome("run hello.yaml (LANEWAY_MAX_PARALLEL=0)", command), @r"
    $ laneway run hello.yaml (LANEWAY_MAX_PARALLEL=0)
    exit code 2
    ----- stdout
    ----- stderr
    error: LANEWAY_MAX_PARALLEL is `0`
    hint: use a whole number from 1 to 4294967295
    ");
}

#[test]
fn runs_and_steps_that_are_not_there_are_refused_with_a_hint() {
    let place = Place::with("hello.yaml", ONE);
    place.laneway("run hello.yaml");
    assert_snapshot!(place.laneway("show nope"), @r"
    $ laneway show nope
    exit code 2
    ----- stdout
    ----- stderr
    error: there is no run `nope`
    hint: `laneway runs` lists them
    ");
    assert_snapshot!(place.laneway("logs last helo"), @r"
    $ laneway logs last helo
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has no step `helo`
    hint: did you mean `hello`?
    ");
    assert_snapshot!(place.laneway("explain last helo"), @r"
    $ laneway explain last helo
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has no step `helo`
    hint: did you mean `hello`?
    ");
    assert_snapshot!(place.laneway("logs last hello --attempt 7"), @r"
    $ laneway logs last hello --attempt 7
    exit code 2
    ----- stdout
    ----- stderr
    error: step `hello` has no attempt 7
    hint: it had one attempt
    ");
    assert_snapshot!(place.laneway("start nightly --wait"), @r"
    $ laneway start nightly --wait
    exit code 2
    ----- stdout
    ----- stderr
    error: no workflow named `nightly` was applied to or run in this store
    hint: `laneway workflows` lists those that were applied, `laneway runs` what has run
    ");
    assert_snapshot!(place.laneway("retry last"), @r"
    $ laneway retry last
    exit code 2
    ----- stdout
    ----- stderr
    error: nothing of run [id] failed, was skipped or canceled
    hint: use --from STEP to run a step and all behind it again
    ");
    assert_snapshot!(place.laneway("skip last hello"), @r"
    $ laneway skip last hello
    exit code 2
    ----- stdout
    ----- stderr
    error: step `hello` of run [id] is succeeded; only a failed step can be skipped
    hint: `laneway show [id]` lists its steps
    ");
    assert_snapshot!(place.laneway("explain last nope"), @r"
    $ laneway explain last nope
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has no step `nope`
    hint: `laneway show [id]` lists its steps
    ");
    assert_snapshot!(place.laneway("run --resume last"), @r"
    $ laneway run --resume last
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has ended: it is succeeded
    hint: `laneway retry [id] --from STEP` runs a step and all behind it again
    ");
    assert_snapshot!(place.laneway("runs --status done"), @r"
    $ laneway runs --status done
    exit code 2
    ----- stdout
    ----- stderr
    error: invalid value 'done' for '--status <STATUS>': use one of queued, running, succeeded, failed, canceled

    For more information, try '--help'.
    ");
}

#[test]
fn a_short_id_must_name_one_run() {
    let place = Place::with("hello.yaml", ONE);
    place.laneway("run hello.yaml");
    place.laneway("run hello.yaml");
    let run = place.json("show last --json")["run"].clone();
    // Ids begin with their time, so that the beginnings of these two are the same.
    let beginning = &crate::place::text(&run)[..6];
    let outcome = place.laneway(&format!("show {beginning}"));
    assert_snapshot!(outcome.to_string().replace(beginning, "[beginning]"), @r"
    $ laneway show [beginning]
    exit code 2
    ----- stdout
    ----- stderr
    error: `[beginning]` names more than one run: [uuid], [uuid]
    hint: type more of the id
    ");
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

#[test]
fn numbers_below_one_and_an_empty_store_are_refused_in_words() {
    let place = Place::with("hello.yaml", ONE);
    for line in ["run hello.yaml --max-parallel 0", "start hello --wait --max-parallel x", "runs --limit 0"] {
        let outcome = place.laneway(line);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains("use a whole number from 1 to 4294967295"), "{outcome}");
    }
    let outcome = place.outcome("runs --store ''", place.command(&["runs", "--store", ""]));
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.contains("a value is required for '--store <PATH|URL>'"), "{outcome}");
}

#[test]
fn work_of_a_queue_is_refused_in_a_run_of_one_process() {
    let place = Place::with("mail.yaml", "steps: {a: {run: 'true'}, b: {queue: mail, needs: [a]}}");
    assert_snapshot!(place.laneway("run mail.yaml"), @r"
    $ laneway run mail.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: step `b` is for remote workers of the queue `mail`, and they take nothing of a run that belongs to one process
    hint: start `laneway serve`, let a worker join it, and use `laneway submit FILE` or `laneway start NAME`
    ");
}

#[test]
fn limit_below_one_is_refused_with_what_to_write() {
    let place = Place::new();
    assert_snapshot!(place.laneway("limit set x -1"), @r"
    $ laneway limit set x -1
    exit code 2
    ----- stdout
    ----- stderr
    error: invalid value '-1' for '<VALUE>': write a number of tasks at once, such as 3, or a rate, such as 100/1m

    For more information, try '--help'.
    ");
}

#[test]
fn directory_that_cannot_be_written_is_told_with_what_to_do() {
    let place = Place::with("hello.yaml", ONE);
    // Nobody makes a directory there, not even root.
    let outcome = place.laneway("run hello.yaml --store /sys/laneway/laneway.db");
    assert_eq!(outcome.code, Some(3), "{outcome}");
    assert!(
        outcome
            .stderr
            .starts_with("error: /sys/laneway cannot be written: the store's directory cannot be made: "),
        "{outcome}"
    );
    assert!(
        outcome.stderr.contains("hint: make the file and its directory writable, or put the store elsewhere"),
        "{outcome}"
    );
}
