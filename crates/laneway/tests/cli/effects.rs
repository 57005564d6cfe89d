//! Durable effects, as a step meets them: done once, recorded, replayed, and never run blindly. docs/design/effects.md.

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, text, until};
use crate::postgres::schema;

/// A workflow with one step, `pay`, whose script calls `$lw effect`.
fn pay(keys: &str, script: &str) -> Place {
    Place::with("pay.yaml", &document(keys, script))
}

fn document(keys: &str, script: &str) -> String {
    let lines: String = script.trim().lines().map(|line| format!("      {}\n", line.trim())).collect();
    let program = env!("CARGO_BIN_EXE_laneway");
    format!("name: pay\nenv: {{lw: {program}}}\nsteps:\n  pay:\n    {keys}\n    run: |\n{lines}")
}

const TWICE: &str = "retry: {max: 1, backoff: 0s}";

fn effects(place: &Place) -> Vec<Value> {
    place.json("effects last --json").as_array().expect("a list").clone()
}

#[test]
fn an_effect_is_done_once_and_a_later_attempt_gets_what_is_recorded() {
    let place = pay(
        TWICE,
        r#"
        $lw effect charge --key 17 -- sh -c 'echo "$LANEWAY_EFFECT_ID" >> ran; echo "charged $1"; echo receipt=7 >> $LANEWAY_OUTPUT' sh 5 > got.$LANEWAY_ATTEMPT
        test $LANEWAY_ATTEMPT = 2
        "#,
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.read("ran").lines().count(), 1, "it ran once");
    assert_eq!((place.read("got.1"), place.read("got.2")), ("charged 5\n".into(), "charged 5\n".into()));
    let shown = place.json("show last --json");
    let task = &shown["tasks"][0];
    assert_eq!((&task["attempt"], &task["output"]["receipt"]), (&2.into(), &"7".into()));
    assert_eq!(
        (&task["effects"][0]["name"], &task["effects"][0]["status"]),
        (&"charge".into(), &"done".into())
    );
    insta::assert_snapshot!(place.laneway("effects last"), @r"
    $ laneway effects last
    exit code 0
    ----- stdout
    STEP  EFFECT  KEY  STATE  ATTEMPT  EXIT  RECORDED
    pay   charge  17   done   1        0     20 bytes
    ----- stderr
    ");
    assert!(place.laneway("show last").stdout.contains("effects: 1 done; laneway effects "));
    let events = place.laneway("events last").stdout;
    assert!(events.contains("pay begins its effect charge (17)"), "{events}");
    assert!(events.contains("pay has done its effect charge (17) in "), "{events}");
    assert_eq!(place.laneway("replay last").code, Some(0));
    assert_eq!(place.laneway("doctor").code, Some(0));
}

/// The script's own variable is not what the effect's command gets.
#[test]
fn command_of_an_effect_gets_the_fencing_token_of_the_step() {
    let place = pay(
        "lock: bank",
        r#"
        echo "$LANEWAY_FENCE" > step
        export LANEWAY_FENCE=1
        $lw effect charge -- sh -c 'echo "$LANEWAY_FENCE" > charged'
        unset LANEWAY_FENCE
        $lw effect mail -- sh -c 'echo "$LANEWAY_FENCE" > mailed'
        "#,
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let fence = place.read("step");
    assert!(fence.trim().parse::<u64>().is_ok_and(|fence| fence > 1), "{fence}");
    assert_eq!((place.read("charged"), place.read("mailed")), (fence.clone(), fence));
}

#[test]
fn command_of_an_effect_gets_no_fencing_token_without_a_lock() {
    let place = pay("", r#"$lw effect charge -- sh -c 'echo "none$LANEWAY_FENCE" > charged'"#);
    assert_eq!(place.laneway("run pay.yaml").code, Some(0));
    assert_eq!(place.read("charged"), "none\n");
}

#[test]
fn a_retry_of_the_run_keeps_effects_and_an_empty_result_counts() {
    let place = pay("", "$lw effect mail -- sh -c 'echo x >> ran'\ntest -f fixed");
    assert_eq!(place.laneway("run pay.yaml").code, Some(1));
    place.write("fixed", "");
    assert_eq!(place.laneway("retry last").code, Some(0));
    assert_eq!(place.laneway("retry last --from pay").code, Some(0));
    assert_eq!(place.read("ran"), "x\n");
    assert_eq!(effects(&place)[0]["stdout_bytes"], 0);
}

#[test]
fn a_command_that_says_it_failed_is_tried_again_unless_that_is_a_result() {
    let script = |flag: &str| {
        format!(
            "$lw effect try {flag} -- sh -c 'echo x >> ran; echo out; exit 7' > out || code=$?\necho ${{code:-0}} >> codes\nexit 1"
        )
    };
    let place = pay(TWICE, &script(""));
    assert_eq!(place.laneway("run pay.yaml").code, Some(1));
    assert_eq!((place.read("ran"), place.read("codes")), ("x\nx\n".into(), "7\n7\n".into()));
    let effect = effects(&place).remove(0);
    assert_eq!((&effect["status"], &effect["exit_code"]), (&"failed".into(), &7.into()));
    let place = pay(TWICE, &script("--on-failure record"));
    assert_eq!(place.laneway("run pay.yaml").code, Some(1));
    assert_eq!((place.read("ran"), place.read("codes")), ("x\n".into(), "7\n7\n".into()));
    assert_eq!(place.read("out"), "out\n");
    assert_eq!(effects(&place)[0]["status"], "done");
}

#[test]
fn of_two_at_once_one_runs_and_the_other_waits_for_the_record() {
    let place = pay(
        "",
        "
        $lw effect slow -- sh -c 'echo x >> ran; sleep 0.3; echo $$' > one &
        $lw effect slow -- sh -c 'echo x >> ran; sleep 0.3; echo $$' > two
        wait
        ",
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.read("ran"), "x\n");
    assert!(!place.read("one").is_empty());
    assert_eq!(place.read("one"), place.read("two"));
}

/// Within one attempt: whoever ran it is dead, and its command went on for a while.
#[test]
fn what_a_dead_process_had_begun_is_unknown_also_in_the_same_attempt() {
    let place = pay(
        "",
        "
        mkfifo begun
        $lw effect charge -- sh -c 'echo x >> ran; echo > begun; sleep 60' &
        read line < begun
        kill -9 $!
        wait $! || true
        $lw effect charge -- sh -c 'echo x >> ran' 2> said || echo $? >> codes
        $lw effect charge --on-unknown retry -- sh -c 'echo y >> ran; echo ok' > got
        ",
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(
        (place.read("codes"), place.read("ran"), place.read("got")),
        ("121\n".into(), "x\ny\n".into(), "ok\n".into())
    );
    let said = place.read("said");
    assert!(said.contains("the effect `charge` was started by attempt 1 at "), "{said}");
    assert!(said.contains("pay charge --done` if it happened, `--again` instead if it did not"), "{said}");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_command_that_a_signal_ends_leaves_it_unknown() {
    let place = pay(
        "",
        "
        $lw effect charge -- sh -c 'kill -9 $$' || echo $? >> codes
        $lw effect charge -- true || echo $? >> codes
        $lw effect gone -- ./no-such-program || echo $? >> codes
        $lw effect gone -- echo ok
        ",
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.read("codes"), "137\n121\n127\n");
    assert!(place.laneway("logs last pay").stdout.contains("ok"));
}

/// `kill -9` of the node between begin and commit; then a person who has looked.
#[test]
fn what_a_dead_node_had_begun_is_settled_by_a_person() {
    for (how, ran, got) in [("--done", "x\n", ""), ("--again", "x\nx\n", "ok\n")] {
        let place = pay(
            "",
            "$lw effect charge -- sh -c 'echo x >> ran; test -f go || { echo > begun; sleep 600; }; echo ok' > got",
        );
        place.pipe("begun");
        let node = place.spawn("run pay.yaml");
        assert_eq!(place.read("begun"), "\n");
        node.signal(Signal::KILL);
        node.wait();
        place.write("go", "");
        let resumed = place.laneway("run --resume last");
        assert_eq!(resumed.code, Some(1), "{resumed}");
        assert!(resumed.stdout.contains("exit code 121"), "{resumed}");
        assert_eq!(place.read("ran"), "x\n", "not run blindly");
        let listed = place.laneway("effects last");
        assert!(listed.stdout.contains("unknown") && listed.stderr.contains("--done or --again"), "{listed}");
        let settled = place.laneway(&format!("effects last pay charge {how}"));
        assert_eq!(settled.code, Some(0), "{settled}");
        let retried = place.laneway("retry last");
        assert_eq!(retried.code, Some(0), "{retried}");
        assert_eq!((place.read("ran").as_str(), place.read("got").as_str()), (ran, got));
        assert_eq!(effects(&place)[0]["unknown"], false);
        assert_eq!(place.laneway("replay last").code, Some(0));
    }
}

/// Another node gets the record of one that was killed, and does not run it again.
#[test]
fn another_node_gets_what_a_killed_one_has_recorded() {
    let (place, store) = (Place::new(), schema());
    let dir = place.path("").to_string_lossy().trim_end_matches('/').to_owned();
    // On Postgres steps run in a directory of the run: what they leave is to be found by the test.
    let script = format!(
        "cd {dir}\n$lw effect charge -- sh -c 'echo x >> ran; echo id-7' > got.$LANEWAY_ATTEMPT\n\
         test $LANEWAY_ATTEMPT = 2 || {{ echo > done; sleep 600; }}"
    );
    place.write("pay.yaml", &document("", &script));
    place.write("laneway.toml", "lease_ttl = \"3s\"\nheartbeat_interval = \"300ms\"\n");
    // Each with a data directory of its own, elsewhere: another node, not the same one started again.
    let homes = Place::new();
    let worker = |name: &str| {
        let home = homes.path(name).display().to_string();
        place.spawn(&format!(
            "worker --shutdown-grace 1s --data-dir {home} --node-address {name} --store {store}"
        ))
    };
    let one = worker("one");
    let submitted = place.laneway(&format!("submit pay.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    until("the effect", || place.path("done").exists());
    one.signal(Signal::KILL);
    one.wait();
    let two = worker("two");
    let shown = || place.json(&format!("show last --json --store {store}"));
    until("the end of the run", || text(&shown()["status"]) == "succeeded");
    let task = &shown()["tasks"][0];
    assert_eq!((text(&task["node"]), task["attempt"].as_u64()), ("two", Some(2)));
    assert_eq!(place.read("ran"), "x\n");
    assert_eq!((place.read("got.1"), place.read("got.2")), ("id-7\n".into(), "id-7\n".into()));
    two.signal(Signal::TERM);
    assert_eq!(two.wait().code, Some(0));
    assert_eq!(place.laneway(&format!("replay last --store {store}")).code, Some(0));
}

#[test]
fn a_result_that_is_too_large_is_not_recorded_and_the_effect_is() {
    let place = pay(
        "",
        "
        $lw effect large -- sh -c 'echo x >> ran; head -c 300000 /dev/zero' > out 2> said || echo $? >> codes
        $lw effect large -- sh -c 'echo x >> ran' > out 2>> said || echo $? >> codes
        $lw effect odd -- sh -c 'echo nonsense >> $LANEWAY_OUTPUT' 2>> said || echo $? >> codes
        ",
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!((place.read("ran"), place.read("codes")), ("x\n".into(), "123\n123\n123\n".into()));
    let said = place.read("said");
    assert!(
        said.contains("has happened, and does not run again; but it printed more than 256 KiB"),
        "{said}"
    );
    assert!(
        said.contains("what it wrote to $LANEWAY_OUTPUT is not recorded: line 1: expected key=value"),
        "{said}"
    );
}

#[test]
fn secrets_are_masked_in_what_is_recorded_and_so_in_what_the_step_gets() {
    let program = env!("CARGO_BIN_EXE_laneway");
    let place = Place::with(
        "pay.yaml",
        &format!(
            "secrets: {{db: {{env: DB}}}}\nsteps:\n  pay:\n    env: {{PW: '${{{{ secrets.db }}}}'}}\n    {TWICE}\n    run: |\n      \
             {program} effect say -- sh -c 'echo \"it is $PW\"; echo \"pw=$PW\" >> $LANEWAY_OUTPUT' > got.$LANEWAY_ATTEMPT\n      \
             test $LANEWAY_ATTEMPT = 2\n"
        ),
    );
    let mut run = place.command(&["run", "pay.yaml"]);
    run.env("DB", "hunter2-and-more");
    let outcome = place.outcome("run pay.yaml", run);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!((place.read("got.1"), place.read("got.2")), ("it is ***\n".into(), "it is ***\n".into()));
    assert_eq!(place.json("show last --json")["tasks"][0]["output"]["pw"], "***");
    let store = std::fs::read(place.path(".laneway/laneway.db")).expect("the store");
    let wal = std::fs::read(place.path(".laneway/laneway.db-wal")).unwrap_or_default();
    for bytes in [store, wal] {
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "it is in the store");
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused_in_words_and_nothing_runs() {
    let place = Place::new();
    insta::assert_snapshot!(place.laneway("effect charge -- touch ran"), @r"
    $ laneway effect charge -- touch ran
    exit code 122
    ----- stdout
    ----- stderr
    error: LANEWAY_EFFECT_SOCKET is not set: this is no step, or its node could not make a socket
    hint: call it from the script of a step; the node's log says why it has no socket
    ");
    assert_eq!(place.laneway("effect a/b -- touch ran").code, Some(2));
    assert_eq!(place.laneway("effect charge").code, Some(2), "it needs a command");
    assert_eq!(place.laneway("effect charge --on-unknown perhaps -- touch ran").code, Some(2));
    assert!(!place.path("ran").exists());
    let place = pay(
        "",
        "$lw effect outer -- sh -c '$lw effect inner -- sh -c \"\\$lw effect outer -- true\"' 2> said || echo $? > code",
    );
    assert_eq!(place.laneway("run pay.yaml").code, Some(0));
    assert!(
        place.read("said").contains("the effect `outer` is asked for inside of itself"),
        "{}",
        place.read("said")
    );
    assert_eq!(place.read("code"), "122\n");
    let refused = place.laneway("effects last pay nothing --done");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("step `pay` of run") && refused.stderr.contains("has no effect `nothing`"),
        "{refused}"
    );
}

/// As the documentation shows it, for images in which the program cannot run.
#[test]
fn the_socket_speaks_plain_http() {
    let place = pay(
        TWICE,
        r#"
        at="$LANEWAY_EFFECT_URL/charge?key=order%2017"
        ask() { curl -sS --unix-socket "$LANEWAY_EFFECT_SOCKET" -o answer -w '%{http_code}' "$@"; }
        case $(ask -X POST "$at") in
        201) echo x >> ran; echo receipt-7 > printed
        test $(ask -X PUT --data-binary @printed "$at&exit_code=0&execution=$(cat answer)") = 200 ;;
        200) ;;
        *) cat answer >&2; exit 1 ;;
        esac
        cp answer got.$LANEWAY_ATTEMPT
        test $(ask -X POST "$LANEWAY_EFFECT_URL/b?keys=1") = 400
        test $(ask -X POST "$LANEWAY_EFFECT_URL/gone") = 201
        test $(ask -X DELETE "$LANEWAY_EFFECT_URL/gone?execution=$(cat answer)") = 204
        test $(ask -X POST "$LANEWAY_EFFECT_URL/gone") = 409
        test $(ask -X POST "http://laneway/somebody/effects/else") = 404
        test $LANEWAY_ATTEMPT = 2
        "#,
    );
    let outcome = place.laneway("run pay.yaml");
    assert_eq!(place.read("ran"), "x\n", "{outcome}");
    assert_eq!(place.read("got.1"), "receipt-7\n");
    // In the second attempt `gone` is unknown from the start: that is where it ends.
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(place.read("got.2"), "receipt-7\n");
    let unknown: Vec<bool> = effects(&place).iter().map(|one| one["unknown"] == true).collect();
    assert_eq!(unknown, [false, true]);
}
