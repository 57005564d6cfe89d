//! Random commands against the databases and a small reference model, compared after every command.
//!
//! ```text
//!   command.rs: dice ─▶ deed ─▶ side.rs: every database does it ─▶ what it answers and shows, without ids
//!                         │                                                     │ equal on both
//!                         └──▶ truth.rs: what it means, from scratch ◀── law.rs: compared; who was let through is
//!                                                                        the store's choice, and must be lawful
//! ```
//! The model knows nothing of `keeper/`: it keeps no counts, no lines and no wake-ups, and looks at everything anew each
//! time. Time stands still but for `Advance`, which promotes, so that at all times nobody may wait behind open gates.

mod command;
mod consequences;
mod law;
mod side;
mod spec;
mod truth;

use std::sync::LazyLock;

use laneway_core::state::{RunStatus, TaskStatus};
use proptest::test_runner::Config;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use tokio::runtime::Runtime;

use crate::harness::{Database, START};
use crate::random::prove;
use command::{Ask, Command, Commands, Deed, Dice, said};
use law::SeenRun;
use side::{Counts, KINDS, Side};
use truth::{ClaimAt, Reply, Session, Truth, refused};

#[test]
fn store_does_what_the_model_says() {
    let cases = Commands::sequential_strategy(10..50);
    prove("store_does_what_the_model_says", 400, cases, |(runs, commands, seen)| {
        Machine::<false>::test_sequential(Config::default(), runs, commands, seen);
    });
}

#[test]
fn both_databases_do_what_the_model_says_and_tell_the_same_story() {
    let cases = Commands::sequential_strategy(10..50);
    let name = "both_databases_do_what_the_model_says_and_tell_the_same_story";
    prove(name, 60, cases, |(runs, commands, seen)| {
        Machine::<true>::test_sequential(Config::default(), runs, commands, seen);
    });
}

/// One for all cases: to make one takes longer than a command.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads can be started")
});

struct Machine<const BOTH: bool>;

impl<const BOTH: bool> StateMachineTest for Machine<BOTH> {
    type SystemUnderTest = World;
    type Reference = Commands;

    fn init_test(_: &usize) -> World {
        let databases: &[Database] =
            if BOTH { &[Database::Sqlite, Database::Postgres] } else { &[Database::Sqlite] };
        RUNTIME.block_on(World::new(databases))
    }

    fn apply(mut world: World, _: &usize, command: Command) -> World {
        RUNTIME.block_on(world.play(command));
        world
    }
}

/// What a database said and showed.
type Answer = (Reply, Vec<ClaimAt>, Vec<SeenRun>, Option<Counts>);

struct World {
    sides: Vec<Side>,
    truth: Truth,
    /// Claims that were, and may not be any more.
    claims: Vec<ClaimAt>,
}

impl World {
    async fn new(databases: &[Database]) -> Self {
        let sides = databases.iter().map(|database| Side::new(*database)).collect();
        let mut world = Self { sides, truth: Truth::new(START.0), claims: Vec::new() };
        for kind in 0..KINDS.len() {
            world.act(Deed::Register(kind)).await;
        }
        world
    }

    async fn play(&mut self, command: Command) {
        if let Some(deed) = self.deed(command) {
            self.act(deed).await;
        }
    }

    async fn act(&mut self, deed: Deed) {
        self.truth.log.push(format!("{deed:?}"));
        let mut expected = self.tell(&deed);
        self.truth.settle();
        let mut first: Option<Answer> = None;
        for side in &mut self.sides {
            let (reply, claims) = side.act(&deed).await;
            let seen = side.look().await;
            // Many questions, whose answers change with few deeds.
            let counts = if self.truth.log.len().is_multiple_of(4) { Some(side.count().await) } else { None };
            match &first {
                None => first = Some((reply, claims, seen, counts)),
                Some(first) => {
                    assert_eq!((&reply, &claims, &counts), (&first.0, &first.1, &first.3), "after {deed:?}");
                    for (other, one) in seen.iter().zip(&first.2) {
                        assert_eq!(other.told, one.told, "both tell the same of {deed:?}");
                        let (other, one) = (
                            (other.status, other.pauses, &other.tasks),
                            (one.status, one.pauses, &one.tasks),
                        );
                        assert_eq!(other, one, "after {deed:?}");
                    }
                }
            }
        }
        let (reply, mut claims, seen, counts) = first.expect("there is a database");
        if let Reply::Status(status) = &mut expected
            && let Deed::Cancel(run, _) = deed
        {
            *status = self.truth.runs[run].status;
        }
        assert_eq!(reply, expected, "the answer to {deed:?}: {:#?}", self.truth);
        self.truth.adopt(&seen);
        let ask = match &deed {
            Deed::Claim(ask) => Some(*ask),
            Deed::Finish(_, _, ask) => *ask,
            _ => None,
        };
        // A renewal says what is held already.
        if let Deed::Renew(session) = deed {
            assert_eq!(claims, self.truth.held_by(session), "what a renewal says: {:#?}", self.truth);
            claims.clear();
        }
        let due = ask.map(|ask| self.truth.claim(ask.session, ask.run, ask.limit)).unwrap_or_default();
        assert_eq!(claims, due, "the claims of {deed:?}: {:#?}", self.truth);
        self.claims.extend(claims);
        self.truth.compare(&seen);
        if let Some(counts) = counts {
            assert_eq!(counts, self.count(), "after {deed:?}: {:#?}", self.truth);
        }
    }

