//! How values read: durations, times of day, marks of states, colours, tables. Pure; `print.rs` writes.
//! Every mark means the same without its colour.

use std::time::Duration;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use jiff::tz::TimeZone;
use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_server::wire::RunSummary;

/// Colours, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Palette {
    is_on: bool,
}

impl Palette {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn task(self, status: TaskStatus, text: &str) -> String {
        match status {
            TaskStatus::Succeeded => self.green(text),
            TaskStatus::Failed => self.red(text),
            TaskStatus::Canceled => self.yellow(text),
            TaskStatus::Running | TaskStatus::Available => self.cyan(text),
            TaskStatus::Skipped | TaskStatus::Pending | TaskStatus::Parked => self.dim(text),
        }
    }

    pub(crate) fn run(self, status: RunStatus, text: &str) -> String {
        match status {
            RunStatus::Succeeded => self.green(text),
            RunStatus::Failed => self.red(text),
            RunStatus::Canceled => self.yellow(text),
            RunStatus::Running | RunStatus::Queued => self.cyan(text),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

pub(crate) fn task_mark(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Succeeded => "✓",
        TaskStatus::Failed => "✗",
        TaskStatus::Canceled => "■",
        TaskStatus::Skipped => "–",
        TaskStatus::Running => "▶",
        TaskStatus::Available => "○",
        TaskStatus::Parked => "◆",
        TaskStatus::Pending => "·",
    }
}

pub(crate) fn run_mark(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Succeeded => "✓",
        RunStatus::Failed => "✗",
        RunStatus::Canceled => "■",
        RunStatus::Running => "▶",
        RunStatus::Queued => "·",
    }
}

/// How a run of a list is, in a word; and the state whose mark and colour it has. What cannot be read looks like what failed:
/// somebody has to see to it.
pub(crate) fn run_word(run: &RunSummary) -> (&'static str, RunStatus) {
    match (run.status, &run.set_aside) {
        (_, Some(_)) => ("set aside", RunStatus::Failed),
        (None, None) => ("unreadable", RunStatus::Failed),
        (Some(status), None) if run.interrupted => ("interrupted", status),
        (Some(status), None) if run.is_canceling() => ("canceling", status),
        (Some(status), None) if !run.paused.is_empty() => ("paused", status),
        (Some(status), None) => (status.as_str(), status),
    }
}

/// What a person is to know of a run that is being canceled: until when it cleans up, and how to
/// end that.
pub(crate) fn cleaning_up(run: RunId, until: Millis) -> String {
    format!("cleaning up, until {}; `laneway cancel {}` again ends it", clock(until), run.short())
}

/// As short as is useful: `7ms`, `1.2s`, `42.0s`, `3m 05s`, `2h 07m`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration < Duration::from_secs(1) {
        format!("{}ms", duration.as_millis())
    } else if seconds < 60 {
        // Cut, not rounded: 59.96 s is not 60.0s.
        format!("{seconds}.{}s", duration.subsec_millis() / 100)
    } else if seconds < 3600 {
        format!("{}m {:02}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60)
    }
}

