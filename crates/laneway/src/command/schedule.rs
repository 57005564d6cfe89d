//! `laneway schedule`: what starts by itself, and when. Preview reads a file, or a pattern alone, and needs no store.

use clap::Subcommand;
use comfy_table::Cell;
use laneway_core::id::RunId;
use laneway_core::schedule::{CatchUp, Cron, Schedule, Shift, Tick, Zone};
use laneway_core::time::Millis;
use laneway_core::trigger::Start;
use laneway_server::wire::Trigger;
use laneway_store::sqlite::Clock;
use serde_json::{Value, json};

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::{document, text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway schedule preview nightly.yaml\n  \
    laneway schedule preview --cron \"30 2 * * *\" --timezone Europe/Berlin --from 2027-03-27T00:00:00Z\n  \
    laneway schedule list\n  laneway schedule pause nightly\n\n\
    A time that the clock jumps over starts when the jump ends; of one that comes twice the first counts.\n\
    A pattern of every hour goes on as time does.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[expect(clippy::large_enum_variant, reason = "there is one, and it is taken apart at once")]
#[derive(Debug, Subcommand)]
enum What {
    /// Show when a workflow will start by itself
    #[command(after_help = "Example:\n  laneway schedule preview nightly.yaml -n 3")]
    Preview(Preview),
    /// List what starts by itself
    #[command(after_help = "Example:\n  laneway schedule list --json")]
    List {
        /// Print the triggers as one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Let a workflow start by itself no more
    #[command(after_help = "Example:\n  laneway schedule pause nightly")]
    Pause {
        /// The workflow's name
        workflow: String,
    },
    /// Forget what starts a workflow by itself, until it is applied again
    #[command(
        visible_alias = "remove",
        after_help = "Example:\n  laneway schedule rm nightly\n\n\
            Its schedules, webhooks and `after` are forgotten; its runs and the workflow itself stay."
    )]
    Rm {
        /// The workflow's name
        workflow: String,
    },
    /// Let it start by itself again, from now on
    #[command(after_help = "Example:\n  laneway schedule resume nightly")]
    Resume {
        /// The workflow's name
        workflow: String,
    },
}

#[derive(Debug, clap::Args)]
struct Preview {
    /// The workflow file; `-` reads stdin
    #[arg(required_unless_present = "cron", conflicts_with = "cron")]
    file: Option<String>,
    /// A pattern instead of a file
    #[arg(long, value_name = "PATTERN", value_parser = cron)]
    cron: Option<Cron>,
    /// The zone of the pattern
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone, requires = "cron")]
    timezone: Zone,
    /// How many moments to show
    #[arg(short = 'n', long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// Those behind this moment, instead of now
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    from: Option<Millis>,
    /// Print the moments as one JSON array
    #[arg(long)]
    json: bool,
}

fn cron(text: &str) -> Result<Cron, String> {
    Cron::parse(text).map_err(|error| error.to_string())
}

fn zone(text: &str) -> Result<Zone, String> {
    Zone::parse(text).map_err(|error| format!("{error}; {}", error.hint))
}

