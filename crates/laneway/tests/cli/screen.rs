//! `laneway top` on a real terminal: tmux holds it, keys are sent, and what it shows is read back. The terminal is looked at
//! afterwards: whatever ends the program, it must be as it was.

use std::process::{Command, Output};

use crate::place::{Place, until};
use crate::postgres::schema;
use crate::serve::Served;

/// A terminal with a shell in it.
struct Tmux<'a> {
    place: &'a Place,
}

impl<'a> Tmux<'a> {
    fn open(place: &'a Place) -> Self {
        let tmux = Self { place };
        let made = tmux.tell(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "env",
            "PS1=ready> ",
            "sh",
        ]);
        assert!(made.status.success(), "tmux is needed: {}", String::from_utf8_lossy(&made.stderr));
        tmux.sees("ready>");
        tmux
    }

    fn tell(&self, words: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.place.path("tmux.socket")).args(words);
        command
            .current_dir(self.place.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("USER", "ada");
        command.output().expect("tmux runs")
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.tell(&["capture-pane", "-p"]).stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys"];
        words.extend(keys);
        assert!(self.tell(&words).status.success());
    }

    /// As a terminal pastes into a program that wants to know what was pasted.
    fn paste(&self, text: &str) {
        assert!(self.tell(&["set-buffer", text]).status.success());
        assert!(self.tell(&["paste-buffer", "-p"]).status.success());
    }

    /// Waits until a text is shown.
    fn sees(&self, text: &str) -> String {
        let mut shown = String::new();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !shown.contains(text) {
            assert!(std::time::Instant::now() < deadline, "`{text}` is not shown:\n{shown}");
            std::thread::sleep(std::time::Duration::from_millis(20));
            shown = self.shown();
        }
        shown
    }

    fn top(&self, before: &str, args: &str) {
        self.keys(&[&format!("clear; {before} {} top {args}", env!("CARGO_BIN_EXE_laneway")), "Enter"]);
    }

    fn flag(&self, name: &str) -> String {
        let told = self.tell(&["display-message", "-p", &format!("#{{{name}}}")]);
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    }

    /// As a shell wants it: its own screen, a cursor, echo and lines, no mouse.
    fn is_as_it_was(&self) {
        // What is typed before would still be read by the program.
        self.sees("ready>");
        until("the shell's own screen", || self.flag("alternate_on") == "0");
        until("a cursor", || self.flag("cursor_flag") == "1");
        assert_eq!(self.flag("mouse_any_flag"), "0");
        self.keys(&["clear; stty -a", "Enter"]);
        let shown = self.sees("icanon");
        for off in ["-icanon", "-echo ", "-isig", "-opost", "-icrnl"] {
            assert!(!shown.contains(off), "{off}: {shown}");
        }
        self.keys(&["clear", "Enter"]);
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.tell(&["kill-server"]);
    }
}

const FLOW: &str = "
name: flow
steps:
  first: {run: 'echo first words; echo more words'}
  held: {needs: [first], run: 'echo held up; cat go'}
  last: {needs: [held], run: 'true'}
";

const OTHER: &str = "name: other\nsteps: {one: {run: 'true'}}\n";

