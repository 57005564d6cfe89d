//! What a person is told about a document that is refused: file, line, column, the offending line
//! underlined, and what to do. Owns rendering and the form for `--json`; never decides what is wrong.

use std::fmt;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};

use super::finding::{Finding, Findings, Span};
use super::text::Text;

/// More than a person reads; the rest is counted.
const MAX_SHOWN: usize = 50;

/// Bytes of a line that are kept on each side of the place. The renderer cuts them to a screen's
/// width; this bounds what it has to look at.
const BEFORE: usize = 4096;
const AFTER: usize = 240;

/// All errors of a document, or all warnings, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    pub file: String,
    pub severity: Severity,
    pub all: Vec<Diagnostic>,
    /// Errors beyond those in `all`.
    pub more: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is accepted, and its author should look at it.
    Warning,
}

/// One error, or one warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub message: String,
    /// Byte range in the document.
    pub span: Range<usize>,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What to do.
    pub hint: Option<String>,
    /// A second place that belongs to it.
    pub note: Option<Note>,
    excerpt: Option<Excerpt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub message: String,
    pub line: usize,
    pub column: usize,
    excerpt: Excerpt,
}

/// The line of a place, or the part of a long line around it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    marked: Range<usize>,
    /// Whether the line's start is left out.
    is_cut: bool,
}

impl Diagnostics {
    /// Sorts by position, drops repeats (one node may be read through several aliases), and keeps
    /// of the document only the lines that will be shown.
    pub(super) fn new(file: &str, text: Option<&str>, findings: Findings) -> Self {
        let Findings { mut kept, dropped } = findings;
        kept.sort_by(|a, b| (a.span, &a.message).cmp(&(b.span, &b.message)));
        kept.dedup_by(|a, b| a.span == b.span && a.message == b.message);
        let text = text.map(Text::index);
        let more = dropped + kept.len().saturating_sub(MAX_SHOWN);
        kept.truncate(MAX_SHOWN);
        Self {
            file: file.to_owned(),
            severity: Severity::Error,
            all: kept.into_iter().map(|finding| place(text.as_ref(), finding)).collect(),
            more,
        }
    }

    /// Returns the same with another weight.
    pub(super) fn of(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// As shown to a person.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let mut out = String::new();
        for diagnostic in &self.all {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&renderer.render(&[self.group(diagnostic)]));
        }
        if self.more > 0 {
            out.push_str(&format!("\n\nand {} more", self.more));
        }
        out.push('\n');
        out
    }

    /// For `validate --json`.
    pub fn to_json(&self) -> Value {
        let key = match self.severity {
            Severity::Error => "errors",
            Severity::Warning => "warnings",
        };
        json!({"file": self.file, key: self.entries(), "more": self.more})
    }

    /// Each of them as data.
    pub fn entries(&self) -> Vec<Value> {
        let entry = |diagnostic: &Diagnostic| {
            json!({
                "message": diagnostic.message,
                "line": diagnostic.line,
                "column": diagnostic.column,
                "start": diagnostic.span.start,
                "end": diagnostic.span.end,
                "hint": diagnostic.hint,
                "note": diagnostic.note.as_ref().map(|note| json!({
                    "message": note.message, "line": note.line, "column": note.column,
                })),
            })
        };
        self.all.iter().map(entry).collect()
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(diagnostic.message.as_str());
        let mut group = Group::with_title(title);
        match &diagnostic.excerpt {
            None => group = group.element(Origin::path(self.file.as_str())),
            Some(excerpt) => {
                let place = (diagnostic.line, diagnostic.column);
                group = self.show(group, excerpt, place, AnnotationKind::Primary, None);
            }
        }
        if let Some(note) = &diagnostic.note {
            let place = (note.line, note.column);
            let label = Some(note.message.as_str());
            group = self.show(group, &note.excerpt, place, AnnotationKind::Context, label);
        }
        match &diagnostic.hint {
            Some(hint) => group.element(Level::HELP.message(hint.as_str())),
            None => group,
        }
    }

    fn show<'a>(
        &'a self,
        group: Group<'a>,
        excerpt: &'a Excerpt,
        (line, column): (usize, usize),
        kind: AnnotationKind,
        label: Option<&'a str>,
    ) -> Group<'a> {
        let snippet = Snippet::source(excerpt.text.as_str())
            .line_start(line)
            .annotation(kind.span(excerpt.marked.clone()).label(label));
        if !excerpt.is_cut {
            return group.element(snippet.path(self.file.as_str()));
        }
        // The column cannot be counted in what is left of a cut line, so it is given apart.
        let origin = Origin::path(self.file.as_str()).line(line).char_column(column);
        group.element(origin).element(snippet)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

fn place(text: Option<&Text<'_>>, finding: Finding) -> Diagnostic {
    let located = text.zip(finding.span);
    let (line, column) = located.map_or((1, 1), |(text, span)| text.place(span.start as usize));
    Diagnostic {
        span: finding.span.map_or(0..0, Span::range),
        line,
        column,
        excerpt: located.map(|(text, span)| excerpt(text, line, span)),
        note: text.zip(finding.note).map(|(text, (message, span))| {
            let (line, column) = text.place(span.start as usize);
            Note { message, line, column, excerpt: excerpt(text, line, span) }
        }),
        message: finding.message,
        hint: finding.hint,
    }
}

fn excerpt(text: &Text<'_>, number: usize, span: Span) -> Excerpt {
    let line = text.line(number);
    let marked = span.start as usize..(span.end as usize).min(line.end).max(span.start as usize);
    let start = floor(text.all, line.start.max(marked.start.saturating_sub(BEFORE)));
    let end = floor(text.all, line.end.min(marked.start.saturating_add(AFTER)));
    // A place at the very end of a line that ends in CR LF lies behind the cut line.
    let end = end.max(marked.start);
    let mut out = String::new();
    if start > line.start {
        out.push('…');
    }
    let shift = out.len();
    out.push_str(&text.all[start..end]);
    let from = marked.start - start + shift;
    let to = marked.end.min(end) - start + shift;
    if end < line.end {
        out.push('…');
    }
    Excerpt { text: out, marked: from..to, is_cut: start > line.start }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
