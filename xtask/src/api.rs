//! The service against its own description: Schemathesis makes requests of every kind that `openapi.json` allows, and some that
//! it does not, and sends them to a real server, with every check, for every route. No answer may be an error of the server's, and
//! none may be undocumented.

use std::collections::BTreeMap;
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

/// Stateful: names that one route answers are used in requests of others.
const PHASES: &str = "examples,coverage,fuzzing,stateful";

/// Every check that there is.
const CHECKS: &str = "all";

/// Routes on which a request may fit the description and mean nothing: a document with a mistake, a
/// body with another hash, two parameters of which one needs the other, a reason of another status.
/// It is refused with 422.
const MEANINGFUL: [&str; 10] = [
    "DELETE /v1/cache",
    "GET /v1/cache",
    "GET /v1/events",
    "GET /v1/runs/{run}/tasks",
    "POST /v1/runs",
    "POST /v1/runs/{run}/tasks/{step}/signal",
    "POST /v1/validate",
    "POST /v1/workers/{session}/finish",
    "POST /v1/workflows",
    "PUT /v1/bundles/{hash}",
];

/// Routes on which no generated request can succeed: they need a signature, bytes of a given hash, live
/// pools, an effect of which nothing is known, a level that is done, a step that failed, or the name of a built file.
const UNREACHABLE: [&str; 9] = [
    "GET /assets/{file}",
    "GET /v1/runs/{run}/tasks/{step}/file",
    "POST /v1/hooks/{path}",
    "POST /v1/pools/{name}/drain",
    "POST /v1/pools/{name}/warm",
    "POST /v1/runs/{run}/advance",
    "POST /v1/runs/{run}/tasks/{step}/effects/settle",
    "POST /v1/runs/{run}/tasks/{step}/skip",
    "PUT /v1/bundles/{hash}",
];

/// What all routes may answer to a request that is written as the description says.
const ACCEPTED: &str = r#""2xx", "3xx", 401, 403, 404, 409, 429, "5xx""#;

fn configuration() -> String {
    let mut text = format!(
        "hooks = \"hooks.py\"\n[checks.positive_data_acceptance]\nexpected-statuses = [{ACCEPTED}]\n"
    );
    for name in MEANINGFUL {
        text.push_str(&format!(
            "[[operations]]\ninclude-name = \"{name}\"\n\
             checks.positive_data_acceptance.expected-statuses = [{ACCEPTED}, 422]\n"
        ));
    }
    text
}

/// Sends the bytes of a bundle. Sends requests of workers with the token of one: an admin is none. A request that would end a token
/// that asks names another one instead, because names come from answers too, and all that follows would be refused. Lets a worker that asks for work wait a few times only, and a second at most. Reads the beginning of a
/// stream of events: its end never comes. `tests/service/stream.rs` reads what follows.
const HOOKS: &str = r#"
import atexit
import itertools
import json
import os
import urllib.parse
import urllib.request
import requests.adapters
import schemathesis

ADMIN = "Bearer " + os.environ["ADMIN_TOKEN"]
WORKER = "Bearer " + os.environ["WORKER_TOKEN"]

@schemathesis.serializer("application/x-tar")
def tar(context, value):
    return value if isinstance(value, bytes) else str(value).encode()

statuses = {}

@schemathesis.hook
def after_call(context, case, response):
    statuses.setdefault(case.operation.label, set()).add(response.status_code)

@atexit.register
def note_statuses():
    with open("statuses.json", "w") as file:
        json.dump({label: sorted(seen) for label, seen in statuses.items()}, file)

waits = itertools.count()

@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if isinstance(body, dict) and type(body.get("wait")) in (int, float) and body["wait"] > 0:
        body["wait"] = 1 if next(waits) < 3 else 0

send = requests.adapters.HTTPAdapter.send
own = {"elsewhere"}

def spare_own_tokens(request):
    url = urllib.parse.urlsplit(request.url)
    parts = url.path.split("/")
    if len(own) == 1:
        asked = urllib.request.Request(f"{url.scheme}://{url.netloc}/v1/me", headers={"Authorization": ADMIN})
        own.add(json.load(urllib.request.urlopen(asked))["name"])
    if parts[:3] == ["", "v1", "tokens"] and len(parts) > 3 and urllib.parse.unquote(parts[3]) in own:
        parts[3] = "nightly"
        request.url = url._replace(path="/".join(parts)).geturl()

def send_as_needed(self, request, **options):
    spare_own_tokens(request)
    # A check that sends another token, or none, is left alone.
    if request.path_url.startswith("/v1/workers") and request.headers.get("Authorization") == ADMIN:
        request.headers["Authorization"] = WORKER
    response = send(self, request, **options)
    if response.headers.get("Content-Type", "").startswith("text/event-stream"):
        response._content = next(response.iter_content(None), b"")
        response._content_consumed = True
        assert b": events" in response._content, response._content
        response.close()
    return response

