//! R17: the files of a submitted run follow it. The same workflow, unchanged, runs on one worker, on
//! two, and after the death of one.

use rustix::process::Signal;

use crate::place::{Place, Running, text, until};
use crate::postgres::schema;
use crate::serve::Served;

/// Steps that hand files on: one writes, one changes, one removes, one looks.
const CHAIN: &str = "
steps:
  fetch:
    run: |
      mkdir -p data/empty
      printf 'one\\n' > data/a
      printf 'two\\n' > data/b
      printf '#!/bin/sh\\necho tool\\n' > tool; chmod 755 tool
      ln -s data/a link
  change: {needs: [fetch], run: 'cat given >> data/a; rm data/b; ./tool > said'}
  look:
    needs: [change]
    run: |
      test \"$(cat data/a)\" = \"$(printf 'one\\ngiven')\"
      test ! -e data/b
      test -d data/empty
      test \"$(cat said)\" = tool
      test -x tool
      test \"$(readlink link)\" = data/a
      test \"$(cat link)\" = \"$(cat data/a)\"
";

/// Nodes on Postgres, each with a directory of its own.
struct Cluster {
    store: String,
    user: Place,
    nodes: Vec<Place>,
}

impl Cluster {
    fn new(document: &str) -> Self {
        let user = Place::with("flow.yaml", document);
        user.write("given", "given\n");
        Self { store: schema(), user, nodes: vec![Place::new(), Place::new()] }
    }

    fn user(&self, line: &str) -> crate::place::Outcome {
        self.user.laneway(&format!("{line} --store {}", self.store))
    }

    fn worker(&self, node: usize, args: &str) -> Running {
        let line = format!("worker --node-address n{node} --shutdown-grace 1s {args} --store {}", self.store);
        let worker = self.nodes[node].spawn(&line);
        until("a node", || self.user("nodes --json").stdout.contains(&format!("\"n{node}\"")));
        worker
    }

    fn status(&self) -> String {
        let shown = self.user.json(&format!("show last --json --store {}", self.store));
        text(&shown["status"]).to_owned()
    }

    /// Waits until the run has succeeded. A run that failed says why.
    fn succeeds(&self) {
        until("the end of the run", || ["succeeded", "failed"].contains(&self.status().as_str()));
        assert_eq!(self.status(), "succeeded", "{}{}", self.user("show last"), self.user("explain last"));
        assert_eq!(self.user("replay last").code, Some(0));
    }
}

fn stop(worker: Running) {
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
}

/// Submits, and waits for the end.
fn run_with_a_worker(place: &Place, args: &str) -> String {
    let worker = place.spawn(&format!("worker --shutdown-grace 1s {args}"));
    let submitted = place.laneway("submit flow.yaml");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let status = || text(&place.json("show last --json")["status"]).to_owned();
    until("the end of the run", || ["succeeded", "failed"].contains(&status().as_str()));
    stop(worker);
    status()
}

