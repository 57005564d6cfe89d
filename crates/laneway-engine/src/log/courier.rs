//! Carries what the attempts of a node print to a store that others read: once a second, everything together.
//!
//! ```text
//!   attempt ─push─▶ bag ──▶ a second passed, somebody waits, or the bag is heavy ──▶ one `keep_logs` ─▶ store
//!   attempt's end ──settle: waits until nothing of it is in the bag or under way ─▶ its `finish`
//! ```
//! A step never waits for it: what finds no room in the bag is dropped, and its log says so. With the node, what is in the
//! bag is lost: the last second.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_store::model::LogPiece;
use laneway_store::{ClaimRef, Fate, Store};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long what was printed waits for company.
const EVERY: Duration = Duration::from_secs(1);

/// How soon a store that could not take it is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What one round carries at most: some milliseconds of compressing.
const ROUND: usize = 4 << 20;

/// What the bag holds at most, of all attempts of the node. It is full only if a flood is faster than the store.
const FULL: usize = 32 << 20;

/// The logs of a node on their way.
#[derive(Debug, Clone)]
pub struct Courier {
    inner: Arc<Inner>,
    /// The rounds end with the last of these.
    _rounds: Arc<Rounds>,
}

/// Where one attempt puts what it prints.
#[derive(Debug, Clone)]
pub struct Sending {
    inner: Arc<Inner>,
    claim: ClaimRef,
}

#[derive(Debug)]
struct Rounds(AbortHandle);

impl Drop for Rounds {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    bag: Mutex<Bag>,
    wake: Notify,
    /// Counts rounds, for whoever waits for one.
    rounds: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Bag {
    /// By place in the log, which is without gaps.
    waiting: HashMap<ClaimRef, (u64, Vec<u8>)>,
    /// In the bag, and under way.
    bytes: usize,
    under_way: HashSet<ClaimRef>,
    /// When what is in it goes at the latest.
    due: Option<Instant>,
    /// Attempts that have ended and wait for their logs.
    waiters: usize,
    /// Attempts whose log the store did not take, and why.
    refused: BTreeMap<(laneway_core::id::RunId, u32, u32), String>,
}

impl Courier {
    /// Inside of a runtime.
    pub fn start(store: Arc<dyn Store>) -> Self {
        let inner = Arc::new(Inner {
            store,
            bag: Mutex::default(),
            wake: Notify::new(),
            rounds: watch::Sender::new(0),
        });
        let rounds = tokio::spawn(carry(Arc::clone(&inner))).abort_handle();
        Self { inner, _rounds: Arc::new(Rounds(rounds)) }
    }

    pub fn sending(&self, claim: ClaimRef) -> Sending {
        Sending { inner: Arc::clone(&self.inner), claim }
    }

    /// Waits until everything that an attempt printed is with the store; an error if some of it will never be.
    pub async fn settle(&self, claim: ClaimRef) -> Result<(), String> {
        let mut rounds = self.inner.rounds.subscribe();
        if !self.inner.bag().has(&claim) {
            return self.inner.bag().verdict(&claim);
        }
        let _waiter = Waiter::new(&self.inner);
        while self.inner.bag().has(&claim) {
            self.inner.wake.notify_one();
            if rounds.changed().await.is_err() {
                break;
            }
        }
        self.inner.bag().verdict(&claim)
    }
}

/// While there is one, rounds follow each other.
struct Waiter<'i>(&'i Inner);

impl<'i> Waiter<'i> {
    fn new(inner: &'i Inner) -> Self {
        inner.bag().waiters += 1;
        Self(inner)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.bag().waiters -= 1;
    }
}

impl Sending {
    /// Puts bytes of the log into the bag, from a place on; all of them or none.
    pub(super) fn push(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let mut bag = self.inner.bag();
        if bag.bytes + bytes.len() > FULL {
            return Err(io::Error::other("the store takes less than the steps of this node print"));
        }
        let was_light = bag.bytes < ROUND;
        let is_first = bag.waiting.is_empty();
        let (_, kept) = bag.waiting.entry(self.claim).or_insert_with(|| (start, Vec::new()));
        kept.extend_from_slice(bytes);
        bag.bytes += bytes.len();
        if is_first {
            bag.due = Some(Instant::now() + EVERY);
        }
        if is_first || was_light && bag.bytes >= ROUND {
            self.inner.wake.notify_one();
        }
        Ok(())
    }
}

impl Bag {
    fn has(&self, claim: &ClaimRef) -> bool {
        self.waiting.contains_key(claim) || self.under_way.contains(claim)
    }

