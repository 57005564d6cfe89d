//! One database: does what it is told, and shows what is there, without ids, so that two databases can be compared.
//! After every deed the history of every run is gapless and tells what is stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::class::Offer;
use laneway_core::event::{Event, PauseScope};
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::reason::Reason;
use laneway_core::run_state::replay;
use laneway_store::model::{
    Ask as StoreAsk, Claim, Finished, NewSession, NewSignal, Outcome, Pausable, Reopen, RunView, Signaled,
    Submission, Whom,
};
use laneway_store::{ClaimRef, Error, Store};
use serde_json::{Map, json};

use super::command::{Ask, Deed};
use super::law::{SeenRun, SeenTask};
use super::spec::{Bound, FLOWS};
use super::truth::{ClaimAt, Reply, Said};
use crate::harness::{Database, Node, Place, TOOK, left, submission};

/// Kinds of nodes: their zone, and whether they have the function that steps call.
pub(super) const KINDS: [(Option<&str>, bool); 3] = [(None, true), (Some("eu"), false), (Some("us"), true)];

pub(super) struct Side {
    place: Place,
    /// Of nobody's session: for people, and for those who speak for the dead.
    store: Arc<dyn Store>,
    nodes: Vec<Option<Node>>,
    sessions: Vec<SessionId>,
    runs: Vec<RunId>,
    histories: Vec<Vec<Event>>,
}

/// What the store counts for people.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// By session that lives: what it is asked to stop.
    pub(super) stops: Vec<(usize, Vec<(ClaimAt, Reason)>)>,
    /// By name of a limit: tasks that hold it.
    pub(super) holders: Vec<(String, u32)>,
    /// By session that lives: how many tasks it holds.
    pub(super) held: Vec<(usize, u32)>,
}

impl Side {
    pub(super) fn new(database: Database) -> Self {
        let place = Place::quick(database);
        let store = place.open();
        let (nodes, sessions, runs, histories) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { place, store, nodes, sessions, runs, histories }
    }

    /// Does it, and says what was answered and claimed.
    pub(super) async fn act(&mut self, deed: &Deed) -> (Reply, Vec<ClaimAt>) {
        match self.try_to(deed).await {
            Ok(answer) => answer,
            Err(error) => {
                let text = format!("{error:?}");
                let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
                (Reply::Refused(text[..end].to_owned()), Vec::new())
            }
        }
    }

