//! `laneway settings`: every setting as it is in effect here, and who set it.

use comfy_table::Cell;
use serde_json::{Value, json};

use super::Context;
use crate::exit::Exit;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway settings\n\n\
    A flag wins over the environment, that over laneway.toml in this directory (or the file that LANEWAY_CONFIG names),\n\
    and that over the default.")]
pub(crate) struct Args {
    /// Print the settings as one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if args.json {
        let all: Vec<Value> = context
            .settings
            .all()
            .map(|(setting, value, source)| {
                json!({
                    "name": setting.name,
                    "value": value,
                    "from": source.as_str(),
                    "default": (!setting.default.is_empty()).then_some(setting.default),
                    "env": setting.env,
                    "about": setting.about,
                })
            })
            .collect();
        context.printer.json(&all)?;
        return Ok(Exit::Succeeded);
    }
    let mut table = text::table(&["SETTING", "VALUE", "FROM", "MEANING"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for (setting, value, source) in context.settings.all() {
        table.add_row(vec![
            Cell::new(setting.name),
            Cell::new(value.unwrap_or_else(|| "-".to_owned())),
            Cell::new(source.as_str()),
            Cell::new(setting.about),
        ]);
    }
    context.printer.text(&text::lines(&table))?;
    Ok(Exit::Succeeded)
}