    fn verdict(&mut self, claim: &ClaimRef) -> Result<(), String> {
        self.refused.remove(&key(claim)).map_or(Ok(()), Err)
    }

    /// What the next round carries.
    fn take(&mut self) -> Vec<LogPiece> {
        let (mut pieces, mut room) = (Vec::new(), ROUND);
        let claims: Vec<ClaimRef> = self.waiting.keys().copied().collect();
        for claim in claims {
            if room == 0 {
                break;
            }
            let Some((start, mut bytes)) = self.waiting.remove(&claim) else { continue };
            if bytes.len() > room {
                let rest = bytes.split_off(room);
                self.waiting.insert(claim, (start + room as u64, rest));
            }
            room -= bytes.len();
            self.under_way.insert(claim);
            pieces.push(LogPiece { claim, start, bytes });
        }
        pieces
    }

    /// In front of what came meanwhile.
    fn put_back(&mut self, pieces: Vec<LogPiece>) {
        for LogPiece { claim, start, mut bytes } in pieces {
            if let Some((_, later)) = self.waiting.remove(&claim) {
                bytes.extend_from_slice(&later);
            }
            self.waiting.insert(claim, (start, bytes));
        }
    }
}

impl Inner {
    fn bag(&self) -> MutexGuard<'_, Bag> {
        self.bag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait for the next round; `None` while there is nothing to carry.
    fn patience(&self) -> Option<Duration> {
        let bag = self.bag();
        if bag.waiting.is_empty() {
            return None;
        }
        if bag.waiters > 0 || bag.bytes >= ROUND {
            return Some(Duration::ZERO);
        }
        Some(bag.due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now())))
    }

    async fn round(&self) {
        let pieces = self.bag().take();
        let kept = self.keep(pieces).await;
        let pause = {
            let mut bag = self.bag();
            bag.under_way.clear();
            bag.due = Some(Instant::now() + EVERY);
            let mut later = Vec::new();
            for (piece, kept) in kept {
                match kept {
                    Kept::Later => {
                        later.push(piece);
                        continue;
                    }
                    Kept::Yes => {}
                    // Nobody will ever want the rest of it.
                    Kept::ClaimLost => {
                        if let Some((_, rest)) = bag.waiting.remove(&piece.claim) {
                            bag.bytes -= rest.len();
                        }
                    }
                    Kept::Refused(why) => drop(bag.refused.insert(key(&piece.claim), why)),
                }
                bag.bytes -= piece.bytes.len();
            }
            let pause = if later.is_empty() { Duration::ZERO } else { ASK_AGAIN };
            bag.put_back(later);
            pause
        };
        self.rounds.send_modify(|rounds| *rounds += 1);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    /// All at once; where that is refused each on its own, so that what is wrong with one log is not the others' loss.
    async fn keep(&self, pieces: Vec<LogPiece>) -> Vec<(LogPiece, Kept)> {
        match self.store.keep_logs(pieces.clone()).await {
            Ok(fates) => pieces.into_iter().zip(fates.into_iter().map(Kept::of)).collect(),
            Err(error) if error.is_passing() => {
                pieces.into_iter().map(|piece| (piece, Kept::Later)).collect()
            }
            Err(error) if pieces.len() == 1 => {
                pieces.into_iter().map(|piece| (piece, Kept::Refused(error.to_string()))).collect()
            }
            Err(_) => {
                let mut kept = Vec::with_capacity(pieces.len());
                for piece in pieces {
                    kept.extend(Box::pin(self.keep(vec![piece])).await);
                }
                kept
            }
        }
    }
}

/// What became of a piece.
enum Kept {
    Yes,
    ClaimLost,
    /// The store is busy or away.
    Later,
    Refused(String),
}

impl Kept {
    fn of(fate: Fate) -> Self {
        if fate == Fate::ClaimLost { Self::ClaimLost } else { Self::Yes }
    }
}

fn key(claim: &ClaimRef) -> (laneway_core::id::RunId, u32, u32) {
    (claim.run, claim.position, claim.generation)
}

