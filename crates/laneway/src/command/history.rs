//! What nodes and their pools told, page by page and oldest first: as lines for people, or as JSON.

use serde_json::Value;

use super::Context;
use crate::exit::Exit;

/// A page of it, and behind which number the next one begins.
pub(super) struct Page {
    pub(super) events: Vec<Value>,
    pub(super) next_after: u64,
    /// Events in front of that number that cannot be read, and why.
    pub(super) unreadable: Vec<String>,
}

/// Prints all of it. `none` is said to people where there is nothing.
pub(super) async fn print(
    context: &Context,
    is_json: bool,
    page: impl AsyncFn(u64) -> anyhow::Result<Page>,
    line: impl Fn(&Value) -> anyhow::Result<String>,
    none: &str,
) -> anyhow::Result<Exit> {
    let mut after = 0;
    loop {
        let Page { events, next_after, unreadable } = page(after).await?;
        for gap in &unreadable {
            context.printer.warning(&format!("{gap}; `laneway doctor` says more"));
        }
        if next_after == after {
            break;
        }
        after = next_after;
        for event in &events {
            if is_json {
                context.printer.json(event)?;
            } else {
                context.printer.line(&line(event)?)?;
            }
        }
    }
    if after == 0 && !is_json {
        context.printer.note(none);
    }
    Ok(Exit::Succeeded)
}