    /// Writes down what a deed says, and gives the answer that it is due.
    fn tell(&mut self, deed: &Deed) -> Reply {
        let truth = &mut self.truth;
        match deed {
            Deed::Submit(doc, by, key) => return truth.submit(doc, *by, *key),
            Deed::Start(claim) => return truth.start(*claim),
            Deed::Finish(claim, said, _) => return truth.finish(*claim, *said),
            Deed::GiveBack(claim) => return truth.give_back(*claim),
            Deed::Cancel(run, mode) => {
                truth.cancel(*run, *mode);
                return Reply::Status(RunStatus::Canceled);
            }
            Deed::Retry(run, from) => return truth.retry(*run, *from),
            Deed::Skip(run, step) => return truth.skip(*run, *step),
            Deed::Signal(run, step) => return truth.signal(*run, *step),
            Deed::PauseRun(run) => {
                if truth.runs[*run].status.is_final() {
                    return refused("Ended");
                }
                truth.runs[*run].is_paused = true;
                truth.withdraw(*run);
            }
            Deed::ResumeRun(run) => truth.runs[*run].is_paused = false,
            Deed::PauseFlow(flow) => {
                truth.paused_flows.insert(*flow);
                truth.unended(*flow).into_iter().for_each(|run| truth.withdraw(run));
            }
            Deed::ResumeFlow(flow) => {
                truth.paused_flows.remove(flow);
            }
            Deed::SetLimit(name, bound) => {
                truth.limits.insert(name, *bound);
            }
            Deed::Drain(session) => truth.drain(*session),
            Deed::Reap => {
                let dead =
                    |session: &usize| !self.sides[0].lives(*session) && !truth.sessions[*session].is_over;
                let dead: Vec<usize> = (0..truth.sessions.len()).filter(dead).collect();
                let tasks = dead.iter().map(|session| truth.reap(*session)).sum();
                return Reply::Reaped(dead.len(), tasks);
            }
            Deed::Retire(session) => {
                truth.reap(*session);
            }
            Deed::Register(kind) => {
                let (zone, has_function) = KINDS[*kind];
                truth.sessions.push(Session { zone, has_function, is_draining: false, is_over: false });
            }
            Deed::Adopt(run, session) => return truth.adopt_run(*run, *session),
            Deed::Advance(millis) => truth.come_to(truth.now + millis),
            Deed::Claim(_) | Deed::Die(_) | Deed::Renew(_) => {}
        }
        Reply::Done
    }

