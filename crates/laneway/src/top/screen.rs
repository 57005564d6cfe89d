//! The terminal while it is drawn on, and as it was before: it is given back when this is dropped, when the program panics, and
//! for as long as something else needs it.

use std::io::{self, Stdout, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::model::Model;
use super::view::view;
use crate::print;

/// Whether there is something to be given back; also asked by a panic, on whichever thread.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    has_mouse: bool,
}

impl Screen {
    pub(super) fn take(has_mouse: bool) -> anyhow::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // First, so that what is said of it can be read.
                give_back();
                before(panic);
            }));
        });
        begin(has_mouse)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        match terminal.context("the terminal cannot be drawn on") {
            Ok(terminal) => Ok(Self { terminal, has_mouse }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    pub(super) fn size(&self) -> anyhow::Result<(u16, u16)> {
        let size = self.terminal.size().context("the terminal does not say how large it is")?;
        Ok((size.width, size.height))
    }

    pub(super) fn draw(&mut self, model: &Model) -> anyhow::Result<()> {
        self.terminal.draw(|frame| view(model, frame)).context("the terminal cannot be drawn on")?;
        Ok(())
    }

    /// Draws everything anew with the next frame: something else may have written on it.
    pub(super) fn forget(&mut self) -> anyhow::Result<()> {
        let wiped = execute!(io::stdout(), Clear(ClearType::All));
        // Not `Terminal::clear`: that asks the terminal where its cursor is, and the keyboard's thread would take the answer.
        let terminal = wiped.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        self.terminal = terminal.context("the terminal cannot be drawn on")?;
        Ok(())
    }

    /// Whether it is still drawn on; not so behind a panic.
    pub(super) fn is_ours(&self) -> bool {
        IS_TAKEN.load(Ordering::Acquire)
    }

    /// Gives the terminal back for a while.
    pub(super) fn pause(&self) {
        give_back();
    }

    pub(super) fn resume(&mut self) -> anyhow::Result<()> {
        begin(self.has_mouse)?;
        self.forget()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn begin(has_mouse: bool) -> anyhow::Result<()> {
    enable_raw_mode().context("the terminal cannot be drawn on")?;
    IS_TAKEN.store(true, Ordering::Release);
    print::set_drawn(true);
    // What is pasted comes as one, and not as keys: a word with a `y` in it must not agree to anything.
    let begun = execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
        .and_then(|()| if has_mouse { execute!(io::stdout(), EnableMouseCapture) } else { Ok(()) });
    if begun.is_err() {
        give_back();
    }
    begun.context("the terminal cannot be drawn on")
}

/// As it was before. A terminal that went away needs nothing.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::AcqRel) {
        let _ =
            execute!(io::stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
        print::set_drawn(false);
    }
}
