//! Groups as a person meets them: strict and lenient ones, copies of the workspace, merges and what stands in their way.

use serde_json::{Value, json};

use crate::place::Place;

/// Two members that write files, each in a copy of its own, and a step behind them.
fn isolating(a: &str, b: &str, more: &str) -> String {
    format!(
        r#"
steps:
  a: {{run: {a}}}
  b: {{run: {b}}}
  after: {{needs: [g], run: 'cat *.txt; echo "$FILES"', env: {{FILES: "${{{{ groups.g.result.files | tojson }}}}"}}}}
groups:
  g: {{steps: [a, b], isolate: true, merge: workspace{more}}}
"#
    )
}

#[test]
fn a_strict_group_ends_with_its_first_failure() {
    let place = Place::with(
        "flow.yaml",
        "
max_parallel: 2
steps:
  bad: {run: 'read x < go; exit 3'}
  busy: {run: 'echo > go; trap \"exit 0\" TERM; while :; do sleep 0.1; done'}
  waits: {run: echo never}
  after: {needs: [g], run: echo never}
groups:
  g: {steps: [bad, busy, waits]}
",
    );
    place.pipe("go");
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    // In whichever order the store hears of it.
    for line in [
        "bad failed in ",
        "waits canceled: `bad` of its group `g` failed",
        "busy canceled in ",
        "run halts because bad failed: nothing new starts",
        "g/merge skipped: another step failed",
    ] {
        assert!(outcome.stdout.contains(line), "{line}: {outcome}");
    }
    assert_eq!(place.statuses(), "bad=failed busy=canceled waits=canceled after=skipped g/merge=skipped");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_lenient_group_lists_what_failed_and_the_run_goes_on() {
    let place = Place::with(
        "flow.yaml",
        r#"
steps:
  good: {run: echo n=1 >> $LANEWAY_OUTPUT}
  bad: {run: exit 1}
  says: {run: 'echo "{\"success\": false, \"why\": \"three lints\"}" > $LANEWAY_OUTPUT'}
  after: {needs: [g], run: echo "$RESULT", env: {RESULT: "${{ groups.g.result.members[2].step ~ ' ' ~ groups.g.result.success }}"}}
groups:
  g: {steps: [says, bad, good], failure: lenient}
"#,
    );
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    assert_eq!(place.statuses(), "good=succeeded bad=failed says=failed after=succeeded g/merge=succeeded");
    let run = place.json("show last --json");
    let merge = &run["tasks"][4]["output"];
    assert_eq!(
        *merge,
        json!({"success": false, "members": [
            {"step": "says", "status": "failed", "success": false, "output": {"success": false, "why": "three lints"}},
            {"step": "bad", "status": "failed", "success": false, "output": {}},
            {"step": "good", "status": "succeeded", "success": true, "output": {"n": "1"}},
        ]}),
        "in the order of the group's list"
    );
    assert_eq!(place.laneway("logs last after").stdout, "good False\n");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn members_work_apart_and_what_they_changed_comes_together() {
    // Beside the place lie files of others: this name is this test's own.
    let beside = format!("../by-accident-{}", std::process::id());
    let a = format!(
        "'echo a > a.txt; echo a >> both.txt; rm old.txt; test ! -e b.txt; test ! -e .laneway; echo x > {beside}'"
    );
    let b = format!(
        "'echo b > b.txt; printf \"base\\na\\n\" > both.txt; test -e old.txt; test ! -e a.txt; test ! -e {beside}'"
    );
    let place = Place::with("flow.yaml", &isolating(&a, &b, ""));
    place.write("both.txt", "base\n");
    place.write("old.txt", "old\n");
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}{}", place.laneway("logs last"));
    assert_eq!((place.read("a.txt"), place.read("both.txt")), ("a\n".into(), "base\na\n".into()));
    assert!(!place.path("old.txt").exists() && !place.path(&beside).exists());
    assert!(outcome.stdout.contains("group g merged: 4 files changed"), "{outcome}");
    let told = place.laneway("logs last after").stdout;
    assert!(told.starts_with("a\nb\nbase\na\n"), "it finds what they left: {told}");
    assert!(told.contains(r#"{"change":"removed","path":"old.txt","steps":["a"]}"#), "{told}");
    assert!(told.contains(r#"{"change":"written","path":"both.txt","steps":["a","b"]}"#), "{told}");
    let events = place.laneway("events last --json").stdout;
    let merged = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let merged = merged.into_iter().find(|event| event["event"] == "merge_finished").expect("told");
    assert_eq!((&merged["files"], &merged["conflicts"]), (&json!(4), &json!([])));
    let left = std::fs::read_dir(place.path(".laneway/isolates")).expect("dir").flatten();
    let cells: usize = left
        .flat_map(|instance| std::fs::read_dir(instance.path()).expect("dir").flatten())
        .flat_map(|run| std::fs::read_dir(run.path()).expect("dir").flatten())
        .filter(|entry| entry.path().is_dir())
        .count();
    assert_eq!(cells, 0, "no copy of a run that succeeded is left");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_conflict_fails_the_merge_with_the_list_and_changes_nothing() {
    let place = Place::with("flow.yaml", &isolating("echo a > x.txt", "echo b > x.txt", ""));
    place.write("x.txt", "base\n");
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(place.statuses(), "a=succeeded b=succeeded after=skipped g/merge=failed");
    assert_eq!(
        place.json("show last --json")["tasks"][3]["detail"],
        "members changed the same files in different ways, so nothing was applied: x.txt (a, b); \
         let one of them win with `on_conflict: {keep: STEP}`"
    );
    assert_eq!(place.read("x.txt"), "base\n");
}

#[test]
fn the_member_that_is_kept_wins() {
    let kept = ", on_conflict: {keep: b}";
    let place = Place::with("flow.yaml", &isolating("echo a > x.txt", "echo b > x.txt", kept));
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    assert_eq!(place.read("x.txt"), "b\n");
    let conflicts = &place.json("show last --json")["tasks"][3]["output"]["conflicts"];
    assert_eq!(*conflicts, json!([{"path": "x.txt", "steps": ["a", "b"], "kept": "b"}]));
}

#[test]
fn a_member_that_lies_about_its_files_is_told() {
    let a = "'echo a > a.txt; echo \"{\\\"files_changed\\\": [\\\"b.txt\\\"]}\" > $LANEWAY_OUTPUT'";
    let place = Place::with("flow.yaml", &isolating(a, "\"true\"", ""));
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    let merge = &place.json("show last --json")["tasks"][3];
    assert_eq!(merge["reason"], "conflict");
    assert_eq!(
        merge["detail"],
        "`files_changed` of `a` names b.txt, which it did not change and does not name a.txt, which it changed"
    );
}

#[test]
fn a_retry_merges_the_copies_of_members_that_had_succeeded() {
    let b = "'test -e ok && echo b > b.txt'";
    let place = Place::with(
        "flow.yaml",
        &isolating("echo a > a.txt", b, "").replace("steps:\n  a", "max_parallel: 1\nsteps:\n  a"),
    );
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    assert!(!place.path("a.txt").exists(), "nothing is merged of a group that failed");
    place.write("ok", "");
    let outcome = place.laneway("retry last");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!((place.read("a.txt"), place.read("b.txt")), ("a\n".into(), "b\n".into()));
    let attempts = |index: usize| place.json("show last --json")["tasks"][index]["attempt"].clone();
    assert_eq!((attempts(0), attempts(1)), (json!(1), json!(2)));
}

#[test]
fn a_program_merges_what_it_reads_and_puts_out() {
    let place = Place::with(
        "flow.yaml",
        r#"
steps:
  a: {run: echo n=1 >> $LANEWAY_OUTPUT}
  b: {run: echo n=2 >> $LANEWAY_OUTPUT}
  after: {needs: [g], run: echo "$X", env: {X: "${{ groups.g.result.seen }}"}}
groups:
  g: {steps: [a, b], merge: {custom: [./join.sh]}}
"#,
    );
    place.write("join.sh", "#!/bin/sh\ncat > in.json\necho seen=$(grep -o '\"n\":\"[0-9]\"' in.json | tr -d '\\n') >> $LANEWAY_OUTPUT\n");
    std::process::Command::new("chmod").arg("+x").arg(place.path("join.sh")).status().expect("chmod runs");
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.laneway("logs last after").stdout, "\"n\":\"1\"\"n\":\"2\"\n");
    let read: Value = serde_json::from_str(&place.read("in.json")).expect("JSON");
    assert_eq!(
        read,
        json!({"group": "g", "success": true, "members": [
            {"step": "a", "status": "succeeded", "success": true, "output": {"n": "1"}},
            {"step": "b", "status": "succeeded", "success": true, "output": {"n": "2"}},
        ]})
    );
}

#[test]
fn explain_says_that_a_group_is_full() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  a: {run: 'echo > started; read x < go'}
  b: {run: \"true\"}
groups:
  g: {steps: [a, b], max_parallel: 1}
",
    );
    place.pipe("go");
    place.pipe("started");
    let running = place.spawn("run flow.yaml");
    place.read("started");
    let outcome = place.laneway("explain last b");
    let why = "b is pending: waits for a place in its group `g`: max_parallel is 1 and a holds it";
    assert!(outcome.stdout.contains(why), "{outcome}");
    place.write("go", "\n");
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn plan_and_dry_run_show_the_merge() {
    let place = Place::with("flow.yaml", &isolating("echo a", "echo b", ""));
    let plan = place.json("plan flow.yaml --json");
    assert_eq!(plan["levels"], json!([["a", "b"], ["g/merge"], ["after"]]));
    assert_eq!(
        plan["lanes"],
        json!([{"group": "g", "steps": ["a", "b"]}, {"step": "g/merge"}, {"step": "after"}])
    );
    assert_eq!(plan["critical_path"], json!(["a", "g/merge", "after"]));
    let outcome = place.laneway("run flow.yaml --dry-run");
    assert!(outcome.stdout.contains("g/merge  after a, b"), "{outcome}");
}
