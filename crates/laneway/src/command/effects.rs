//! `laneway effects`: what the steps of a run did to the world; and what became of those of which nobody knows.

use comfy_table::Cell;
use laneway_core::effect::EffectStatus;
use laneway_core::growth::parse_name;
use laneway_server::wire::{Effect, Settle, SettleEffect};

use super::Context;
use crate::exit::Exit;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway effects last\n  laneway effects last pay charge --key order-17 --done\n\n\
    An effect is `unknown` when it was started and whoever ran it died. It does not run again by itself: look whether it \
    happened, then say --done or --again, and `laneway retry` the run.\n\
    --again also lets one run again that has happened. Who says so is recorded."
)]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Only those of this step
    step: Option<String>,
    /// The effect to settle
    #[arg(value_name = "NAME", requires = "settling")]
    name: Option<String>,
    /// The key of the effect to settle
    #[arg(long, value_name = "TEXT", default_value = "", requires = "settling")]
    key: String,
    #[command(flatten)]
    settling: Settling,
    /// Print them, or what was settled, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(id = "settling", multiple = false)]
struct Settling {
    /// It has happened: the step gets an empty result, and never runs it
    #[arg(long, requires = "name")]
    done: bool,
    /// It has not happened, or is to happen again: whoever asks next runs it
    #[arg(long, requires = "name")]
    again: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    let run = face.run(&args.run).await?;
    if let (Some(step), Some(name)) = (&args.step, &args.name) {
        let settle = if args.settling.done { Settle::Done } else { Settle::Again };
        let asked = SettleEffect { name: name.clone(), key: args.key, settle };
        let settled = face.settle_effect(run.run, step, asked).await?;
        if args.json {
            context.printer.json(&settled)?;
            return Ok(Exit::Succeeded);
        }
        let short = run.run.short();
        context.printer.line(&match settle {
            Settle::Done => format!("{name} of {step} in run {short} has happened, and does not run again"),
            Settle::Again => format!("{name} of {step} in run {short} runs when it is asked for again"),
        })?;
        if run.status.is_final() {
            context.printer.note(&format!("`laneway retry {short}` lets the run go on"));
        }
        return Ok(Exit::Succeeded);
    }
    let mut found = face.effects(run.run).await?;
    if let Some(step) = &args.step {
        // Refuses a step that is not there, with the nearest name.
        face.explain_step(&run.run.to_string(), step).await?;
        found.retain(|effect| effect.step == *step || parse_name(&effect.step).0 == step);
    }
    if args.json {
        context.printer.json(&found)?;
    } else if found.is_empty() {
        context.printer.note("no step has asked for an effect");
    } else {
        context.printer.text(&table(context, &found))?;
        if found.iter().any(|effect| effect.unknown) {
            context.printer.note(
                "of those that are unknown nobody knows whether they happened: look, then settle each with --done or --again",
            );
        }
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, found: &[Effect]) -> String {
    let mut table = text::table(
        &["STEP", "EFFECT", "KEY", "STATE", "ATTEMPT", "EXIT", "RECORDED"],
        context.printer.width(),
    );
    text::color(&mut table, context.printer.out_palette());
    for effect in found {
        let recorded = match (&effect.lacks, &effect.settled_by, effect.status) {
            (Some(lacks), _, _) => format!("not: {lacks}"),
            (None, Some(by), _) => format!("settled by {by}"),
            (None, None, EffectStatus::Done) => {
                text::count(effect.stdout_bytes + effect.output_bytes, "byte")
            }
            (None, None, EffectStatus::Started | EffectStatus::Failed) => String::new(),
        };
        table.add_row(vec![
            Cell::new(&effect.step),
            Cell::new(&effect.name),
            Cell::new(&effect.key),
            Cell::new(if effect.unknown { "unknown" } else { effect.status.as_str() }),
            Cell::new(effect.attempt),
            Cell::new(effect.exit_code.map_or_else(String::new, |code| code.to_string())),
            Cell::new(recorded),
        ]);
    }
    text::lines(&table)
}
