//! A network of our own: a bridge on this machine, and a network namespace for each node, joined to it by a pair of
//! virtual wires. Owns how they are made, cut and removed; needs root, `ip` and `iptables`.
//!
//! ```text
//!   node 0 ── veth ──┐
//!   node 1 ── veth ──┼── bridge (this machine: Postgres, proxies)
//!   node 2 ── veth ──┘   cut inside of a namespace, by iptables
//! ```

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::getuid;

use crate::postgres::Reach;
use crate::shell::program;
use crate::{stage, tools};

/// Begins the names of everything that is made here; the process that made it follows.
const PREFIX: &str = "lwt";

/// How a node is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Nothing goes in or out.
    Full,
    /// What others say does not arrive.
    In,
    /// What it says does not arrive.
    Out,
    /// Nothing to or from the database alone.
    Database,
}

#[derive(Debug)]
pub(super) struct Network {
    /// Of this process.
    name: String,
    /// The first three numbers of all addresses.
    net: String,
    nodes: usize,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Result<Self> {
        ensure!(
            getuid().is_root(),
            "nodes get a network namespace each, which only root can make: run it as root, or in a container of its own"
        );
        for (name, package) in [("ip", "iproute2"), ("iptables", "iptables"), ("nsenter", "util-linux")] {
            if program(name).arg("-V").output().is_err() {
                stage::note(&format!("{name} is missing; installing Debian's package {package}"));
                tools::install(name, package)?;
            }
        }
        sweep();
        let pid = std::process::id();
        // Two tasks at once have networks of their own, if chance does not want it otherwise: then `ip` says so.
        let network = Self { name: format!("{PREFIX}{pid}"), net: format!("10.213.{}", pid % 250), nodes };
        network.make().context("the network of the nodes cannot be made")?;
        Ok(network)
    }

    fn make(&self) -> Result<()> {
        let Self { name, net, .. } = self;
        ip(&format!("link add {name} type bridge"))?;
        ip(&format!("addr add {net}.1/24 dev {name}"))?;
        ip(&format!("link set {name} up"))?;
        for node in 0..self.nodes {
            let inside = self.namespace(node);
            ip(&format!("netns add {inside}"))?;
            ip(&format!("link add {name}v{node} type veth peer name eth0 netns {inside}"))?;
            ip(&format!("link set {name}v{node} master {name} up"))?;
            ip(&format!("-n {inside} addr add {net}.{}/24 dev eth0", node + 10))?;
            ip(&format!("-n {inside} link set eth0 up"))?;
            ip(&format!("-n {inside} link set lo up"))?;
            // Loud here rather than in the middle of a case.
            self.iptables(node, "-L")?;
        }
        Ok(())
    }

    pub(super) fn reach(&self) -> Reach {
        Reach { address: self.address(), network: format!("{}.0/24", self.net) }
    }

    /// Of this machine, as nodes see it.
    pub(super) fn address(&self) -> String {
        format!("{}.1", self.net)
    }

    /// A program inside of a node's namespace. `nsenter` becomes that program, so its pid is the program's.
    pub(super) fn within(&self, node: usize) -> Command {
        let mut command = program("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(node)));
        command
    }

    /// `ports` are those behind which the database is.
    pub(super) fn cut(&self, node: usize, cut: Cut, ports: &[u16]) -> Result<()> {
        let all = |chains: &[&str]| -> Result<()> {
            chains.iter().try_for_each(|chain| self.iptables(node, &format!("-A {chain} -j DROP")))
        };
        match cut {
            Cut::Full => all(&["INPUT", "OUTPUT"]),
            Cut::In => all(&["INPUT"]),
            Cut::Out => all(&["OUTPUT"]),
            Cut::Database => ports.iter().try_for_each(|port| {
                self.iptables(node, &format!("-A OUTPUT -p tcp --dport {port} -j DROP"))?;
                self.iptables(node, &format!("-A INPUT -p tcp --sport {port} -j DROP"))
            }),
        }
    }

    pub(super) fn heal(&self, node: usize) -> Result<()> {
        self.iptables(node, "-F")
    }

    fn iptables(&self, node: usize, words: &str) -> Result<()> {
        let mut command = self.within(node);
        command.args(["iptables", "-w"]).args(words.split(' '));
        done(&mut command)
    }

    fn namespace(&self, node: usize) -> String {
        format!("{}n{node}", self.name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// A namespace takes its end of the wire with it, and so the other one.
fn remove(name: &str) {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let inside = entry.file_name().to_string_lossy().into_owned();
        if inside.strip_prefix(name).is_some_and(|rest| rest.starts_with('n')) {
            let _ = ip(&format!("netns delete {inside}"));
        }
    }
    let _ = ip(&format!("link delete {name}"));
}

/// Removes what was left by tasks that were killed.
fn sweep() {
    let links = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = links.map(|entry| entry.file_name().to_string_lossy().into_owned());
    for name in names.filter(|name| name.starts_with(PREFIX)) {
        let maker: Option<u32> = name.strip_prefix(PREFIX).and_then(|pid| pid.parse().ok());
        if maker.is_some_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)) {
            remove(&name);
        }
    }
}

fn ip(words: &str) -> Result<()> {
    done(program("ip").args(words.split(' ')))
}

fn done(command: &mut Command) -> Result<()> {
    let output =
        command.output().with_context(|| format!("{:?} cannot be started", command.get_program()))?;
    if !output.status.success() {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("`{} {}`: {said}", command.get_program().to_string_lossy(), words.join(" "));
    }
    Ok(())
}