requests.adapters.HTTPAdapter.send = send_as_needed
"#;

/// Requests for each route beside those that its description suggests. Chosen by a seed, so that what was found is found again.
const EXAMPLES: &str = "30";
const SEED: &str = "7";

/// How long all of it may take, as `timeout` takes it.
const PATIENCE: &str = "600";

/// The description, with the sessions that were registered.
const DESCRIPTION: &str = "openapi.json";

/// The session that the requests of a worker name, and those that they end.
const SESSIONS: usize = 100;

/// Registers workers, and prints their sessions. They belong to the token.
const REGISTER: &str = r#"
import json, sys, urllib.request
url, token, count = sys.argv[1:]
body = json.dumps({"name": "elsewhere", "queues": ["mail"], "slots": 4}).encode()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
for _ in range(int(count)):
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/workers", body, headers)) as answer:
        print(json.load(answer)["session"])
"#;

/// Prints the ids of all runs, or of those that may be canceled: one waits for a signal.
const RUNS: &str = r#"
import json, sys, urllib.request
url, token = sys.argv[1:3]
request = urllib.request.Request(url + "/v1/runs", headers={"Authorization": "Bearer " + token})
with urllib.request.urlopen(request) as answer:
    for run in json.load(answer)["runs"]:
        if run["workflow"] != "gate" or sys.argv[3] == "all":
            print(run["run"])
"#;

/// Fails unless the tokens and the session are still good: a request that was refused for them checked nothing else.
const STILL_GOOD: &str = r#"
import sys, urllib.request
url, admin, worker, session = sys.argv[1:]
def ask(path, token, body=None):
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url + path, body, headers)).read()
ask("/v1/tokens", admin)
ask(f"/v1/workers/{session}/renew", worker, b"{}")
"#;

pub(crate) fn run(shell: &Shell, laneway: &Program) -> Result<()> {
    let schemathesis = venv::bring(shell, &laneway.scratch, SCHEMATHESIS)?;
    let home = laneway.scratch.join("api");
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| home.display().to_string())?;
    }
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    fs::write(home.join("schemathesis.toml"), configuration())?;
    fs::write(home.join("hooks.py"), HOOKS)?;
    let server = Server::start(laneway, &home)?;
    let token = fs::read_to_string(home.join(".laneway/admin.token")).context("the token of the server")?;
    let admin = token.trim();
    let worker = prepare(shell, laneway, &home)?;
    let runs = |which: &str| -> Result<Vec<String>> {
        let runs = python(shell, RUNS, &[&server.url, admin, which])?;
        Ok(runs.lines().map(str::to_owned).collect())
    };
    let (runs, to_cancel) = (runs("all")?, runs("to cancel")?);
    ensure!(runs.len() == to_cancel.len() + 1, "the runs that were prepared are not there");
    let sessions = python(shell, REGISTER, &[&server.url, &worker, &SESSIONS.to_string()])?;
    let sessions: Vec<&str> = sessions.lines().collect();
    let [session, others @ ..] = &sessions[..] else { bail!("no worker was registered") };
    let text = fs::read_to_string(shell.root().join("docs/reference/openapi.json"))?;
    fs::write(home.join(DESCRIPTION), describe_for(&text, (session, others), (&runs, &to_cancel))?)?;
    check(shell, &schemathesis, &home, (&server.url, admin, &worker))?;
    python(shell, STILL_GOOD, &[&server.url, admin, &worker, session])?;
    server.end()?;
    all_succeeded(&home)
}

/// A route that only refused requests was hardly checked.
fn all_succeeded(home: &Path) -> Result<()> {
    let text = fs::read_to_string(home.join("statuses.json")).context("no statuses were noted")?;
    let statuses: BTreeMap<String, Vec<u16>> = serde_json::from_str(&text)?;
    ensure!(!statuses.is_empty(), "no statuses were noted");
    let never = |(label, seen): (&String, &Vec<u16>)| {
        let has_succeeded = seen.iter().any(|status| *status < 400);
        (!has_succeeded && !UNREACHABLE.contains(&label.as_str())).then(|| format!("{label} {seen:?}"))
    };
    let never: Vec<String> = statuses.iter().filter_map(never).collect();
    ensure!(never.is_empty(), "no request succeeded on {}", never.join(", "));
    Ok(())
}