async fn carry(inner: Arc<Inner>) {
    loop {
        match inner.patience() {
            None => inner.wake.notified().await,
            Some(Duration::ZERO) => inner.round().await,
            Some(patience) => {
                // Woken early where somebody waits, or the bag is heavy: the next look tells.
                drop(tokio::time::timeout(patience, inner.wake.notified()).await);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::definition::{Source, compile};
    use laneway_core::id::SessionId;
    use laneway_store::Open;
    use laneway_store::model::{Ask, LogName, NewSession, Submission};
    use laneway_store::sqlite::SqliteStore;

    use super::*;

    /// Two tasks that somebody has claimed. How a log gets to a store is the same for every store.
    async fn claimed(dir: &std::path::Path) -> (Arc<dyn Store>, Vec<ClaimRef>) {
        let store = SqliteStore::open(&dir.join("laneway.db"), Open::Create).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let session: SessionId = store.register(NewSession::ephemeral("here", 4)).await.expect("a session");
        let text = "steps: {a: {run: 'true'}, b: {run: 'true'}}\n".to_owned();
        let source = Source { file: "flow.yaml".into(), default_name: "flow".into(), text: text.clone() };
        let plan = compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let submission = Submission {
            dir: "/".into(),
            params: serde_json::Map::new(),
            max_parallel: 4,
            by: "ada".into(),
            ..Submission::new(Arc::new(plan), text, session)
        };
        let run = store.submit(submission).await.expect("a run");
        let claims = store.claim(Ask { session, run: Some(run), limit: 2, ahead: 0 }).await.expect("claims");
        (store, claims.iter().map(|claim| claim.at).collect())
    }

    async fn kept(store: &dyn Store, claim: &ClaimRef, step: &str) -> Vec<u8> {
        let of = LogName { run: claim.run, step: step.into(), attempt: claim.attempt };
        store.log(&of, 0, usize::MAX).await.expect("a log").bytes
    }

    #[tokio::test]
    async fn what_was_pushed_is_with_the_store_once_it_is_settled() {
        let dir = tempfile::tempdir().expect("dir");
        let (store, claims) = claimed(dir.path()).await;
        let courier = Courier::start(Arc::clone(&store));
        let (one, two) = (courier.sending(claims[0]), courier.sending(claims[1]));
        one.push(0, b"one ").expect("room");
        two.push(0, b"two").expect("room");
        one.push(4, b"more").expect("room");
        courier.settle(claims[0]).await.expect("settled");
        assert_eq!(kept(&*store, &claims[0], "a").await, b"one more");
        courier.settle(claims[1]).await.expect("settled");
        assert_eq!(kept(&*store, &claims[1], "b").await, b"two");
        assert_eq!(courier.inner.bag().bytes, 0);
    }

    #[tokio::test]
    async fn more_than_a_round_goes_in_order_and_more_than_the_bag_holds_is_refused() {
        let dir = tempfile::tempdir().expect("dir");
        let (store, claims) = claimed(dir.path()).await;
        let courier = Courier::start(Arc::clone(&store));
        let sending = courier.sending(claims[0]);
        let piece: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 7) as u8).collect();
        let mut length = 0;
        // Nothing is carried before this task waits for something.
        while sending.push(length, &piece).is_ok() {
            length += piece.len() as u64;
        }
        assert_eq!(length, FULL as u64);
        courier.settle(claims[0]).await.expect("settled");
        let of = LogName { run: claims[0].run, step: "a".into(), attempt: claims[0].attempt };
        for round in 0..length >> 20 {
            let part = store.log(&of, round << 20, 1 << 20).await.expect("a part");
            assert!(part.bytes == piece, "piece {round}");
        }
        sending.push(length, b"there is room again").expect("room");
    }

    #[tokio::test]
    async fn log_of_a_lost_claim_is_dropped_and_nobody_waits_for_it() {
        let dir = tempfile::tempdir().expect("dir");
        let (store, claims) = claimed(dir.path()).await;
        let courier = Courier::start(Arc::clone(&store));
        let lost = ClaimRef { generation: claims[0].generation + 1, ..claims[0] };
        courier.sending(lost).push(0, b"nobody's").expect("room");
        courier.settle(lost).await.expect("settled");
        assert_eq!(kept(&*store, &lost, "a").await, b"");
        assert_eq!(courier.inner.bag().bytes, 0);
    }

    #[tokio::test]
    async fn what_could_not_be_sent_stands_in_front_of_what_came_meanwhile() {
        let dir = tempfile::tempdir().expect("dir");
        let (_, claims) = claimed(dir.path()).await;
        let mut bag = Bag::default();
        bag.waiting.insert(claims[0], (0, b"first ".to_vec()));
        let pieces = bag.take();
        assert!(bag.has(&claims[0]), "it is under way");
        bag.waiting.insert(claims[0], (6, b"second".to_vec()));
        bag.put_back(pieces);
        assert_eq!(bag.waiting[&claims[0]], (0, b"first second".to_vec()));
    }
}
