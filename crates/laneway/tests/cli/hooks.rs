//! R12: what runs when a run is over, in the foreground and on a server, and callbacks that are sent until they are taken.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::Value;

use crate::place::{Outcome, Place, text, until};

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

/// Listens, answers with these statuses one after the other, and tells what it heard. Without a status it never answers.
fn listener(answers: &'static [&'static str]) -> (u16, mpsc::Receiver<Heard>) {
    listen(TcpListener::bind("127.0.0.1:0").expect("a port"), answers)
}

fn listen(listener: TcpListener, answers: &'static [&'static str]) -> (u16, mpsc::Receiver<Heard>) {
    let port = listener.local_addr().expect("an address").port();
    let (tell, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut unanswered = Vec::new();
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
            let heard = Heard { head, body: String::from_utf8(body).expect("text") };
            if answer.is_empty() {
                unanswered.push(stream);
            } else {
                // It repeats what it was asked, begins to say something, and never comes to its end.
                let said =
                    format!("{} {} much\0 ado", heard.head.lines().next().unwrap_or_default(), heard.body);
                let head =
                    format!("HTTP/1.1 {answer}\r\ncontent-length: 9000000\r\nconnection: close\r\n\r\n");
                stream.write_all(format!("{head}{said}").as_bytes()).expect("an answer");
                stream.write_all(&[b'.'; 1 << 10]).ok();
            }
            tell.send(heard).ok();
        }
    });
    (port, heard)
}

const MINUTE: Duration = Duration::from_secs(60);

fn hear(heard: &mpsc::Receiver<Heard>) -> Heard {
    heard.recv_timeout(MINUTE).expect("a request")
}

/// Where nobody listens yet.
fn dead_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn calling_back(port: u16) -> String {
    format!(
        "name: nightly\nsecrets: {{signing: {{env: SIGNING}}}}\nsteps: {{a: {{run: 'true'}}}}\n\
         hooks: {{succeeded: [{{post: 'http://127.0.0.1:{port}/told?x=1', secret: signing, retry: {{max: 2, backoff: 1ms}}}}]}}\n"
    )
}

const SECRET: &str = "a secret of some length";
const VARIABLES: [(&str, &str); 2] = [("SIGNING", SECRET), ("LANEWAY_CALLBACK_HOSTS", "127.0.0.1")];

fn with_variables(place: &Place, line: &str) -> Outcome {
    place.spawn_with(line, &VARIABLES).wait()
}

/// Runs a worker as long as it takes.
fn while_a_worker_works(place: &Place, what: &str, is_so: impl FnMut() -> bool) {
    let worker = place.spawn_with("worker --shutdown-grace 1s", &VARIABLES);
    until(what, is_so);
    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
}

/// The run of the hooks: the newest of all.
fn hooks(place: &Place) -> String {
    text(&place.json("runs --json")[0]["run"]).to_owned()
}

/// How the only task of the newest run is, and in which attempt.
fn callback(place: &Place) -> (String, u64) {
    let task = &place.json(&format!("show {} --json", hooks(place)))["tasks"][0];
    (text(&task["status"]).to_owned(), task["attempt"].as_u64().expect("a number"))
}

