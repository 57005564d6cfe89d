//! R12: what runs when a run is over, in the foreground and on a server, and callbacks that are sent until they are taken.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use insta::assert_snapshot;
use serde_json::Value;

use crate::place::{Place, text, until};

const FLOW: &str = r#"
name: nightly
params: {day: {type: string, default: monday}}
on_failure: continue
steps:
  a: {run: 'exit 3'}
  b: {run: 'true'}
hooks:
  finished:
    - run: echo "$LANEWAY_ENDED_WORKFLOW $LANEWAY_ENDED_STATUS on $DAY" > told
      env: {DAY: "${{ params.day }}"}
  failed:
    - run: echo "$LANEWAY_ENDED_FAILED, $WHY" >> told && exit 1
      env: {WHY: "${{ ended.reason }}"}
    - run: echo "and still told" >> told
  succeeded:
    - run: echo never > told
"#;

#[test]
fn hooks_run_after_the_run_and_change_nothing_about_it() {
    let place = Place::with("nightly.yaml", FLOW);
    let outcome = place.laneway("run nightly.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_snapshot!(place.read("told"), @r"
    nightly failed on monday
    a, a failed: exit code 3
    and still told
    ");
    let runs = place.json("runs --json");
    let told: Vec<(&str, &str)> = runs
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| (text(&run["workflow"]), text(&run["status"])))
        .collect();
    assert_eq!(told, [("nightly (failed)", "failed"), ("nightly", "failed")]);
    assert_eq!(place.json("show last --json")["workflow"], "nightly", "nobody typed its hooks");
    let last = outcome.stdout.lines().last().expect("a line");
    assert!(
        last.starts_with("✗ nightly ") && last.contains("(a failed: exit code 3); next: laneway logs "),
        "{last}"
    );
    assert!(last.contains(" a, laneway retry "), "{last}");
}

#[test]
fn run_that_is_canceled_has_finished_too() {
    let flow = "steps: {a: {run: 'touch begun; sleep 60'}}\nhooks: {finished: [{run: 'echo $LANEWAY_ENDED_STATUS > told'}]}\n";
    let place = Place::with("flow.yaml", flow);
    let running = place.spawn("run flow.yaml");
    until("the step", || place.path("begun").exists());
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.wait().code, Some(130));
    assert_eq!(place.read("told"), "canceled\n");
}

#[test]
fn hooks_of_a_run_whose_process_is_gone_are_made_up_for() {
    let flow = "steps: {a: {run: 'true'}}\nhooks: {succeeded: [{run: 'touch begun; sleep 0.5; echo $LANEWAY_ATTEMPT >> told'}]}\n";
    let place = Place::with("flow.yaml", flow);
    let running = place.spawn("run flow.yaml");
    until("the hook", || place.path("begun").exists());
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    let resumed = place.laneway("run --resume last");
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(place.read("told"), "2\n");
    let resumed = place.laneway("resume last");
    assert_eq!(resumed.code, Some(1), "nothing is left of it: {resumed}");
}

#[test]
fn hooks_whose_process_is_gone_are_resumed_by_their_own_id_too() {
    let flow = "steps: {a: {run: 'true'}}\nhooks: {succeeded: [{run: 'touch begun; test -e go || sleep 60; echo $LANEWAY_ATTEMPT >> told'}]}\n";
    for by_its_own in [true, false] {
        let place = Place::with("flow.yaml", flow);
        let running = place.spawn("run flow.yaml");
        until("the hook", || place.path("begun").exists());
        running.signal(rustix::process::Signal::KILL);
        running.wait();
        place.write("go", "");
        let hooks = place.json("runs --json")[0]["run"].clone();
        let name = if by_its_own { text(&hooks) } else { "last" };
        let resumed = place.laneway(&format!("resume {name}"));
        assert_eq!(resumed.code, Some(0), "{resumed}");
        assert_eq!(place.read("told"), "2\n");
    }
}

#[test]
fn hooks_of_a_run_that_somebody_ended_after_its_process_died_are_run_by_a_worker() {
    let flow = "steps: {a: {run: 'touch begun; sleep 60'}}\nhooks: {finished: [{run: 'echo $LANEWAY_ENDED_STATUS > told'}]}\n";
    let place = Place::with("flow.yaml", flow);
    let running = place.spawn("run flow.yaml");
    until("the step", || place.path("begun").exists());
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    let canceled = place.laneway("cancel last");
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert!(!place.path("told").exists(), "nobody is there who could");
    let worker = place.spawn("worker --shutdown-grace 1s");
    until("the hook", || place.path("told").exists() && place.read("told") == "canceled\n");
    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2), "once");
}

