//! What is wrong with a document, place by place, for whoever is writing it.

use std::collections::BTreeMap;

use laneway_core::definition::{Diagnostic, Source, compile};

use super::documents::name_of;
use crate::callback::{Reach, check_hosts};
use crate::problem::Answer;
use crate::wire;

/// A document that is wrong is an answer too. A good one is drawn. Takes its time with a large one.
pub fn validate(asked: wire::Validate, reach: &Reach) -> Answer<wire::Validated> {
    let wire::Validate { document, name } = asked;
    let source = Source { file: "<document>".to_owned(), default_name: name_of(name)?, text: document };
    let compiled =
        compile(&source).and_then(|plan| check_hosts(&source, &plan.workflow, reach).map(|()| plan));
    Ok(match compiled {
        Ok(plan) => {
            wire::Validated { ok: true, problems: Vec::new(), more: 0, graph: Some(wire::Graph::of(&plan)) }
        }
        Err(diagnostics) => {
            let ends = places(&source.text, diagnostics.all.iter().map(|one| one.span.end));
            let problems = diagnostics.all.iter().map(|one| fault(&ends, one)).collect();
            wire::Validated { ok: false, problems, more: diagnostics.more, graph: None }
        }
    })
}

/// Line and column of bytes, both from 1 on.
type Places = BTreeMap<usize, (usize, usize)>;

fn fault(ends: &Places, found: &Diagnostic) -> wire::Fault {
    let start = (found.line, found.column);
    // Where something is missing, the next character is marked.
    let end = ends.get(&found.span.end).copied().filter(|end| *end > start);
    let (end_line, end_column) = end.unwrap_or((found.line, found.column + 1));
    let message = match &found.note {
        Some(note) => format!("{} ({} in line {})", found.message, note.message, note.line),
        None => found.message.clone(),
    };
    let (line, column, help) = (found.line, found.column, found.hint.clone());
    wire::Fault { line, column, end_line, end_column, message, help }
}

/// In one pass over the text.
fn places(text: &str, bytes: impl Iterator<Item = usize>) -> Places {
    let mut places: Places = bytes.map(|byte| (byte, (1, 1))).collect();
    let (mut signs, mut line, mut column) = (text.char_indices().peekable(), 1, 1);
    for (byte, place) in &mut places {
        while let Some((_, sign)) = signs.next_if(|(at, _)| at < byte) {
            (line, column) = if sign == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        *place = (line, column);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_from_one() {
        let text = "ab\nä: c\n";
        let places = places(text, [99, 0, 2, 3, 5, 6, 2].into_iter());
        assert_eq!(
            places.into_iter().collect::<Vec<_>>(),
            [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (5, (2, 2)), (6, (2, 3)), (99, (3, 1))]
        );
    }
}