#[test]
fn callback_is_sent_until_it_is_taken_and_signed() {
    let (port, heard) = listener(&["500 Not Now", "200 OK"]);
    let place = Place::with("nightly.yaml", &calling_back(port));
    let outcome = with_variables(&place, "run nightly.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    // What `run` has not sent by then is sent by a worker.
    while_a_worker_works(&place, "the callback", || callback(&place).0 == "succeeded");
    let (first, second) = (hear(&heard), hear(&heard));
    assert!(second.head.starts_with("POST /told?x=1 HTTP/1.1"), "{}", second.head);
    assert_eq!(
        first.header("laneway-delivery"),
        second.header("laneway-delivery"),
        "it is the same delivery"
    );
    let (at, delivery) = (second.header("laneway-timestamp"), second.header("laneway-delivery"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, format!("{at}.{delivery}.{}", second.body).as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(second.header("laneway-signature"), format!("v1={digits}"));
    assert_eq!(second.header("content-type"), "application/json");
    let body: Value = serde_json::from_str(&second.body).expect("JSON");
    assert_eq!((text(&body["workflow"]), text(&body["status"])), ("nightly", "succeeded"));
    assert!(!outcome.to_string().contains(SECRET));
    assert_eq!(callback(&place), ("succeeded".to_owned(), 2), "one refusal, one answer");
}

/// All that is kept below a directory.
fn kept(dir: &std::path::Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(kept(&entry.path())),
            Ok(kind) if kind.is_file() => all.extend(std::fs::read(entry.path()).unwrap_or_default()),
            _ => {}
        }
    }
    all
}

#[test]
fn callback_sends_what_its_document_says_and_nothing_keeps_its_secrets() {
    let (port, heard) = listener(&["404 Not Here", "204 No Content", "204 No Content"]);
    let text = format!(
        r#"
name: nightly
params: {{day: {{type: string, default: monday}}}}
secrets: {{key: {{env: KEY}}, signing: {{env: SIGNING}}}}
steps: {{a: {{run: 'exit 3'}}}}
hooks:
  failed:
    - post: "http://127.0.0.1:{port}/in/${{{{ secrets.key }}}}"
      secret: signing
      headers: {{Authorization: "Bearer ${{{{ secrets.key }}}}", X-Day: "${{{{ params.day }}}}"}}
      body: {{text: "${{{{ ended.workflow }}}} ${{{{ ended.status }}}}: ${{{{ ended.failed | join(',') }}}}", key: "${{{{ secrets.key }}}}", n: 7}}
      retry: {{max: 3, backoff: 1ms}}
"#
    );
    let place = Place::with("nightly.yaml", &text);
    let key = "sesame-opens-it";
    let variables = [VARIABLES[0], VARIABLES[1], ("KEY", key)];
    let outcome = place.spawn_with("run nightly.yaml", &variables).wait();
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let worker = place.spawn_with("worker --shutdown-grace 1s", &variables);
    until("the callback", || callback(&place).0 == "succeeded");
    worker.signal(rustix::process::Signal::TERM);
    let worker = worker.wait();
    let (_, sent) = (hear(&heard), hear(&heard));
    assert!(sent.head.starts_with(&format!("POST /in/{key} HTTP/1.1")), "{}", sent.head);
    assert_eq!(sent.header("authorization"), format!("Bearer {key}"));
    assert_eq!(sent.header("x-day"), "monday");
    let body: Value = serde_json::from_str(&sent.body).expect("JSON");
    assert_eq!(body, serde_json::json!({"text": "nightly failed: a", "key": key, "n": 7}));
    let (at, delivery) = (sent.header("laneway-timestamp"), sent.header("laneway-delivery"));
    let signing = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&signing, format!("{at}.{delivery}.{}", sent.body).as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sent.header("laneway-signature"), format!("v1={digits}"), "it covers what was sent");
    let run = hooks(&place);
    let told =
        ["show", "events", "explain", "logs"].map(|verb| place.laneway(&format!("{verb} {run}")).to_string());
    assert!(told[1].contains("answered 404"), "{}", told[1]);
    for told in told.iter().chain([&outcome.to_string(), &worker.to_string()]) {
        assert!(!told.contains(key), "{told}");
    }
    let kept = kept(&place.path(".laneway"));
    let holds = |text: &str| kept.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("nightly (failed)") && !holds(key) && !holds(SECRET), "nothing of it is on disk");
}

#[test]
fn callback_sends_a_text_as_it_is_and_a_secret_may_be_its_whole_address() {
    let (port, heard) = listener(&["500 No", "200 OK"]);
    let text = "secrets: {url: {env: URL}}\nsteps: {a: {run: 'true'}}\nhooks: {finished: [{post: '${{ secrets.url }}', \
                content_type: text/plain, body: 'It has ${{ ended.status }}.', retry: {max: 3, backoff: 1ms}}]}\n";
    let place = Place::with("flow.yaml", text);
    let url = format!("http://127.0.0.1:{port}/services/T0001/B0002");
    let outcome = place.spawn_with("run flow.yaml", &[VARIABLES[1], ("URL", &url)]).wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let worker = place.spawn_with("worker --shutdown-grace 1s", &[VARIABLES[1], ("URL", &url)]);
    until("the callback", || callback(&place).0 == "succeeded");
    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
    hear(&heard);
    let sent = hear(&heard);
    assert_eq!((sent.header("content-type"), sent.body.as_str()), ("text/plain", "It has succeeded."));
    let told = place.laneway(&format!("events {}", hooks(&place))).to_string();
    assert!(told.contains("the receiver answered 500"), "{told}");
    assert!(!told.contains("T0001") && !told.contains("127.0.0.1"), "{told}");
}

