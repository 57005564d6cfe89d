//! The screens of `laneway top`, from real runs on a real store, at the two sizes that matter. `--once` draws what the terminal
//! would show; `screen.rs` is a session with keys on a real one.

use insta::assert_snapshot;
use regex::Regex;
use rustix::process::Signal;

use crate::place::{Place, Running, text, until};
use crate::serve::Served;

const NIGHTLY: &str = r#"
name: nightly
steps:
  fetch:
    run: |
      echo '{"files": ["a", "b", "c"]}' > "$LANEWAY_OUTPUT"
      printf '\033[32mfetched\033[0m 3 files\n'
      printf '\033]0;a title\007\033[2Jbut nothing that moves\n'
      # Two streams that print at the same moment may come in either order.
      sleep 0.2
      echo "careful" >&2
  parse:
    needs: [fetch]
    for_each: ${{ steps.fetch.output.files }}
    run: echo "parsing $ITEM"
    env: {ITEM: "${{ item }}"}
  lint: {needs: [fetch], run: 'true'}
  test: {needs: [fetch], run: 'echo testing; cat go'}
  check: {needs: [lint, test], run: 'true'}
  approve: {needs: [parse], wait: {signal: approved}}
  migrate: {needs: [approve, check], lock: db/orders, limits: [warehouse], run: 'true'}
groups:
  quality: {steps: [lint, test]}
"#;

const BROKEN: &str = "name: broken\nsteps: {build: {run: 'echo no such thing; exit 3'}, ship: {needs: [build], run: 'true'}}\n";

/// A store with a run that failed and one that goes on, on a node with a name of its own.
struct Busy {
    place: Place,
    worker: Option<Running>,
}

impl Busy {
    fn begin() -> Self {
        let place = Place::in_place("nightly.yaml", NIGHTLY);
        // A pipe cannot be packed.
        place.write("broken.yaml", &format!("workspace: none\n{BROKEN}"));
        place.write(".lanewayignore", "go\n");
        place.pipe("go");
        place.laneway("limit set warehouse 3");
        place.laneway("submit broken.yaml");
        let worker =
            place.spawn("worker --node-address alpha:7000 --slots 4 --label zone=eu --shutdown-grace 1s");
        until("the end of the first run", || place.json("show last --json")["status"] == "failed");
        place.laneway("submit nightly.yaml");
        until("what waits to wait", || {
            let statuses = place.statuses();
            statuses.contains("test=running")
                && statuses.contains("approve=parked")
                && statuses.contains("lint=succeeded")
        });
        Self { place, worker: Some(worker) }
    }

    fn draw(&self, line: &str) -> String {
        self.draw_with(line, &[("LANG", "C.UTF-8")])
    }

    fn draw_with(&self, line: &str, env: &[(&str, &str)]) -> String {
        let (args, keys) = line.split_once("--keys ").unwrap_or((line, ""));
        let mut words: Vec<&str> = args.split_whitespace().collect();
        words.splice(0..0, ["top", "--once"]);
        if !keys.is_empty() {
            words.extend(["--keys", keys]);
        }
        let mut command = self.place.command(&words);
        let outcome = self.place.outcome(line, {
            command.envs(env.iter().copied());
            command
        });
        assert_eq!(outcome.code, Some(0), "{outcome}");
        steady(&self.place, &outcome.stdout)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // The step waits for somebody to write.
        if let Ok(mut pipe) = std::fs::OpenOptions::new().write(true).open(self.place.path("go")) {
            let _ = std::io::Write::write_all(&mut pipe, b"gone\n");
        }
        if let Some(worker) = self.worker.take() {
            worker.signal(Signal::TERM);
            worker.wait();
        }
    }
}

/// Replaces what differs from run to run by something as wide, so that columns stay.
fn steady(place: &Place, screen: &str) -> String {
    let mut screen = screen.to_owned();
    let runs = place.json("runs --json");
    let runs = runs.as_array().expect("a list");
    for (number, run) in (1..).zip(runs.iter().rev()) {
        let id = text(&run["run"]).replace('-', "");
        screen = screen.replace(&id[20..28], &format!("run-000{number}"));
    }
    let filters = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "YYYY-MM-DDThh:mm:ss.mmmZ"),
        (r"\b\d\d-\d\d \d\d:\d\d\b", "MM-DD hh:mm"),
        (r"\b\d\d:\d\d:\d\d\b", "hh:mm:ss"),
        // What a node has done it tells with its heartbeat.
        (r"(?m)^(alpha:7000 .*/4 +)\d( +)\d( +MM)", "${1}N${2}N${3}"),
        (r"asked for work \d+ times?", "asked for work N times"),
    ];
    for (pattern, replacement) in filters {
        screen = Regex::new(pattern).expect("a pattern").replace_all(&screen, replacement).into_owned();
    }
    let took = Regex::new(r"\b(\d+ms|\d+\.\ds|\d+s|\d+m \d\ds)( *)").expect("a pattern");
    took.replace_all(&screen, |found: &regex::Captures<'_>| {
        // In a table the blanks make up for its length; in a sentence they do not.
        match found[2].len() {
            blanks @ 0..3 => format!("T{}", " ".repeat(blanks)),
            blanks => format!("T{}", " ".repeat(found[1].len() + blanks - 1)),
        }
    })
    .into_owned()
}

