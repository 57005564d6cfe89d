//! `cargo xtask bench`: builds for release what is measured and what measures, and hands over (bench/README.md).

use std::ffi::OsString;

use anyhow::Result;

use crate::docker::Docker;
use crate::postgres::{Durability, Postgres};
use crate::shell::{Shell, cargo, program as start};
use crate::{program, web};

pub(crate) fn run(shell: &Shell, args: &[OsString]) -> Result<()> {
    shell.run(cargo(&[
        "build",
        "--release",
        "--quiet",
        "--package",
        "laneway",
        "--package",
        "laneway-bench",
    ]))?;
    let release = program::target_dir(shell)?.join("release");
    let mut command = start(release.join("laneway-bench"));
    // Held until the benchmark has ended. As it ships: every commit is synced.
    let wants_server = args.iter().any(|arg| arg == "nodes" || arg == "durable");
    let server = if wants_server { Some(Postgres::start(Durability::Full)?) } else { None };
    if let Some(server) = &server {
        command.arg("--postgres").arg(server.tcp());
    }
    let engine = if args.iter().any(|arg| arg == "containers") { Some(Docker::start()?) } else { None };
    for (_, host) in engine.iter().flat_map(Docker::variables) {
        command.arg("--docker").arg(host);
    }
    if args.iter().any(|arg| arg == "web") {
        web::bring(shell)?;
        command.env(web::CHROMIUM, web::chromium()?);
    }
    command.args(args).arg("--laneway").arg(release.join("laneway")).arg("--root").arg(shell.root());
    shell.run(command)
}
