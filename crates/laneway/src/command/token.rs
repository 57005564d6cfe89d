//! `laneway token`: who may ask the server, and for what.

use clap::Subcommand;
use comfy_table::Cell;
use laneway_core::role::Role;
use laneway_server::{access, ask, wire};

use super::Context;
use crate::deed::author;
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway token create ci --role operator\n  laneway token list\n  laneway token revoke ci\n\n\
    Roles: viewer looks; operator also starts, ends and changes runs; admin also changes what is everybody's; worker takes work."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token, and print it: it is shown this once
    #[command(after_help = "Example:\n  laneway token create ci --role operator")]
    Create {
        /// Whose it is, or what for
        name: String,
        /// viewer, operator, admin or worker
        #[arg(long, value_parser = role)]
        role: Role,
        /// Print it as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the tokens
    #[command(after_help = "Example:\n  laneway token list --json")]
    List {
        /// Print the tokens as one JSON array
        #[arg(long)]
        json: bool,
    },
    /// End a token, at once, and those that came of it
    #[command(after_help = "Example:\n  laneway token revoke ci")]
    Revoke { name: String },
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| {
        let words: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        format!("use one of {}", words.join(", "))
    })
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    match args.what {
        What::Create { name, role, json } => {
            access::check_name(&name)
                .map_err(|how| Refusal::new(format!("`{name}` cannot be the name of a token")).hint(how))?;
            if let Some(client) = context.client()? {
                let made = client.create_token(&wire::CreateToken { name, role }).await?;
                return show(context, made, json);
            }
            let store = context.open_or_create()?;
            let made = ask::create_token(store.as_ref(), &name, role, &author()).await?;
            return show(context, made, json);
        }
        What::List { json } => {
            let tokens = context.face()?.tokens().await?;
            if json {
                printer.json(&tokens)?;
            } else if tokens.is_empty() {
                printer.note("there are no tokens; `laneway token create NAME --role ROLE` makes one");
            } else {
                printer.text(&table(context, &tokens))?;
            }
        }
        What::Revoke { name } => {
            let revoked = match context.client()? {
                Some(client) => client.revoke_token(&name).await?,
                None => ask::revoke_token(context.open()?.as_ref(), &name, &author()).await?,
            };
            printer.line(&format!("token {name} is revoked{}", revoked.others()))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn show(context: &Context, made: wire::CreatedToken, is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        context.printer.json(&made)?;
    } else {
        context.printer.line(&made.token)?;
        context.printer.note("keep it: it cannot be shown again");
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, tokens: &[wire::Token]) -> String {
    let header = ["TOKEN", "ROLE", "ENDS IN", "MADE", "BY", "STATE"];
    let mut table = text::table(&header, context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for token in tokens {
        let state = match (&token.revoked_by, token.revoked_at) {
            (Some(by), Some(at)) => format!("revoked {} by {by}", text::date(at.0)),
            (_, _) => match &token.came_of {
                Some(parent) => format!("in use, as long as {parent} is"),
                None => "in use".to_owned(),
            },
        };
        table.add_row(vec![
            Cell::new(&token.name),
            Cell::new(token.role),
            Cell::new(format!("…{}", token.tail)),
            Cell::new(text::date(token.created_at.0)),
            Cell::new(&token.created_by),
            Cell::new(state),
        ]);
    }
    text::lines(&table)
}