#[test]
fn callback_without_its_secret_names_it() {
    let (port, heard) = listener(&["204 No Content"]);
    let text = calling_back(port)
        .replace("retry: {max: 2, backoff: 1ms}", "headers: {X: '${{ secrets.signing }}'}, retry: {max: 0}");
    let place = Place::with("nightly.yaml", &text);
    let outcome = place.spawn_with("run nightly.yaml", &VARIABLES[1..]).wait();
    assert_eq!(outcome.code, Some(0), "the run itself succeeded: {outcome}");
    assert!(heard.try_recv().is_err(), "nothing was sent");
    let note =
        "callback succeeded-1 was given up: secret `signing`: the variable SIGNING is not set on this node";
    assert!(outcome.stderr.contains(note), "{outcome}");
}

#[test]
fn callback_to_what_only_this_host_can_reach_is_refused_before_anything_runs() {
    let place = Place::with("flow.yaml", &calling_back(1));
    let validated = place.laneway("validate flow.yaml");
    assert_eq!(validated.code, Some(2));
    assert_snapshot!(validated.stderr, @r#"
    error: a callback cannot reach 127.0.0.1, which is not on the public network
     --> flow.yaml:4:28
      |
    4 | hooks: {succeeded: [{post: 'http://127.0.0.1:1/told?x=1', secret: signing, retry: {max: 2, backoff: 1ms}}]}
      |                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: where that is intended, allow it on each node that sends callbacks: `callback_hosts = ["127.0.0.1"]` in laneway.toml, or LANEWAY_CALLBACK_HOSTS=127.0.0.1
    "#);
    for line in ["run flow.yaml", "submit flow.yaml", "apply flow.yaml"] {
        let refused = place.laneway(line);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("a callback cannot reach 127.0.0.1"), "{refused}");
    }
    assert_eq!(place.laneway("plan flow.yaml").code, Some(0));
    let allowed = with_variables(&place, "validate flow.yaml");
    assert_eq!(allowed.code, Some(0), "{allowed}");
    place.write("laneway.toml", "callback_hosts = [\"127.0.0.1\"]\n");
    let allowed = place.laneway("validate flow.yaml");
    assert_eq!(allowed.code, Some(0), "{allowed}");
}

#[test]
fn callback_reaches_nothing_that_only_this_host_can_reach() {
    let (port, heard) = listener(&["204 No Content"]);
    let text = calling_back(port)
        .replace("127.0.0.1", "${{ params.host }}")
        .replace("steps:", "params: {host: {type: string, default: 127.0.0.1}}\nsteps:")
        .replace("max: 2", "max: 0");
    let place = Place::with("nightly.yaml", &text);
    let outcome = place.spawn_with("run nightly.yaml", &VARIABLES[..1]).wait();
    assert_eq!(outcome.code, Some(0), "the run itself succeeded: {outcome}");
    assert!(heard.try_recv().is_err(), "nothing was sent");
    assert_eq!(callback(&place), ("failed".to_owned(), 1));
    let explained = place.laneway(&format!("explain {}", hooks(&place))).to_string();
    assert!(explained.contains("127.0.0.1, which is not on the public network"), "{explained}");
    assert!(outcome.stderr.contains("callback succeeded-1 was given up"), "{outcome}");
}

/// Retried after a second, and so never by the `run` that fails to send it.
fn calling_back_later(port: u16) -> String {
    calling_back(port).replace("retry: {max: 2, backoff: 1ms}", "retry: {max: 30, backoff: 1s, factor: 1}")
}