    async fn try_to(&mut self, deed: &Deed) -> Result<(Reply, Vec<ClaimAt>), Error> {
        let store = &self.store;
        let reply = match deed {
            Deed::Submit(doc, by, key) => {
                let submission = Submission {
                    is_shared: doc.is_shared,
                    is_paused: false,
                    key: key.map(|key| format!("key-{key}")),
                    ..submission(&doc.text(), json!({}), self.sessions[*by])
                };
                let run = self.of(*by).submit(submission).await?;
                Reply::Run(self.number_of(run))
            }
            Deed::Claim(ask) => {
                let claims = self.of(ask.session).claim(self.ask(*ask)).await?;
                return Ok((Reply::Done, self.numbered(claims, ask.session)));
            }
            Deed::Start(claim) => {
                Reply::Fate(self.of(claim.session).start(vec![self.claim(*claim)]).await?[0])
            }
            Deed::GiveBack(claim) => {
                Reply::Fate(self.of(claim.session).give_back(vec![self.claim(*claim)]).await?[0])
            }
            Deed::Finish(claim, said, ask) => {
                let finished = Finished::new(self.claim(*claim), outcome(*said), TOOK);
                let asked = ask.map(|ask| self.ask(ask));
                let answer = self.of(claim.session).finish(vec![finished], asked).await?;
                return Ok((Reply::Fate(answer.fates[0]), self.numbered(answer.claims, claim.session)));
            }
            Deed::Cancel(run, mode) => Reply::Status(store.cancel(self.runs[*run], "ada", *mode).await?),
            Deed::Retry(run, from) => {
                let from = from.map(|step| format!("s{step}"));
                Reply::Steps(store.retry(self.runs[*run], Reopen::now(from.as_deref()), "ada").await?)
            }
            Deed::Skip(run, step) => {
                Reply::Steps(store.skip(self.runs[*run], &format!("s{step}"), "ada").await?)
            }
            Deed::Signal(run, step) => {
                let signal = NewSignal {
                    name: "go".to_owned(),
                    by: "ada".to_owned(),
                    reason: None,
                    payload: Map::new(),
                };
                let signaled = store.signal(self.runs[*run], &format!("s{step}"), signal).await?;
                Reply::Signaled(match signaled {
                    Signaled::Woken => "woken",
                    Signaled::Kept => "kept",
                    Signaled::Before { .. } => "before",
                })
            }
            Deed::PauseRun(run) => changed(store.pause(Pausable::Run(self.runs[*run]), "ada").await?),
            Deed::ResumeRun(run) => changed(store.resume(Pausable::Run(self.runs[*run]), "ada").await?),
            Deed::PauseFlow(flow) => changed(store.pause(workflow(*flow), "ada").await?),
            Deed::ResumeFlow(flow) => changed(store.resume(workflow(*flow), "ada").await?),
            Deed::SetLimit(name, bound) => done(store.set_limit(name, limit(*bound), "ada").await?),
            Deed::Drain(session) => {
                let drained = store.drain(Whom::Node(node_name(*session)), left()).await?;
                assert_eq!(drained, [self.sessions[*session]]);
                Reply::Done
            }
            Deed::Die(session) => {
                self.nodes[*session] = None;
                Reply::Done
            }
            Deed::Reap => {
                let reaper = self.nodes.iter().flatten().next().expect("somebody lives");
                let reaped = reaper.store.reap().await?;
                Reply::Reaped(reaped.nodes.len(), reaped.tasks)
            }
            Deed::Retire(session) => {
                self.of(*session).retire(self.sessions[*session], left()).await?;
                self.nodes[*session] = None;
                Reply::Done
            }
            Deed::Register(kind) => {
                self.register(*kind).await;
                Reply::Done
            }
            Deed::Renew(session) => {
                let renewed = self.nodes[*session].as_ref().expect("it lives").renew().await?;
                let mut held: Vec<ClaimAt> =
                    renewed.held.iter().map(|claim| self.claim_at(*claim, *session)).collect();
                held.sort_unstable();
                return Ok((Reply::Done, held));
            }
            Deed::Adopt(run, session) => {
                done(self.of(*session).adopt(self.runs[*run], self.sessions[*session]).await?)
            }
            Deed::Advance(millis) => {
                self.place.advance(Duration::from_millis(millis.unsigned_abs()));
                store.promote().await?;
                Reply::Done
            }
        };
        Ok((reply, Vec::new()))
    }

