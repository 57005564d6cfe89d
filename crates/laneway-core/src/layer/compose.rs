//! Which of several layers wins at each path. Layers are stacked in plan order, so the last one that
//! touches a path wins by itself; `compose` finds the paths at which that would be an accident.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{LayerEntry, LayerManifest};
use crate::definition::OnConflict;

/// Paths that a message names; the rest is counted.
const MAX_NAMED_PATHS: usize = 20;

/// Where a layer stands in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPosition {
    /// Its place in plan order. No two layers share one.
    pub index: usize,
    /// The step that made the layer.
    pub step: String,
    /// Indexes of all layers that the layer was made on top of, with those below them.
    pub after: BTreeSet<usize>,
}

/// A layer to compose.
#[derive(Debug, Clone, Copy)]
pub struct OrderedLayer<'a> {
    pub position: &'a LayerPosition,
    pub manifest: &'a LayerManifest,
}

/// Layers that fit together, stacked in plan order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Composition {
    /// Conflicts that `on_conflict` decided, by path. A view applies these on top of its layers, and
    /// the step's own layer has them, so that later steps do not meet the same conflict again.
    pub decisions: BTreeMap<PathBuf, Decision>,
}

/// What stands at a path that had a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub entry: LayerEntry,
    /// Place of the layer that won among the composed layers, sorted by their index.
    pub layer: usize,
}

/// A path that unordered steps changed in different ways.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerConflict {
    pub path: PathBuf,
    /// In plan order.
    pub steps: Vec<String>,
}

/// All conflicts that nothing decides, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictReport {
    pub conflicts: Vec<LayerConflict>,
}

/// Whether each layer was made on top of all earlier ones. Such layers have no conflicts, so their
/// manifests need not be read.
pub fn is_chain<'a>(layers: impl IntoIterator<Item = &'a LayerPosition>) -> bool {
    let mut layers: Vec<&LayerPosition> = layers.into_iter().collect();
    layers.sort_by_key(|layer| layer.index);
    // To be above the direct predecessor is to be above all: `after` has what is below that one.
    layers.windows(2).all(|pair| pair[1].after.contains(&pair[0].index))
}

/// Composes layers. The result does not depend on the order in which they are given.
///
/// # Errors
/// Returns all paths at which unordered layers disagree and `on_conflict` names none of their steps.
pub fn compose(layers: &[OrderedLayer<'_>], on_conflict: &OnConflict) -> Result<Composition, ConflictReport> {
    let mut layers = layers.to_vec();
    layers.sort_by_key(|layer| layer.position.index);
    if is_chain(layers.iter().map(|layer| layer.position)) {
        return Ok(Composition::default());
    }
    let touches = Touches::of(&layers);
    let mut composition = Composition::default();
    let mut conflicts = Vec::new();
    for path in touches.direct.keys() {
        let latest = touches.latest(path, &layers);
        let Some((_, first)) = latest.first() else { continue };
        if latest.iter().all(|(_, entry)| entry.agrees_with(first)) {
            continue;
        }
        match winner(&latest, &layers, on_conflict) {
            Some((at, entry)) => {
                let decision = Decision { entry: entry.clone(), layer: at };
                composition.decisions.insert(path.to_path_buf(), decision);
            }
            None => {
                let mut steps: Vec<String> = Vec::new();
                for (at, _) in &latest {
                    let step = &layers[*at].position.step;
                    if !steps.contains(step) {
                        steps.push(step.clone());
                    }
                }
                let is_directory = latest.iter().any(|(_, entry)| entry.is_directory());
                conflicts.push((LayerConflict { path: path.to_path_buf(), steps }, is_directory));
            }
        }
    }
    if conflicts.is_empty() {
        composition.prune();
        return Ok(composition);
    }
    Err(ConflictReport { conflicts: without_ancestors(conflicts) })
}

/// Which layers touch which path, by their place among the sorted layers.
struct Touches<'a> {
    direct: BTreeMap<&'a Path, Vec<(usize, &'a LayerEntry)>>,
    /// Layers whose entry at a path hides what others have below it.
    hiding: BTreeMap<&'a Path, Vec<usize>>,
}

