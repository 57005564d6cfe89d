//! On a terminal: colours, lines that move, and tables that fit.

use std::process::Command;

use crate::place::Place;

/// Runs the program in a pseudo-terminal and returns all that it was sent.
fn on_terminal(place: &Place, line: &str, env: &[(&str, &str)]) -> String {
    on_terminal_of(60, place, line, env)
}

fn on_terminal_of(columns: u16, place: &Place, line: &str, env: &[(&str, &str)]) -> String {
    let program = env!("CARGO_BIN_EXE_laneway");
    let mut command = Command::new("script");
    command
        .args(["-q", "-e", "-c", &format!("stty cols {columns} rows 30; {program} {line}"), "/dev/null"])
        .current_dir(place.path(""))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm")
        .env("TZ", "UTC")
        .env("USER", "ada")
        .env("LANG", "C.UTF-8")
        .envs(env.iter().copied());
    let output = command.output().expect("util-linux's script runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const BUILD: &str = "
steps:
  lint: {run: echo linted}
  test: {run: 'echo broken; exit 1'}
";

#[test]
fn a_run_on_a_terminal_draws_a_bar_and_leaves_lines_behind() {
    let shown = on_terminal(&Place::with("build.yaml", BUILD), "run build.yaml", &[]);
    assert!(shown.contains("\u{1b}["), "it moves and has colours: {shown:?}");
    assert!(shown.contains("2/2") || shown.contains("1/2") || shown.contains("0/2"), "a bar: {shown:?}");
    assert!(shown.contains("✓\u{1b}[0m lint"), "{shown:?}");
    assert!(shown.contains("broken"), "the failed step's last lines: {shown:?}");
    assert!(!shown.contains("lint started"), "plain lines are for pipes: {shown:?}");
}

#[test]
fn no_color_means_no_color_and_the_same_words() {
    let place = Place::with("build.yaml", BUILD);
    let plain = on_terminal(&place, "run build.yaml", &[("NO_COLOR", "1")]);
    assert!(!plain.contains("\u{1b}[32m") && !plain.contains("\u{1b}[1;31m"), "{plain:?}");
    assert!(plain.contains("✓ lint"), "{plain:?}");
    let shown = on_terminal(&place, "show last", &[("NO_COLOR", "1")]);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let place = Place::with("build.yaml", BUILD);
    let shown = on_terminal(&place, "run build.yaml", &[("TERM", "dumb")]);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(shown.contains("lint started"), "{shown:?}");
}

#[test]
fn a_table_fits_the_terminal() {
    let place = Place::with("wide.yaml", &format!("steps: {{{}: {{run: exit 1}}}}", "long-name-".repeat(5)));
    place.laneway("run wide.yaml");
    let shown = on_terminal(&place, "show last", &[("NO_COLOR", "1")]);
    let table = shown.split("STEP").nth(1).expect("a table");
    assert!(table.lines().all(|line| line.trim_end().chars().count() <= 60), "{shown}");
}

#[test]
fn watching_a_run_on_a_terminal_looks_as_running_it() {
    let place = Place::with("build.yaml", BUILD);
    place.laneway("run build.yaml");
    let shown = on_terminal(&place, "watch last", &[]);
    assert!(shown.contains("✓\u{1b}[0m lint") && shown.contains("broken"), "{shown:?}");
    assert!(!shown.contains("lint started"), "plain lines are for pipes: {shown:?}");
}

#[test]
fn the_last_line_of_a_failed_run_is_red() {
    let place = Place::with(
        "build.yaml",
        "name: build\nsteps: {test: {run: exit 1}}\nhooks: {finished: [{run: 'true'}]}\n",
    );
    let shown = on_terminal_of(200, &place, "run build.yaml", &[]);
    let last = shown.trim_end().lines().last().expect("a line");
    assert!(
        last.contains("\u{1b}[1;31m✗ build ") && last.contains("(test failed: exit code 1); next: "),
        "{last:?}"
    );
    assert!(last.trim_end().ends_with("\u{1b}[0m"), "all of it: {last:?}");
}

#[test]
fn without_utf8_every_command_writes_ascii() {
    let place = Place::with("build.yaml", BUILD);
    for locale in ["C", "de_DE.ISO-8859-1"] {
        let env = [("LC_ALL", locale)];
        let shown = on_terminal(&place, "run build.yaml", &env);
        assert!(shown.is_ascii() && shown.contains("x\u{1b}[0m"), "{shown:?}");
        for line in [
            "run build.yaml",
            "runs",
            "show last",
            "explain last",
            "watch last",
            "events last",
            "plan build.yaml",
        ] {
            let mut command = place.command(&line.split(' ').collect::<Vec<_>>());
            let outcome = place.outcome(line, {
                command.envs(env);
                command
            });
            let told = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(told.is_ascii(), "{outcome}");
        }
    }
    // What a step printed is its own.
    place.write("print.yaml", "steps: {a: {run: echo 'ü · ✓'}}");
    let mut command = place.command(&["run", "print.yaml"]);
    command.env("LC_ALL", "C");
    assert_eq!(place.outcome("run", command).code, Some(0));
    let mut command = place.command(&["logs", "last", "a"]);
    command.env("LC_ALL", "C");
    assert_eq!(place.outcome("logs", command).stdout, "ü · ✓\n");
}

#[test]
fn lists_fit_eighty_columns() {
    let document = "name: a-name-of-some-length\non_failure: continue\nsteps:\n  a: {run: 'true'}\n  b: {run: exit 1}\n  c: {needs: [b], run: 'true'}\n";
    let place = Place::with("flow.yaml", document);
    place.laneway("run flow.yaml");
    for line in ["runs", "show last"] {
        let shown = on_terminal_of(80, &place, line, &[("NO_COLOR", "1")]);
        assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 80), "{shown}");
        let lines = shown.lines().filter(|line| line.contains("a-name-of-some-length")).count();
        assert_eq!(lines, 1, "no cell is broken: {shown}");
    }
    assert!(on_terminal_of(80, &place, "runs", &[("NO_COLOR", "1")]).contains("✓1 ✗1 –1"));
}

