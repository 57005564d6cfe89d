//! Cleaning gives way to tasks that begin: both are work of the same engine, and nobody waits for a container to be clean
//! before somebody needs it. Owns how long it gives way; which container is needed is `laneway_core::pool`'s to say.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Under a load that never ends containers are cleaned all the same.
const PATIENCE: Duration = Duration::from_millis(250);

/// How many tasks of a node are about to begin. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Calm(Arc<watch::Sender<usize>>);

/// A task that is about to begin, until this is dropped.
#[derive(Debug)]
pub(super) struct Beginning(Calm);

impl Calm {
    pub(super) fn begin(&self) -> Beginning {
        self.0.send_modify(|count| *count += 1);
        Beginning(self.clone())
    }

    /// Waits until no task is about to begin, or somebody waits for what would be done now, and no longer than is good.
    pub(super) async fn give_way(&self, is_awaited: &mut watch::Receiver<bool>) {
        let mut beginning = self.0.subscribe();
        let calm = async {
            tokio::select! {
                _ = beginning.wait_for(|count| *count == 0) => {}
                _ = is_awaited.wait_for(|is_awaited| *is_awaited) => {}
            }
        };
        let _ = tokio::time::timeout(PATIENCE, calm).await;
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it goes on without time passing.
    async fn goes_on(calm: &Calm, is_awaited: bool) -> bool {
        let (_sender, mut awaited) = watch::channel(is_awaited);
        tokio::time::timeout(Duration::ZERO, calm.give_way(&mut awaited)).await.is_ok()
    }

    #[tokio::test]
    async fn cleaning_waits_for_tasks_that_begin_unless_somebody_waits_for_it() {
        let calm = Calm::default();
        assert!(goes_on(&calm, false).await);
        let (first, second) = (calm.begin(), calm.begin());
        assert!(!goes_on(&calm, false).await);
        assert!(goes_on(&calm, true).await);
        drop(first);
        assert!(!goes_on(&calm, false).await);
        drop(second);
        assert!(goes_on(&calm, false).await);
    }

    #[tokio::test]
    async fn cleaning_does_not_wait_for_ever() {
        let calm = Calm::default();
        let _begins_for_long = calm.begin();
        let (_sender, mut awaited) = watch::channel(false);
        calm.give_way(&mut awaited).await;
    }
}
