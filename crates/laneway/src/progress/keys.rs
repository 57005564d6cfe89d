//! Keeps the terminal from writing `^C` into the lines that move: it would wrap, and shift all of them by one.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The terminal's settings as they were; they are put back when this is dropped.
#[derive(Debug)]
pub(super) struct QuietKeys {
    before: Termios,
}

impl QuietKeys {
    /// `None` where there is nothing to be quiet: stdin is no terminal, or this is a job in the background,
    /// which would be stopped for touching it.
    pub(super) fn begin() -> Option<Self> {
        let stdin = rustix::stdio::stdin();
        if tcgetpgrp(stdin).ok()? != rustix::process::getpgrp() {
            return None;
        }
        let before = tcgetattr(stdin).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHOCTL);
        tcsetattr(stdin, OptionalActions::Now, &quiet).ok()?;
        Some(Self { before })
    }
}

impl Drop for QuietKeys {
    fn drop(&mut self) {
        // A terminal that went away needs no settings.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