#[test]
fn steps_of_a_submitted_run_hand_their_files_on() {
    let place = Place::with("flow.yaml", CHAIN);
    place.write("given", "given\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
    assert!(!place.path("data").exists(), "the user's directory is the user's");
    assert_eq!(place.laneway("replay last").code, Some(0));
    let left = place.laneway("files last change");
    assert!(left.stdout.contains("data/a") && left.stdout.contains("removed"), "{left}");
    assert!(left.stdout.contains("said") && !left.stdout.contains("given"), "{left}");
    let none = place.laneway("files last look");
    assert!(none.stderr.contains("look changed no files"), "{none}");
    assert_eq!(place.laneway("files last change --get data/a --to fetched").code, Some(0));
    assert_eq!(place.read("fetched/data/a"), "one\ngiven\n");
    let missing = place.laneway("files last change --get data/b --to fetched");
    assert_eq!(missing.code, Some(2), "{missing}");
    assert!(missing.stderr.contains("step `change` left no file `data/b`"), "{missing}");
    let wrong = place.laneway("files last chnge");
    assert!(wrong.stderr.contains("did you mean `change`"), "{wrong}");
}

#[test]
fn a_run_works_in_the_users_directory_and_makes_no_view() {
    let place = Place::with("flow.yaml", CHAIN);
    place.write("given", "given\n");
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    assert!(place.path("data/a").exists());
    let views = std::fs::read_dir(place.path(".laneway/workspaces"));
    assert!(views.is_err() || views.is_ok_and(|mut found| found.next().is_none()));
}

#[test]
fn each_step_on_another_node_finds_the_files() {
    let document = CHAIN
        .replace("fetch:\n", "fetch:\n    runs_on: {at: one}\n")
        .replace("change: {", "change: {runs_on: {at: two}, ")
        .replace("look:\n", "look:\n    runs_on: {at: one}\n");
    let cluster = Cluster::new(&document);
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    let workers = [cluster.worker(0, "--label at=one"), cluster.worker(1, "--label at=two")];
    cluster.succeeds();
    workers.into_iter().for_each(stop);
}

#[test]
fn files_outlive_the_node_that_wrote_them() {
    let cluster = Cluster::new(
        "
steps:
  write: {run: 'echo kept > file'}
  use: {needs: [write], run: 'cat file; test \"$(cat file)\" = kept; test ! -e litter; echo > litter; \
test $LANEWAY_ATTEMPT = 2 || exec sleep 600'}
  look: {needs: [use], run: 'test -e litter'}
",
    );
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    let dying = cluster.worker(0, "--lease-ttl 2s --heartbeat-interval 500ms");
    until("the second step", || cluster.user("logs last use").stdout.contains("kept"));
    dying.signal(Signal::KILL);
    drop(dying.wait());
    let other = cluster.worker(1, "--lease-ttl 2s --heartbeat-interval 500ms");
    cluster.succeeds();
    stop(other);
}

#[test]
fn a_step_sees_nothing_of_a_sibling_nor_of_an_earlier_attempt() {
    let document = "
max_parallel: 2
steps:
  writes: {run: 'echo half > shared; echo > MARK/written; read line < MARK/looked; echo rest >> shared'}
  looks: {run: 'read line < MARK/written; seen=$(ls); echo > MARK/looked; test \"$seen\" = flow.yaml'}
  again: {run: 'test ! -e litter; echo > litter; test $LANEWAY_ATTEMPT = 2', retry: {max: 1, backoff: 0s}}
  after: {needs: [writes, looks, again], run: 'test \"$(wc -l < shared)\" = 2; test -e litter'}
";
    let place = Place::new();
    let mark = place.path("mark");
    std::fs::create_dir(&mark).expect("made");
    ["mark/written", "mark/looked"].into_iter().for_each(|name| place.pipe(name));
    place.write("flow.yaml", &document.replace("MARK", &mark.to_string_lossy()));
    place.write(".lanewayignore", "mark\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
}

#[test]
fn unordered_steps_that_changed_one_file_conflict_by_name() {
    let conflict = "
steps:
  a: {run: 'echo a > out; echo same > alike'}
  b: {run: 'echo b > out; echo same > alike'}
  both: {needs: [a, b]KEEP, run: 'test \"$(cat out alike)\" = \"$(printf \"b\\nsame\")\"'}
  later: {needs: [both], run: 'test \"$(cat out)\" = b'}
";
    let place = Place::with("flow.yaml", &conflict.replace("KEEP", ""));
    assert_eq!(run_with_a_worker(&place, ""), "failed");
    let shown = place.json("show last --json");
    assert_eq!(shown["tasks"][2]["reason"], "conflict");
    let why = place.laneway("explain last both").stdout;
    assert!(why.contains("out") && why.contains("a") && why.contains("on_conflict"), "{why}");
    assert!(!why.contains("alike"), "{why}");
    place.write("flow.yaml", &conflict.replace("KEEP", ", on_conflict: {keep: b}"));
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
}

#[test]
fn a_result_from_the_cache_brings_its_files() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  make: {run: 'echo made > out; rm given', cache: {}}
  look: {needs: [make], run: 'test \"$(cat out)\" = made; test ! -e given'}
",
    );
    place.write("given", "given\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
    let shown = place.json("show last --json");
    assert_eq!((&shown["tasks"][0]["reason"], &shown["tasks"][1]["reason"]), (&"cached".into(), &().into()));
}

#[test]
fn files_that_are_too_large_keep_their_run_on_the_node_that_has_them() {
    let cluster = Cluster::new(
        "
steps:
  large: {run: 'mkdir modules; dd if=/dev/urandom of=modules/data bs=1000 count=3000 2> /dev/null'}
  hold: {needs: [large], on_lost: fail, run: 'read line < MARK/go; test -e modules/data'}
  use: {needs: [large], run: 'test \"$(wc -c < modules/data)\" = 3000000; echo > modules/small'}
  last: {needs: [hold, use], run: 'test -e modules/data -a -e modules/small'}
",
    );
    let mark = cluster.user.path("mark");
    std::fs::create_dir(&mark).expect("made");
    cluster.user.pipe("mark/go");
    cluster.user.write(".lanewayignore", "mark\n");
    let document = cluster.user.read("flow.yaml").replace("MARK", &mark.to_string_lossy());
    cluster.user.write("flow.yaml", &document);
    let args = "--workspace-max-bytes 1MB --slots 1";
    let workers = [cluster.worker(0, args), cluster.worker(1, args)];
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    until("the node of the run holds it", || cluster.user("events last").stdout.contains("stays on"));
    let explained = || cluster.user("explain last use").stdout;
    until("`use` waits", || explained().contains("its run is bound to node"));
    let why = explained();
    for told in ["2929 KiB with what `large` left", "`workspace_max_bytes` (976 KiB)"] {
        assert!(why.contains(told), "{told}: {why}");
    }
    std::fs::write(mark.join("go"), "go\n").expect("hold reads it");
    cluster.succeeds();
    let shown = cluster.user.json(&format!("show last --json --store {}", cluster.store));
    let nodes: Vec<&str> = (0..4).map(|at| text(&shown["tasks"][at]["node"])).collect();
    assert!(nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
    let events = cluster.user("events last --json").stdout;
    let bound = events.lines().find(|line| line.contains("run_bound")).expect("an event");
    let bound: serde_json::Value = serde_json::from_str(bound).expect("JSON");
    let files = serde_json::json!({"step": "large", "bytes": 3_000_000, "limit": 1_000_000});
    assert_eq!((text(&bound["node"]), &bound["files"]), (nodes[0], &files));
    let left = cluster.user("files last large");
    assert!(left.stdout.contains("only on node"), "{left}");
    workers.into_iter().for_each(stop);
}

#[test]
fn files_that_are_too_large_stay_with_a_pinned_run() {
    let cluster = Cluster::new(
        "
placement: pinned
steps:
  large: {run: 'dd if=/dev/urandom of=data bs=1000 count=3000 2> /dev/null'}
  use: {needs: [large], run: 'test \"$(wc -c < data)\" = 3000000'}
",
    );
    let args = "--workspace-max-bytes 1MB";
    let workers = [cluster.worker(0, args), cluster.worker(1, args)];
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    cluster.succeeds();
    workers.into_iter().for_each(stop);
}

#[test]
fn step_that_the_bound_node_cannot_run_fails_by_name() {
    let cluster = Cluster::new(
        "
steps:
  large: {runs_on: {at: one}, run: 'dd if=/dev/urandom of=data bs=1000 count=3000 2> /dev/null'}
  apart: {runs_on: {at: two}, run: 'true'}
  behind: {needs: [apart], runs_on: {at: two}, run: 'true'}
  use: {needs: [large, behind], runs_on: {at: two}, run: 'test -e data'}
",
    );
    let args = "--workspace-max-bytes 1MB --label at=";
    let workers = [cluster.worker(0, &format!("{args}one")), cluster.worker(1, &format!("{args}two"))];
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    until("the end of the run", || cluster.status() == "failed");
    let shown = cluster.user.json(&format!("show last --json --store {}", cluster.store));
    let ends: Vec<&str> = (0..4).map(|at| text(&shown["tasks"][at]["status"])).collect();
    assert_eq!(ends, ["succeeded", "succeeded", "succeeded", "failed"]);
    let why = cluster.user("explain last use").stdout;
    for told in [
        "`large` left 2929 KiB on node n0",
        "`workspace_max_bytes` (976 KiB)",
        "largest files: data (2929 KiB)",
        "bound to node n0, which has at=one, not two",
        "`placement: pinned`",
    ] {
        assert!(why.contains(told), "{told}: {why}");
    }
    workers.into_iter().for_each(stop);
}

#[test]
fn a_workspace_that_is_named_is_used_in_place() {
    let place = Place::new();
    std::fs::create_dir(place.path("work")).expect("made");
    let document = format!(
        "workspace: {{path: {}}}\nsteps:\n  a: {{run: 'echo a > file'}}\n",
        place.path("work").display()
    );
    place.write("flow.yaml", &document);
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
    assert_eq!(place.read("work/file"), "a\n");
    std::fs::remove_dir_all(place.path("work")).expect("removed");
    assert_eq!(run_with_a_worker(&place, ""), "failed");
    let why = place.laneway("explain last a").stdout;
    assert!(why.contains("does not have") && why.contains("runs_on"), "{why}");
}

#[test]
fn an_artifact_is_what_the_attempt_wrote() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  a: {run: 'mkdir -p out; echo a > out/a', artifacts: ['out/*']}
  none: {run: 'true', artifacts: ['out/*']}
",
    );
    std::fs::create_dir(place.path("out")).expect("made");
    place.write("out/old", "old\n");
    assert_eq!(run_with_a_worker(&place, ""), "failed");
    let artifacts = place.laneway("artifacts last a");
    assert!(artifacts.stdout.contains("out/a") && !artifacts.stdout.contains("out/old"), "{artifacts}");
    let why = place.laneway("explain last none").stdout;
    assert!(why.contains("were there before"), "{why}");
}

