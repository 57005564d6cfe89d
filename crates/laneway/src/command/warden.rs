//! `laneway warden`: the small process beside each node that starts its steps. Nobody types this.

use std::env::args_os;

use clap::Parser;
use laneway_engine::warden::{self, Options};

use crate::env;
use crate::exit::{Exit, Refusal};

/// Start steps for a node, and leave none of them behind
#[derive(Debug, Parser)]
#[command(name = "laneway warden")]
pub(crate) struct Args {
    /// Names this warden
    mark: String,
    /// Hold steps without cgroups
    #[arg(long)]
    no_cgroups: bool,
}

/// What follows `laneway warden`, if that is what was typed. It is no command among the others: to know those costs a megabyte.
pub(crate) fn typed() -> Option<Args> {
    let mut words = args_os().skip(1).peekable();
    words.next_if(|word| word == "warden").map(|warden| Args::parse_from([warden].into_iter().chain(words)))
}

pub(crate) fn execute(args: Args) -> anyhow::Result<Exit> {
    env::init_tracing();
    env::arm_hooks()?;
    let options = Options { mark: args.mark, use_cgroups: !args.no_cgroups };
    warden::serve(options).map_err(|error| match error {
        warden::Refused::NoNode => Refusal::new(error.to_string()).into(),
        warden::Refused::System(_) => anyhow::Error::new(error),
    })?;
    Ok(Exit::Succeeded)
}
