//! One thing that is wrong, while it is being collected: byte ranges only. Lines, columns and
//! excerpts are computed once, for those that are shown (`diagnostic.rs`).

/// A range of bytes of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        // Documents are far below 4 GiB: `text::MAX_BYTES` is checked before anything has a span.
        Self { start: start as u32, end: end.max(start) as u32 }
    }

    /// The same place in a text with `bytes` more in front.
    pub(super) fn behind(self, bytes: usize) -> Self {
        Self { start: self.start + bytes as u32, end: self.end + bytes as u32 }
    }

    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// `None` is the document as a whole.
    pub(super) span: Option<Span>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// A second place that belongs to it, and what is there.
    pub(super) note: Option<(String, Span)>,
}

impl Finding {
    pub(super) fn new(message: impl Into<String>, span: Span) -> Self {
        Self { span: Some(span), message: message.into(), hint: None, note: None }
    }

    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), hint: None, note: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    pub(super) fn note(mut self, message: impl Into<String>, span: Span) -> Self {
        self.note = Some((message.into(), span));
        self
    }
}

/// All findings of a document. Counts on beyond a bound instead of keeping them, since a document
/// that is wrong in a million places needs memory for none of the later ones.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) kept: Vec<Finding>,
    pub(super) dropped: usize,
}

impl Findings {
    const MAX_KEPT: usize = 1000;

    pub(super) fn push(&mut self, finding: Finding) {
        if self.kept.len() < Self::MAX_KEPT {
            self.kept.push(finding);
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn append(&mut self, others: Self) {
        self.dropped += others.dropped;
        for finding in others.kept {
            self.push(finding);
        }
    }

    pub(super) fn extend(&mut self, more: Option<Finding>) {
        more.into_iter().for_each(|finding| self.push(finding));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// A piece of the document inside a message: short, and without characters that act on a terminal.
pub(crate) fn shown(text: &str) -> String {
    const MAX: usize = 60;
    let mut out = String::from("`");
    for (count, c) in text.chars().enumerate() {
        if count == MAX {
            out.push('…');
            break;
        }
        if c.is_control() || is_invisible(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// Characters without a picture of their own, which make two different names look the same.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