#[test]
fn a_session_with_keys_from_start_to_end() {
    let place = Place::with("flow.yaml", FLOW);
    place.write("other.yaml", OTHER);
    place.pipe("go");
    let run = place.spawn("run flow.yaml");
    until("a step that runs", || place.laneway("explain last held").stdout.contains("held is running"));
    assert_eq!(place.laneway("run other.yaml").code, Some(0));
    let tmux = Tmux::open(&place);

    tmux.top("", "");
    let shown = tmux.sees("flow");
    assert!(
        shown.contains("✓ succeeded") && shown.contains("▶ running") && shown.contains("live"),
        "{shown}"
    );
    assert_eq!(tmux.flag("alternate_on"), "1");
    // The newest is first; the one below it runs.
    tmux.keys(&["Down", "Enter"]);
    let shown = tmux.sees("held is running since");
    assert!(shown.contains("✓ first") && shown.contains("▶ held") && shown.contains("· last"), "{shown}");
    tmux.keys(&["Left", "Enter"]);
    let shown = tmux.sees("more words");
    assert!(shown.contains("first words") && shown.contains("attempt 1"), "{shown}");
    tmux.keys(&["/"]);
    tmux.sees("search:");
    tmux.paste("more");
    tmux.sees("search: more");
    tmux.keys(&["Enter"]);
    tmux.sees("/more");
    tmux.keys(&["Escape"]);
    // Two that come at once would be another key.
    until("the search to go", || !tmux.shown().contains("/more"));
    tmux.keys(&["Escape"]);
    tmux.sees("▶ held");

    // What is asked and not agreed to is not done.
    tmux.keys(&["c"]);
    let shown = tmux.sees("Cancel run");
    assert!(shown.contains("stopped, and nothing new starts"), "{shown}");
    tmux.paste("y");
    tmux.keys(&["n"]);
    until("the question to go", || !tmux.shown().contains("Cancel run"));
    assert_eq!(place.json("runs --json")[1]["status"], "running");

    // Two panes where there is room for them.
    tmux.tell(&["resize-window", "-x", "140", "-y", "40"]);
    until("a wide screen", || tmux.shown().lines().any(|line| line.chars().count() > 100));
    tmux.keys(&["1"]);
    tmux.sees("STEP");
    tmux.tell(&["resize-window", "-x", "80", "-y", "24"]);
    until("a narrow screen", || !tmux.shown().contains("STEP"));
    tmux.keys(&["Enter"]);
    tmux.sees("▶ held");

    tmux.keys(&["c"]);
    tmux.sees("Cancel run");
    tmux.keys(&["y"]);
    tmux.sees("■ canceled");
    let run = run.wait();
    assert_eq!(run.code, Some(1), "somebody else canceled it: {run}");
    assert_eq!(place.json("runs --json")[1]["status"], "canceled");

    tmux.keys(&["?"]);
    tmux.sees("Everywhere");
    tmux.keys(&["x"]);
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
}

#[test]
fn a_run_is_followed_as_it_goes_on() {
    let place = Place::with("flow.yaml", FLOW);
    place.pipe("go");
    place.laneway("limit set warehouse 3");
    let tmux = Tmux::open(&place);
    tmux.top("", "");
    tmux.sees("There are no runs yet.");
    let run = place.spawn("run flow.yaml");
    tmux.sees("▶ running");
    tmux.keys(&["Enter"]);
    tmux.sees("▶ held");
    tmux.keys(&["/", "held", "Enter"]);
    tmux.sees("held is running");
    tmux.keys(&["Enter"]);
    tmux.sees("held up");
    std::fs::write(place.path("go"), "and it goes on\n").expect("the step reads it");
    tmux.sees("and it goes on");
    tmux.keys(&["Escape"]);
    tmux.sees("✓ last");
    tmux.sees("✓ succeeded");
    assert_eq!(run.wait().code, Some(0));
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
}

#[test]
fn a_run_is_paused_answered_and_skipped_past_and_its_node_drained() {
    let place = Place::with(
        "flow.yaml",
        "name: flow\nsteps: {ask: {wait: {signal: go}}, bad: {needs: [ask], run: 'exit 3'}}\n",
    );
    let worker = place.spawn("worker --node-address alpha:7000");
    assert_eq!(place.laneway("submit flow.yaml").code, Some(0));
    until("what waits to wait", || place.statuses().contains("ask=parked"));
    let told = |field: &str| place.json("show last --json")[field].clone();
    let tmux = Tmux::open(&place);
    tmux.top("", "last");
    tmux.sees("ask is parked");
    let agree = |key: &str, question: &str| {
        tmux.keys(&[key]);
        tmux.sees(question);
        tmux.keys(&["y"]);
    };
    agree("p", "Pause run");
    tmux.sees("paused (run)");
    assert_eq!(told("paused"), serde_json::json!(["run"]));
    agree("p", "Let run");
    until("the run to go on", || told("paused") == serde_json::json!([]));
    until("the screen to say so", || !tmux.shown().contains("paused (run)"));
    tmux.keys(&["a"]);
    tmux.sees("Send go to ask");
    tmux.keys(&["fine", "Enter"]);
    tmux.sees("✗ failed flow");
    assert!(place.laneway("show last --json").stdout.contains("fine"), "the reason is kept");
    tmux.keys(&["/", "bad", "Enter"]);
    tmux.sees("bad is failed");
    agree("s", "Skip bad");
    tmux.sees("✓ succeeded flow");
    assert_eq!(place.statuses(), "ask=succeeded bad=skipped");
    tmux.keys(&["2"]);
    tmux.sees("asked for work");
    agree("d", "Drain alpha:7000?");
    tmux.sees("draining");
    assert_eq!(place.json("nodes --json")[0]["state"], "draining");
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
}

