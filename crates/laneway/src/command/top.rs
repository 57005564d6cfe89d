//! `laneway top`: one screen for all of it. What it shows and does stands in `top/`.

use std::io::IsTerminal as _;

use super::Context;
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::top::{self, Look};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway top\n  laneway top last\n  laneway top --server http://localhost:7878\n\n\
    Keys: arrows or j k move, Enter opens, Esc goes back, / filters, ? explains all of them, q quits.\n\
    Nothing is changed without being asked for a second time."
)]
pub(crate) struct Args {
    /// Begin with this run: an id, the beginning of one, or `last`
    run: Option<String>,
    /// Take the mouse: clicks choose, the wheel moves. The terminal then marks text only with Shift
    #[arg(long)]
    mouse: bool,
    /// Draw with ASCII alone, as where the locale is not UTF-8
    #[arg(long)]
    ascii: bool,
    /// Print the screen once, as text, and end
    #[arg(long)]
    once: bool,
    /// With --once: how large it is
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "80x24", value_parser = size, requires = "once")]
    size: (u16, u16),
    /// With --once: keys that are pressed before, such as `enter tab /`. Nothing is changed by them
    #[arg(long, value_name = "KEYS", default_value = "", requires = "once")]
    keys: String,
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed =
        text.split_once('x').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    parsed
        .filter(|(columns, rows)| (1..=500).contains(columns) && (1..=500).contains(rows))
        .ok_or_else(|| "write it as 80x24, at most 500 each".to_owned())
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if !args.once && is_no_screen() {
        return Err(Refusal::new("`laneway top` needs a terminal that can be drawn on")
            .hint("in a pipe use `laneway runs --json`, `laneway show RUN --json`, `laneway watch RUN` or `laneway top --once`")
            .into());
    }
    let face = context.face()?;
    let begin = match &args.run {
        Some(name) => Some(face.run(name).await?.run),
        None => None,
    };
    let look = Look::new(args.ascii || !env::is_utf8(), env::wants_color());
    let options = top::Options { begin, look, has_mouse: args.mouse };
    if args.once {
        let keys = top::typed(&args.keys).map_err(Refusal::new)?;
        let text = top::once(&place(context, &face), face, options, (args.size, &keys)).await?;
        context.printer.text(&text)?;
    } else {
        top::run(context, (&place(context, &face), face), options).await?;
    }
    Ok(Exit::Succeeded)
}

fn is_no_screen() -> bool {
    !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() || env::is_dumb_terminal()
}

/// What is looked at, without what is secret of it.
fn place(context: &Context, face: &Face) -> String {
    match face {
        Face::Store(_) => context.store.rsplit('@').next().unwrap_or_default().to_owned(),
        Face::Server(client) => client.server().to_owned(),
    }
}
