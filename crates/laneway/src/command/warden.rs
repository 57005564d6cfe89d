//! `laneway warden`: the small process beside each node that starts its steps. Nobody types this.

use std::env::args_os;

use laneway_engine::warden::{self, Options, Refused};

use crate::env;
use crate::exit::{Exit, Refusal};

/// What follows `laneway warden`.
#[derive(Debug)]
pub(crate) struct Args(Option<Options>);

/// Returns what follows `laneway warden`, if that is the command. It is no command among the others: to know those
/// costs a megabyte.
pub(crate) fn typed() -> Option<Args> {
    let mut words = args_os().skip(1).peekable();
    words.next_if(|word| word == "warden")?;
    Some(Args(Options::read(words.map(|word| word.to_string_lossy().into_owned()))))
}

pub(crate) fn execute(args: Args) -> anyhow::Result<Exit> {
    env::init_tracing();
    env::arm_hooks()?;
    args.0.ok_or(Refused::NoNode).and_then(warden::serve).map_err(|error| match error {
        Refused::NoNode => Refusal::new(error.to_string()).into(),
        Refused::System(_) => anyhow::Error::new(error),
    })?;
    Ok(Exit::Succeeded)
}