#[test]
fn a_run_of_this_host_is_retried_in_the_terminal_and_the_screen_comes_back() {
    let place = Place::with("flow.yaml", "name: flow\nsteps: {try: {run: 'test -e there'}}\n");
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    place.write("there", "");
    let tmux = Tmux::open(&place);
    tmux.top("", "last");
    tmux.sees("✗ failed");
    tmux.keys(&["r"]);
    tmux.sees("Retry run");
    tmux.keys(&["y"]);
    tmux.sees("Enter goes back to the screen");
    tmux.keys(&["Enter"]);
    tmux.sees("✓ succeeded flow");
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
    assert_eq!(place.json("show last --json")["status"], "succeeded");
}

#[test]
fn ctrl_c_ends_the_run_in_the_foreground_and_not_the_screen() {
    let place = Place::with(
        "flow.yaml",
        "name: flow\nsteps: {try: {run: 'test -e there && echo going on && cat go'}}\n",
    );
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    place.write("there", "");
    place.pipe("go");
    let tmux = Tmux::open(&place);
    tmux.top("", "last");
    tmux.sees("✗ failed");
    let retry = || {
        tmux.keys(&["r"]);
        tmux.sees("Retry run");
        tmux.keys(&["y"]);
        until("a step that runs", || place.laneway("explain last try").stdout.contains("try is running"));
    };
    retry();
    tmux.keys(&["C-c"]);
    tmux.sees("Enter goes back to the screen");
    tmux.keys(&["Enter"]);
    tmux.sees("canceled flow");
    assert_eq!(tmux.flag("alternate_on"), "1", "it is still there");
    // Behind the run nothing is left that a Ctrl-C could be meant for but the screen.
    retry();
    tmux.keys(&["C-c"]);
    until("the end of the second run", || tmux.shown().matches("Enter goes back to the screen").count() == 2);
    tmux.keys(&["C-c"]);
    tmux.is_as_it_was();
}

