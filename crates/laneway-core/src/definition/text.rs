//! A document's text: what may stand in it at all, and where a byte is for a person.
//! Owns the checks before parsing, and lines and columns through an index, so that finding a place
//! costs the same at the end of a huge file as at its start.

use std::string::FromUtf8Error;

use super::finding::{Finding, Span};

/// The largest document that is read.
pub const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Bytes between two entries of the index of characters.
const STRIDE: usize = 1024;

/// Refuses what no parser should see: too much, and characters that nobody can see.
pub(super) fn check(all: &str) -> Result<(), Finding> {
    if all.len() > MAX_BYTES {
        return Err(too_large(all.len()));
    }
    if let Some((at, bad)) = first_refused(all) {
        let span = Span::new(at, at + bad.len_utf8());
        let what = match bad {
            '\0' => "a NUL character".to_owned(),
            bad if bad.is_control() => format!("the control character {}", code_point(bad)),
            bad => format!("the invisible character {}", code_point(bad)),
        };
        return Err(Finding::new(format!("{what} cannot stand in a document"), span).hint(
            "a workflow is plain UTF-8 text; remove the character, or write it as an escape in \"…\"",
        ));
    }
    Ok(())
}

#[derive(Debug)]
pub(super) struct Text<'t> {
    pub(super) all: &'t str,
    /// Byte at which each line starts.
    lines: Vec<u32>,
    /// Characters before every `STRIDE`-th byte; empty for ASCII, where both counts are the same.
    characters: Vec<u32>,
}

impl<'t> Text<'t> {
    /// Costs a pass over the document and memory by lines, so it is made only to show errors.
    pub(super) fn index(all: &'t str) -> Self {
        let mut lines = vec![0];
        lines.extend(all.match_indices('\n').map(|(at, _)| at as u32 + 1));
        let mut characters = Vec::new();
        if !all.is_ascii() {
            let mut count = 0;
            for chunk in all.as_bytes().chunks(STRIDE) {
                characters.push(count);
                count += chunk.iter().filter(|byte| starts_character(**byte)).count() as u32;
            }
        }
        Self { all, lines, characters }
    }

    /// Line and column from 1, the column in characters.
    pub(super) fn place(&self, byte: usize) -> (usize, usize) {
        let byte = byte.min(self.all.len());
        let line = self.lines.partition_point(|start| *start as usize <= byte) - 1;
        let start = self.lines[line] as usize;
        (line + 1, self.characters_before(byte) - self.characters_before(start) + 1)
    }

    /// Bytes of a line, from 1, without its end.
    pub(super) fn line(&self, number: usize) -> std::ops::Range<usize> {
        let start = self.lines[number - 1] as usize;
        let end = self.lines.get(number).map_or(self.all.len(), |next| *next as usize - 1);
        let cut = self.all[start..end].strip_suffix('\r').map_or(end, |_| end - 1);
        start..cut
    }

    fn characters_before(&self, byte: usize) -> usize {
        if self.characters.is_empty() {
            return byte;
        }
        let chunk = (byte / STRIDE).min(self.characters.len() - 1);
        let rest = &self.all.as_bytes()[chunk * STRIDE..byte];
        self.characters[chunk] as usize + rest.iter().filter(|byte| starts_character(**byte)).count()
    }
}

/// Turns the parser's counts of characters into bytes. They come in rising order but for a few, so
/// walking on from the last one is linear over the whole document.
#[derive(Debug)]
pub(super) struct Walk<'t> {
    text: &'t str,
    is_ascii: bool,
    character: usize,
    byte: usize,
}

impl<'t> Walk<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, is_ascii: text.is_ascii(), character: 0, byte: 0 }
    }

    pub(super) fn byte(&mut self, character: usize) -> usize {
        if self.is_ascii {
            return character.min(self.text.len());
        }
        let bytes = self.text.as_bytes();
        while self.character < character && self.byte < bytes.len() {
            self.byte += 1;
            while self.byte < bytes.len() && !starts_character(bytes[self.byte]) {
                self.byte += 1;
            }
            self.character += 1;
        }
        while self.character > character {
            self.byte -= 1;
            while !starts_character(bytes[self.byte]) {
                self.byte -= 1;
            }
            self.character -= 1;
        }
        self.byte
    }
}

pub(super) fn too_large(bytes: usize) -> Finding {
    Finding::whole(format!("the document has {bytes} bytes, {MAX_BYTES} are allowed"))
        .hint("keep data in files of its own, and let a step read them")
}

pub(super) fn not_utf8(error: &FromUtf8Error) -> Finding {
    let bytes = error.as_bytes();
    let at = error.utf8_error().valid_up_to();
    let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let hint = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it looks like UTF-16; save it as UTF-8",
        _ => "save it as UTF-8",
    };
    let byte = bytes.get(at).copied().unwrap_or_default();
    Finding::whole(format!("line {line} is not UTF-8: it contains the byte 0x{byte:02X}")).hint(hint)
}

pub(super) fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

fn starts_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn first_refused(all: &str) -> Option<(usize, char)> {
    if all.is_ascii() {
        let is_control = |byte: u8| (byte < b' ' || byte == 0x7f) && !matches!(byte, b'\t' | b'\n' | b'\r');
        let at = all.bytes().position(is_control)?;
        return Some((at, char::from(all.as_bytes()[at])));
    }
    all.char_indices().find(|(at, c)| is_refused(*at, *c))
}

/// Control characters, and those that turn the reading direction around: a reviewer would not see
/// what is executed.
fn is_refused(at: usize, c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{feff}' => at != 0,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_in_characters() {
        let long = "é".repeat(2000);
        let all = format!("a: 1\r\nbé: 2\n{long}x\n");
        check(&all).expect("nothing is refused");
        let text = Text::index(&all);
        assert_eq!(text.place(0), (1, 1));
        assert_eq!(text.place(6), (2, 1));
        assert_eq!(text.place(9), (2, 3));
        assert_eq!(text.place(all.len() - 2), (3, 2001));
        assert_eq!(&all[text.line(1)], "a: 1");
        assert_eq!(&all[text.line(2)], "bé: 2");
        let mut walk = Walk::new(&all);
        for (character, (byte, _)) in all.char_indices().enumerate() {
            assert_eq!(walk.byte(character), byte);
        }
        assert_eq!(walk.byte(8), 9);
    }
}
