//! `laneway token`: who may ask the server, and for what.

use std::time::Duration;

use clap::Subcommand;
use comfy_table::Cell;
use laneway_core::role::Role;
use laneway_server::{access, ask, wire};

use super::Context;
use crate::deed::author;
use crate::drive::duration;
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway token create ci --role operator --expires 90d\n  laneway token list\n  laneway token rotate ci\n  laneway token revoke ci\n\n\
    Roles: viewer looks; operator also starts, ends and changes runs; admin also changes what is everybody's; worker takes work."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token, and print it: it is shown this once
    #[command(after_help = "Example:\n  laneway token create ci --role operator --expires 90d")]
    Create {
        /// Whose it is, or what for
        name: String,
        /// viewer, operator, admin or worker
        #[arg(long, value_parser = role)]
        role: Role,
        /// Refuse it after this long, as 90d or 12h; without it, it does not expire
        #[arg(long, value_name = "DURATION", value_parser = lasts)]
        expires: Option<Duration>,
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
    /// Give a token a new secret, and print it: it is shown this once
    #[command(after_help = "Example:\n  laneway token rotate ci --grace 1h")]
    Rotate {
        name: String,
        /// Refuse the new secret after this long; without it, it lasts as long as the old one when it was made
        #[arg(long, value_name = "DURATION", value_parser = lasts)]
        expires: Option<Duration>,
        /// Accept the old secret for this long; without it, it ends at once, and what came of it
        #[arg(long, value_name = "DURATION", value_parser = grace)]
        grace: Option<Duration>,
        /// Print it as one JSON object
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

fn lasts(text: &str) -> Result<Duration, String> {
    bounded(text, Duration::from_secs(1), Duration::from_secs(3_650 * DAY_S), "1s to 3650d")
}

fn grace(text: &str) -> Result<Duration, String> {
    bounded(text, Duration::ZERO, Duration::from_secs(30 * DAY_S), "0s to 30d")
}

const DAY_S: u64 = 86_400;

fn bounded(text: &str, least: Duration, most: Duration, words: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    if (least..=most).contains(&span) { Ok(span) } else { Err(format!("use a duration from {words}")) }
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    match args.what {
        What::Create { name, role, expires, json } => {
            access::check_name(&name)
                .map_err(|how| Refusal::new(format!("`{name}` cannot be the name of a token")).hint(how))?;
            if let Some(client) = context.client()? {
                let expires_in_s = expires.map(|expires| expires.as_secs());
                let made = client.create_token(&wire::CreateToken { name, role, expires_in_s }).await?;
                return show(context, made, json);
            }
            let store = context.open_or_create()?;
            let made = ask::create_token(store.as_ref(), &name, (role, expires), &author()).await?;
            return show(context, made, json);
        }
        What::Rotate { name, expires, grace, json } => {
            let rotated = match context.client()? {
                Some(client) => {
                    let seconds = |span: Option<Duration>| span.map(|span| span.as_secs());
                    let (expires_in_s, grace_s) = (seconds(expires), seconds(grace));
                    client.rotate_token(&name, &wire::RotateToken { expires_in_s, grace_s }).await?
                }
                None => {
                    let how = access::Rotate { lasts: expires, grace: grace.unwrap_or_default() };
                    ask::rotate_token(context.open()?.as_ref(), &name, how, &author()).await?
                }
            };
            if json {
                printer.json(&rotated)?;
            } else {
                printer.line(&rotated.token)?;
                printer.note(&match rotated.old_ends_at.filter(|_| grace.is_some()) {
                    Some(at) => format!("keep it: it cannot be shown again; the old one ends at {}", at.0),
                    None => "keep it: it cannot be shown again; the old one has ended".to_owned(),
                });
            }
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
    let width = context.printer.width();
    let is_narrow = text::is_narrow(width);
    let mut header = vec!["TOKEN", "ROLE", "ENDS IN", "MADE", "BY", "LAST USED", "EXPIRES", "STATE"];
    header.retain(|column| !is_narrow || !["MADE", "BY"].contains(column));
    let mut table = text::table(&header, width);
    text::color(&mut table, context.printer.out_palette());
    for token in tokens {
        let state = match (&token.revoked_by, token.revoked_at) {
            (Some(by), Some(at)) if token.is_live => format!("rotated by {by}, ends {}", text::date(at.0)),
            (Some(by), Some(at)) => format!("revoked {} by {by}", text::date(at.0)),
            (_, _) if !token.is_live => "expired".to_owned(),
            (_, _) => match &token.came_of {
                Some(parent) => format!("in use, as long as {parent} is"),
                None => "in use".to_owned(),
            },
        };
        let date =
            |at: Option<wire::Moment>| at.map_or_else(|| "-".to_owned(), |at| text::date_in(at.0, is_narrow));
        let mut row =
            vec![Cell::new(&token.name), Cell::new(token.role), Cell::new(format!("…{}", token.tail))];
        if !is_narrow {
            row.extend([Cell::new(text::date(token.created_at.0)), Cell::new(&token.created_by)]);
        }
        row.extend([
            Cell::new(date(token.last_used_at)),
            Cell::new(date(token.expires_at)),
            Cell::new(state),
        ]);
        table.add_row(row);
    }
    text::lines(&table)
}
