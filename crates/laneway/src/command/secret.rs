//! `laneway secret`: values that the store keeps sealed. They are set, listed and removed, and never shown.

use std::io::{IsTerminal as _, Read as _};

use clap::Subcommand;
use comfy_table::Cell;
use laneway_engine::secret::{MAX_LENGTH, check, strip_newline};
use laneway_server::ask;

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway secret set db < password.txt\n  laneway secret list\n\n\
    A workflow names it: `secrets: {db: {store: db}}`, and a step uses it in `env`: `PASSWORD: ${{ secrets.db }}`.\n\
    Values are sealed with the key in `secret.key` beside the store, or in LANEWAY_SECRET_KEY, which every node needs.\n\
    With --server they go to that server, which seals them with its own: for an admin.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Set a secret to what stdin says; it is never shown again
    #[command(after_help = "Example:\n  laneway secret set api-key < key.txt")]
    Set {
        #[arg(value_parser = name)]
        name: String,
    },
    /// List the secrets, without their values
    #[command(after_help = "Example:\n  laneway secret list --json")]
    List {
        /// Print the secrets as one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Remove a secret
    #[command(after_help = "Example:\n  laneway secret remove api-key")]
    Remove {
        #[arg(value_parser = name)]
        name: String,
    },
}

fn name(text: &str) -> Result<String, String> {
    ask::check_secret_name(text).map(|()| text.to_owned())
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    match args.what {
        What::Set { name } => {
            let value = read_value()?;
            let face = match context.client()? {
                Some(client) => Face::Server(client),
                None => Face::Store(context.open_or_create()?),
            };
            face.set_secret(&name, value).await?;
            context.printer.line(&format!("secret {name} is set"))?;
        }
        What::List { json } => {
            let secrets = context.face()?.secrets().await?;
            if json {
                context.printer.json(&secrets)?;
            } else if secrets.is_empty() {
                context.printer.note("there are no secrets; `laneway secret set NAME` makes one");
            } else {
                let mut table = text::table(&["SECRET", "SET", "BY"], context.printer.width());
                text::color(&mut table, context.printer.out_palette());
                for secret in &secrets {
                    table.add_row(vec![
                        Cell::new(&secret.name),
                        Cell::new(text::date(secret.set_at.0)),
                        Cell::new(&secret.set_by),
                    ]);
                }
                context.printer.text(&text::lines(&table))?;
            }
        }
        What::Remove { name } => {
            context.face()?.remove_secret(&name).await?;
            context.printer.line(&format!("secret {name} is removed"))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// From stdin, never from the command line, which everybody on the machine can read.
fn read_value() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Refusal::new("a secret is read from a file or a pipe, so that nobody reads along")
            .hint("laneway secret set NAME < FILE")
            .into());
    }
    let mut bytes = Vec::new();
    stdin.lock().take(MAX_LENGTH as u64 + 3).read_to_end(&mut bytes)?;
    let value = String::from_utf8(bytes).map_err(|_| Refusal::new("a secret is text, and this is none"))?;
    let value = strip_newline(value);
    check(&value).map_err(|bad| Refusal::new(bad.to_string()).hint(bad.hint()))?;
    Ok(value)
}
