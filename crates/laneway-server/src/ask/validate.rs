//! What is wrong with a document, place by place, for whoever is writing it.

use laneway_core::definition::Diagnostic;

use super::submit::{name_of, read};
use crate::problem::{Answer, Code, Problem};
use crate::wire;

/// A document that is wrong is an answer too. A good one is drawn.
pub async fn validate(asked: wire::Validate) -> Answer<wire::Validated> {
    let wire::Validate { document, name } = asked;
    let (plan, _) = match read(document, name_of(name)?).await? {
        Ok(good) => good,
        Err((diagnostics, text)) => {
            let problems = diagnostics.all.iter().map(|one| fault(&text, one)).collect();
            return Ok(wire::Validated { ok: false, problems, more: diagnostics.more, graph: None });
        }
    };
    let drawn = tokio::task::spawn_blocking(move || wire::Graph::of(&plan)).await.map_err(|error| {
        tracing::error!(%error, "a graph cannot be drawn");
        Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
    })?;
    Ok(wire::Validated { ok: true, problems: Vec::new(), more: 0, graph: Some(drawn) })
}

fn fault(text: &str, found: &Diagnostic) -> wire::Fault {
    let (mut end_line, mut end_column) = place(text, found.span.end);
    if (end_line, end_column) <= (found.line, found.column) {
        // Something is missing there: the next character is marked.
        (end_line, end_column) = (found.line, found.column + 1);
    }
    let message = match &found.note {
        Some(note) => format!("{} ({} in line {})", found.message, note.message, note.line),
        None => found.message.clone(),
    };
    let (line, column, help) = (found.line, found.column, found.hint.clone());
    wire::Fault { line, column, end_line, end_column, message, help }
}

/// Line and column of a byte, both from 1 on.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let begun = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[begun..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_counted_in_characters_from_one() {
        let text = "ab\nä: c\n";
        assert_eq!(
            [0, 2, 3, 5, 6, 99].map(|byte| place(text, byte)),
            [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1)]
        );
    }
}
