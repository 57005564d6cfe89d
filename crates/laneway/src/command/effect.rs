//! `laneway effect`: runs a command inside of a step so that what it does to the world is done once. Asks the node that runs the step,
//! over the socket of the attempt; knows of no store. docs/design/effects.md.
//!
//! ```text
//! POST ─▶ 200 ────────────────────────────▶ print what is recorded
//!      └▶ 201 ─▶ command ─▶ PUT ─▶ 200 ───▶ print what is recorded
//! ```

mod ask;
mod program;

use std::process::ExitCode;

use laneway_core::effect::{EffectId, OnFailure, OnUnknown};
use laneway_torture::{Point, pass};

use self::ask::{Line, Reply, Target};
use self::program::{Ended, Granted};
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::print::Printer;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway effect charge --key \"$ORDER\" -- ./charge.sh \"$ORDER\"\n\n\
    Recorded before it runs and after: a later attempt of the step, on whichever node, gets what the command printed and wrote to \
    $LANEWAY_OUTPUT, and does not run it. What it printed is passed on once it is recorded; stderr at once, and not recorded.\n\
    The command gets LANEWAY_EFFECT_ID, the same in every attempt: hand it on as an idempotency key. In a step with a lock it gets \
    the step's LANEWAY_FENCE.\n\n\
    Exit code: that of the command, or\n  121  it was started before, and nobody knows whether it happened (`laneway effects` settles it)\n  \
    122  nothing was run: no node answers, or this attempt counts no more\n  \
    123  it has happened, and its result could not be recorded\n  \
    126, 127  the command could not be started\n  128+N  signal N ended the command: nobody knows whether it happened")]
