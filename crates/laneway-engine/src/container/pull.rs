//! A pull as it is told, in a log or as events: few enough to be read, often enough to see that it goes on. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::docker::Progress;

/// Between lines.
const EVERY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Pulling {
    image: String,
    /// By layer: bytes of it that are there, and how many it has.
    layers: BTreeMap<String, (u64, u64)>,
    told_at: Option<Instant>,
}

impl Pulling {
    pub(super) fn of(image: &str) -> Self {
        Self { image: image.to_owned(), layers: BTreeMap::new(), told_at: None }
    }

    /// A line, if it is time for one. The first says at once that something is pulled.
    pub(super) fn line(&mut self, progress: &Progress, now: Instant) -> Option<String> {
        let (have, of) = self.told(progress, now)?;
        Some(match of {
            0 => format!("pulling {}: {}", self.image, progress.status),
            _ => format!("pulling {}: {} of {} MiB", self.image, have >> 20, of >> 20),
        })
    }

    /// Bytes that are there, of those that are known of, if it is time to tell.
    pub(super) fn told(&mut self, progress: &Progress, now: Instant) -> Option<(u64, u64)> {
        if let (Some(layer), Some(bytes), "Downloading") =
            (&progress.layer, progress.bytes, progress.status.as_str())
        {
            self.layers.insert(layer.clone(), bytes);
        }
        let is_due = self.told_at.is_none_or(|told_at| now.duration_since(told_at) >= EVERY);
        if !is_due {
            return None;
        }
        self.told_at = Some(now);
        Some(self.layers.values().fold((0, 0), |sum, layer| (sum.0 + layer.0, sum.1 + layer.1)))
    }

    /// All of it, once it is there; `None` if nothing was pulled.
    pub(super) fn done(&self) -> Option<(u64, u64)> {
        self.told_at?;
        let of = self.layers.values().map(|layer| layer.1).sum();
        Some((of, of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_says_at_once_that_it_is_one_and_then_now_and_then_how_far_it_is() {
        let mut pulling = Pulling::of("busybox:1");
        let begun = Instant::now();
        let step = |status: &str, layer: &str, bytes| Progress {
            layer: Some(layer.to_owned()),
            status: status.to_owned(),
            bytes,
        };
        let first = pulling.line(&step("Pulling fs layer", "a", None), begun);
        assert_eq!(first.as_deref(), Some("pulling busybox:1: Pulling fs layer"));
        let part = Some((2 << 20, 10 << 20));
        assert_eq!(pulling.line(&step("Downloading", "a", part), begun + EVERY / 2), None);
        let later = pulling.line(&step("Downloading", "b", Some((1 << 20, 1 << 20))), begun + EVERY);
        assert_eq!(later.as_deref(), Some("pulling busybox:1: 3 of 11 MiB"));
        assert_eq!(pulling.done(), Some((11 << 20, 11 << 20)));
        assert_eq!(Pulling::of("busybox:1").done(), None, "it was there");
    }
}
