//! The warden as a program of its own, for programs that embed the engine and for this crate's tests.
//! `laneway` does not need it: it is its own warden.

use std::process::ExitCode;

use laneway_engine::warden::{Options, Refused, serve};

fn main() -> ExitCode {
    let served = Options::read(std::env::args().skip(1)).ok_or(Refused::NoNode).and_then(serve);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("error: {error}\n").as_bytes());
            ExitCode::from(2)
        }
    }
}
