//! The only place that writes to stdout and stderr: data to the one, everything else to the other.
//! A reader that went away (`laneway runs | head -1`) is no error: the rest is dropped quietly, and whoever
//! follows something asks `is_closed` to know that nobody listens any more.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use serde::Serialize;

use laneway_core::definition::Diagnostics;

use crate::document::Bad;
use crate::env;
use crate::exit::{self, Exit};
use crate::text::Palette;

/// Columns of what is neither a terminal nor tells its width.
const DEFAULT_WIDTH: u16 = 100;

/// Whether a screen is drawn: a line in between would stand across it.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Told by whoever draws on the whole terminal, and no longer does.
pub(crate) fn set_drawn(is_drawn: bool) {
    IS_DRAWN.store(is_drawn, Ordering::Release);
}

/// Where the program tells of its own doing: stderr, and nowhere while that is drawn on.
pub(crate) fn diagnostics() -> Box<dyn Write> {
    if IS_DRAWN.load(Ordering::Acquire) { Box::new(io::sink()) } else { Box::new(io::stderr()) }
}

/// Our own marks in a locale that has none of them, each as wide as it was. What programs and people wrote stays as it is.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let plain = |char| match char {
        '✓' => '+',
        '✗' => 'x',
        '■' => '#',
        '–' => '-',
        '▶' => '>',
        '○' => 'o',
        '◆' => '*',
        '·' => '.',
        '…' => '~',
        '│' => '|',
        '↻' => '@',
        other => other,
    };
    Cow::Owned(text.chars().map(plain).collect())
}

#[derive(Debug)]
pub(crate) struct Printer {
    out: Palette,
    err: Palette,
    is_out_terminal: bool,
    is_err_terminal: bool,
    is_closed: Cell<bool>,
    is_utf8: bool,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let can_style = !env::is_dumb_terminal();
        let is_out_terminal = io::stdout().is_terminal();
        let is_err_terminal = io::stderr().is_terminal();
        Self {
            out: Palette::new(is_out_terminal && can_style && env::wants_color()),
            err: Palette::new(is_err_terminal && can_style && env::wants_color()),
            is_out_terminal,
            is_err_terminal,
            is_closed: Cell::new(false),
            is_utf8: env::is_utf8(),
        }
    }

    /// Whether the locale has more than ASCII.
    pub(crate) fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    /// Colours for what goes to stdout.
    pub(crate) fn out_palette(&self) -> Palette {
        self.out
    }

    /// Colours for what goes to stderr.
    pub(crate) fn err_palette(&self) -> Palette {
        self.err
    }

    /// Whether what is noted goes to a terminal.
    pub(crate) fn is_read_by_a_person(&self) -> bool {
        self.is_err_terminal
    }

    /// Whether lines that move can be drawn: a person looks, at both streams, on a capable terminal.
    pub(crate) fn can_animate(&self) -> bool {
        self.is_out_terminal && self.is_err_terminal && !env::is_dumb_terminal()
    }

    /// Columns to fit a table in; `None` in a pipe, where nothing is to be cut.
    pub(crate) fn width(&self) -> Option<u16> {
        if !self.is_out_terminal {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
        Some(size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0).unwrap_or(DEFAULT_WIDTH))
    }

    /// Nobody reads stdout any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Writes text to stdout.
    pub(crate) fn text(&self, text: &str) -> anyhow::Result<()> {
        self.bytes(self.shown(text).as_bytes())
    }

    pub(crate) fn line(&self, line: &str) -> anyhow::Result<()> {
        self.bytes(format!("{}\n", self.shown(line)).as_bytes())
    }

    /// One JSON value on a line of its own.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.bytes(format!("{}\n", serde_json::to_string(value)?).as_bytes())
    }

    /// With our own marks as the locale can show them.
    fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_utf8 { Cow::Borrowed(text) } else { plain(text) }
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) -> anyhow::Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed.set(true);
                Ok(())
            }
            Err(error) => Err(error).context("stdout cannot be written"),
        }
    }

    /// A remark for the person, on stderr. There is nowhere to report it if that cannot be written.
    pub(crate) fn note(&self, line: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", self.shown(line));
    }

    /// Rendered already, such as diagnostics that underline a document.
    pub(crate) fn note_text(&self, text: &str) {
        let _ = io::stderr().lock().write_all(self.shown(text).as_bytes());
    }

    /// Something that is wrong and does not stop the command.
    pub(crate) fn warning(&self, line: &str) {
        self.note(&format!("{} {line}", self.err.yellow("warning:")));
    }

    /// Warnings about a document, with their places.
    pub(crate) fn warnings(&self, warnings: &Diagnostics) {
        if !warnings.is_empty() {
            self.note_text(&warnings.render(self.err.is_on()));
        }
    }

    /// `error: …`, its causes, and what to do; returns the exit code that belongs to it.
    pub(crate) fn failure(&self, error: &anyhow::Error) -> Exit {
        if let Some(Bad(diagnostics)) = error.downcast_ref::<Bad>() {
            // They say `error:` themselves, once for each, and underline the place.
            self.note_text(&diagnostics.render(self.err.is_on()));
            return Exit::BadInput;
        }
        let mut said = error.to_string();
        let mut text = format!("{} {said}\n", self.err.red("error:"));
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            // Wrappers often repeat the message of what they wrap.
            if !said.contains(&cause) {
                text.push_str(&format!("  caused by: {cause}\n"));
            }
            said = cause;
        }
        if let Some(hint) = exit::hint(error) {
            text.push_str(&format!("{} {hint}\n", self.err.cyan("hint:")));
        }
        self.note_text(&text);
        Exit::of_error(error)
    }
}