pub(crate) struct Args {
    /// Names the effect within its step
    name: String,
    /// Tells it from others of that name: an order, a file, an address
    #[arg(long, value_name = "TEXT", default_value = "")]
    key: String,
    /// If it was started before and nobody knows whether it happened: fail, or run it again
    #[arg(long, value_name = "fail|retry", default_value = "fail", value_parser = on_unknown)]
    on_unknown: OnUnknown,
    /// If the command exits with something else than 0: it did not happen and is to be tried again, or that is its result
    #[arg(long, value_name = "retry|record", default_value = "retry", value_parser = on_failure)]
    on_failure: OnFailure,
    /// The command, and what it is given
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn on_unknown(word: &str) -> Result<OnUnknown, String> {
    OnUnknown::parse(word).ok_or_else(|| "it is fail or retry".to_owned())
}

fn on_failure(word: &str) -> Result<OnFailure, String> {
    OnFailure::parse(word).ok_or_else(|| "it is retry or record".to_owned())
}

/// How it went, if not as it should.
type Failed = (Exit, Refusal);

pub(crate) fn execute(printer: &Printer, args: Args) -> ExitCode {
    match effect(printer, &args) {
        Ok(code) => code,
        Err((exit, refusal)) => {
            printer.failure(&refusal.into());
            exit.into()
        }
    }
}

fn effect(printer: &Printer, args: &Args) -> Result<ExitCode, Failed> {
    let id = EffectId::new(&args.name, &args.key)
        .map_err(|error| (Exit::BadInput, Refusal::new(error.to_string())))?;
    let socket = env::effect_socket().ok_or_else(|| {
        let refusal = Refusal::new(
            "LANEWAY_EFFECT_SOCKET is not set: this is no step, or its node could not make a socket",
        )
        .hint("call it from the script of a step; the node's log says why it has no socket");
        (Exit::EffectRefused, refusal)
    })?;
    // It would wait for itself.
    if env::effects_around().split(' ').any(|around| around == inside(&id)) {
        let words = format!("the effect {id} is asked for inside of itself");
        return Err((
            Exit::EffectRefused,
            Refusal::new(words).hint("give the inner one another name or key"),
        ));
    }
    let mut line = Line::open(&socket).map_err(|error| {
        let words = format!("the node of this step does not answer at {}: {error}", socket.display());
        (Exit::EffectRefused, Refusal::new(words).hint("nothing was run"))
    })?;
    // What it prints and hands on reaches the step when it is recorded, and not before.
    let base = env::effect_path();
    let asked = Target::of(&base, &id).with("on_unknown", args.on_unknown.as_str()).with("hold", "1");
    let reply = line.ask("POST", &asked, &[], &[]).map_err(|error| {
        let words = format!("the node of this step went away before it answered: {error}");
        (Exit::EffectRefused, Refusal::new(words).hint("nothing was run"))
    })?;
    match reply.status {
        200 => passed_on(printer, &reply),
        201 => run(printer, args, &id, &mut line, &reply),
        _ => Err(refused(&reply)),
    }
}

/// One word for it, among those that are around a command.
fn inside(id: &EffectId) -> String {
    format!("{}={}", id.name, ask::encoded(&id.key))
}

fn run(
    printer: &Printer,
    args: &Args,
    id: &EffectId,
    line: &mut Line,
    begun: &Reply,
) -> Result<ExitCode, Failed> {
    let granted = Granted {
        token: begun.header("laneway-effect-id").unwrap_or_default(),
        fence: begun.header("laneway-fence"),
    };
    pass(Point::EffectBefore);
    let ended = program::run(&args.command, granted, &inside(id));
    pass(Point::EffectAfter);
    let (code, on_failure, stdout, output) = match ended {
        Ended::Exited { code, stdout, output } => (code, args.on_failure, stdout, output),
        Ended::NotStarted { code, why } => {
            printer.note(&why);
            // It did not happen, whatever counts as a result.
            (code, OnFailure::Retry, Vec::new(), Vec::new())
        }
        Ended::Killed { signal } => {
            printer.note(&format!(
                "signal {signal} ended the command: nobody knows whether the effect {id} happened, and it does not run again by itself"
            ));
            let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
            // Closing the line says so.
            return Ok(ExitCode::from(code));
        }
    };
    let execution = String::from_utf8_lossy(&begun.body).into_owned();
    let told = Target::of(&env::effect_path(), id)
        .with("execution", &execution)
        .with("exit_code", &code.to_string())
        .with("on_failure", on_failure.as_str());
    let length = [("laneway-output-length", output.len().to_string())];
    let reply = line.ask("PUT", &told, &length, &[&stdout, &output]).map_err(|error| {
        let words = format!("the command has ended with {code}, and the node could not be told: {error}");
        (Exit::EffectUnknown, Refusal::new(words).hint("nobody knows whether that is recorded"))
    })?;
    pass(Point::EffectAnswered);
    match reply.status {
        200 => passed_on(printer, &reply),
        _ => Err(refused(&reply)),
    }
}

/// What is recorded goes to who waits for it: the same now and in every later attempt.
fn passed_on(printer: &Printer, reply: &Reply) -> Result<ExitCode, Failed> {
    let lacking = |words: String| (Exit::EffectLacking, Refusal::new(words));
    let length = reply.header("laneway-output-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let at = reply.body.len().saturating_sub(length);
    let (stdout, output) = reply.body.split_at(at);
    program::hand_on(output)
        .map_err(|error| lacking(format!("$LANEWAY_OUTPUT cannot be written: {error}")))?;
    printer.bytes(stdout).map_err(|error| lacking(error.to_string()))?;
    let code = reply.header("laneway-exit-code").and_then(|text| text.parse::<u8>().ok());
    Ok(ExitCode::from(code.unwrap_or(u8::MAX)))
}

fn refused(reply: &Reply) -> Failed {
    let words = String::from_utf8_lossy(&reply.body).trim_end().to_owned();
    let exit = match reply.header("laneway-refusal") {
        Some("unknown") => Exit::EffectUnknown,
        Some("lacking") => Exit::EffectLacking,
        Some("bad_request") => Exit::BadInput,
        Some(_) | None => Exit::EffectRefused,
    };
    (exit, Refusal::new(words))
}