    /// What of all that there is a command is about; `None` if there is nothing of the kind.
    fn deed(&self, command: Command) -> Option<Deed> {
        let truth = &self.truth;
        let living: Vec<usize> =
            (0..truth.sessions.len()).filter(|session| self.sides[0].lives(*session)).collect();
        let dead = truth.sessions.iter().filter(|session| !session.is_over).count() - living.len();
        let runs: Vec<usize> = (0..truth.runs.len()).collect();
        let held: Vec<ClaimAt> =
            (0..truth.sessions.len()).flat_map(|session| truth.held_by(session)).collect();
        let run_with = |wanted: TaskStatus, dice: Dice| {
            let has = |run: &usize| truth.runs[*run].tasks.iter().any(|task| task.status.0 == wanted);
            pick(&runs.iter().copied().filter(has).collect::<Vec<_>>(), dice).or(pick(&runs, dice))
        };
        Some(match command {
            Command::Submit { doc, by, key } => {
                // A document that was made at random is hardly ever that of the key: every second
                // time it is.
                let again = truth.keyed(key).filter(|_| by % 2 == 0);
                let doc = again.map_or(doc, |doc| Box::new(doc.clone()));
                Deed::Submit(doc, pick(&living, by)?, key)
            }
            Command::Claim { by, run, limit } => {
                let local: Vec<usize> =
                    runs.iter().copied().filter(|run| !truth.runs[*run].doc.is_shared).collect();
                let run = run.and_then(|dice| pick(&local, dice));
                Deed::Claim(Ask { session: pick(&living, by)?, run, limit })
            }
            Command::Start(which) => Deed::Start(pick(&held, which)?),
            Command::Finish { which, how, next } => {
                let claim = pick(&held, which)?;
                let run = (!truth.runs[claim.at.0].doc.is_shared).then_some(claim.at.0);
                let ask = next.filter(|_| living.contains(&claim.session));
                let ask = ask.map(|limit| Ask { session: claim.session, run, limit });
                Deed::Finish(claim, said(how, truth.task(claim.at).stop), ask)
            }
            Command::GiveBack(which) => Deed::GiveBack(pick(&held, which)?),
            Command::Stale { which, what } => {
                let stale: Vec<ClaimAt> =
                    self.claims.iter().copied().filter(|claim| !held.contains(claim)).collect();
                let claim = pick(&stale, which)?;
                match what % 3 {
                    0 => Deed::Start(claim),
                    1 => Deed::GiveBack(claim),
                    _ => Deed::Finish(claim, said(what, None), None),
                }
            }
            Command::Cancel(run, mode) => Deed::Cancel(pick(&runs, run)?, mode),
            Command::Retry { run, from } => {
                let ended: Vec<usize> =
                    runs.iter().copied().filter(|run| truth.runs[*run].status.is_final()).collect();
                let run = pick(&ended, run).or(pick(&runs, run))?;
                Deed::Retry(run, from.map(|dice| usize::from(dice) % truth.runs[run].tasks.len()))
            }
            Command::Skip { run, step } => {
                let run = run_with(TaskStatus::Failed, run)?;
                Deed::Skip(run, usize::from(step) % truth.runs[run].tasks.len())
            }
            // Mostly one that waits, or will; now and then one that does not.
            Command::Signal { run, step } => {
                let run = run_with(TaskStatus::Parked, run)?;
                let all: Vec<usize> = (0..truth.runs[run].tasks.len()).collect();
                let waits = |step: &usize| truth.runs[run].wants(*step).wait.is_some();
                let waiting: Vec<usize> = all.iter().copied().filter(waits).collect();
                let step =
                    if step.is_multiple_of(8) { None } else { pick(&waiting, step) }.or(pick(&all, step))?;
                Deed::Signal(run, step)
            }
            Command::Pause { is_flow: true, which } => {
                Deed::PauseFlow(usize::from(which) % spec::FLOWS.len())
            }
            Command::Pause { is_flow: false, which } => Deed::PauseRun(pick(&runs, which)?),
            Command::Resume { is_flow: true, which } => {
                let paused: Vec<usize> = truth.paused_flows.iter().copied().collect();
                Deed::ResumeFlow(pick(&paused, which).unwrap_or_default())
            }
            Command::Resume { is_flow: false, which } => {
                let paused: Vec<usize> =
                    runs.iter().copied().filter(|run| truth.runs[*run].is_paused).collect();
                Deed::ResumeRun(pick(&paused, which).or(pick(&runs, which))?)
            }
            Command::SetLimit(name, bound) => Deed::SetLimit(name, bound),
            Command::Drain(which) => Deed::Drain(pick(&living, which)?),
            // One dead at a time: in which order several are found is nobody's promise. Somebody is
            // left to find it.
            Command::Die(which) if dead == 0 && living.len() > 1 => Deed::Die(pick(&living, which)?),
            Command::Die(_) => return None,
            Command::Reap if living.is_empty() => return None,
            Command::Reap => Deed::Reap,
            Command::Retire(which) if living.len() > 1 => Deed::Retire(pick(&living, which)?),
            Command::Retire(_) => return None,
            Command::Register(kind) if living.len() < 5 => Deed::Register(usize::from(kind) % KINDS.len()),
            Command::Register(_) => return None,
            Command::Renew(which) => Deed::Renew(pick(&living, which)?),
            // To adopt from a dead owner is to reap it first, which is a deed of its own.
            Command::Adopt { .. } if dead > 0 => return None,
            Command::Adopt { run, by } => Deed::Adopt(pick(&runs, run)?, pick(&living, by)?),
            Command::Advance(millis) => Deed::Advance(millis),
        })
    }

    /// What the store should count.
    fn count(&self) -> Counts {
        let truth = &self.truth;
        let living: Vec<usize> =
            (0..truth.sessions.len()).filter(|session| self.sides[0].lives(*session)).collect();
        let stops = |session: usize| {
            let held = truth.held_by(session).into_iter();
            held.filter_map(|claim| Some((claim, truth.task(claim.at).stop?))).collect()
        };
        let holders = |limit: &str| {
            let of_run = |run: &truth::Run| {
                let holds = |p: &usize| run.tasks[*p].is_live() && run.wants(*p).limits.contains(&limit);
                (0..run.tasks.len()).filter(holds).count()
            };
            truth.runs.iter().map(of_run).sum::<usize>() as u32
        };
        Counts {
            stops: living.iter().map(|session| (*session, stops(*session))).collect(),
            holders: truth.limits.keys().map(|name| ((*name).to_owned(), holders(name))).collect(),
            held: living.iter().map(|session| (*session, truth.held_by(*session).len() as u32)).collect(),
        }
    }
}

fn pick<T: Copy>(all: &[T], dice: Dice) -> Option<T> {
    if all.is_empty() { None } else { Some(all[usize::from(dice) % all.len()]) }
}
