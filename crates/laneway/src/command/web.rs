//! `laneway web`: a link to the web page of a server with which a person is signed in, once.

use laneway_core::role::Role;
use laneway_server::wire;
use serde_json::json;

use super::{Context, token};
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway web\n  laneway web --role viewer --server https://lane.example\n\n\
    The link is good once, for an hour; whoever opens it is signed in with a token of its own (`laneway token list`).\n\
    Without --server it asks the server of this host, where `laneway serve` listens."
)]
pub(crate) struct Args {
    /// viewer, operator or admin; without it as much as whoever asks may
    #[arg(long, value_parser = token::role)]
    role: Option<Role>,
    /// Print it as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let client = match context.client()? {
        Some(client) => client,
        None => context.client_at(&context.own_server())?,
    };
    let made = client.make_code(&wire::MakeCode { role: args.role }).await?;
    let link = client.page(&made.code);
    if args.json {
        context.printer.json(&json!({ "link": link, "role": made.role, "lasts_s": made.lasts_s }))?;
    } else {
        context.printer.line(&link)?;
        context
            .printer
            .note(&format!("it is good once, for an hour, and signs in with the role {}", made.role));
    }
    Ok(Exit::Succeeded)
}
