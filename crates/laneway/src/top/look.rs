//! How things look: a shape and a colour for every state. The shape alone says all; colours may be off, and every shape has
//! its letter where there is only ASCII.

use laneway_core::state::{RunStatus, TaskStatus};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use crate::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(super) is_ascii: bool,
    has_color: bool,
}

impl Look {
    pub(crate) fn new(is_ascii: bool, has_color: bool) -> Self {
        Self { is_ascii, has_color }
    }

    fn pick(self, fine: &'static str, ascii: &'static str) -> &'static str {
        if self.is_ascii { ascii } else { fine }
    }

    pub(super) fn task_mark(self, status: TaskStatus) -> &'static str {
        let mark = text::task_mark(status);
        self.pick(mark, self.plain(mark))
    }

    pub(super) fn run_mark(self, status: RunStatus) -> &'static str {
        let mark = text::run_mark(status);
        self.pick(mark, self.plain(mark))
    }

    pub(super) fn task(self, status: TaskStatus) -> Style {
        match status {
            TaskStatus::Succeeded => self.color(Color::Green),
            TaskStatus::Failed => self.color(Color::Red).add_modifier(Modifier::BOLD),
            TaskStatus::Canceled => self.color(Color::Yellow),
            TaskStatus::Running => self.color(Color::Cyan).add_modifier(Modifier::BOLD),
            TaskStatus::Available => self.color(Color::Cyan),
            TaskStatus::Parked => self.color(Color::Magenta),
            TaskStatus::Skipped | TaskStatus::Pending => self.dim(),
        }
    }

    pub(super) fn run(self, status: RunStatus) -> Style {
        match status {
            RunStatus::Succeeded => self.color(Color::Green),
            RunStatus::Failed => self.color(Color::Red).add_modifier(Modifier::BOLD),
            RunStatus::Canceled => self.color(Color::Yellow),
            RunStatus::Running => self.color(Color::Cyan).add_modifier(Modifier::BOLD),
            RunStatus::Queued => self.dim(),
        }
    }

    /// A colour, where there are any.
    pub(super) fn color(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }

    pub(super) fn has_color(self) -> bool {
        self.has_color
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is chosen. Reversed, so that it is seen without colours.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn warning(self) -> Style {
        self.color(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(super) fn border(self) -> border::Set<'static> {
        if self.is_ascii { ASCII_BORDER } else { border::ROUNDED }
    }

    /// What stands for a character that is not ASCII.
    pub(super) fn plain(self, symbol: &str) -> &'static str {
        match symbol {
            "✓" => "+",
            "✗" => "x",
            "■" => "#",
            "–" => "-",
            "▶" => ">",
            "○" => "o",
            "·" => ".",
            "…" => "~",
            _ => "?",
        }
    }

    /// `…` where something was cut.
    pub(super) fn more(self) -> &'static str {
        self.pick("…", "~")
    }

    pub(super) fn arrow(self) -> &'static str {
        self.pick("▸", ">")
    }

    pub(super) fn open(self) -> &'static str {
        self.pick("▾", "v")
    }

    pub(super) fn dot(self) -> &'static str {
        self.pick("●", "*")
    }

    pub(super) fn cursor(self) -> &'static str {
        self.pick("▏", "_")
    }

    /// A bar of `width` cells, of which a part is full.
    pub(super) fn bar(self, part: f64, width: usize) -> (String, String) {
        let full = ((part.clamp(0.0, 1.0) * width as f64) as usize).min(width);
        (self.pick("━", "=").repeat(full), self.pick("─", ".").repeat(width - full))
    }

    /// A line of a drawing, by where it goes: 1 up, 2 right, 4 down, 8 left.
    pub(super) fn line(self, goes: u8) -> char {
        if self.is_ascii {
            return match goes {
                1 | 4 | 5 => '|',
                2 | 8 | 10 => '-',
                _ => '+',
            };
        }
        match goes {
            1 | 4 | 5 => '│',
            2 | 8 | 10 => '─',
            3 => '╰',
            6 => '╭',
            9 => '╯',
            12 => '╮',
            7 => '├',
            13 => '┤',
            14 => '┬',
            11 => '┴',
            _ => '┼',
        }
    }

    pub(super) fn arrow_head(self) -> char {
        if self.is_ascii { '>' } else { '▸' }
    }
}

const ASCII_BORDER: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};