/// A line for each thing that is listed, none of them broken.
#[test]
fn every_list_fits_eighty_columns() {
    let place = Place::new();
    let document = "name: nightly-report\nschedule: {cron: \"0 2 * * *\", timezone: Europe/Berlin}\n\
        steps: {report: {run: 'true', cache: {key: x}}}\n";
    place.write("flow.yaml", document);
    for line in ["run flow.yaml", "apply flow.yaml", "token create deployer --role operator"] {
        assert_eq!(place.laneway(line).code, Some(0), "{line}");
    }
    let mut secret = place.command(&["secret", "set", "database-password"]);
    place.write("value", "hush");
    secret.stdin(std::fs::File::open(place.path("value")).expect("the file"));
    assert_eq!(place.outcome("secret set", secret).code, Some(0));
    let worker =
        place.spawn("worker --shutdown-grace 1s --node-address build-7.example:4242 --label zone=eu");
    crate::place::until("a node", || place.laneway("nodes --json").stdout.contains("build-7"));
    for (line, name) in [
        ("nodes", "build-7.example:4242"),
        ("workflows", "nightly-report"),
        ("cache list", "nightly-report"),
        ("token list", "deployer"),
        ("secret list", "database-password"),
        ("schedule list", "nightly-report"),
    ] {
        let shown = on_terminal_of(80, &place, line, &[("NO_COLOR", "1")]);
        assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 80), "{shown}");
        let lines: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
        let listed = lines.iter().filter(|line| line.contains(name)).count();
        assert_eq!(listed, 1, "{line}: {shown}");
        // The head, what was made here, and the admin's token beside it.
        assert!(lines.len() <= 3, "no cell is broken: {shown}");
    }
    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
}