impl<'a> Touches<'a> {
    fn of(layers: &[OrderedLayer<'a>]) -> Self {
        let mut touches = Self { direct: BTreeMap::new(), hiding: BTreeMap::new() };
        for (at, layer) in layers.iter().enumerate() {
            for (path, entry) in &layer.manifest.entries {
                touches.direct.entry(path).or_default().push((at, entry));
                if entry.hides_below() {
                    touches.hiding.entry(path).or_default().push(at);
                }
            }
        }
        touches
    }

    /// What the layers leave at a path that no other layer with a part in it was made on top of.
    fn latest(&self, path: &Path, layers: &[OrderedLayer<'a>]) -> Vec<(usize, &'a LayerEntry)> {
        let mut all = self.direct.get(path).cloned().unwrap_or_default();
        for above in path.ancestors().skip(1) {
            for at in self.hiding.get(above).into_iter().flatten() {
                // A layer that hides the path and has an entry there says itself what it has.
                if !all.iter().any(|(other, _)| other == at) {
                    all.push((*at, &LayerEntry::Removed));
                }
            }
        }
        all.sort_by_key(|(at, _)| *at);
        if all.len() < 2 || all.iter().all(|(_, entry)| entry.agrees_with(all[0].1)) {
            return all;
        }
        let is_covered = |at: usize| {
            let index = layers[at].position.index;
            all.iter().any(|(other, _)| layers[*other].position.after.contains(&index))
        };
        all.iter().filter(|(at, _)| !is_covered(*at)).copied().collect()
    }
}

/// The entry of the step that `on_conflict` names, if it has a part in the conflict. Several layers of
/// that step that disagree among themselves decide nothing.
fn winner<'a>(
    latest: &[(usize, &'a LayerEntry)],
    layers: &[OrderedLayer<'_>],
    on_conflict: &OnConflict,
) -> Option<(usize, &'a LayerEntry)> {
    let step = match on_conflict {
        OnConflict::Fail => return None,
        OnConflict::Keep(step) => step,
    };
    let mut own = latest.iter().filter(|(at, _)| layers[*at].position.step == *step);
    let last = own.next_back()?;
    own.all(|(_, entry)| entry.agrees_with(last.1)).then_some(*last)
}

/// A directory that one step removed and others changed is told by what they changed in it.
fn without_ancestors(conflicts: Vec<(LayerConflict, bool)>) -> Vec<LayerConflict> {
    let paths: BTreeSet<PathBuf> = conflicts.iter().map(|(conflict, _)| conflict.path.clone()).collect();
    let has_below = |path: &Path| {
        let after = (std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded);
        paths.range::<Path, _>(after).next().is_some_and(|next| next.starts_with(path))
    };
    let is_told =
        |(conflict, is_directory): &(LayerConflict, bool)| !is_directory || !has_below(&conflict.path);
    conflicts.into_iter().filter(is_told).map(|(conflict, _)| conflict).collect()
}

impl Composition {
    /// Nothing can stand below what is no directory.
    fn prune(&mut self) {
        let mut above: Option<PathBuf> = None;
        self.decisions.retain(|path, decision| {
            if above.as_ref().is_some_and(|above| path.starts_with(above)) {
                return false;
            }
            above = (!decision.entry.is_directory()).then(|| path.clone());
            true
        });
    }
}

impl std::fmt::Display for ConflictReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "steps that do not depend on each other changed the same files in different ways: ")?;
        for (number, conflict) in self.conflicts.iter().take(MAX_NAMED_PATHS).enumerate() {
            let comma = if number == 0 { "" } else { "; " };
            write!(f, "{comma}{} ({})", conflict.path.display(), conflict.steps.join(", "))?;
        }
        match self.conflicts.len().saturating_sub(MAX_NAMED_PATHS) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl std::error::Error for ConflictReport {}

impl ConflictReport {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        "let one step need the other, or let one of them win with `on_conflict: {keep: STEP}` in the step that needs both"
    }
}
