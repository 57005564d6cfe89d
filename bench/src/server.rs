//! `laneway serve` as a child with its store in a directory: started, asked, and ended.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::meter::program;
use crate::single::{processes_of, rss_mb, sum};
use crate::stats::{percentile, sorted};
use crate::subject::Places;

/// What is submitted: one step that does nothing.
pub(crate) const DOCUMENT: &str = "name: nothing\nsteps: {a: {command: [/bin/true]}}\n";

/// As the API takes it.
pub(crate) fn body() -> String {
    serde_json::json!({ "document": DOCUMENT }).to_string()
}

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: String,
    token: String,
    /// From the start of the program until it answers.
    pub(crate) ready_ms: f64,
}

impl Server {
    /// On whatever store that directory has.
    pub(crate) fn start(places: &Places, dir: &Path, more: &[&str]) -> Result<Self> {
        let mut command = program(&places.laneway);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more).current_dir(dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut child = command.spawn().context("the server cannot be started")?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("it says nothing")?).read_line(&mut line)?;
        let address =
            line.trim().strip_prefix("listening at http://").context("it does not listen")?.to_owned();
        let token =
            fs::read_to_string(dir.join(".laneway/admin.token")).context("its token")?.trim().to_owned();
        let mut server = Self { child, address, token, ready_ms: 0.0 };
        let answer = server.ask("GET", "/readyz", None)?;
        ensure!(answer.contains("\"ok\"") || answer.contains("ready"), "it is not ready: {answer}");
        server.ready_ms = begun.elapsed().as_secs_f64() * 1_000.0;
        Ok(server)
    }

    pub(crate) fn end(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("the server cannot be ended")?;
        self.child.wait().context("the server did not end")?;
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it takes with its warden; what they share is counted for each.
    pub(crate) fn rss_mb(&self) -> Result<f64> {
        sum(&processes_of(self.pid())?, rss_mb)
    }

    /// A connection on which something was asked for.
    pub(crate) fn connect(&self, path: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (host, token) = (&self.address, &self.token);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n")?;
        Ok(stream)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (host, token, body) = (&self.address, &self.token, body.unwrap_or_default());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 2") => Ok(body.to_owned()),
            _ => bail!("{method} {path} was answered with {answer}"),
        }
    }

    pub(crate) fn submit(&self) -> Result<String> {
        self.submit_body(&body())
    }

    pub(crate) fn submit_body(&self, body: &str) -> Result<String> {
        let answer: Value = serde_json::from_str(&self.ask("POST", "/v1/runs", Some(body))?)?;
        Ok(answer["run"].as_str().context("no run")?.to_owned())
    }

    pub(crate) fn wait_for(&self, run: &str, look_every: Duration) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let run: Value = serde_json::from_str(&self.ask("GET", &format!("/v1/runs/{run}"), None)?)?;
            if run["status"] == "succeeded" {
                return Ok(run);
            }
            ensure!(begun.elapsed() < Duration::from_secs(60), "a run did not end: {}", run["status"]);
            std::thread::sleep(look_every);
        }
    }

    /// From submit to start, by the store's clock: the median of some runs, one after the other.
    pub(crate) fn starts(&self, samples: usize) -> Result<f64> {
        let mut took = Vec::with_capacity(samples);
        for _ in 0..samples {
            let run = self.submit()?;
            let ended = self.wait_for(&run, Duration::from_millis(5))?;
            took.push(moment(&ended["tasks"][0]["started_at"])? - moment(&ended["submitted_at"])?);
        }
        percentile(&sorted(took), 0.5).context("nothing was started")
    }

    pub(crate) fn wrk(
        &self,
        dir: &Path,
        path: &str,
        connections: u32,
        seconds: u64,
        post: Option<&str>,
    ) -> Result<f64> {
        let script = dir.join("ask.lua");
        let body = post
            .map(|body| format!("wrk.method = \"POST\"\nwrk.body = [==[{body}]==]\n"))
            .unwrap_or_default();
        let token = &self.token;
        fs::write(
            &script,
            format!(
                "{body}wrk.headers[\"authorization\"] = \"Bearer {token}\"\n\
                 wrk.headers[\"content-type\"] = \"application/json\"\n"
            ),
        )?;
        let (connections, window) = (connections.to_string(), format!("{seconds}s"));
        let mut command = program("wrk");
        command.args(["--threads", "1", "--connections", &connections, "--duration", &window, "--script"]);
        command.arg(&script).arg(format!("http://{}{path}", self.address));
        let output = command.output().context("wrk cannot be started")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && !said.contains("Non-2xx"), "wrk says of {path}: {said}");
        let rate = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        rate.and_then(|rate| rate.trim().parse().ok()).with_context(|| format!("wrk tells no rate: {said}"))
    }
}

/// Milliseconds of a time of the API.
pub(crate) fn moment(value: &Value) -> Result<f64> {
    let at: jiff::Timestamp = value.as_str().context("no time")?.parse()?;
    Ok(at.as_millisecond() as f64)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