/// Members that change files, one that fails, and steps behind them.
const TEAM: &str = "
steps:
  a: {run: 'echo a > a.txt; echo a >> both.txt; rm old.txt; test ! -e b.txt'}
  b: {run: 'echo b > b.txt; printf \"base\\na\\n\" > both.txt; test -e old.txt'}
  bad: {run: 'echo bad > bad.txt; exit 1'}
  part: {needs: [a], run: 'test ! -e a.txt; test -e old.txt'}
  after:
    needs: [g]
    env: {CHANGED: '${{ groups.g.result.files_changed }}'}
    run: |
      test \"$(cat a.txt b.txt both.txt)\" = \"$(printf 'a\\nb\\nbase\\na')\"
      test ! -e old.txt
      test ! -e bad.txt
      test \"$CHANGED\" = 4
groups:
  g: {steps: [a, b, bad], failure: lenient, isolate: true, merge: workspace}
";

#[test]
fn members_of_an_isolated_group_hand_their_files_on_through_its_merge() {
    let place = Place::with("flow.yaml", TEAM);
    place.write("both.txt", "base\n");
    place.write("old.txt", "old\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("explain last after"));
    let left = place.laneway("files last a");
    assert!(left.stdout.contains("a.txt") && left.stdout.contains("removed"), "{left}");
    assert!(!place.path("a.txt").exists(), "the user's directory is the user's");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn members_of_an_isolated_group_work_on_several_nodes() {
    let document = TEAM
        .replace("a: {run: 'echo a", "a: {runs_on: {at: one}, run: 'echo a")
        .replace("b: {run", "b: {runs_on: {at: two}, run");
    let cluster = Cluster::new(&document);
    cluster.user.write("both.txt", "base\n");
    cluster.user.write("old.txt", "old\n");
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    let workers = [cluster.worker(0, "--label at=one"), cluster.worker(1, "--label at=two")];
    cluster.succeeds();
    workers.into_iter().for_each(stop);
}

#[test]
fn members_that_changed_one_file_conflict_in_their_merge() {
    let conflict = "
steps:
  a: {run: 'echo a > out'}
  b: {run: 'echo b > out'}
  after: {needs: [g], run: 'test \"$(cat out)\" = b'}
groups:
  g: {steps: [a, b], isolate: true, merge: workspaceKEEP}
";
    let place = Place::with("flow.yaml", &conflict.replace("KEEP", ""));
    assert_eq!(run_with_a_worker(&place, ""), "failed");
    let merge = &place.json("show last --json")["tasks"][3];
    assert_eq!((&merge["step"], &merge["reason"]), (&"g/merge".into(), &"conflict".into()));
    assert!(text(&merge["detail"]).contains("out"), "{merge}");
    place.write("flow.yaml", &conflict.replace("KEEP", ", on_conflict: {keep: b}"));
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
}

#[test]
fn a_conflict_of_members_that_are_only_listed_is_for_the_step_behind_the_group() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  a: {run: 'echo a > out'}
  b: {run: 'echo b > out'}
  after: {needs: [g], on_conflict: {keep: a}, run: 'test \"$(cat out)\" = a'}
groups:
  g: {steps: [a, b]}
",
    );
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
}

