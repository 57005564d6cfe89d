//! Answers that hold until somebody commits something. The store's stamp says whether anybody did, on the spot and for commits
//! of every process, so that what is kept here is as true as what would be read: a revoked token is refused by the next request.
//! A store that has no stamp is read every time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use laneway_core::id::RunId;
use laneway_store::model::Stamp;

use crate::access::ReadToken;

/// Of all runs together; with more, those that are kept go.
const BYTES: usize = 4 << 20;

const TOKENS: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    stamp: Option<Stamp>,
    tokens: HashMap<String, ReadToken>,
    runs: HashMap<RunId, Bytes>,
    /// Of those runs.
    bytes: usize,
}

impl Memo {
    pub(crate) fn token(&self, stamp: Option<Stamp>, id: &str) -> Option<ReadToken> {
        self.with(stamp, |kept| kept.tokens.get(id).cloned()).flatten()
    }

    /// `stamp` was asked for before the token was read.
    pub(crate) fn keep_token(&self, stamp: Option<Stamp>, token: &ReadToken) {
        self.with(stamp, |kept| {
            if kept.tokens.len() >= TOKENS {
                kept.tokens.clear();
            }
            kept.tokens.insert(token.token.id.clone(), token.clone());
        });
    }

    pub(crate) fn run(&self, stamp: Option<Stamp>, run: RunId) -> Option<Bytes> {
        self.with(stamp, |kept| kept.runs.get(&run).cloned()).flatten()
    }

    /// `stamp` was asked for before the run was read.
    pub(crate) fn keep_run(&self, stamp: Option<Stamp>, run: RunId, body: &Bytes) {
        self.with(stamp, |kept| {
            if kept.bytes + body.len() > BYTES {
                kept.runs.clear();
                kept.bytes = 0;
            }
            if body.len() <= BYTES {
                kept.bytes += body.len();
                kept.runs.insert(run, body.clone());
            }
        });
    }

    /// What is kept as of a stamp. Stamps only grow: one that is passed finds nothing, and leaves nothing.
    fn with<T>(&self, stamp: Option<Stamp>, act: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        let stamp = stamp?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.stamp.is_none_or(|last| last < stamp) {
            *kept = Kept { stamp: Some(stamp), ..Kept::default() };
        }
        (kept.stamp == Some(stamp)).then(|| act(&mut kept))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const FIRST: Option<Stamp> = Some(Stamp(1));
    const SECOND: Option<Stamp> = Some(Stamp(2));

    #[test]
    fn what_is_kept_goes_with_the_next_commit_and_never_comes_back() {
        let (memo, run) = (Memo::default(), RunId::new(Uuid::now_v7()));
        memo.keep_run(FIRST, run, &Bytes::from_static(b"old"));
        assert_eq!(memo.run(FIRST, run), Some(Bytes::from_static(b"old")));
        assert_eq!(memo.run(SECOND, run), None, "somebody has committed something");
        memo.keep_run(FIRST, run, &Bytes::from_static(b"old"));
        assert_eq!(memo.run(SECOND, run), None, "what was read before is not kept after");
        assert_eq!(memo.run(FIRST, run), None);
    }

    #[test]
    fn without_a_stamp_nothing_is_kept() {
        let (memo, run) = (Memo::default(), RunId::new(Uuid::now_v7()));
        memo.keep_run(None, run, &Bytes::from_static(b"old"));
        assert_eq!(memo.run(None, run), None);
    }

    #[test]
    fn it_is_bounded() {
        let memo = Memo::default();
        let body = Bytes::from(vec![b'x'; BYTES / 2]);
        let runs: Vec<RunId> = (0..5).map(|_| RunId::new(Uuid::now_v7())).collect();
        runs.iter().for_each(|run| memo.keep_run(FIRST, *run, &body));
        assert_eq!(runs.iter().filter(|run| memo.run(FIRST, **run).is_some()).count(), 1);
        memo.keep_run(FIRST, runs[0], &Bytes::from(vec![b'x'; BYTES + 1]));
        assert_eq!(memo.run(FIRST, runs[0]), None, "larger than all of them may be");
    }
}
