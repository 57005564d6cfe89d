//! The loop: takes what happens, lets the model decide, does what that wants, and draws when something changed. Between two
//! frames lie at least 50 ms; while nothing happens, nothing is done.
//!
//! ```text
//!   keyboard thread ─┐
//!   hints task ──────┼──▶ loop ──▶ update ──▶ effects ──▶ loader, acts ──┐
//!   signals, clock ──┘     ▲                                             │
//!                          └────────────────── answers ◀─────────────────┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::act::act;
use super::action::Action;
use super::load::{Loader, told};
use super::look::Look;
use super::message::{Answer, Effect, Message};
use super::model::{Model, Pace};
use super::screen::Screen;
use super::update::{looks, open_run, update};
use super::view::view;
use crate::command::Context;
use crate::drive::{self, DriveArgs, Until};
use crate::env;
use crate::face::Face;
use crate::hints::{Hint, Hints};

/// Between two frames: twenty a second are more than anybody reads.
const FRAME: Duration = Duration::from_millis(50);

/// How often a log is looked at that grows.
const LOG: Duration = Duration::from_millis(250);

/// How many messages wait to be taken. Whoever is too fast waits.
const WAITING: usize = 256;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// The run to begin with.
    pub(crate) begin: Option<RunId>,
    pub(crate) look: Look,
    pub(crate) has_mouse: bool,
}

pub(crate) async fn run(
    context: &Context,
    (place, face): (&str, Face),
    options: Options,
) -> anyhow::Result<()> {
    let mut session = Session::begin(context, (place, face), options)?;
    let outcome = session.until_over().await;
    session.hints.abort();
    // What the next commands print must stand on the person's own screen.
    drop(session);
    outcome
}

struct Session<'a> {
    context: &'a Context,
    face: Face,
    model: Model,
    screen: Screen,
    loader: Loader,
    answers: mpsc::UnboundedReceiver<super::load::Loaded>,
    messages: mpsc::Receiver<Message>,
    send: mpsc::Sender<Message>,
    look_at: watch::Sender<Option<(RunId, u64)>>,
    hints: AbortHandle,
    signals: Signals,
}