fn moment(text: &str) -> Result<Millis, String> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed
        .map(|moment| Millis(moment.as_millisecond()))
        .map_err(|_| "write it as 2027-03-27T00:00:00Z, or with an offset such as +01:00".to_owned())
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    match args.what {
        What::Preview(args) => preview(context, &args)?,
        What::List { json } => list(context, json).await?,
        What::Pause { workflow } => {
            let paused = context.face()?.pause_triggers(&workflow, true).await?;
            let since = if paused.changed { "" } else { ", as before: it was paused already" };
            context.printer.line(&format!("{workflow} starts by itself no more{since}"))?;
        }
        What::Rm { workflow } => {
            context.face()?.remove_triggers(&workflow).await?;
            context
                .printer
                .line(&format!("{workflow} starts by itself no more, until it is applied again"))?;
        }
        What::Resume { workflow } => {
            if !context.face()?.pause_triggers(&workflow, false).await?.changed {
                return Err(Refusal::new(format!("what starts {workflow} by itself is not paused"))
                    .hint("`laneway schedule list` shows when it starts next")
                    .exit(Exit::RunFailed)
                    .into());
            }
            context.printer.line(&format!("{workflow} starts by itself again"))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn preview(context: &Context, args: &Preview) -> anyhow::Result<()> {
    let from = args.from.unwrap_or_else(|| Clock::system().now(Millis(0)));
    let schedules = schedules(context, args)?;
    let ticks =
        |schedule: &Schedule| schedule.ticks(from).take(usize::from(args.count)).collect::<Vec<Tick>>();
    if args.json {
        let all = schedules.iter().flat_map(|schedule| {
            ticks(schedule).into_iter().map(move |tick| {
                json!({
                    "cron": schedule.cron.as_str(),
                    "timezone": schedule.zone.name(),
                    "at": tick.at.to_string(),
                    "wall": wall(&tick),
                    "note": note(&tick),
                })
            })
        });
        return context.printer.json(&all.collect::<Vec<Value>>());
    }
    for (index, schedule) in schedules.iter().enumerate() {
        if index > 0 {
            context.printer.line("")?;
        }
        context.printer.line(&format!("{} in {}", schedule.cron, schedule.zone.name()))?;
        for tick in ticks(schedule) {
            let note = note(&tick).map(|note| format!("  {note}")).unwrap_or_default();
            context.printer.line(&format!("  {}{note}", wall(&tick)))?;
        }
    }
    Ok(())
}

fn schedules(context: &Context, args: &Preview) -> anyhow::Result<Vec<Schedule>> {
    if let Some(cron) = &args.cron {
        let schedule = Schedule { cron: cron.clone(), zone: args.timezone.clone(), catch_up: CatchUp::None };
        return Ok(vec![schedule]);
    }
    let file = args.file.as_deref().unwrap_or("-");
    let plan = document::compile(&context.document(file)?)?;
    let of = |start: Start| match start {
        Start::Schedule(schedule) => Some(schedule),
        Start::After(_) | Start::Webhook(_) => None,
    };
    let schedules: Vec<Schedule> =
        plan.workflow.triggers.iter().filter_map(|trigger| of(trigger.start.clone())).collect();
    if schedules.is_empty() {
        return Err(Refusal::new(format!("{} has no schedule", plan.workflow.name))
            .hint("add one: `schedule: {cron: \"0 2 * * *\"}` is every night at two")
            .into());
    }
    Ok(schedules)
}

/// What the clock on the wall shows, with how far that is ahead of UTC.
fn wall(tick: &Tick) -> String {
    let sign = if tick.offset < 0 { '-' } else { '+' };
    let minutes = tick.offset.abs() / 60;
    format!("{} {} {sign}{:02}:{:02}", tick.wall.date(), tick.wall.time(), minutes / 60, minutes % 60)
}

fn note(tick: &Tick) -> Option<String> {
    match tick.shift? {
        Shift::Moved { from } => Some(format!("{} does not exist on that day", from.time())),
        Shift::First => Some("the first of two".to_owned()),
        Shift::Second => Some("the second of two".to_owned()),
    }
}

async fn list(context: &Context, json: bool) -> anyhow::Result<()> {
    let triggers = context.face()?.triggers().await?;
    if json {
        return context.printer.json(&triggers);
    }
    if triggers.is_empty() {
        context.printer.note("nothing starts by itself; `laneway apply FILE` makes what a file says so");
        return Ok(());
    }
    let width = context.printer.width();
    let mut table = text::table(&["WORKFLOW", "TRIGGER", "NEXT", "LAST"], width);
    text::color(&mut table, context.printer.out_palette());
    let now = Clock::system().now(Millis(0));
    for trigger in &triggers {
        table.add_row(vec![
            Cell::new(&trigger.workflow),
            Cell::new(&trigger.trigger),
            Cell::new(next(trigger, now, text::is_narrow(width))),
            Cell::new(last(trigger)),
        ]);
    }
    context.printer.text(&text::lines(&table))?;
    if triggers.iter().any(|trigger| trigger.paused_by.is_none() && !trigger.has_node) {
        context.printer.note("no live node fires schedules; start `laneway worker` or `laneway serve`");
    }
    Ok(())
}

fn next(trigger: &Trigger, now: Millis, is_narrow: bool) -> String {
    match (&trigger.paused_by, trigger.next) {
        (Some(by), _) => format!("paused by {by}"),
        (None, Some(at)) if at.0 < now => {
            // Where there is little room, the note below says it.
            let node = if trigger.has_node || is_narrow { "" } else { "; no node fires it" };
            format!("due {} ago{node}", text::span(now.since(at.0)))
        }
        (None, Some(at)) => text::date_in(at.0, is_narrow),
        (None, None) => "-".to_owned(),
    }
}

fn last(trigger: &Trigger) -> String {
    match (&trigger.run, &trigger.fault) {
        (Some(run), _) => RunId::parse(run).map_or_else(|| run.clone(), |run| format!("run {}", run.short())),
        (None, Some(why)) => format!("no run: {why}"),
        (None, None) => "-".to_owned(),
    }
}
