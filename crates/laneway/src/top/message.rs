//! What happens to the model, and what it wants done about it. Closed: whoever adds one is led to every place by the compiler.

use std::sync::Arc;

use laneway_core::id::RunId;
use laneway_core::time::Millis;
use laneway_server::wire;
use laneway_store::model::LogName;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::action::Action;
use super::logs::LogLine;
use super::picture::Picture;

#[derive(Debug)]
pub(super) enum Message {
    Key(KeyEvent),
    /// What was pasted, as one.
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    /// Something may have changed.
    Hint,
    /// The server cannot be listened to.
    Lost(String),
    /// What time it is.
    Clock(Millis),
    Answer(Answer),
}

/// What a load or an act came to.
#[derive(Debug)]
pub(super) enum Answer {
    Runs(Vec<wire::RunSummary>),
    Run(Box<wire::Run>),
    Picture {
        run: RunId,
        picture: Arc<Picture>,
    },
    Explained {
        run: RunId,
        task: String,
        text: String,
    },
    Log(LogPart),
    Nodes(Vec<wire::Node>),
    Pools(Vec<wire::Pool>),
    Limits(Vec<wire::Limit>),
    /// A load did not work. What is shown is old.
    Failed(String),
    /// An act was done, in words.
    Done(String),
    /// An act was refused.
    Refused(String),
}

/// Lines of a log that came since.
#[derive(Debug)]
pub(super) struct LogPart {
    pub(super) of: LogName,
    pub(super) lines: Vec<LogLine>,
    pub(super) next_offset: u64,
    /// There may be more at once.
    pub(super) has_more: bool,
    /// All of an attempt that has ended was read.
    pub(super) is_end: bool,
    pub(super) may_lack_end: bool,
}

/// Something to be asked for. At most one of each is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Load {
    Runs,
    Run(RunId),
    Picture(RunId),
    Explain { run: RunId, task: String },
    Log { of: LogName, offset: u64, is_ended: bool },
    Nodes,
    Pools,
    Limits,
}

/// What the model wants done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// As soon as its turn comes.
    Load(Load),
    Act(Action),
    /// Hints of this run count, from this event on.
    LookAt(Option<(RunId, u64)>),
    /// Draw all of it, whatever was drawn before.
    Redraw,
    /// Give the terminal back for a while, as Ctrl-Z asks for.
    Suspend,
    Quit,
}
