//! The service against its own description: Schemathesis makes requests of every kind that `openapi.json` allows, and some that
//! it does not, and sends them to a real server. No answer may be an error of the server's, and none may be undocumented.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::program::{Program, said};
use crate::shell::{Shell, program};
use crate::stage::note;
use crate::venv;

/// Another version makes other requests.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// Every check that there is.
const CHECKS: &str = "all";

/// Of routes of workers and tokens the description is not as strict as the server yet.
const LOOSER_CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// A request that is written as the description says and means nothing (a cursor that no answer gave, a document with a mistake) is
/// refused with 422. No schema can say what means something, so that is no fault of the description; 400 would be one.
const CONFIGURATION: &str = "hooks = \"hooks.py\"\n[checks.positive_data_acceptance]\n\
    expected-statuses = [\"2xx\", \"3xx\", 401, 403, 404, 409, 422, 429, \"5xx\"]\n";

/// How bytes of a bundle are sent; and a worker that asks for work would wait for it most of the time.
const HOOKS: &str = r#"
import schemathesis

@schemathesis.serializer("application/x-tar")
def tar(context, value):
    return value if isinstance(value, bytes) else str(value).encode()

@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if isinstance(body, dict) and type(body.get("wait")) in (int, float) and body["wait"] > 1:
        body["wait"] = 1
"#;

/// Requests for each route beside those that its description suggests. Chosen by a seed, so that what was found is found again.
const EXAMPLES: &str = "30";
const SEED: &str = "7";

/// How long all of it may take, as `timeout` takes it.
const PATIENCE: &str = "600";

/// Asked for apart: what is done in the name of one worker, and what could end the token that asks. A stream of events has no end, and
/// a client that reads to the end would wait for it: `tests/service/stream.rs` is about it.
const APART: &str = "^/v1/(events$|tokens/|workers)";

/// The description, and the same for one worker.
const DESCRIPTION: &str = "openapi.json";
const FOR_WORKER: &str = "openapi-worker.json";

/// Registers a worker, and prints its session.
const REGISTER: &str = r#"
import json, sys, urllib.request
url, token = sys.argv[1:]
body = json.dumps({"name": "elsewhere", "queues": ["mail"], "slots": 4}).encode()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
with urllib.request.urlopen(urllib.request.Request(url + "/v1/workers", body, headers)) as answer:
    print(json.load(answer)["session"])
"#;

pub(crate) fn run(shell: &Shell, laneway: &Program) -> Result<()> {
    let schemathesis = venv::bring(shell, &laneway.scratch, SCHEMATHESIS)?;
    let home = laneway.scratch.join("api");
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| home.display().to_string())?;
    }
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    fs::copy(shell.root().join("docs/reference/openapi.json"), home.join(DESCRIPTION))?;
    fs::write(home.join("schemathesis.toml"), CONFIGURATION)?;
    fs::write(home.join("hooks.py"), HOOKS)?;
    let server = Server::start(laneway, &home)?;
    let admin = fs::read_to_string(home.join(".laneway/admin.token")).context("the token of the server")?;
    let worker = prepare(shell, laneway, &home)?;
    let asked = Asked { shell, schemathesis: &schemathesis, home: &home, server: &server };
    asked.about(admin.trim(), DESCRIPTION, (CHECKS, &["--exclude-path-regex", APART]))?;
    // Of a worker that lives: all that is said in its name, and in the end that it leaves.
    let worker = worker.trim();
    describe_for(&home, &register(shell, &server, worker)?)?;
    let of_workers = ["--include-path-regex", "^/v1/workers"];
    let which = [&of_workers[..], &["--exclude-method", "DELETE"]].concat();
    asked.about(worker, FOR_WORKER, (LOOSER_CHECKS, &which))?;
    let which = [&of_workers[..], &["--include-method", "DELETE"]].concat();
    asked.about(worker, FOR_WORKER, (LOOSER_CHECKS, &which))?;
    // Last: the token that asks may be among those that it rotates and revokes.
    asked.about(admin.trim(), DESCRIPTION, (LOOSER_CHECKS, &["--include-path-regex", "^/v1/tokens/"]))?;
    server.end()
}

/// What the examples of the description speak of, so that not all is refused as unknown. Gives the token of a worker.
fn prepare(shell: &Shell, laneway: &Program, home: &Path) -> Result<String> {
    fs::write(
        home.join("nightly.yaml"),
        "name: nightly\nschedule: {cron: '0 2 * * *'}\nsteps: {build: {run: 'true'}}\n",
    )?;
    fs::write(
        home.join("mail.yaml"),
        "name: mail\nsteps: {letter: {queue: mail, for_each: [1, 2, 3, 4, 5, 6, 7, 8]}}\n",
    )?;
    let path = home.join("nightly.yaml");
    let file = path.to_str().context("the path is no text")?;
    let mut said = String::new();
    let mail = home.join("mail.yaml");
    let mail = mail.to_str().context("the path is no text")?;
    let making = ["token", "create", "elsewhere", "--role", "worker"];
    for words in [&["apply", file][..], &["run", file], &["submit", mail], &making] {
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

/// Gives the session.
fn register(shell: &Shell, server: &Server, token: &str) -> Result<String> {
    let mut python = program("python3");
    python.args(["-c", REGISTER, &server.url, token]);
    let output = shell.output(python)?;
    ensure!(output.status.success(), "no worker could be registered: {}", said(&output));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The description in which a session is that of one worker.
fn describe_for(home: &Path, session: &str) -> Result<()> {
    let text = fs::read_to_string(home.join(DESCRIPTION))?;
    let mut described: Value = serde_json::from_str(&text)?;
    let paths = described["paths"].as_object_mut().context("no paths are described")?;
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(|of| of.values_mut());
    // Asked for by its name, a list that is not there would be made.
    let lists = operations.filter_map(|operation| operation.get_mut("parameters")?.as_array_mut());
    let parameters = lists.flatten();
    let mut count = 0;
    for parameter in parameters.filter(|parameter| parameter["name"] == "session") {
        parameter["example"] = json!(session);
        parameter["schema"] = json!({ "type": "string", "enum": [session] });
        count += 1;
    }
    ensure!(count > 0, "no route speaks of a session");
    Ok(fs::write(home.join(FOR_WORKER), described.to_string())?)
}

struct Asked<'a> {
    shell: &'a Shell,
    schemathesis: &'a Path,
    home: &'a Path,
    server: &'a Server,
}

impl Asked<'_> {
    fn about(&self, token: &str, described: &str, (checks, which): (&str, &[&str])) -> Result<()> {
        let Self { shell, schemathesis, home, server } = self;
        // It leaves files where it runs.
        let mut command = program("env");
        command.arg("-C").arg(home).args(["timeout", "--kill-after=10", PATIENCE]).arg(schemathesis);
        command.args(["run", described, "--url", &server.url]).args(which);
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
        command.args([
            "--checks",
            checks,
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
        // A worker that is asked for at random renews its lease at random.
        command.current_dir(home).env("LANEWAY_LEASE_TTL", "30m");
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
