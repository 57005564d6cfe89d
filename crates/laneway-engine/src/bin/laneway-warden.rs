//! The warden as a program of its own, for programs that embed the engine and for this crate's tests.
//! `laneway` does not need it: it is its own warden.

use std::process::ExitCode;

use laneway_engine::warden::{Options, serve};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mark = args.next().unwrap_or_default();
    let use_cgroups = args.next().as_deref() != Some("--no-cgroups");
    match serve(Options { mark, use_cgroups }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("error: {error}\n").as_bytes());
            ExitCode::from(2)
        }
    }
}