/// A length of time to one unit, for how long ago something was: `12 s`, `3 min`, `5 h`, `2 d`.
pub(crate) fn span(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `12:00:01` where the person is.
pub(crate) fn clock(at: Millis) -> String {
    local(at).map_or_else(|| at.to_string(), |moment| moment.strftime("%H:%M:%S").to_string())
}

/// `2026-11-15 12:00:01` where the person is.
pub(crate) fn date(at: Millis) -> String {
    local(at).map_or_else(|| at.to_string(), |moment| moment.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// `11-15 12:00`: where there is little room and the seconds do not matter.
pub(crate) fn day_and_time(at: Millis) -> String {
    local(at).map_or_else(|| at.to_string(), |moment| moment.strftime("%m-%d %H:%M").to_string())
}

/// Columns that a line with whole dates and words takes.
const WIDE: u16 = 100;

/// Whether a table has so little room that it leaves out what matters least.
pub(crate) fn is_narrow(width: Option<u16>) -> bool {
    width.is_some_and(|width| width < WIDE)
}

/// The whole date, or where there is little room the day and the time.
pub(crate) fn date_in(at: Millis, is_narrow: bool) -> String {
    if is_narrow { day_and_time(at) } else { date(at) }
}

/// A moment beside others: the time of day where the person is, and the day too if that is not today.
pub(crate) fn moment(at: Millis) -> String {
    moment_on(at, jiff::Zoned::now().date())
}

fn moment_on(at: Millis, today: jiff::civil::Date) -> String {
    match local(at) {
        Some(moment) if moment.date() != today => date(at),
        Some(_) | None => clock(at),
    }
}

/// A sentence of the store or of a server, in which moments are told as elsewhere: they do not know where the person is.
pub(crate) fn told(sentence: &str) -> String {
    told_on(sentence, jiff::Zoned::now().date())
}

fn told_on(sentence: &str, today: jiff::civil::Date) -> String {
    // `2026-11-15T12:00:01.000Z`, as `Millis` writes itself.
    const LENGTH: usize = 24;
    let mut out = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some(at) = rest.find(|char: char| char.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let written = from.get(..LENGTH).filter(|text| text.ends_with('Z'));
        match written.and_then(|text| text.parse::<jiff::Timestamp>().ok()) {
            Some(moment) => {
                out.push_str(&moment_on(Millis(moment.as_millisecond()), today));
                rest = &from[LENGTH..];
            }
            None => {
                let digits = from.find(|char: char| !char.is_ascii_digit()).unwrap_or(from.len());
                out.push_str(&from[..digits]);
                rest = &from[digits..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn local(at: Millis) -> Option<jiff::Zoned> {
    Some(jiff::Timestamp::from_millisecond(at.0).ok()?.to_zoned(TimeZone::system()))
}

/// `1 step`, `2 steps`.
pub(crate) fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// A size as people read it.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (number as f64, "B");
    for larger in UNITS {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    if unit == "B" { format!("{number} B") } else { format!("{size:.1} {unit}") }
}

/// A table without lines: columns in a row that also read well in a pipe.
pub(crate) fn table(header: &[&str], width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header.iter().copied());
    match width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Colours of cells are the table's own matter, because it measures and breaks them.
pub(crate) fn color(table: &mut Table, palette: Palette) {
    if palette.is_on() {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
}

pub(crate) fn task_color(cell: Cell, status: TaskStatus) -> Cell {
    match status {
        TaskStatus::Succeeded => cell.fg(Color::Green),
        TaskStatus::Failed => cell.fg(Color::Red),
        TaskStatus::Canceled => cell.fg(Color::Yellow),
        TaskStatus::Running | TaskStatus::Available => cell.fg(Color::Cyan),
        TaskStatus::Skipped | TaskStatus::Pending | TaskStatus::Parked => cell.add_attribute(Attribute::Dim),
    }
}

pub(crate) fn run_color(cell: Cell, status: RunStatus) -> Cell {
    match status {
        RunStatus::Succeeded => cell.fg(Color::Green),
        RunStatus::Failed => cell.fg(Color::Red),
        RunStatus::Canceled => cell.fg(Color::Yellow),
        RunStatus::Running | RunStatus::Queued => cell.fg(Color::Cyan),
    }
}

/// The table's lines without blanks at their ends.
pub(crate) fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A line of a program as a terminal would leave it standing: without escape sequences, without what a carriage
/// return wrote over, and with a mark for every other control character. Nothing in it moves the cursor.
pub(crate) fn tame(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or(line);
    let mut tamed = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // Parameters, then one final letter.
                for char in chars.by_ref() {
                    if ('@'..='~').contains(&char) {
                        break;
                    }
                }
            }
            '\t' => tamed.push(char),
            _ if char.is_control() => tamed.push(char::REPLACEMENT_CHARACTER),
            _ => tamed.push(char),
        }
    }
    tamed
}

/// Cuts a line to a number of characters and says that it did.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        let table = [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (59_960, "59.9s"),
            (60_000, "1m 00s"),
            (185_000, "3m 05s"),
            (3_600_000, "1h 00m"),
            (7_620_000, "2h 07m"),
        ];
        for (millis, text) in table {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_run_of_a_list_says_first_what_somebody_has_to_know_first() {
        let run = |status: Option<&str>, more: serde_json::Value| {
            let mut run = serde_json::json!({
                "run": "0199f2a0-0000-7000-8000-1a2b3c4d5e6f", "workflow": "flow", "status": status, "reason": null,
                "submitted_at": "2026-11-15T12:00:00.000Z", "started_at": null, "finished_at": null,
                "submitted_by": "ada", "tasks": {}, "interrupted": false, "set_aside": null,
            });
            let fields = run.as_object_mut().expect("an object");
            fields.extend(more.as_object().expect("an object").clone());
            serde_json::from_value::<RunSummary>(run).expect("a run of a list")
        };
        let aside = serde_json::json!({"what": "plan", "why": "torn", "since": "2026-11-15T12:00:00.000Z"});
        let table = [
            (Some("running"), serde_json::json!({}), "running", RunStatus::Running),
            (Some("queued"), serde_json::json!({"paused": ["workflow"]}), "paused", RunStatus::Queued),
            (Some("running"), serde_json::json!({"closing": "halted"}), "running", RunStatus::Running),
            (
                Some("running"),
                serde_json::json!({"closing": "canceled", "paused": ["run"]}),
                "canceling",
                RunStatus::Running,
            ),
            (
                Some("running"),
                serde_json::json!({"closing": "run_timeout", "interrupted": true}),
                "interrupted",
                RunStatus::Running,
            ),
            (Some("running"), serde_json::json!({"set_aside": aside}), "set aside", RunStatus::Failed),
            (None, serde_json::json!({}), "unreadable", RunStatus::Failed),
        ];
        for (status, more, word, look) in table {
            assert_eq!(run_word(&run(status, more.clone())), (word, look), "{more}");
        }
    }

    #[test]
    fn moments_in_a_sentence_are_told_as_elsewhere() {
        let at = Millis(1_763_208_001_000);
        let today = local(at).expect("a moment").date();
        let yesterday = today.yesterday().expect("a day");
        let table = [
            (format!("waits since {at}, until {at}"), format!("waits since {0}, until {0}", clock(at))),
            (format!("({at})"), format!("({})", clock(at))),
            (
                "run 00000001 of 2026-11-15, at 12:00".to_owned(),
                "run 00000001 of 2026-11-15, at 12:00".to_owned(),
            ),
            ("ä2026-11-15T12:00:01.00äZ 7".to_owned(), "ä2026-11-15T12:00:01.00äZ 7".to_owned()),
        ];
        for (sentence, told) in table {
            assert_eq!(told_on(&sentence, today), told);
        }
        assert_eq!(told_on(&at.to_string(), yesterday), date(at), "not today");
        assert_eq!(moment_on(at, today), clock(at));
    }

    #[test]
    fn colours_are_left_out_when_they_are_off() {
        assert_eq!(Palette::new(false).red("no"), "no");
        assert_eq!(Palette::new(true).red("yes"), "\u{1b}[1;31myes\u{1b}[0m");
    }

    #[test]
    fn nothing_in_a_tamed_line_moves_the_cursor() {
        let table = [
            ("plain ä\tb", "plain ä\tb"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[10;1Hgone", "gone"),
            (" 10%\r 99%\r", " 99%"),
            ("a\u{8}b\u{1b}]0;title\u{7}c", "a\u{fffd}b\u{fffd}]0;title\u{fffd}c"),
            ("\u{1b}[", ""),
        ];
        for (line, tamed) in table {
            assert_eq!(tame(line), tamed, "{line:?}");
        }
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äöü…");
    }
}