#[test]
fn an_isolated_step_hands_on_its_artifacts_alone() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  make: {run: 'echo new > out/new; echo > litter', isolate: true, artifacts: ['out/*']}
  given: {needs: [make], inputs: [make], run: 'test \"$(cat out/new)\" = new; test ! -e litter'}
  apart: {needs: [make], run: 'test ! -e out/new; test -e out/old; test ! -e litter'}
",
    );
    std::fs::create_dir(place.path("out")).expect("made");
    place.write("out/old", "old\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
    let artifacts = place.laneway("artifacts last make");
    assert!(artifacts.stdout.contains("out/new") && !artifacts.stdout.contains("out/old"), "{artifacts}");
    let left = place.laneway("files last make");
    assert!(left.stderr.contains("make changed no files"), "{left}");
}

#[test]
fn an_artifact_of_a_local_run_is_what_the_attempt_wrote() {
    for more in ["", ", isolate: true"] {
        let flow = "
on_failure: continue
steps:
  write: {run: 'echo a > out/a; ln -s old out/link', artifacts: ['out/*']MORE}
  touch: {needs: [write], run: 'touch out/old', artifacts: ['out/*']MORE}
  again: {needs: [touch], run: 'cat out/old > out/same; mv out/same out/old', artifacts: [out/old]MORE}
  none: {needs: [again], run: 'cat out/old', artifacts: ['out/*']MORE}
";
        let place = Place::with("flow.yaml", &flow.replace("MORE", more));
        std::fs::create_dir(place.path("out")).expect("made");
        place.write("out/old", "old\n");
        let outcome = place.laneway("run flow.yaml");
        assert_eq!(
            place.statuses(),
            "write=succeeded touch=succeeded again=succeeded none=failed",
            "{outcome}"
        );
        let artifacts = |step: &str| {
            let listed = place.json(&format!("artifacts last {step} --json"));
            let names =
                listed.as_array().expect("a list").iter().map(|artifact| text(&artifact["name"]).to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(artifacts("write"), ["out/a", "out/link"]);
        // A link to what was written is written, where steps share the directory.
        let touched: &[&str] = if more.is_empty() { &["out/link", "out/old"] } else { &["out/old"] };
        assert_eq!(artifacts("touch"), touched);
        assert_eq!(artifacts("again"), ["out/old"]);
        let why = place.laneway("explain last none").stdout;
        assert!(why.contains("were there before") && why.contains("`touch`"), "{why}");
    }
}

#[test]
fn plan_and_explain_tell_what_a_step_sees_and_what_it_left() {
    let place = Place::with("flow.yaml", CHAIN);
    place.write("given", "given\n");
    let plan = place.laneway("plan flow.yaml").stdout;
    assert!(plan.contains("\n  change: fetch\n  look: fetch, change\n"), "{plan}");
    let files = &place.json("plan flow.yaml --json")["files"];
    assert_eq!(files[1], serde_json::json!({"step": "look", "sees": ["fetch", "change"]}), "{files}");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("show last"));
    let look = place.laneway("explain last look").stdout;
    assert!(look.contains("saw the changes of fetch (5 paths, ") && look.contains("; change ("), "{look}");
    assert!(!look.contains("left "), "{look}");
    let change = place.laneway("explain last change").stdout;
    assert!(change.contains("left 3 paths, 15 B"), "{change}");
    let told = &place.json("explain last change --json")["files"];
    assert_eq!(told["left"]["step"], "change", "{told}");
    assert_eq!((&told["left"]["bytes"], &told["saw"][0]["step"]), (&15.into(), &"fetch".into()), "{told}");
    place.write("flow.yaml", "steps: {a: {run: echo}}\n");
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    assert!(place.json("explain last a --json")["files"].is_null(), "it worked in the user's directory");
}

#[test]
fn items_have_a_view_each_and_their_files_are_told_apart() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  list: {run: 'echo list > list'}
  parse:
    needs: [list]
    for_each: [a, b, c]
    env: {N: '${{ item }}'}
    run: 'test \"$(ls)\" = \"$(printf \"flow.yaml\\nlist\")\"; echo $N > out-$N; echo $N > scratch; rm scratch'
  join: {needs: [parse], run: 'test \"$(cat out-*)\" = \"$(printf \"a\\nb\\nc\")\"; test ! -e scratch'}
",
    );
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("explain last"));
    let left = place.laneway("files last parse[1]");
    assert!(left.stdout.contains("out-b") && !left.stdout.contains("out-a"), "{left}");
    let fetched = place.laneway("files last parse[2] --to fetched");
    assert_eq!(fetched.code, Some(0), "{fetched}");
    assert_eq!(place.read("fetched/out-c"), "c\n");
    let none = place.laneway("files last parse[3]");
    assert_eq!(none.code, Some(2), "{none}");
    let join = place.laneway("explain last join").stdout;
    assert!(join.contains("list (1 path") && join.contains("; parse[2] (1 path, "), "{join}");
}