/// Makes what the examples of the description speak of, so that not all is refused as unknown. Returns the token of a worker.
fn prepare(shell: &Shell, laneway: &Program, home: &Path) -> Result<String> {
    let mut printed = String::new();
    fs::write(
        home.join("nightly.yaml"),
        "name: nightly\nschedule: {cron: '0 2 * * *'}\n\
         steps: {build: {run: 'echo built > out.txt', artifacts: [out.txt]}}\n",
    )?;
    fs::write(
        home.join("gate.yaml"),
        "name: gate\nsteps: {build: {wait: {signal: approval}}, letter: {needs: [build], run: 'true'}}\n",
    )?;
    fs::write(
        home.join("mail.yaml"),
        "name: mail\nsteps: {letter: {queue: mail, for_each: [1, 2, 3, 4, 5, 6, 7, 8]}}\n",
    )?;
    let path = home.join("nightly.yaml");
    let file = path.to_str().context("the path is no text")?;
    let [mail, gate] = ["mail.yaml", "gate.yaml"].map(|name| home.join(name));
    let mail = mail.to_str().context("the path is no text")?;
    let gate = gate.to_str().context("the path is no text")?;
    let making = ["token", "create", "nightly", "--role", "viewer", "--expires", "30d"];
    let worker = ["token", "create", "elsewhere", "--role", "worker"];
    for words in
        [&["apply", file][..], &["submit", mail], &["submit", gate], &["run", file], &making, &worker]
    {
        let mut command = laneway.command(words);
        command.arg("--store").arg(home.join(".laneway/laneway.db"));
        let output = shell.output(command)?;
        ensure!(output.status.success(), "`laneway {}` failed: {}", words.join(" "), said(&output));
        printed = String::from_utf8(output.stdout)?;
    }
    Ok(printed.trim().to_owned())
}

/// Runs a script, and returns what it prints.
fn python(shell: &Shell, script: &str, words: &[&str]) -> Result<String> {
    let mut python = program("python3");
    python.args(["-c", script]).args(words);
    let output = shell.output(python)?;
    ensure!(output.status.success(), "the server refused a worker: {}", said(&output));
    Ok(String::from_utf8(output.stdout)?)
}

/// Puts live sessions into the description: the one of all requests of workers, and those that may be ended.
/// Adds names of what is there to those that a request may have.
fn describe_for(
    text: &str,
    (session, others): (&str, &[&str]),
    (runs, to_cancel): (&[String], &[String]),
) -> Result<String> {
    let mut described: Value = serde_json::from_str(text)?;
    let paths = described["paths"].as_object_mut().context("no paths are described")?;
    let mut count = 0;
    let gate = runs.iter().find(|run| !to_cancel.contains(run));
    let operations = paths.iter_mut().filter_map(|(path, methods)| Some((path, methods.as_object_mut()?)));
    let operations = operations.flat_map(|(path, methods)| {
        methods.iter_mut().map(move |(method, operation)| (path, method, operation))
    });
    for (path, method, operation) in operations {
        let lives = if method == "delete" { others } else { &[session][..] };
        // Indexed by its name, a list that is not there would be made.
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            let known = match parameter["name"].as_str() {
                Some("session") => {
                    parameter["example"] = json!(lives.first());
                    parameter["schema"] = json!({ "type": "string", "enum": lives });
                    count += 1;
                    continue;
                }
                Some("run") if path.ends_with("/cancel") => to_cancel.to_vec(),
                Some("run") => runs.to_vec(),
                Some("step") => ["build", "letter"].map(str::to_owned).to_vec(),
                Some("name") if parameter["in"] == "query" => vec!["out.txt".to_owned()],
                Some(_) | None => continue,
            };
            if parameter["name"] == "run" && path.ends_with("/signal") {
                parameter["example"] = json!(gate);
            }
            parameter["schema"] =
                json!({ "anyOf": [{ "type": "string", "enum": known }, parameter["schema"]] });
        }
    }
    let schemas = &mut described["components"]["schemas"];
    let signal = &mut schemas["Signal"]["properties"]["signal"];
    *signal = json!({ "anyOf": [{ "type": "string", "enum": ["approval"] }, signal] });
    schemas["Signal"]["example"] = json!({ "signal": "approval" });
    schemas["Submit"]["example"] = json!({ "workflow": "nightly" });
    ensure!(count > 0, "no route speaks of a session");
    Ok(described.to_string())
}

/// Makes the requests.
fn check(
    shell: &Shell,
    schemathesis: &Path,
    home: &Path,
    (url, admin, worker): (&str, &str, &str),
) -> Result<()> {
    // It leaves files where it runs.
    let mut command = program("env");
    command.arg("-C").arg(home).args(["timeout", "--kill-after=10", PATIENCE]).arg(schemathesis);
    command.env("ADMIN_TOKEN", admin).env("WORKER_TOKEN", worker);
    command.args(["run", DESCRIPTION, "--url", url]);
    command.args(["--header", &format!("Authorization: Bearer {admin}")]);
    command.args(["--checks", CHECKS, "--phases", PHASES, "--max-examples", EXAMPLES]);
    command.args(["--seed", SEED, "--continue-on-failure", "--request-timeout", "30", "--warnings", "off"]);
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