#[test]
fn every_screen_is_good_at_80x24_and_at_160x50() {
    let busy = Busy::begin();
    for (name, keys) in [
        ("runs", ""),
        ("runs_filtered", "/ b r o enter"),
        ("graph", "enter"),
        ("graph_moved", "enter g right down"),
        ("tasks", "enter tab g"),
        ("items", "enter tab g down enter down"),
        ("found", "enter / f e t enter"),
        ("failed", "down enter tab"),
        ("log", "enter tab g enter"),
        ("log_search", "enter tab g enter / f i l e enter"),
        ("nodes", "2"),
        ("pools", "3"),
        ("limits", "4"),
        ("help", "?"),
        ("cancel", "enter c"),
        ("retry_from", "down enter tab R"),
        ("signal", "enter / a p p r o v e enter a o k"),
        ("refused", "enter r"),
    ] {
        for size in ["80x24", "160x50"] {
            let keys = if keys.is_empty() { String::new() } else { format!(" --keys {keys}") };
            let screen = busy.draw(&format!("--size {size}{keys}"));
            let (columns, rows) = size.split_once('x').expect("a size");
            let (columns, rows): (usize, usize) =
                (columns.parse().expect("a number"), rows.parse().expect("a number"));
            assert_eq!(screen.lines().count(), rows);
            assert!(screen.lines().all(|line| line.chars().count() <= columns + 8), "{screen}");
            assert_snapshot!(format!("{name}_{size}"), screen);
        }
    }
    assert_eq!(busy.place.json("show last --json")["status"], "running", "nothing was changed by looking");
}

#[test]
fn without_utf8_there_is_nothing_but_ascii() {
    let busy = Busy::begin();
    for env in [vec![("LANG", "C")], vec![("LANG", "de_DE.UTF-8"), ("LC_ALL", "POSIX")], vec![("LANG", "")]] {
        for keys in ["enter", "enter tab", "2", "?", "enter c"] {
            let screen = busy.draw_with(&format!("--keys {keys}"), &env);
            assert!(screen.is_ascii(), "{env:?} {keys}\n{screen}");
        }
    }
    let screen = busy.draw_with("--ascii --keys enter", &[("LANG", "C.UTF-8")]);
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!("graph_ascii", screen);
}

#[test]
fn a_server_shows_the_same_as_its_store() {
    let place = Place::with("broken.yaml", BROKEN);
    let served = Served::start(&place, &["--node-address", "alpha:7000"]);
    served.ask("submit broken.yaml");
    until("the end of the run", || served.json("show last --json")["status"] == "failed");
    for keys in ["enter", "enter tab", "enter tab g enter"] {
        let of = |server: Option<&str>| {
            let mut words = vec!["top", "--once", "--size", "80x24", "--keys", keys];
            words.extend(server.map(|url| ["--server", url]).into_iter().flatten());
            let mut command = place.command(&words);
            command.env("LANG", "C.UTF-8");
            let outcome = place.outcome(keys, command);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            // The first line says who was asked.
            outcome.stdout.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        };
        let shown = of(None);
        assert!(shown.contains("build") || shown.contains("no such thing"), "{shown}");
        assert_eq!(of(Some(served.url())), shown);
    }
    let (code, said) = served.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn an_empty_store_says_what_to_type() {
    let place = Place::with("broken.yaml", BROKEN);
    place.laneway("limit set warehouse 3");
    let shown = place.laneway("top --once").stdout;
    assert!(shown.contains("There are no runs yet.") && shown.contains("laneway init"), "{shown}");
    let nodes = place.laneway("top --once --keys 2").stdout;
    assert!(nodes.contains("laneway worker"), "{nodes}");
}

#[test]
fn what_is_no_terminal_is_refused_with_what_to_use_instead() {
    let place = Place::with("broken.yaml", BROKEN);
    place.laneway("run broken.yaml");
    assert_snapshot!(place.laneway("top"), @r"
    $ laneway top
    exit code 2
    ----- stdout
    ----- stderr
    error: `laneway top` needs a terminal that can be drawn on
    hint: in a pipe use `laneway runs --json`, `laneway show RUN --json`, `laneway watch RUN` or `laneway top --once`
    ");
    for (line, why) in [
        ("top --once --size 80", "write it as 80x24"),
        ("top --once --size 0x24", "write it as 80x24"),
        ("top --once --keys strange", "`strange` is no key"),
        ("top nothing --once", "nothing"),
        ("top --keys 2", "--once"),
    ] {
        let refused = place.laneway(line);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(why), "{refused}");
    }
}