#[test]
fn what_a_failed_step_left_is_seen_by_the_steps_that_accept_its_failure() {
    let place = Place::with(
        "flow.yaml",
        "
on_failure: continue
steps:
  test: {run: 'echo attempt $LANEWAY_ATTEMPT > report; echo > litter-$LANEWAY_ATTEMPT; exit 1', retry: {max: 1, backoff: 0s}}
  publish: {needs: [test], when: always, run: 'cat report; test \"$(cat report)\" = \"attempt 2\"; test ! -e litter-1'}
  strict: {needs: [test], run: 'echo never'}
",
    );
    assert_eq!(run_with_a_worker(&place, ""), "failed");
    assert_eq!(
        place.statuses(),
        "test=failed publish=succeeded strict=skipped",
        "{}",
        place.laneway("explain last")
    );
    let left = place.laneway("files last test");
    assert!(left.stdout.contains("report") && !left.stdout.contains("litter-1"), "{left}");
}

#[test]
fn files_follow_a_run_that_goes_level_by_level() {
    let place = Place::with("flow.yaml", &format!("execution: levels\n{CHAIN}"));
    place.write("given", "given\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("explain last"));
    assert!(place.laneway("files last change").stdout.contains("data/a"));
    let cluster = Cluster::new(&format!("execution: levels\n{CHAIN}"));
    let worker = cluster.worker(0, "");
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    cluster.succeeds();
    stop(worker);
}

#[test]
fn a_workspace_of_none_is_a_directory_of_the_run_on_each_node() {
    let flow = "
workspace: none
steps:
  a: {run: 'echo a > file'}
  b: {needs: [a], run: 'test \"$(cat file)\" = a'}
";
    let place = Place::with("flow.yaml", flow);
    place.write("given", "given\n");
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("explain last"));
    assert!(!place.path("file").exists(), "the user's directory is the user's");
    assert!(place.laneway("files last a").stderr.contains("a changed no files"));
}

