//! Random commands. They name what they are about by dice, because what there is to name is known only when they are
//! played; `mod.rs` makes deeds of them. Owns how likely each is.

use laneway_core::reason::Reason;
use laneway_store::model::CancelMode;
use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;

use super::spec::{Bound, Doc, docs};
use super::truth::{ClaimAt, Said};

/// Runs of one case: enough to stand in each other's way.
const RUNS: usize = 5;

/// A number that picks one of however many there are.
pub(super) type Dice = u8;

#[derive(Debug, Clone)]
pub(super) enum Command {
    Submit {
        doc: Box<Doc>,
        by: Dice,
        key: Option<u8>,
    },
    Claim {
        by: Dice,
        run: Option<Dice>,
        limit: usize,
    },
    Start(Dice),
    Finish {
        which: Dice,
        how: Dice,
        next: Option<usize>,
    },
    GiveBack(Dice),
    /// Says something of a claim that is not current any more.
    Stale {
        which: Dice,
        what: Dice,
    },
    Cancel(Dice, CancelMode),
    Retry {
        run: Dice,
        from: Option<Dice>,
    },
    Skip {
        run: Dice,
        step: Dice,
    },
    Signal {
        run: Dice,
        step: Dice,
    },
    Pause {
        is_flow: bool,
        which: Dice,
    },
    Resume {
        is_flow: bool,
        which: Dice,
    },
    SetLimit(&'static str, Bound),
    Drain(Dice),
    Die(Dice),
    Reap,
    Retire(Dice),
    Register(Dice),
    Renew(Dice),
    Adopt {
        run: Dice,
        by: Dice,
    },
    Advance(i64),
}

/// A command with the names of what it is about.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    Submit(Box<Doc>, usize, Option<u8>),
    Claim(Ask),
    Start(ClaimAt),
    Finish(ClaimAt, Said, Option<Ask>),
    GiveBack(ClaimAt),
    Cancel(usize, CancelMode),
    Retry(usize, Option<usize>),
    Skip(usize, usize),
    Signal(usize, usize),
    PauseRun(usize),
    ResumeRun(usize),
    PauseFlow(usize),
    ResumeFlow(usize),
    SetLimit(&'static str, Bound),
    Drain(usize),
    Die(usize),
    Reap,
    Retire(usize),
    /// Which kind of node.
    Register(usize),
    Renew(usize),
    Adopt(usize, usize),
    Advance(i64),
}

/// A request for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) session: usize,
    pub(super) run: Option<usize>,
    pub(super) limit: usize,
}

/// How the holder of a claim ends it; one that is asked to stop mostly does.
pub(super) fn said(how: Dice, stop: Option<Reason>) -> Said {
    match (stop, how % 8) {
        (Some(reason), 0..=4) => Said::Canceled(reason),
        (_, 5) => Said::Failed(Reason::Exit),
        (_, 6) => Said::Failed(Reason::Timeout),
        (_, _) => Said::Succeeded,
    }
}

/// Drives what is made: the number of runs so far is all that it has to know.
#[derive(Debug)]
pub(super) struct Commands;

impl ReferenceStateMachine for Commands {
    type State = usize;
    type Transition = Command;

    fn init_state() -> BoxedStrategy<usize> {
        Just(0).boxed()
    }

    fn transitions(runs: &usize) -> BoxedStrategy<Command> {
        if *runs < 2 { submit().boxed() } else { prop_oneof![2 => submit(), 20 => others()].boxed() }
    }

    fn apply(runs: usize, command: &Command) -> usize {
        runs + usize::from(matches!(command, Command::Submit { .. }))
    }

    fn preconditions(runs: &usize, command: &Command) -> bool {
        *runs < RUNS || !matches!(command, Command::Submit { .. })
    }
}

fn submit() -> impl Strategy<Value = Command> {
    (docs(), any::<Dice>(), select(vec![None, None, None, Some(1), Some(2)]))
        .prop_map(|(doc, by, key)| Command::Submit { doc: Box::new(doc), by, key })
}

fn others() -> impl Strategy<Value = Command> {
    let dice = any::<Dice>;
    let limits = select(vec![
        ("cap", Bound::AtOnce(1)),
        ("cap", Bound::AtOnce(2)),
        ("cap", Bound::AtOnce(3)),
        ("tight", Bound::AtOnce(1)),
        ("tight", Bound::AtOnce(2)),
        ("rate", Bound::Every(2_000)),
        ("rate", Bound::Every(600)),
        ("rate", Bound::AtOnce(1)),
        ("cap", Bound::Every(1_000)),
    ]);
    prop_oneof![
        12 => (dice(), prop::option::of(dice()), 1..4_usize)
            .prop_map(|(by, run, limit)| Command::Claim { by, run, limit }),
        4 => dice().prop_map(Command::Start),
        14 => (dice(), dice(), prop::option::of(1..3_usize))
            .prop_map(|(which, how, next)| Command::Finish { which, how, next }),
        2 => dice().prop_map(Command::GiveBack),
        1 => (dice(), dice()).prop_map(|(which, what)| Command::Stale { which, what }),
        2 => (dice(), select(vec![CancelMode::CleanUp, CancelMode::CleanUp, CancelMode::Now]))
            .prop_map(|(run, mode)| Command::Cancel(run, mode)),
        3 => (dice(), prop::option::of(dice())).prop_map(|(run, from)| Command::Retry { run, from }),
        2 => (dice(), dice()).prop_map(|(run, step)| Command::Skip { run, step }),
        4 => (dice(), dice()).prop_map(|(run, step)| Command::Signal { run, step }),
        2 => (any::<bool>(), dice()).prop_map(|(is_flow, which)| Command::Pause { is_flow, which }),
        3 => (any::<bool>(), dice()).prop_map(|(is_flow, which)| Command::Resume { is_flow, which }),
        2 => limits.prop_map(|(name, bound)| Command::SetLimit(name, bound)),
        1 => dice().prop_map(Command::Drain),
        1 => dice().prop_map(Command::Die),
        2 => Just(Command::Reap),
        1 => dice().prop_map(Command::Retire),
        2 => dice().prop_map(Command::Register),
        1 => dice().prop_map(Command::Renew),
        1 => (dice(), dice()).prop_map(|(run, by)| Command::Adopt { run, by }),
        8 => select(vec![1, 500, 1_000, 2_000, 3_000, 70_000]).prop_map(Command::Advance),
    ]
}