#[test]
fn run_does_not_wait_for_a_callback_that_nobody_takes_and_a_worker_sends_it_later() {
    let port = dead_port();
    let place = Place::with("nightly.yaml", &calling_back_later(port));
    let outcome = with_variables(&place, "run nightly.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(
        outcome.stderr.contains("callback succeeded-1 is not delivered yet: 127.0.0.1 cannot be reached"),
        "{outcome}"
    );
    assert!(outcome.stderr.contains("`laneway worker`"), "{outcome}");
    assert_eq!(callback(&place), ("pending".to_owned(), 1), "it was tried once");
    let (_, heard) = listen(TcpListener::bind(("127.0.0.1", port)).expect("its port"), &["200 OK"]);
    while_a_worker_works(&place, "the callback", || callback(&place).0 == "succeeded");
    assert_eq!(hear(&heard).header("laneway-delivery"), format!("{}:succeeded-1", hooks(&place)));
}

#[test]
fn next_run_on_the_store_sends_what_was_left() {
    let port = dead_port();
    let place = Place::with("nightly.yaml", &calling_back_later(port));
    assert_eq!(with_variables(&place, "run nightly.yaml").code, Some(0));
    let left = hooks(&place);
    let (_, heard) = listen(TcpListener::bind(("127.0.0.1", port)).expect("its port"), &["200 OK"]);
    place.write("other.yaml", "steps: {a: {run: 'true'}}\n");
    until("the callback", || {
        let outcome = with_variables(&place, "run other.yaml");
        assert_eq!(outcome.code, Some(0), "{outcome}");
        heard.try_recv().is_ok_and(|heard| heard.header("laneway-delivery") == format!("{left}:succeeded-1"))
    });
    assert_eq!(place.json(&format!("show {left} --json"))["status"], "succeeded");
}

#[test]
fn run_waits_a_few_seconds_for_a_receiver_that_hangs() {
    let (port, heard) = listener(&["", "200 OK"]);
    let place = Place::with("nightly.yaml", &calling_back_later(port));
    let begun = Instant::now();
    let outcome = with_variables(&place, "run nightly.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(begun.elapsed() < Duration::from_secs(20), "a callback has half a minute otherwise");
    assert!(outcome.stderr.contains("is not delivered yet: there was no answer within 5 s"), "{outcome}");
    let first = hear(&heard);
    while_a_worker_works(&place, "the callback", || callback(&place).0 == "succeeded");
    assert_eq!(first.header("laneway-delivery"), hear(&heard).header("laneway-delivery"));
}

#[test]
fn callback_whose_sender_is_killed_is_sent_again_under_its_name() {
    let (port, heard) = listener(&["", "200 OK"]);
    let place = Place::with("nightly.yaml", &calling_back_later(port));
    let running = place.spawn_with("run nightly.yaml", &VARIABLES);
    let first = hear(&heard);
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    while_a_worker_works(&place, "the callback", || callback(&place).0 == "succeeded");
    assert_eq!(first.header("laneway-delivery"), hear(&heard).header("laneway-delivery"));
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2), "once");
}

/// Its process died before it could submit anything, and somebody else ended the run.
#[test]
fn callback_of_a_run_whose_process_is_gone_is_sent_by_the_next_run() {
    let (port, heard) = listener(&["200 OK"]);
    let document = calling_back(port)
        .replace("run: 'true'", "run: 'touch begun; sleep 60'")
        .replace("succeeded:", "finished:");
    let place = Place::with("nightly.yaml", &document);
    let running = place.spawn_with("run nightly.yaml", &VARIABLES);
    until("the step", || place.path("begun").exists());
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    assert_eq!(place.laneway("cancel last").code, Some(0));
    assert!(heard.try_recv().is_err(), "nobody is there who could");
    place.write("other.yaml", "steps: {a: {run: 'true'}}\n");
    let outcome = with_variables(&place, "run other.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let body: Value = serde_json::from_str(&hear(&heard).body).expect("JSON");
    assert_eq!(text(&body["status"]), "canceled");
}

#[test]
fn steps_of_hooks_do_not_wait_for_callbacks() {
    let port = dead_port();
    let hooks = format!(
        "[{{post: 'http://127.0.0.1:{port}/', retry: {{max: 30, backoff: 1s, factor: 1}}}}, {{run: 'echo $LANEWAY_ENDED_STATUS > told'}}]"
    );
    let text = format!("steps: {{a: {{run: 'true'}}}}\nhooks: {{finished: {hooks}}}\n");
    let place = Place::with("flow.yaml", &text);
    let outcome = with_variables(&place, "run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.read("told"), "succeeded\n");
    assert!(outcome.stderr.contains("callback finished-1 is not delivered yet"), "{outcome}");
}