#[test]
fn a_server_tells_and_sends_the_files_of_a_step() {
    let place = Place::with("flow.yaml", CHAIN);
    place.write("given", "given\n");
    let served = Served::start(&place, &[]);
    assert_eq!(served.ask("submit flow.yaml").code, Some(0));
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    let listed = served.json("files last change --json");
    assert_eq!(listed, place.json("files last change --json"));
    let paths = listed["files"].as_array().expect("a list").iter().map(|file| text(&file["path"]));
    assert_eq!(paths.collect::<Vec<_>>(), ["data/a", "data/b", "said"]);
    assert_eq!(served.ask("files last change --get said --to fetched").code, Some(0));
    assert_eq!(place.read("fetched/said"), "tool\n");
    assert_eq!(served.json("explain last look --json"), place.json("explain last look --json"));
    let wrong = served.ask("files last chnge");
    assert!(wrong.stderr.contains("did you mean `change`"), "{wrong}");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn a_layer_may_be_as_large_as_the_setting_says() {
    let cluster = Cluster::new(
        "
steps:
  large:
    runs_on: {at: one}
    run: |
      head -c 70000000 /dev/urandom > large
      mkdir small; cd small; head -c 70000000 /dev/urandom | split -b 200000 -a 3
  use:
    needs: [large]
    runs_on: {at: two}
    run: 'test \"$(wc -c < large)\" = 70000000; test \"$(cat small/* | wc -c)\" = 70000000'
",
    );
    assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
    let workers = [cluster.worker(0, "--label at=one"), cluster.worker(1, "--label at=two")];
    cluster.succeeds();
    workers.into_iter().for_each(stop);
}

#[test]
fn files_that_only_a_lost_node_has_fail_the_next_step_by_name() {
    for placement in ["spread", "pinned"] {
        let document = "
placement: PLACEMENT
steps:
  large: {run: 'dd if=/dev/urandom of=data bs=1000 count=3000 2> /dev/null'}
  use: {needs: [large], run: 'echo started; exec sleep 600'}
  last: {needs: [use], run: 'true'}
";
        let cluster = Cluster::new(&document.replace("PLACEMENT", placement));
        let args = "--workspace-max-bytes 1MB --lease-ttl 2s --heartbeat-interval 500ms";
        let workers = [cluster.worker(0, args), cluster.worker(1, args)];
        assert_eq!(cluster.user("submit flow.yaml").code, Some(0));
        until("the second step", || cluster.user("logs last use").stdout.contains("started"));
        let shown = cluster.user.json(&format!("show last --json --store {}", cluster.store));
        let is_first = text(&shown["tasks"][1]["node"]) == "n0";
        let [first, second] = workers;
        let (dying, other) = if is_first { (first, second) } else { (second, first) };
        dying.signal(Signal::KILL);
        drop(dying.wait());
        until("the end of the run", || cluster.status() == "failed");
        let why = cluster.user("explain last use").stdout;
        for told in [
            "`large` left 2929 KiB on node n",
            "largest files: data (2929 KiB)",
            "start that node again",
            "raise `workspace_max_bytes`",
        ] {
            assert!(why.contains(told), "{told}: {why}");
        }
        assert_eq!(cluster.user("replay last").code, Some(0));
        stop(other);
    }
}

#[test]
fn a_step_sees_more_layers_than_its_node_may_open_files() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  each: {for_each: '${{ 300 | range }}', env: {I: '${{ item }}'}, run: 'echo > $I'}
  all: {needs: [each], run: 'test $(ls | wc -l) = 301'}
",
    );
    assert_eq!(place.laneway("submit flow.yaml").code, Some(0));
    let worker = place.command(&["worker", "--shutdown-grace", "1s"]);
    let mut command = std::process::Command::new("sh");
    let exec = "ulimit -n 200; exec \"$0\" \"$@\"";
    command.args(["-c", exec]).arg(worker.get_program()).args(worker.get_args()).current_dir(place.path(""));
    command.env_clear().envs(worker.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = command.spawn().expect("it starts");
    let status = || text(&place.json("show last --json")["status"]).to_owned();
    until("the end of the run", || ["succeeded", "failed"].contains(&status().as_str()));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).expect("it lives");
    child.wait().expect("it ends");
    assert_eq!(status(), "succeeded", "{}", place.laneway("explain last all"));
}

#[test]
fn a_step_that_only_removes_or_only_makes_a_directory_has_changed_something() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  write: {run: 'echo > gone; echo > file; mkdir shut'}
  remove: {needs: [write], run: rm gone}
  replace: {needs: [remove], run: rm file; mkdir file}
  close: {needs: [replace], run: chmod 700 shut}
  look: {needs: [close], run: 'test ! -e gone; test -d file; test $(stat -c %a shut) = 700'}
",
    );
    assert_eq!(run_with_a_worker(&place, ""), "succeeded", "{}", place.laneway("explain last"));
    let left = place.laneway("files last remove");
    assert!(left.stdout.contains("gone") && left.stdout.contains("removed"), "{left}");
}
