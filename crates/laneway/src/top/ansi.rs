//! A line of a program, safe to be drawn: its colours are kept, everything else that a terminal would obey is gone. No links,
//! no titles, no movements, nothing that turns the direction of writing round. Pure.

use ratatui::style::{Color, Modifier, Style};

/// Columns from one stop of the tabulator to the next.
const TAB: usize = 8;

/// Text, and from which byte on it has which style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Styled {
    pub(super) text: String,
    pub(super) styles: Vec<(usize, Style)>,
}

impl Styled {
    /// How much memory it takes up.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.styles.len() * size_of::<(usize, Style)>()
    }

    /// What follows has this style. One that nothing was written in is forgotten.
    fn begin(&mut self, style: Style) {
        let at = self.text.len();
        match self.styles.last_mut() {
            Some(last) if last.0 == at => last.1 = style,
            Some(_) | None => self.styles.push((at, style)),
        }
    }

    /// Pieces of one style each.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&str, Style)> {
        let ends = self.styles.iter().skip(1).map(|(at, _)| *at).chain([self.text.len()]);
        let head = self.styles.first().map_or(self.text.len(), |(at, _)| *at);
        let styled = self.styles.iter().zip(ends).map(|((at, style), end)| (&self.text[*at..end], *style));
        [(&self.text[..head], Style::new())].into_iter().chain(styled).filter(|(text, _)| !text.is_empty())
    }
}

/// What a terminal would leave standing of a line, with its colours.
pub(super) fn safe(line: &str) -> Styled {
    let line = line.trim_end_matches(['\n', '\r']);
    // What a carriage return wrote over is not seen.
    let line = line.rsplit('\r').next().unwrap_or(line);
    let mut out = Styled::default();
    let mut style = Style::new();
    let mut column = 0;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    let mut parameters = String::new();
                    for char in chars.by_ref() {
                        if ('@'..='~').contains(&char) {
                            if char == 'm' {
                                style = select(style, &parameters);
                                out.begin(style);
                            }
                            break;
                        }
                        parameters.push(char);
                    }
                }
                // Titles, links and other strings: to their end, with all that is in them.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    while let Some(char) = chars.next() {
                        if char == '\u{7}' || char == '\u{1b}' && chars.next_if_eq(&'\\').is_some() {
                            break;
                        }
                    }
                }
                // One more letter says which character set is meant.
                Some('(' | ')' | '*' | '+' | '#' | '%') => drop(chars.next()),
                Some(_) | None => {}
            },
            '\t' => {
                let blanks = TAB - column % TAB;
                out.text.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            _ if char.is_control() || turns(char) => {
                out.text.push(char::REPLACEMENT_CHARACTER);
                column += 1;
            }
            _ => {
                out.text.push(char);
                column += 1;
            }
        }
    }
    out
}

/// Characters that are not seen and change how others are.
fn turns(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// `ESC [ … m`. What is unknown changes nothing.
fn select(mut style: Style, parameters: &str) -> Style {
    let mut numbers = parameters.split([';', ':']).map(|number| match number {
        "" => Some(0),
        number => number.parse::<u16>().ok(),
    });
    while let Some(number) = numbers.next() {
        style = match number {
            Some(0) => Style::new(),
            Some(1) => style.add_modifier(Modifier::BOLD),
            Some(2) => style.add_modifier(Modifier::DIM),
            Some(3) => style.add_modifier(Modifier::ITALIC),
            Some(4) => style.add_modifier(Modifier::UNDERLINED),
            Some(7) => style.add_modifier(Modifier::REVERSED),
            Some(9) => style.add_modifier(Modifier::CROSSED_OUT),
            Some(22) => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            Some(23) => style.remove_modifier(Modifier::ITALIC),
            Some(24) => style.remove_modifier(Modifier::UNDERLINED),
            Some(27) => style.remove_modifier(Modifier::REVERSED),
            Some(29) => style.remove_modifier(Modifier::CROSSED_OUT),
            Some(number @ 30..=37) => style.fg(basic(number - 30)),
            Some(38) => far(&mut numbers).map_or(style, |color| style.fg(color)),
            Some(39) => Style { fg: None, ..style },
            Some(number @ 40..=47) => style.bg(basic(number - 40)),
            Some(48) => far(&mut numbers).map_or(style, |color| style.bg(color)),
            Some(49) => Style { bg: None, ..style },
            Some(number @ 90..=97) => style.fg(basic(number - 90 + 8)),
            Some(number @ 100..=107) => style.bg(basic(number - 100 + 8)),
            Some(_) | None => style,
        };
    }
    style
}

/// `5;N` or `2;R;G;B`.
fn far(numbers: &mut impl Iterator<Item = Option<u16>>) -> Option<Color> {
    let mut byte = || numbers.next()?.and_then(|number| u8::try_from(number).ok());
    match byte()? {
        5 => Some(Color::Indexed(byte()?)),
        2 => Some(Color::Rgb(byte()?, byte()?, byte()?)),
        _ => None,
    }
}

fn basic(number: u16) -> Color {
    Color::Indexed(u8::try_from(number).unwrap_or(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_hostile_line_reaches_the_terminal_but_text_and_colours() {
        let table = [
            ("plain ä", "plain ä"),
            ("\u{1b}[31mred\u{1b}[0m!", "red!"),
            ("\u{1b}[2J\u{1b}[10;1Hgone", "gone"),
            (" 10%\r 99%\r", " 99%"),
            ("\u{1b}]8;;http://evil\u{1b}\\click\u{1b}]8;;\u{7}", "click"),
            ("\u{1b}]0;title\u{7}c", "c"),
            ("\u{1b}P1$r\u{1b}\\x", "x"),
            ("a\u{8}b\u{7}", "a\u{fffd}b\u{fffd}"),
            ("\u{9b}31mx", "\u{fffd}31mx"),
            ("\u{202e}txt.exe", "\u{fffd}txt.exe"),
            ("\u{1b}(0x", "x"),
            ("\u{1b}[", ""),
            ("\u{1b}", ""),
            ("ab\tc", "ab      c"),
        ];
        for (line, text) in table {
            let safe = safe(line);
            assert_eq!(safe.text, text, "{line:?}");
            assert!(!safe.text.chars().any(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn colours_are_kept_where_they_begin() {
        let line = safe("a\u{1b}[1;32mb\u{1b}[38;5;200mc\u{1b}[48;2;1;2;3md\u{1b}[me");
        let bold = Style::new().add_modifier(Modifier::BOLD);
        assert_eq!(
            line.pieces().collect::<Vec<_>>(),
            [
                ("a", Style::new()),
                ("b", bold.fg(Color::Indexed(2))),
                ("c", bold.fg(Color::Indexed(200))),
                ("d", bold.fg(Color::Indexed(200)).bg(Color::Rgb(1, 2, 3))),
                ("e", Style::new()),
            ]
        );
    }
}
