//! The service against its own description: Schemathesis makes requests of every kind that `openapi.json` allows, and some that
//! it does not, and sends them to a real server. No answer may be an error of the server's, and none may be undocumented.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::program::{Program, said};
use crate::shell::{Shell, program};
use crate::stage::note;

/// Another version makes other requests.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Requests for each route beside those that its description suggests. Chosen by a seed, so that what was found is found again.
const EXAMPLES: &str = "30";
const SEED: &str = "7";

/// How long all of it may take, as `timeout` takes it.
const PATIENCE: &str = "600";

/// What does not fit: a stream has no end, and whoever takes the token that asks ends all questions.
const LEFT_OUT: &str = "^/v1/(events$|tokens/|bundles/|workers)";

pub(crate) fn run(shell: &Shell, laneway: &Program) -> Result<()> {
    let schemathesis = bring(shell, &laneway.scratch)?;
    let home = laneway.scratch.join("api");
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| home.display().to_string())?;
    }
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    fs::copy(shell.root().join("docs/reference/openapi.json"), home.join("openapi.json"))?;
    let server = Server::start(laneway, &home)?;
    let admin = fs::read_to_string(home.join(".laneway/admin.token")).context("the token of the server")?;
    let worker = prepare(shell, laneway, &home)?;
    let asked = Asked { shell, schemathesis: &schemathesis, home: &home, server: &server };
    asked.about(admin.trim(), &["--exclude-path-regex", LEFT_OUT])?;
    asked.about(worker.trim(), &["--include-path-regex", "^/v1/workers"])?;
    server.end()
}

/// What the examples of the description speak of, so that not all is refused as unknown. Gives the token of a worker.
fn prepare(shell: &Shell, laneway: &Program, home: &Path) -> Result<String> {
    fs::write(
        home.join("nightly.yaml"),
        "name: nightly\nschedule: {cron: '0 2 * * *'}\nsteps: {build: {run: 'true'}}\n",
    )?;
    let path = home.join("nightly.yaml");
    let file = path.to_str().context("the path is no text")?;
    let mut said = String::new();
    for words in [&["apply", file][..], &["run", file], &["token", "create", "elsewhere", "--role", "worker"]]
    {
        let mut command = laneway.command(words);
        command.arg("--store").arg(home.join(".laneway/laneway.db"));
        let output = shell.output(command)?;
        ensure!(
            output.status.success(),
            "`laneway {}` failed: {}",
            words.join(" "),
            crate::program::said(&output)
        );
        said = String::from_utf8(output.stdout)?;
    }
    let token = said.split_whitespace().find(|word| word.starts_with("laneway_"));
    Ok(token.context("no token was told")?.to_owned())
}

struct Asked<'a> {
    shell: &'a Shell,
    schemathesis: &'a Path,
    home: &'a Path,
    server: &'a Server,
}

impl Asked<'_> {
    fn about(&self, token: &str, which: &[&str]) -> Result<()> {
        let Self { shell, schemathesis, home, server } = self;
        // It leaves files where it runs.
        let mut command = program("env");
        command.arg("-C").arg(home).args(["timeout", "--kill-after=10", PATIENCE]).arg(schemathesis);
        command.args(["run", "openapi.json", "--url", &server.url]).args(which);
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
        command.args([
            "--checks",
            CHECKS,
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            EXAMPLES,
        ]);
        command.args([
            "--seed",
            SEED,
            "--continue-on-failure",
            "--request-timeout",
            "30",
            "--warnings",
            "off",
        ]);
        command.stdin(Stdio::null());
        let output = shell.output(command)?;
        fs::write(home.join("report"), &output.stdout)?;
        ensure!(
            output.status.success(),
            "{}\nall of it is in {}",
            summary(&said(&output)),
            home.join("report").display()
        );
        let cases =
            said(&output).lines().find(|line| line.contains(" generated")).map(|line| line.trim().to_owned());
        note(&cases.unwrap_or_else(|| "no request was counted".to_owned()));
        Ok(())
    }
}

/// In an environment of its own, beside what was built: it is brought once.
fn bring(shell: &Shell, scratch: &Path) -> Result<PathBuf> {
    let home = scratch.join("schemathesis");
    let (python, found) = (home.join("bin/python"), home.join("bin/schemathesis"));
    if found.is_file() {
        return Ok(found);
    }
    let mut venv = program("python3");
    venv.args(["-m", "venv"]).arg(&home);
    if shell.run(venv).is_err() {
        crate::tools::install("venv of python3", "python3-venv")?;
        let mut venv = program("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&home);
        shell.run(venv)?;
    }
    let mut pip = program(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS]);
    shell.run(pip).context("Schemathesis comes from PyPI, which has to be reached")?;
    Ok(found)
}

/// What was found, without what it was found by.
fn summary(said: &str) -> String {
    let interesting = |line: &&str| !line.trim().is_empty() && !line.contains("Reproduce with");
    said.lines().filter(interesting).take(200).collect::<Vec<_>>().join("\n")
}

/// A server of this program, with a store of its own.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(laneway: &Program, home: &Path) -> Result<Self> {
        // Nothing that it is told to run is run: steps of documents that nobody has read would be.
        let mut command = laneway.command(&["serve", "--listen", "127.0.0.1:0", "--no-worker"]);
        command.current_dir(home);
        let stderr = fs::File::create(home.join("said"))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().context("the server cannot be started")?;
        let mut line = String::new();
        let stdout = child.stdout.as_mut().context("it says nothing")?;
        BufReader::new(stdout).read_line(&mut line)?;
        match line.trim().strip_prefix("listening at ") {
            Some(url) => Ok(Self { url: url.to_owned(), child }),
            None => bail!("the server does not listen: {}", fs::read_to_string(home.join("said"))?),
        }
    }

    /// It still lives, and ends in good order.
    fn end(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended by itself: {status}");
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