#[test]
fn on_postgres_a_run_of_two_nodes_is_followed_with_the_node_at_each_task() {
    let (place, store) = (Place::new(), schema());
    let go = place.path("go");
    // In a place of its own: what is submitted is packed with its files, and the socket of tmux cannot be.
    let document = format!(
        "name: flow\nsteps:\n  near: {{run: 'true', runs_on: {{zone: us}}}}\n  far: {{needs: [near], run: 'until test -e {}; do sleep 0.05; done', runs_on: {{zone: eu}}}}\n  back: {{needs: [far], run: 'true', runs_on: {{zone: us}}}}\n",
        go.display()
    );
    let desk = Place::with("flow.yaml", &document);
    let worker = |name: &str, zone: &str| {
        desk.spawn(&format!("worker --node-address {name} --label zone={zone} --store {store}"))
    };
    let nodes = [worker("here", "us"), worker("there", "eu")];
    // The first to come makes the store.
    let listed = || desk.laneway(&format!("nodes --json --store {store}")).stdout;
    until("both nodes", || listed().contains("\"here\"") && listed().contains("\"there\""));
    let tmux = Tmux::open(&place);
    // A shell would take some of its signs for its own.
    tmux.keys(&[&format!("export LANEWAY_STORE='{store}'"), "Enter"]);
    tmux.top("", "");
    tmux.sees("There are no runs yet.");
    let submitted = desk.laneway(&format!("submit flow.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    tmux.sees("▶ running");
    tmux.keys(&["Enter"]);
    let shown = tmux.sees("▶ far @there");
    assert!(shown.contains("✓ near @here"), "{shown}");
    std::fs::write(&go, "").expect("the step looks for it");
    tmux.sees("✓ back @here");
    tmux.keys(&["Escape", "2"]);
    tmux.sees("zone=eu");
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
    for node in nodes {
        node.signal(rustix::process::Signal::TERM);
        assert_eq!(node.wait().code, Some(0));
    }
}

#[test]
fn with_a_server_a_run_of_an_older_version_has_its_own_graph() {
    let place = Place::with(
        "flow.yaml",
        "name: flow\nsteps: {old: {run: 'true'}, older: {needs: [old], run: 'true'}}\n",
    );
    let served = Served::start(&place, &[]);
    served.ask("submit flow.yaml");
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    let run = served.json("show last --json")["run"].as_str().expect("an id").to_owned();
    place.write("flow.yaml", "name: flow\nsteps: {new: {run: 'true'}}\n");
    served.ask("submit flow.yaml");
    until("the end of the next", || served.json("show last --json")["status"] == "succeeded");
    let tmux = Tmux::open(&place);
    tmux.top("", &format!("{run} --server {}", served.url()));
    let shown = tmux.sees("✓ older");
    let line = shown.lines().find(|line| line.contains("✓ older")).expect("a step");
    assert!(line.contains("✓ old") && line.contains('▸'), "one leads to the other: {shown}");
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
    served.end();
}

#[test]
fn whatever_ends_it_leaves_the_terminal_as_it_was() {
    let place = Place::with("other.yaml", OTHER);
    place.laneway("run other.yaml");
    let tmux = Tmux::open(&place);

    tmux.top("LANEWAY_PANIC=1", "--mouse");
    tmux.sees("other");
    assert_eq!((tmux.flag("alternate_on"), tmux.flag("mouse_any_flag")), ("1".to_owned(), "1".to_owned()));
    tmux.keys(&["j"]);
    tmux.sees("told to panic");
    tmux.is_as_it_was();

    for signal in ["TERM", "INT", "HUP"] {
        // A shell that waits for it would not read the next line.
        tmux.top("", "--mouse");
        tmux.sees("live");
        let pid = tmux.flag("pane_pid");
        let kill = format!("kill -{signal} $(ps -o pid= --ppid {pid})");
        let killed = Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        assert!(killed.success());
        tmux.is_as_it_was();
    }

    tmux.top("", "");
    tmux.sees("live");
    tmux.keys(&["C-z"]);
    tmux.sees("Stopped");
    tmux.keys(&["fg", "Enter"]);
    tmux.sees("live");
    tmux.keys(&["C-c"]);
    tmux.is_as_it_was();
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let place = Place::with("other.yaml", OTHER);
    place.laneway("run other.yaml");
    let tmux = Tmux::open(&place);
    let colours = |tmux: &Tmux<'_>| {
        let shown = tmux.tell(&["capture-pane", "-p", "-e"]);
        String::from_utf8_lossy(&shown.stdout).contains("38;5;2m")
    };
    tmux.top("NO_COLOR=1", "");
    tmux.sees("✓ succeeded");
    assert!(!colours(&tmux), "{}", tmux.shown());
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
    tmux.top("", "");
    tmux.sees("✓ succeeded");
    assert!(colours(&tmux));
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
}

#[test]
fn a_server_that_goes_and_comes_back_is_said_to_be_so() {
    let place = Place::with("other.yaml", OTHER);
    let served = Served::start(&place, &[]);
    served.ask("submit other.yaml");
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    let port = served.url().rsplit(':').next().expect("a port").to_owned();
    let tmux = Tmux::open(&place);
    tmux.top("", &format!("last --server {}", served.url()));
    let shown = tmux.sees("one is succeeded");
    assert!(shown.contains("✓ one") && shown.contains("● live"), "{shown}");
    served.end();
    let shown = tmux.sees("● stale");
    assert!(shown.contains("✓ one") && shown.contains("may be old"), "what was known stays: {shown}");
    let again = Served::start_at(&place, &format!("127.0.0.1:{port}"), &[]);
    tmux.sees("● live");
    tmux.keys(&["Escape"]);
    // The socket of tmux cannot be packed.
    place.write(".lanewayignore", "tmux.socket\n");
    place.laneway("submit other.yaml");
    until("both runs", || tmux.shown().matches("✓ succeeded").count() == 2);
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
    again.end();
}

#[test]
fn the_mouse_chooses_and_opens_where_it_was_asked_for() {
    let place = Place::with(
        "flow.yaml",
        "name: flow\nsteps: {one: {run: echo from one}, two: {needs: [one], run: echo from two}}\n",
    );
    place.laneway("run flow.yaml");
    let tmux = Tmux::open(&place);
    tmux.top("", "--mouse");
    tmux.sees("✓ succeeded");
    // As a terminal tells of a click: button, column and row, from 1 on.
    let click = |column: u16, row: u16| {
        tmux.keys(&["-l", &format!("\u{1b}[<0;{column};{row}M\u{1b}[<0;{column};{row}m")]);
    };
    click(20, 1);
    tmux.sees("laneway worker");
    click(12, 1);
    tmux.sees("✓ succeeded");
    click(5, 3);
    let shown = tmux.sees("✓ two");
    let (row, line) = (1..).zip(shown.lines()).find(|(_, line)| line.contains("✓ two")).expect("a step");
    let before = line.split("✓ two").next().map_or(0, |before| before.chars().count());
    let column = u16::try_from(before + 3).expect("on the screen");
    click(column, row);
    tmux.sees("two is succeeded");
    click(column, row);
    tmux.sees("from two");
    tmux.keys(&["q"]);
    tmux.is_as_it_was();
}
