//! Submissions that come at the same time go together: whoever comes while others are being written
//! waits for those, and is written with everybody else who came meanwhile. Nobody waits for
//! company, and one fsync is shared by all of a group.
//!
//! ```text
//!   submit ─▶ waiting ─▶ leader: takes all that wait ─▶ one transaction ─▶ answers ─▶ takes all that wait …
//! ```
//! What cannot be written with others (`enroll::is_plain`) is written alone. If a group fails for a reason that may be one
//! submission's, each of it is written alone, so that it fails alone.

use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::id::RunId;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::model::Submission;
use crate::postgres::base::Base;
use crate::postgres::work::{enroll, submit as alone};

/// Groups that are written at the same time: while one waits for its disk, another is made.
const LEADERS: usize = 2;

/// Steps of one group, beyond its first run: a large transaction would keep the others waiting.
const STEPS: usize = 2_000;

#[derive(Debug, Default)]
pub(in crate::postgres) struct Together {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    leaders: usize,
}

#[derive(Debug)]
struct Waiting {
    run: RunId,
    submission: Submission,
    answer: oneshot::Sender<Result<RunId>>,
}

pub(super) async fn submit(base: &Arc<Base>, submission: Submission) -> Result<RunId> {
    if !enroll::is_plain(&submission) {
        return submit_alone(base, &submission).await;
    }
    let run = RunId::new(Uuid::now_v7());
    let (answer, answered) = oneshot::channel();
    if base.together.join(Waiting { run, submission, answer }) {
        // A task of its own: others must not wait for ever because one of them went away.
        tokio::spawn(lead(Arc::clone(base)));
    }
    answered.await.unwrap_or_else(|_| {
        Err(Error::Closed { why: "the submission was given up with the program's runtime".to_owned() })
    })
}

async fn submit_alone(base: &Base, submission: &Submission) -> Result<RunId> {
    base.change(|link, terms| {
        // A new one whenever it is said again: what is known of a run that was taken back is not
        // true of another.
        let run = RunId::new(Uuid::now_v7());
        async move { alone::submit(&base.shelf, &link, terms, run, submission).await }
    })
    .await
}

impl Together {
    /// Whether there has to be a leader more.
    fn join(&self, waiting: Waiting) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.push(waiting);
        let is_needed = queue.leaders < LEADERS;
        queue.leaders += usize::from(is_needed);
        is_needed
    }

    /// The next group; `None` ends its leader.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps = 0;
        let fits = |waiting: &Waiting| {
            let before = steps;
            steps += waiting.submission.plan.workflow.steps.len();
            before == 0 || steps <= STEPS
        };
        let count = queue.waiting.iter().map(fits).take_while(|fits| *fits).count();
        if count == 0 {
            queue.leaders -= 1;
            return None;
        }
        let rest = queue.waiting.split_off(count);
        Some(std::mem::replace(&mut queue.waiting, rest))
    }
}

/// If one panics, nobody waits for it: who is left is told, and the next submission has a leader
/// again.
struct Lead<'t>(&'t Together);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.leaders -= 1;
            queue.waiting.clear();
        }
    }
}

async fn lead(base: Arc<Base>) {
    let leading = Lead(&base.together);
    while let Some(group) = leading.0.next() {
        let (answers, submissions): (Vec<_>, Vec<_>) =
            group.into_iter().map(|one| (one.answer, (one.run, one.submission))).unzip();
        let said = write(&base, &submissions).await;
        for (answer, said) in answers.into_iter().zip(said) {
            // Whoever asked may be gone; the run is there.
            let _ = answer.send(said);
        }
    }
}

async fn write(base: &Base, submissions: &[(RunId, Submission)]) -> Vec<Result<RunId>> {
    let said = base
        .change(|link, terms| async move { enroll::enroll(&base.shelf, &link, terms, submissions).await })
        .await;
    match said {
        Ok(answers) => answers,
        // One of them may be to blame.
        Err(error) if submissions.len() > 1 && !error.is_passing() => {
            let mut answers = Vec::with_capacity(submissions.len());
            for (_, submission) in submissions {
                answers.push(submit_alone(base, submission).await);
            }
            answers
        }
        Err(error) => submissions.iter().map(|_| Err(error.clone())).collect(),
    }
}
