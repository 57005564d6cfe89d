//! Runs every command of `docs/tutorial.md`, in order, in a directory of its own: a page that is run cannot rot. A command that
//! fails is an error; so is one that takes too long.

use std::fs;
use std::net::TcpListener;

use anyhow::{Context, Result, bail};

use crate::program::{Program, said};
use crate::shell::Shell;

const PAGE: &str = "docs/tutorial.md";

/// The port that the page names. Somebody may have it here.
const PORT: &str = "7878";

/// How long all of it may take, as `timeout` takes it.
const PATIENCE: &str = "180";

/// Before the page: it stops at what fails, and leaves nothing running. What runs is listed to a file, because within `$(…)` a
/// shell has no jobs.
const HEAD: &str = "set -eu\ntrap 'jobs -p > .jobs; kill $(cat .jobs) 2>/dev/null || true; wait' EXIT\n";

pub(crate) fn run(shell: &Shell, program: &Program) -> Result<()> {
    let page = fs::read_to_string(shell.root().join(PAGE)).with_context(|| PAGE.to_owned())?;
    let blocks = commands(&page);
    if blocks.len() < 5 {
        bail!("{PAGE} has only {} blocks of commands", blocks.len());
    }
    let home = program.scratch.join("tutorial");
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| home.display().to_string())?;
    }
    fs::create_dir_all(home.join("bin")).with_context(|| home.display().to_string())?;
    // Under the name that the page calls it by.
    fs::copy(program.path(), home.join("bin/laneway")).context("the program")?;
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("a port")?.port();
    let script = format!("{HEAD}{}", blocks.join("\n")).replace(PORT, &port.to_string());
    fs::write(home.join("script"), &script)?;
    let (place, path) = (home.join("work"), std::env::var("PATH").unwrap_or_default());
    fs::create_dir_all(&place)?;
    let mut command = crate::shell::program("env");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LANEWAY_")) {
        command.env_remove(name);
    }
    command.env("PATH", format!("{}:{path}", home.join("bin").display())).env("NO_COLOR", "1");
    command.env("LANEWAY_LISTEN", format!("127.0.0.1:{port}"));
    command.arg("-C").arg(&place).args(["timeout", "--kill-after=10", PATIENCE, "sh", "-x"]);
    let output = shell.output({
        command.arg(home.join("script"));
        command
    })?;
    if !output.status.success() {
        bail!("a command of {PAGE} failed ({}):\n{}", output.status, said(&output));
    }
    Ok(())
}

/// What stands between ```` ```sh ```` and its end.
fn commands(page: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None::<String>);
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_commands_are_found_and_others_left_out() {
        let page = "text\n```sh\na\nb\n```\n```text\nc\n```\n```sh\nd\n```\n";
        assert_eq!(commands(page), ["a\nb\n", "d\n"]);
    }
}
