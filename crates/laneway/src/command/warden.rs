//! `laneway warden`: the small process beside each node that starts its steps. Nobody types this.

use laneway_engine::warden::{self, Options};

use crate::exit::{Exit, Refusal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names this warden
    mark: String,
    /// Hold steps without cgroups
    #[arg(long)]
    no_cgroups: bool,
}

pub(crate) fn execute(args: Args) -> anyhow::Result<Exit> {
    let options = Options { mark: args.mark, use_cgroups: !args.no_cgroups };
    warden::serve(options).map_err(|error| match error {
        warden::Refused::NoNode => Refusal::new(error.to_string()).into(),
        warden::Refused::System(_) => anyhow::Error::new(error),
    })?;
    Ok(Exit::Succeeded)
}