/// What ends it from outside.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let of = |kind| signal(kind).context("signals cannot be listened to");
        Ok(Self {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
            hang_up: of(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

impl<'a> Session<'a> {
    fn begin(context: &'a Context, (place, face): (&str, Face), options: Options) -> anyhow::Result<Self> {
        // Before the terminal is taken: whatever comes then gives it back.
        let signals = Signals::listen()?;
        let screen = Screen::take(options.has_mouse)?;
        let mut model = Model::new(options.look, place.to_owned(), now());
        model.size = screen.size()?;
        model.is_remote = face.is_remote();
        let (send, messages) = mpsc::channel(WAITING);
        let (look_at, looked_at) = watch::channel(None);
        let (loader, answers) = Loader::new(face.clone());
        let hints = tokio::spawn(listen(Hints::new(&face), looked_at, send.clone())).abort_handle();
        keyboard(send.clone());
        let mut session =
            Self { context, face, model, screen, loader, answers, messages, send, look_at, hints, signals };
        if let Some(run) = options.begin {
            let effects = open_run(&mut session.model, run);
            session.load(effects);
        }
        let effects = looks(&session.model);
        session.load(effects);
        Ok(session)
    }

    /// Of effects that come before the loop only loads matter.
    fn load(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Load(load) = effect {
                self.loader.ask(load);
            }
        }
    }

    async fn until_over(&mut self) -> anyhow::Result<()> {
        let mut next_frame = Instant::now();
        let mut next_tick = Instant::now();
        loop {
            // A panic elsewhere has given the terminal back, and said so.
            anyhow::ensure!(self.screen.is_ours(), "a part of the program has panicked");
            if self.model.is_dirty && Instant::now() >= next_frame {
                self.model.is_dirty = false;
                self.screen.draw(&self.model)?;
                next_frame = Instant::now() + FRAME;
            }
            let is_dirty = self.model.is_dirty;
            let tick = match self.model.pace() {
                Pace::Still => None,
                Pace::Seconds => Some(Duration::from_secs(1)),
                Pace::Log => Some(LOG),
            };
            if let Some(tick) = tick {
                next_tick = next_tick.min(Instant::now() + tick);
            }
            let message = tokio::select! {
                biased;
                () = self.signals.next() => return Ok(()),
                message = self.messages.recv() => message,
                Some(loaded) = self.answers.recv() => {
                    self.loader.done(&loaded);
                    Some(Message::Answer(loaded.answer))
                }
                () = sleep_until(next_frame), if is_dirty => continue,
                () = sleep_until(next_tick), if tick.is_some() => {
                    next_tick = Instant::now() + tick.unwrap_or(FRAME);
                    Some(Message::Clock(now()))
                }
            };
            // Nobody sends any more: the keyboard is gone, and so is the terminal.
            let Some(message) = message else { return Ok(()) };
            if matches!(message, Message::Key(_)) {
                env::panic_if_told();
            }
            for effect in update(&mut self.model, message) {
                if self.carry_out(effect).await? {
                    return Ok(());
                }
            }
        }
    }

    /// Whether that was the end.
    async fn carry_out(&mut self, effect: Effect) -> anyhow::Result<bool> {
        match effect {
            Effect::Load(load) => self.loader.ask(load),
            Effect::LookAt(run) => {
                self.look_at.send_if_modified(|before| {
                    let is_other = before.map(|(run, _)| run) != run.map(|(run, _)| run);
                    *before = run;
                    is_other
                });
            }
            Effect::Act(action) => match self.local(&action).await {
                Ok(None) => {
                    let (face, send) = (self.face.clone(), self.send.clone());
                    tokio::spawn(async move {
                        let _ = send.send(Message::Answer(act(&face, action).await)).await;
                    });
                }
                Ok(Some(run)) => match self.in_the_foreground(run, &action).await? {
                    Some(answer) => self.answered(answer),
                    None => return Ok(true),
                },
                Err(error) => self.answered(Answer::Refused(told(&error))),
            },
            Effect::Redraw => self.screen.forget()?,
            Effect::Suspend => {
                self.screen.pause();
                // The shell goes on from here, and so do we when it lets us.
                let stopped =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP);
                stopped.context("the program cannot be stopped for a while")?;
                self.screen.resume()?;
                self.model.is_dirty = true;
            }
            Effect::Quit => return Ok(true),
        }
        Ok(false)
    }

    fn answered(&mut self, answer: Answer) {
        let effects = update(&mut self.model, Message::Answer(answer));
        self.load(effects);
    }

    /// The run that an act would open and that only a process of its own goes on with.
    async fn local(&self, action: &Action) -> anyhow::Result<Option<RunId>> {
        let run = match action {
            Action::Retry { run, .. } | Action::Skip { run, .. } => *run,
            Action::Cancel { .. }
            | Action::Signal { .. }
            | Action::Pause { .. }
            | Action::Drain { .. }
            | Action::DrainPool { .. } => return Ok(None),
        };
        Ok(self.face.is_local(run).await?.then_some(run))
    }

    /// Goes on with a run of `laneway run` as `laneway retry` does, on the person's own screen. Nothing: there is to be no screen
    /// behind it.
    async fn in_the_foreground(&mut self, run: RunId, action: &Action) -> anyhow::Result<Option<Answer>> {
        let Face::Store(store) = self.face.clone() else {
            return Ok(Some(Answer::Refused("the server goes on with its runs itself".to_owned())));
        };
        let told_until = store.run_state(run).await?.last_event;
        match act(&self.face, action.clone()).await {
            Answer::Done(_) => {}
            refused => return Ok(Some(refused)),
        }
        self.screen.pause();
        let args = DriveArgs::of_settings(&self.context.settings)?;
        let driven =
            drive::take_over(self.context, Arc::clone(&store), run, told_until, (args, Until::Over)).await;
        if let Err(error) = &driven {
            self.context.printer.failure(error);
        }
        // A Ctrl-C that was typed meanwhile was meant for the run, which has taken it. What ends programs is meant for this one too.
        self.signals.interrupt = signal(SignalKind::interrupt()).context("signals cannot be listened to")?;
        self.context.printer.note("\nEnter goes back to the screen");
        loop {
            let message = tokio::select! {
                biased;
                () = self.signals.next() => return Ok(None),
                message = self.messages.recv() => message,
            };
            match message {
                Some(Message::Key(key)) if key.code == KeyCode::Enter => break,
                Some(_) => {}
                None => break,
            }
        }
        self.screen.resume()?;
        Ok(Some(match driven {
            Ok(_) => Answer::Done(format!("run {} has ended", run.short())),
            Err(error) => Answer::Refused(told(&error)),
        }))
    }
}

/// The screen as text, once, after some keys were pressed: for scripts, for reports of bugs and for tests. Nothing is changed:
/// what a key would do to a run is only asked.
pub(crate) async fn once(
    place: &str,
    face: Face,
    options: Options,
    (size, keys): ((u16, u16), &[KeyEvent]),
) -> anyhow::Result<String> {
    let mut model = Model::new(options.look, place.to_owned(), now());
    model.size = size;
    model.is_remote = face.is_remote();
    let (mut loader, mut answers) = Loader::new(face);
    let mut wanted = options.begin.map_or_else(Vec::new, |run| open_run(&mut model, run));
    wanted.extend(looks(&model));
    let mut keys = keys.iter();
    loop {
        for effect in wanted.drain(..) {
            if let Effect::Load(load) = effect {
                loader.ask(load);
            }
        }
        wanted = if loader.is_idle() {
            let Some(key) = keys.next() else { break };
            update(&mut model, Message::Key(*key))
        } else {
            let Some(loaded) = answers.recv().await else { break };
            loader.done(&loaded);
            update(&mut model, Message::Answer(loaded.answer))
        };
    }
    let Ok(mut terminal) = Terminal::new(TestBackend::new(size.0, size.1));
    let Ok(_) = terminal.draw(|frame| view(&model, frame));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in buffer.content().chunks(size.0.into()) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Ok(text)
}

fn now() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}

/// Keys are waited for on a thread of their own, which ends with the program: nothing can wake it but a key.
fn keyboard(send: mpsc::Sender<Message>) {
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let message = match event {
                Event::Key(key) => Message::Key(key),
                Event::Mouse(mouse) => Message::Mouse(mouse),
                Event::Resize(width, height) => Message::Resize(width, height),
                Event::Paste(text) => Message::Paste(text),
                Event::FocusGained | Event::FocusLost => continue,
            };
            if send.blocking_send(message).is_err() {
                return;
            }
        }
    });
}

/// Passes hints on, one at a time.
async fn listen(
    mut hints: Hints,
    mut look_at: watch::Receiver<Option<(RunId, u64)>>,
    send: mpsc::Sender<Message>,
) {
    loop {
        let message = tokio::select! {
            changed = look_at.changed() => {
                if changed.is_err() {
                    return;
                }
                hints.look_at(*look_at.borrow_and_update());
                continue;
            }
            hint = hints.next() => match hint {
                Hint::Look => Message::Hint,
                Hint::Lost(why) => Message::Lost(why),
            },
        };
        if send.send(message).await.is_err() {
            return;
        }
        // A busy store hints with every commit.
        sleep(FRAME).await;
    }
}
