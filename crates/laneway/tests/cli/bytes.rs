//! Where bytes live: applied workflows with the files beside them, on both stores; logs of other nodes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::place::{Place, Running, text, until};
use crate::postgres::schema;

const FLOW: &str = "
params: {who: {type: string, default: you}}
steps:
  a: {command: [./greet.sh], args: ['${{ params.who }}']}
  b: {needs: [a], run: 'cat greeting; pwd'}
";

/// A workflow with a script and what it must not take along.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("flows/data")).expect("made");
    place.write("flows/hello.yaml", FLOW);
    place.write("flows/greet.sh", "#!/bin/sh\necho \"hello $1\" | tee greeting\n");
    place.write("flows/data/big.bin", "x");
    place.write("flows/.lanewayignore", "data/\n");
    fs::set_permissions(place.path("flows/greet.sh"), fs::Permissions::from_mode(0o755)).expect("set");
    place
}

fn stop(worker: Running) {
    worker.signal(Signal::TERM);
    let left = worker.wait();
    assert_eq!(left.code, Some(0), "{left}");
}

#[test]
fn workflow_is_applied_once_and_started_by_its_name() {
    let place = place();
    assert_snapshot!(place.laneway("apply flows/hello.yaml"), @r"
    $ laneway apply flows/hello.yaml
    exit code 0
    ----- stdout
    hello is applied as version 1, with 3 files
    ----- stderr
      .lanewayignore (6 bytes)
      greet.sh (41 bytes)
      hello.yaml (154 bytes)
    ");
    assert_snapshot!(place.laneway("apply flows/hello.yaml"), @r"
    $ laneway apply flows/hello.yaml
    exit code 0
    ----- stdout
    hello has not changed: it is version 1
    ----- stderr
      .lanewayignore (6 bytes)
      greet.sh (41 bytes)
      hello.yaml (154 bytes)
    ");
    assert_snapshot!(place.laneway("workflows"), @r"
    $ laneway workflows
    exit code 0
    ----- stdout
    WORKFLOW  VERSION  APPLIED              BY   LAST RUN
    hello     1        [date]  ada  never
    ----- stderr
    ");
    // The files came along: the directory is not needed any more.
    fs::remove_dir_all(place.path("flows")).expect("removed");
    let run = place.laneway("start hello --wait -p who=ada");
    assert_eq!(run.code, Some(0), "{run}");
    let printed = place.laneway("logs last b").stdout;
    assert!(printed.starts_with("hello ada\n") && printed.contains(".laneway/workspaces/"), "{printed}");
    let listed = place.json("workflows --json");
    assert_eq!(listed[0]["last_run"]["status"], "succeeded");
    let changed = place.laneway("files last a");
    assert!(changed.stdout.contains("greeting"), "{changed}");
    assert!(!place.path("greeting").exists());
}

#[test]
fn changed_file_is_another_version() {
    let place = place();
    place.laneway("apply flows/hello.yaml");
    place.write("flows/greet.sh", "#!/bin/sh\necho bye > greeting\n");
    assert_eq!(place.json("apply flows/hello.yaml --json")[0]["version"], 2);
    // What is left out changes nothing.
    place.write("flows/data/big.bin", "y");
    assert_eq!(place.json("apply flows/hello.yaml --json")[0]["changed"], false);
    let versions = place.json("workflows hello --json");
    assert_eq!((versions[0]["version"].as_u64(), versions[1]["version"].as_u64()), (Some(2), Some(1)));
    assert_eq!(versions[0]["document"], versions[1]["document"]);
    assert_ne!(versions[0]["bundle"], versions[1]["bundle"]);
    assert!(place.laneway("workflows hello").stdout.contains("ada"), "by whom");
}

#[test]
fn worker_runs_an_applied_workflow_in_a_directory_of_the_run() {
    let place = place();
    place.laneway("apply flows/hello.yaml");
    let worker = place.spawn("worker");
    assert_snapshot!(place.laneway("start hello -p who=eve"), @r"
    $ laneway start hello -p who=eve
    exit code 0
    ----- stdout
    run [id] of hello submitted
    ----- stderr
    `laneway show [id]` shows it
    ");
    until("the end of the run", || text(&place.json("show last --json")["status"]) == "succeeded");
    assert!(place.laneway("logs last b").stdout.starts_with("hello eve\n"));
    // The files of one that is submitted come along as well.
    place.laneway("submit flows/hello.yaml");
    until("the end of the run", || text(&place.json("show last --json")["status"]) == "succeeded");
    assert!(!place.path("flows/greeting").exists());
    stop(worker);
}

#[test]
fn what_cannot_be_packed_is_refused_with_advice() {
    let place = place();
    symlink("/etc/passwd", place.path("flows/out")).expect("a link");
    assert_snapshot!(place.laneway("apply flows/hello.yaml"), @r"
    $ laneway apply flows/hello.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: the link [dir]/flows/out leads out of the workflow's directory, to /etc/passwd
    hint: name what its steps do not need in .lanewayignore (as in .gitignore), or give the workflow a directory of its own
    ");
    fs::remove_file(place.path("flows/out")).expect("removed");
    let large = fs::File::create(place.path("flows/large.iso")).expect("made");
    large.set_len(40 << 20).expect("sparse");
    assert_snapshot!(place.laneway("apply flows/hello.yaml"), @r"
    $ laneway apply flows/hello.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: the files beside the workflow, in [dir]/flows, are too large to be packed: 40 MiB, and a bundle holds 32 MiB; the largest are large.iso (40 MiB), hello.yaml (154 bytes), greet.sh (41 bytes), .lanewayignore (6 bytes)
    hint: name what its steps do not need in .lanewayignore (as in .gitignore), or give the workflow a directory of its own
    ");
    assert_snapshot!(place.laneway("apply -"), @r"
    $ laneway apply -
    exit code 2
    ----- stdout
    ----- stderr
    error: what is read from stdin has no directory to be packed
    hint: write it to a file, in a directory of its own
    ");
    place.write("bad.yaml", "steps: {a: {rum: x}}\n");
    assert_eq!(place.laneway("apply bad.yaml").code, Some(2));
    assert_snapshot!(place.laneway("workflows"), @r"
    $ laneway workflows
    exit code 3
    ----- stdout
    ----- stderr
    error: there is no store at .laneway/laneway.db
    hint: run a workflow first, or name another store with --store
    ");
}

#[test]
fn files_and_logs_reach_other_nodes_through_postgres() {
    let (place, node, store) = (place(), Place::new(), schema());
    let applied = place.laneway(&format!("apply flows/hello.yaml --store {store}"));
    assert_eq!(applied.code, Some(0), "{applied}");
    let worker = node.spawn(&format!("worker --node-address far --store {store}"));
    let show = || place.json(&format!("show last --json --store {store}"));
    for command in ["start hello -p who=eve", "submit flows/hello.yaml -p who=eve"] {
        let started = place.laneway(&format!("{command} --store {store}"));
        assert_eq!(started.code, Some(0), "{started}");
        until("the end of the run", || text(&show()["status"]) == "succeeded");
        assert_eq!(text(&show()["tasks"][0]["node"]), "far");
        let printed = place.laneway(&format!("logs last b --store {store}")).stdout;
        let workspaces = node.path(".laneway/workspaces").canonicalize().expect("there");
        assert!(printed.starts_with("hello eve\n"), "{printed}");
        assert!(printed.contains(&workspaces.display().to_string()), "{printed}");
    }
    assert!(!place.path("flows/greeting").exists());
    assert!(!node.path(".laneway/logs").exists(), "logs are in the database alone");
    stop(worker);
}

#[test]
fn log_is_followed_from_another_node_and_outlives_its_own() {
    let (place, node, store) = (Place::new(), Place::new(), schema());
    place
        .write("flow.yaml", "steps:\n  a: {on_lost: fail, run: 'echo first; echo second; exec sleep 600'}\n");
    let submitted = place.laneway(&format!("submit flow.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let worker = node.spawn(&format!("worker --lease-ttl 3s --heartbeat-interval 300ms --store {store}"));
    until("a start", || {
        place.json(&format!("show last --json --store {store}"))["tasks"][0]["status"] == "running"
    });
    let mut follower = place.spawn(&format!("logs last a --follow --store {store}"));
    follower.wait_for("first");
    follower.wait_for("second");
    worker.signal(Signal::KILL);
    drop(worker.wait());
    let other = place.spawn(&format!("worker --lease-ttl 3s --heartbeat-interval 300ms --store {store}"));
    let followed = follower.wait();
    assert_eq!(followed.code, Some(0), "{followed}");
    let log = place.laneway(&format!("logs last a --store {store}"));
    assert_eq!(log.stdout, "first\nsecond\n", "{log}");
    assert!(log.stderr.contains("its node was lost, and what it printed in the last second"), "{log}");
    stop(other);
}

#[test]
fn flood_is_capped_on_postgres_and_harms_nobody() {
    let (place, store) = (Place::new(), schema());
    place
        .write("flow.yaml", "steps:\n  a: {run: 'yes 0123456789abcdef | head -c 30000000; echo done >&2'}\n");
    let run = place.laneway(&format!("run flow.yaml --store {store}"));
    assert_eq!(run.code, Some(0), "{run}");
    let log = place.laneway(&format!("logs last a --store {store}"));
    assert!(log.stderr.contains("log cap of 8 MiB reached"), "{}", log.stderr);
    assert!(log.stderr.contains("bytes dropped"), "{}", log.stderr);
    assert!(log.stdout.len() > 8_000_000 && log.stdout.len() < 8 << 20, "{}", log.stdout.len());
}

const BUILD: &str = "
steps:
  build:
    run: 'mkdir -p dist && echo made > dist/app.txt && echo \"#!/bin/sh\" > dist/go.sh && chmod +x dist/go.sh'
    artifacts: [dist/*]
  use: {needs: [build], inputs: [build], workdir: ., run: 'test -x dist/go.sh && cat dist/app.txt'}
";

#[test]
fn artifacts_are_kept_listed_and_fetched() {
    let place = Place::with("build.yaml", BUILD);
    let run = place.laneway("run build.yaml");
    assert_eq!(run.code, Some(0), "{run}");
    fs::remove_dir_all(place.path("dist")).expect("removed");
    assert_snapshot!(place.laneway("artifacts"), @r"
    $ laneway artifacts
    exit code 0
    ----- stdout
    STEP   NAME          BYTES  HASH
    build  dist/app.txt  5      d6d11b2a05e5
    build  dist/go.sh    10     bc1f407a11c9
    ----- stderr
    ");
    let fetched = place.laneway("artifacts last build --get dist/app.txt --to got");
    assert_eq!(fetched.code, Some(0), "{fetched}");
    assert_eq!(place.read("got/dist/app.txt"), "made\n");
    assert!(!place.path("got/dist/go.sh").exists());
    assert_snapshot!(place.laneway("artifacts last --to got"), @r"
    $ laneway artifacts last --to got
    exit code 2
    ----- stdout
    ----- stderr
    error: got/dist/app.txt is there already
    hint: fetch into another directory with --to
    ");
    assert_snapshot!(place.laneway("artifacts last --get dist/ap.txt --to got"), @"
    $ laneway artifacts last --get dist/ap.txt --to got
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has no artifact `dist/ap.txt`
    hint: did you mean `dist/app.txt`? `laneway artifacts [id]` lists them
    ");
    assert_eq!(place.laneway("artifacts last --to other").code, Some(0));
    let mode = fs::metadata(place.path("other/dist/go.sh")).expect("there").permissions().mode();
    assert_ne!(mode & 0o111, 0);
}

#[test]
fn artifact_that_is_not_there_fails_its_step() {
    let place = Place::with("build.yaml", "steps:\n  a: {run: 'true', artifacts: [dist/*.tar]}\n");
    assert_eq!(place.laneway("run build.yaml").code, Some(1));
    let task = &place.json("show last --json")["tasks"][0];
    assert_eq!(text(&task["reason"]), "bad_output");
    let detail = text(&task["detail"]);
    assert!(detail.starts_with("no file is like its artifact `dist/*.tar`: there is no `dist`"), "{detail}");
}

#[test]
fn wrong_artifacts_and_inputs_are_refused_with_their_place() {
    let place = Place::with(
        "bad.yaml",
        "steps:\n  a: {run: x, artifacts: [../out, /etc/passwd, 'a[b]']}\n  b: {run: x, inputs: [a, c]}\n  c: {run: x}\n  d: {run: x, needs: c, inputs: [c]}\n",
    );
    assert_snapshot!(place.laneway("validate bad.yaml"), @r"
    $ laneway validate bad.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: `../out` is no path of an artifact
     --> bad.yaml:2:27
      |
    2 |   a: {run: x, artifacts: [../out, /etc/passwd, 'a[b]']}
      |                           ^^^^^^
      |
      = help: it leads out of the step's directory

    error: `/etc/passwd` is no path of an artifact
     --> bad.yaml:2:35
      |
    2 |   a: {run: x, artifacts: [../out, /etc/passwd, 'a[b]']}
      |                                   ^^^^^^^^^^^
      |
      = help: it must be relative to the step's directory

    error: `a[b]` is no path of an artifact
     --> bad.yaml:2:48
      |
    2 |   a: {run: x, artifacts: [../out, /etc/passwd, 'a[b]']}
      |                                                ^^^^^^
      |
      = help: `[` means nothing in it; there are `*`, `?` and `**`

    error: step `b` takes artifacts of `a` without needing it, so they may not be there by then
     --> bad.yaml:3:24
      |
    3 |   b: {run: x, inputs: [a, c]}
      |                        ^
      |
      = help: add `a` to the `needs` of `b`

    error: step `b` takes artifacts of `c` without needing it, so they may not be there by then
     --> bad.yaml:3:27
      |
    3 |   b: {run: x, inputs: [a, c]}
      |                           ^
      |
      = help: add `c` to the `needs` of `b`

    error: step `c` has no `artifacts`
     --> bad.yaml:5:34
      |
    5 |   d: {run: x, needs: c, inputs: [c]}
      |                                  ^
      |
      = help: name its files there: `artifacts: [dist/*]` in `c`
    ");
}

#[test]
fn artifacts_are_handed_on_between_nodes() {
    let (place, one, two, store) = (Place::new(), Place::new(), Place::new(), schema());
    let text_of = BUILD.replace("artifacts:", "runs_on: {at: one}\n    artifacts:");
    let text_of = text_of.replace("use: {", "use: {runs_on: {at: two}, ");
    place.write("build.yaml", &text_of);
    let first = one.spawn(&format!("worker --label at=one --store {store}"));
    let second = two.spawn(&format!("worker --label at=two --store {store}"));
    let submitted = place.laneway(&format!("submit build.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let show = || place.json(&format!("show last --json --store {store}"));
    until("the end of the run", || text(&show()["status"]) == "succeeded");
    assert_eq!(place.laneway(&format!("logs last use --store {store}")).stdout, "made\n");
    let fetched = place.laneway(&format!("artifacts last --to got --store {store}"));
    assert_eq!(fetched.code, Some(0), "{fetched}");
    assert_eq!(place.read("got/dist/app.txt"), "made\n");
    stop(first);
    stop(second);
}

const SECRETS: &str = "
secrets:
  stored: {store: db}
  filed: {file: token.txt}
  given: {env: API_KEY}
steps:
  a:
    env: {DB: '${{ secrets.stored }}', URL: 'https://me:${{ secrets.filed }}@host', KEY: '${{ secrets.given }}'}
    run: |
      printf 'db %s\\n' \"$DB\"; printf %s \"$DB\" | base64; printf %s \"$DB\" | od -An -tx1 | tr -d ' \\n'; echo
      printf 'sesa'; sleep 0.05; echo 'me-open! and url' $URL $KEY >&2
      echo \"word=$KEY and more\" >> $LANEWAY_OUTPUT
";

/// Sets a secret as a person does.
fn set(place: &Place, args: &str, value: &str) -> crate::place::Outcome {
    place.write("value", value);
    let line = format!("secret set {args}");
    let mut command = place.command(&line.split_whitespace().collect::<Vec<_>>());
    command.stdin(fs::File::open(place.path("value")).expect("there"));
    let outcome = place.outcome(&line, command);
    fs::remove_file(place.path("value")).expect("removed");
    outcome
}

#[test]
fn secrets_reach_a_step_and_nobody_else() {
    let place = Place::with("flow.yaml", SECRETS);
    assert_snapshot!(set(&place, "db", "sesame-open!\n"), @r"
    $ laneway secret set db
    exit code 0
    ----- stdout
    secret db is set
    ----- stderr
    ");
    place.write("token.txt", "tok/en 42\n");
    let mut command = place.command(&["run", "flow.yaml"]);
    command.env("API_KEY", "key-of-the-api");
    let run = place.outcome("run flow.yaml", command);
    assert_eq!(run.code, Some(0), "{run}");
    let log = place.laneway("logs last a");
    assert!(log.stdout.contains("db ***\n"), "{log}");
    let events = place.laneway("events last --json");
    let shown = place.laneway("show last --json");
    assert_eq!(place.json("show last --json")["tasks"][0]["output"]["word"], "*** and more");
    let store = fs::read(place.path(".laneway/laneway.db")).expect("the store");
    let told = [run.stdout, log.stdout.clone(), log.stderr, events.stdout, shown.stdout];
    for secret in
        ["sesame-open!", "me-open!", "tok/en 42", "key-of-the-api", "c2VzYW1lLW9wZW4h", "736573616d65"]
    {
        // What came in two pieces of one stream is found as well; here they are of two.
        if secret == "me-open!" {
            continue;
        }
        assert!(!told.iter().any(|text| text.contains(secret)), "{secret}: {told:?}");
        assert!(
            !store.windows(secret.len()).any(|part| part == secret.as_bytes()),
            "{secret} is in the store"
        );
    }
    assert_snapshot!(place.laneway("secret list"), @r"
    $ laneway secret list
    exit code 0
    ----- stdout
    SECRET  SET                  BY
    db      [date]  ada
    ----- stderr
    ");
    let key = fs::metadata(place.path(".laneway/secret.key")).expect("a key").permissions().mode();
    assert_eq!(key & 0o777, 0o600);
}

#[test]
fn secret_that_cannot_be_had_fails_its_step_in_words() {
    let place = Place::with(
        "flow.yaml",
        "secrets: {db: {store: db}, x: {env: NOT_SET}}\nsteps:\n  a: {run: 'true', env: {A: '${{ secrets.db }}'}}\n  b: {run: 'true', env: {A: '${{ secrets.x }}'}}\n",
    );
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    let run = place.json("show last --json");
    let mut details: Vec<&str> =
        run["tasks"].as_array().expect("tasks").iter().filter_map(|task| task["detail"].as_str()).collect();
    details.sort_unstable();
    assert!(
        details[0].contains("secret `x`: the variable NOT_SET is not set on this node")
            || details[0].contains("the store has no secret `db`; `laneway secret set db` makes it"),
        "{details:?}"
    );
    assert_snapshot!(set(&place, "db", "abc\n"), @r"
    $ laneway secret set db
    exit code 2
    ----- stdout
    ----- stderr
    error: a secret has at least 4 characters
    hint: a shorter one could not be kept out of logs: it would be found everywhere
    ");
    assert_snapshot!(place.laneway("secret remove db"), @r"
    $ laneway secret remove db
    exit code 2
    ----- stdout
    ----- stderr
    error: there is no secret `db` in this store
    hint: `laneway secret set db` makes it; `laneway secret list` lists them
    ");
}

#[test]
fn secrets_are_read_in_env_alone_and_as_they_are() {
    let place = Place::with(
        "bad.yaml",
        "secrets: {db: {env: A, file: b}, ok: {store: ok}, odd: {vault: x}}\nsteps:\n  a: {run: x, args: ['${{ secrets.ok }}']}\n  b: {run: x, env: {A: '${{ secrets.okk }}', B: '${{ secrets.ok | upper }}'}}\n  c: {run: x, if: secrets.ok == 1}\n",
    );
    let told = place.laneway("validate bad.yaml");
    assert_eq!(told.code, Some(2), "{told}");
    for words in [
        "one of {env: VARIABLE}, {file: PATH} and {store: NAME}",
        "a secret has no key `vault`",
        "`secrets` can only be read in `env`",
        "there is no secret `okk`",
        "did you mean `ok`?",
        "a secret is taken as it is",
    ] {
        assert!(told.stderr.contains(words), "{words}: {told}");
    }
}

#[test]
fn secret_of_the_store_is_opened_on_other_nodes_by_the_key() {
    let (place, node, store) = (Place::new(), Place::new(), schema());
    place.write("flow.yaml", "secrets: {db: {store: db}}\nsteps:\n  a: {run: 'test \"$DB\" = sesame-open && echo \"it is $DB\"', env: {DB: '${{ secrets.db }}'}}\n");
    let made = set(&place, &format!("db --store {store}"), "sesame-open");
    assert_eq!(made.code, Some(0), "{made}");
    let show = || place.json(&format!("show last --json --store {store}"));
    let worker = node.spawn(&format!("worker --store {store}"));
    place.laneway(&format!("submit flow.yaml --store {store}"));
    until("the end of the run", || text(&show()["status"]) == "failed");
    let detail = show()["tasks"][0]["detail"].clone();
    assert!(text(&detail).contains("give this node the key"), "{detail}");
    fs::copy(place.path(".laneway/secret.key"), node.path(".laneway/secret.key")).expect("copied");
    place.laneway(&format!("submit flow.yaml --store {store}"));
    until("the end of the run", || text(&show()["status"]) == "succeeded");
    assert_eq!(place.laneway(&format!("logs last a --store {store}")).stdout, "it is ***\n");
    stop(worker);
}

#[test]
fn keys_and_tokens_beside_a_workflow_are_not_packed() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'ls -A'}}");
    for file in ["secret.key", "admin.token", "lane.db"] {
        place.write(file, "");
    }
    fs::remove_file(place.path("lane.db")).expect("removed");
    let applied = place.laneway("--store lane.db apply flow.yaml");
    assert!(applied.stdout.contains("with 1 file"), "{applied}");
}
