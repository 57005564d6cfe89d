//! A registry of one image, on this host: what an engine needs to pull it, and nothing else of that protocol. Engines speak to one on
//! the loopback without TLS.

#![allow(dead_code, reason = "several programs of tests use it, each its part")]
#![allow(clippy::disallowed_methods, reason = "tests start programs as a person does")]

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

pub(crate) struct Registry {
    /// What to pull.
    pub(crate) image: String,
    /// Whether layers are handed out.
    gate: watch::Sender<bool>,
}

/// By path: its type, its digest and its bytes.
type Shelf = HashMap<String, (String, String, Vec<u8>)>;

impl Registry {
    /// Serves what an engine saved (`docker save`), unpacked in a directory.
    pub(crate) async fn serve(dir: &Path, name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let (shelf, gate) = (Arc::new(shelf(dir, name)), watch::Sender::new(true));
        let opened = gate.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (shelf, opened) = (Arc::clone(&shelf), opened.clone());
                tokio::spawn(async move { answer(client, &shelf, opened).await });
            }
        });
        Self { image: format!("{at}/{name}:1"), gate }
    }

    /// Hands out no layer until `go_on`.
    pub(crate) fn hold(&self) {
        self.gate.send_replace(false);
    }

    pub(crate) fn go_on(&self) {
        self.gate.send_replace(true);
    }
}

fn shelf(dir: &Path, name: &str) -> Shelf {
    let read = |file: &str| std::fs::read(dir.join(file)).expect("a file of the image");
    let list: Value = serde_json::from_slice(&read("manifest.json")).expect("JSON");
    let file = |value: &Value| value.as_str().expect("a path").to_owned();
    let mut shelf = Shelf::new();
    let mut keep = |kind: &str, bytes: Vec<u8>| {
        let digest = digest(&bytes);
        let entry = json!({"mediaType": kind, "size": bytes.len(), "digest": digest});
        let blob = ("application/octet-stream".to_owned(), digest.clone(), bytes);
        shelf.insert(format!("/v2/{name}/blobs/{digest}"), blob);
        entry
    };
    let config = keep("application/vnd.docker.container.image.v1+json", read(&file(&list[0]["Config"])));
    let layers: Vec<Value> = list[0]["Layers"]
        .as_array()
        .expect("layers")
        .iter()
        .map(|layer| keep("application/vnd.docker.image.rootfs.diff.tar.gzip", read(&file(layer))))
        .collect();
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
    let manifest = manifest.to_string().into_bytes();
    let of_manifest = digest(&manifest);
    for reference in ["1", &of_manifest] {
        let kept = (MANIFEST.to_owned(), of_manifest.clone(), manifest.clone());
        shelf.insert(format!("/v2/{name}/manifests/{reference}"), kept);
    }
    shelf.insert("/v2/".to_owned(), ("application/json".to_owned(), digest(b"{}"), b"{}".to_vec()));
    shelf
}

/// As `sha256sum` has it.
fn digest(bytes: &[u8]) -> String {
    let mut sum =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("`sha256sum`");
    sum.stdin.take().expect("a pipe").write_all(bytes).expect("written");
    let output = sum.wait_with_output().expect("it ends");
    let line = String::from_utf8(output.stdout).expect("text");
    format!("sha256:{}", line.split_whitespace().next().expect("a sum"))
}

/// One question for each connection.
async fn answer(mut client: TcpStream, shelf: &Shelf, mut opened: watch::Receiver<bool>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match client.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if path.contains("/blobs/") && opened.wait_for(|is_open| *is_open).await.is_err() {
        return;
    }
    let none = || ("application/json".to_owned(), String::new(), b"{\"errors\":[]}".to_vec());
    let (status, (kind, digest, bytes)) = match shelf.get(path) {
        Some(found) => ("200 OK", found.clone()),
        None => ("404 Not Found", none()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nDocker-Content-Digest: {digest}\r\n\
         Docker-Distribution-Api-Version: registry/2.0\r\nConnection: close\r\n\r\n",
        bytes.len()
    );
    let _ = client.write_all(head.as_bytes()).await;
    if method != "HEAD" {
        let _ = client.write_all(&bytes).await;
    }
    let _ = client.shutdown().await;
}

/// An image like another one with a file more, saved into a directory; the engine does not have it afterwards.
pub(crate) fn saved(host: &str, image: &str, dir: &Path) {
    let unique = format!("laneway-pulled-{}", std::process::id());
    std::fs::write(dir.join("more"), vec![b'x'; 3 << 20]).expect("a file");
    let script = r#"set -e
d="docker --host $1"
$d create --name "$3" "$2" true >/dev/null
echo "$3" >> "$4/more"
$d cp "$4/more" "$3:/more"
$d commit "$3" "$3" >/dev/null
$d rm "$3" >/dev/null
$d save "$3" | tar -C "$4" -x
$d rmi "$3" >/dev/null"#;
    let dir = dir.to_str().expect("UTF-8");
    let made = Command::new("sh").args(["-c", script, "sh", host, image, &unique, dir]).output();
    let made = made.expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Takes an image from an engine again.
pub(crate) fn remove(host: &str, image: &str) {
    let removed = Command::new("docker").args(["--host", host, "rmi", image]).output();
    assert!(removed.expect("docker runs").status.success());
}