/// A variable holds 128 KiB on Linux: a program that is given a longer one does not start.
#[test]
fn hooks_of_a_run_with_very_many_failed_steps_start() {
    use std::fmt::Write as _;
    let mut flow =
        "on_failure: continue\nhooks: {failed: [{run: 'echo \"$LANEWAY_ENDED_FAILED\" > told'}]}\nsteps:\n"
            .to_owned();
    for step in 0..1_500 {
        writeln!(flow, "  s{step:04}{}: {{command: [/no/such/program]}}", "x".repeat(90)).expect("text");
    }
    let place = Place::with("flow.yaml", &flow);
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(1));
    let told = place.read("told");
    assert!(told.starts_with("s0000xxx") && told.contains("s0999xxx") && !told.contains("s1000xxx"));
}

#[test]
fn what_is_submitted_has_its_hooks_run_by_a_worker() {
    let place = Place::in_place("nightly.yaml", FLOW);
    place.laneway("submit nightly.yaml -p day=tuesday");
    let worker = place.spawn("worker --shutdown-grace 1s");
    until("the hooks", || place.path("told").exists() && place.read("told").contains("and still told"));
    assert!(place.read("told").starts_with("nightly failed on tuesday\n"), "{}", place.read("told"));
    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
    let runs = place.json("runs --json");
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "once: {runs}");
}

/// One request, as it came.
struct Heard {
    head: String,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        });
        found.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }
}

/// Listens, answers with these statuses one after the other, and tells what it heard.
fn listener(answers: &'static [&'static str]) -> (u16, mpsc::Receiver<Heard>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let mut head = String::new();
            while reader.read_line(&mut head).expect("a line") > 2 {}
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).expect("a body");
            // It begins to say something, and never comes to its end.
            let said = "much\0 ado ".repeat(10);
            write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 9000000\r\nconnection: close\r\n\r\n{said}")
                .expect("an answer");
            tell.send(Heard { head, body: String::from_utf8(body).expect("text") }).ok();
        }
    });
    (port, heard)
}

fn calling_back(port: u16) -> String {
    format!(
        "name: nightly\nsecrets: {{signing: {{env: SIGNING}}}}\nsteps: {{a: {{run: 'true'}}}}\n\
         hooks: {{succeeded: [{{post: 'http://127.0.0.1:{port}/told?x=1', secret: signing, retry: {{max: 2, backoff: 1ms}}}}]}}\n"
    )
}

/// The run of the hooks: the newest of all.
fn hooks(place: &Place) -> String {
    text(&place.json("runs --json")[0]["run"]).to_owned()
}

#[test]
fn callback_is_sent_until_it_is_taken_and_signed() {
    let (port, heard) = listener(&["500 Not Now", "200 OK"]);
    let place = Place::with("nightly.yaml", &calling_back(port));
    let mut command = place.command(&["run", "nightly.yaml"]);
    command.env("SIGNING", "a secret of some length").env("LANEWAY_CALLBACK_HOSTS", "127.0.0.1");
    let outcome = place.outcome("run nightly.yaml", command);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let (first, second) = (heard.recv().expect("a request"), heard.recv().expect("another"));
    assert!(second.head.starts_with("POST /told?x=1 HTTP/1.1"), "{}", second.head);
    assert_eq!(
        first.header("laneway-delivery"),
        second.header("laneway-delivery"),
        "it is the same delivery"
    );
    let (at, delivery) = (second.header("laneway-timestamp"), second.header("laneway-delivery"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"a secret of some length");
    let tag = ring::hmac::sign(&key, format!("{at}.{delivery}.{}", second.body).as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(second.header("laneway-signature"), format!("v1={digits}"));
    let body: Value = serde_json::from_str(&second.body).expect("JSON");
    assert_eq!((text(&body["workflow"]), text(&body["status"])), ("nightly", "succeeded"));
    assert!(!outcome.to_string().contains("a secret of some length"));
    let told = place.laneway(&format!("show {} --json", hooks(&place))).stdout;
    assert!(
        told.contains("\"attempt\": 2") || told.contains("\"attempt\":2"),
        "one refusal, one answer: {told}"
    );
}

#[test]
fn callback_reaches_nothing_that_only_this_host_can_reach() {
    let (port, heard) = listener(&["204 No Content"]);
    let place = Place::with("nightly.yaml", &calling_back(port));
    let mut command = place.command(&["run", "nightly.yaml"]);
    command.env("SIGNING", "a secret of some length");
    let outcome = place.outcome("run nightly.yaml", command);
    assert_eq!(outcome.code, Some(0), "the run itself succeeded: {outcome}");
    assert!(heard.try_recv().is_err(), "nothing was sent");
    let shown = place.json(&format!("show {} --json", hooks(&place)));
    let task = &shown["tasks"][0];
    assert_eq!((text(&task["status"]), task["attempt"].as_u64()), ("failed", Some(3)));
    let explained = place.laneway(&format!("explain {}", hooks(&place))).to_string();
    assert!(explained.contains("127.0.0.1, which is not on the public network"), "{explained}");
}
