//! `laneway secret`: values that the store keeps sealed. They are set, listed and removed, and never shown.

use std::io::{IsTerminal as _, Read as _};

use clap::Subcommand;
use comfy_table::Cell;
use laneway_engine::secret::{KEY_VARIABLE, Key, MAX_LENGTH, MIN_LENGTH, strip_newline};
use serde_json::json;

use super::Context;
use crate::deed::record;
use crate::exit::{Exit, Refusal};
use crate::{env, text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway secret set db < password.txt\n  laneway secret list\n\n\
    A workflow names it: `secrets: {db: {store: db}}`, and a step uses it in `env`: `PASSWORD: ${{ secrets.db }}`.\n\
    Values are sealed with the key in `secret.key` beside the store, or in LANEWAY_SECRET_KEY, which every node needs.")]
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
    let is_fine = !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_fine { Ok(text.to_owned()) } else { Err("use letters, digits, `_` and `-`".to_owned()) }
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    match args.what {
        What::Set { name } => {
            let value = read_value()?;
            let store = context.open_or_create()?;
            let key = Key::load_or_make(store.dir()).map_err(|error| {
                Refusal::new(format!("the secret cannot be sealed: {error}"))
                    .hint(format!("the key is in secret.key beside the store, or in {KEY_VARIABLE}"))
            })?;
            let sealed = key.seal(&name, &value)?;
            store.set_secret(&name, sealed, &env::person()).await?;
            record(store.as_ref(), "set_secret", format!("secret {name}")).await?;
            context.printer.line(&format!("secret {name} is set"))?;
        }
        What::List { json } => {
            let secrets = context.open()?.secrets().await?;
            if json {
                let wire = secrets.iter().map(|secret| {
                    json!({ "name": secret.name, "set_at": secret.set_at.to_string(), "set_by": secret.set_by })
                });
                context.printer.json(&wire.collect::<Vec<_>>())?;
            } else if secrets.is_empty() {
                context.printer.note("there are no secrets; `laneway secret set NAME` makes one");
            } else {
                let mut table = text::table(&["SECRET", "SET", "BY"], context.printer.width());
                text::color(&mut table, context.printer.out_palette());
                for secret in &secrets {
                    table.add_row(vec![
                        Cell::new(&secret.name),
                        Cell::new(text::date(secret.set_at)),
                        Cell::new(&secret.set_by),
                    ]);
                }
                context.printer.text(&text::lines(&table))?;
            }
        }
        What::Remove { name } => {
            let store = context.open()?;
            store.remove_secret(&name).await?;
            record(store.as_ref(), "remove_secret", format!("secret {name}")).await?;
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
    if value.len() > MAX_LENGTH || value.contains('\0') {
        return Err(Refusal::new(format!("a secret has at most {MAX_LENGTH} bytes, and no NUL")).into());
    }
    if value.len() < MIN_LENGTH {
        return Err(Refusal::new(format!("a secret has at least {MIN_LENGTH} characters"))
            .hint("a shorter one could not be kept out of logs: it would be found everywhere")
            .into());
    }
    Ok(value)
}