    async fn register(&mut self, kind: usize) {
        let (zone, has_function) = KINDS[kind];
        let name = node_name(self.sessions.len());
        let offer = Offer {
            node: name.clone(),
            labels: zone.map(|zone| ("zone".to_owned(), zone.to_owned())).into_iter().collect(),
            has_process: true,
            functions: if has_function { BTreeSet::from(["f".to_owned()]) } else { BTreeSet::new() },
            ..Offer::default()
        };
        let session = NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 4) };
        let node = Node::join(self.place.open(), session).await;
        self.sessions.push(node.session);
        self.nodes.push(Some(node));
    }

    /// The store of a session's process, or another one's once that is dead.
    fn of(&self, session: usize) -> &Arc<dyn Store> {
        self.nodes[session].as_ref().map_or(&self.store, |node| &node.store)
    }

    fn ask(&self, ask: Ask) -> StoreAsk {
        let run = ask.run.map(|run| self.runs[run]);
        StoreAsk { session: self.sessions[ask.session], run, limit: ask.limit, ahead: 0 }
    }

    fn claim(&self, claim: ClaimAt) -> ClaimRef {
        ClaimRef {
            run: self.runs[claim.at.0],
            position: u32::try_from(claim.at.1).expect("few steps"),
            attempt: claim.attempt,
            generation: claim.generation,
            session: self.sessions[claim.session],
        }
    }

    fn number_of(&mut self, run: RunId) -> usize {
        if let Some(known) = self.runs.iter().position(|known| *known == run) {
            return known;
        }
        self.runs.push(run);
        self.histories.push(Vec::new());
        self.runs.len() - 1
    }

    fn numbered(&self, claims: Vec<Claim>, session: usize) -> Vec<ClaimAt> {
        let one = |claim: Claim| self.claim_at(claim.at, session);
        claims.into_iter().map(one).collect()
    }

    fn claim_at(&self, claim: ClaimRef, session: usize) -> ClaimAt {
        assert_eq!(claim.session, self.sessions[session]);
        let run = self.runs.iter().position(|run| *run == claim.run).expect("a run that was submitted");
        let (attempt, generation) = (claim.attempt, claim.generation);
        ClaimAt { at: (run, claim.position as usize), attempt, generation, session }
    }

    /// Everything that is there.
    pub(super) async fn look(&mut self) -> Vec<SeenRun> {
        let mut seen = Vec::new();
        for number in 0..self.runs.len() {
            let run = self.runs[number];
            let view = self.store.run(run).await.expect("a run");
            let after = self.histories[number].len();
            let news = self.store.events_since(run, after as u64, usize::MAX).await.expect("events");
            for (seq, event) in (after as u64 + 1..).zip(&news) {
                assert_eq!(event.seq, seq, "events are numbered from 1 without gaps");
            }
            self.histories[number].extend(news.iter().cloned());
            self.check_replay(number, &view);
            let state = &view.state;
            let has = |scope| state.paused.contains(&scope);
            let told = news.iter().map(|event| self.without_ids(&event.to_json().to_string())).collect();
            seen.push(SeenRun {
                status: state.status,
                pauses: (has(PauseScope::Run), has(PauseScope::Workflow)),
                tasks: tasks(&view),
                news,
                told,
            });
        }
        seen
    }

    fn check_replay(&self, number: usize, view: &RunView) {
        let (names, events) =
            (view.plan.workflow.steps.iter().map(|step| step.name.as_str()), &self.histories[number]);
        let told = replay(names, events).unwrap_or_else(|broken| panic!("{broken}\n{events:#?}"));
        assert_eq!(told, view.state, "what the events tell (left) is what is stored (right)");
    }

    fn without_ids(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (number, run) in self.runs.iter().enumerate() {
            text = text.replace(&run.to_string(), &format!("run-{number}"));
            text = text.replace(&run.short(), &format!("run-{number}"));
        }
        text
    }

    pub(super) async fn count(&self) -> Counts {
        let (mut stops, mut held) = (Vec::new(), Vec::new());
        let nodes = self.store.nodes(0).await.expect("nodes");
        for (session, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            let asked = node.store.orders(node.session).await.expect("an answer").stops;
            let mut asked: Vec<(ClaimAt, Reason)> =
                asked.iter().map(|stop| (self.claim_at(stop.claim, session), stop.reason)).collect();
            asked.sort_unstable_by_key(|(claim, _)| *claim);
            stops.push((session, asked));
            let view = nodes.iter().find(|view| view.session == node.session).expect("a node that lives");
            held.push((session, view.held));
        }
        let limits = self.store.limits().await.expect("limits");
        Counts { stops, held, holders: limits.into_iter().map(|limit| (limit.name, limit.holders)).collect() }
    }

    pub(super) fn lives(&self, session: usize) -> bool {
        self.nodes[session].is_some()
    }
}

fn tasks(view: &RunView) -> Vec<SeenTask> {
    let each = view.state.tasks.iter().zip(&view.causes);
    each.map(|(task, cause)| SeenTask {
        status: task.status,
        attempt: task.attempt,
        reason: task.reason,
        run_at: task.run_at.map(|at| at.0),
        retries: task.retries,
        lost: task.lost,
        gate: cause.as_ref().map(|cause| (cause.gate, cause.key.clone())),
    })
    .collect()
}

/// Whether a pause is new is no part of the model.
fn changed(_: bool) -> Reply {
    Reply::Done
}

fn done((): ()) -> Reply {
    Reply::Done
}

fn workflow(flow: usize) -> Pausable {
    Pausable::Workflow(FLOWS[flow].0.to_owned())
}

fn limit(bound: Bound) -> Limit {
    Limit::parse(&bound.text()).expect("a limit")
}

fn node_name(session: usize) -> String {
    format!("node-{session}")
}

fn outcome(said: Said) -> Outcome {
    match said {
        Said::Succeeded => Outcome::Succeeded { output: Map::new() },
        Said::Canceled(reason) => Outcome::Canceled { reason },
        Said::Failed(reason) => Outcome::Failed { reason, detail: format!("{reason}"), exit_code: None },
    }
}
