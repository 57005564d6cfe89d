//! The files of runs that have a bundle: the view in which an attempt works, and the layer that it
//! leaves. Owns which bundle and layers a view is made of, and where the bytes of layers come from
//! and go to; how views are made is in `view/`. docs/design/files.md.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::class::{Class, Lack, lacks};
use laneway_core::definition::{Merge, OnConflict};
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::layer::{LayerEntry, LayerManifest, LayerPosition, OrderedLayer, compose, is_chain};
use laneway_core::merge::{Changes, Entry};
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_store::layer::{Layer, LayerContent, MAX_INLINE_LAYER, NewLayer, Oversize};
use laneway_store::model::{Claim, Placed};
use laneway_store::{Store, private};
use rustix::fs::{Timespec, Timestamps, futimens};
use tokio::runtime::Handle;

use super::kept_dirs::{Hold, KeptDirs};
use crate::bundle;
use crate::view::{self, Captured, EnterOptions, LayerDir, PackedLayer, PlacedFile, View, Views};

/// How many of the largest files a message names.
const NAMED_FILES: usize = 5;

/// The views, bundles and layers of one store on this node.
#[derive(Debug, Clone)]
pub(super) struct RunFiles {
    store: Arc<dyn Store>,
    views: Views,
    bundles: KeptDirs,
    layers: KeptDirs,
    scratch: PathBuf,
    /// The largest view whose layers are stored.
    max_bytes: u64,
}

/// The files of one attempt.
#[derive(Debug)]
pub(super) struct AttemptView {
    view: Arc<View>,
    /// What the view is made of stays unpacked as long as the view is there.
    _made_of: Vec<Hold>,
    /// Size of the layers that the view shows.
    shown_bytes: u64,
    placed: Vec<PlacedFile>,
}

/// What an attempt changed, until it is stored.
#[derive(Debug)]
pub(super) struct Changed {
    captured: Captured,
}

/// Why a step has no view, or its layer cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("its files could not be fetched: {0}")]
    Store(#[from] laneway_store::Error),
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    #[error("{error}{}", error.hint().map(|hint| format!("; {hint}")).unwrap_or_default())]
    View { error: view::Error },
    #[error("{0}; decide with `on_conflict: {{keep: STEP}}`, or let one of the steps need the other")]
    Conflict(String),
    #[error(
        "{0}, and this node does not have them; start that node again and retry the run, raise \
         `workspace_max_bytes`, or let the step leave less"
    )]
    OnOtherNode(String),
    #[error(
        "{layer}; its run is bound to node {node}, which {lack}; give that node what it lacks, raise \
         `workspace_max_bytes`, let the step leave less, or choose a node for the whole run with \
         `placement: pinned`"
    )]
    NotRunnableThere { layer: String, node: String, lack: String },
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<view::Error> for Error {
    fn from(error: view::Error) -> Self {
        Self::View { error }
    }
}

impl Error {
    /// Whether the same call may succeed later: neither a busy store nor a full disk is the step's
    /// fault.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) => error.is_passing(),
            Self::View { error } => error.is_passing(),
            Self::Bundle(bundle::Error::Unwritable { source, .. }) | Self::Io(source) => {
                source.kind() == io::ErrorKind::StorageFull
            }
            Self::Bundle(_) | Self::Conflict(_) | Self::OnOtherNode(_) | Self::NotRunnableThere { .. } => {
                false
            }
        }
    }

    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Conflict(_) => Reason::Conflict,
            Self::Store(_)
            | Self::Bundle(_)
            | Self::View { .. }
            | Self::OnOtherNode(_)
            | Self::NotRunnableThere { .. }
            | Self::Io(_) => Reason::StartFailed,
        }
    }
}

impl AttemptView {
    pub(super) fn dir(&self) -> &Path {
        self.view.dir()
    }

    /// Notes files that Laneway put into the view: untouched, they are no change.
    pub(super) fn note_placed(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        for path in paths {
            let within = path.strip_prefix(self.view.dir()).unwrap_or(path);
            self.placed.push(self.view.placed(within)?);
        }
        Ok(())
    }
}

impl Changed {
    /// The files and symlinks that the attempt wrote, relative to its view.
    pub(super) fn written(&self) -> &BTreeSet<PathBuf> {
        self.captured.written()
    }
}

/// A layer that a view shows, with its place among the others.
struct Shown {
    layer: Layer,
    step: Position,
    /// Place of the step in plan order.
    place: u32,
}

impl RunFiles {
    pub(super) fn new(store: Arc<dyn Store>, home: &Path, scratch: PathBuf, max_bytes: u64) -> Self {
        Self {
            store,
            views: Views::new(home.join("views")),
            bundles: KeptDirs::new(home.join("bundles")),
            layers: KeptDirs::new(home.join("layers")),
            scratch,
            max_bytes,
        }
    }

    /// Makes the view of an attempt: the bundle, and the layers of the steps that it needs.
    pub(super) async fn enter(&self, claim: &Claim, bundle: &ContentHash) -> Result<AttemptView, Error> {
        let shown = self.shown(claim).await?;
        self.check_node(claim, &shown).await?;
        let shown_bytes = shown.iter().map(|shown| shown.layer.bytes).sum();
        let (files, claim, bundle) = (self.clone(), claim.clone(), bundle.clone());
        let (view, made_of) = blocking(move || files.enter_now(&claim, &bundle, &shown)).await?;
        Ok(AttemptView { view: Arc::new(view), _made_of: made_of, shown_bytes, placed: Vec::new() })
    }

    /// The layers that count for a step, in plan order and then in the order of items.
    async fn shown(&self, claim: &Claim) -> Result<Vec<Shown>, Error> {
        let plan = &claim.head.plan;
        let step = plan.base(claim.at.position).unwrap_or(claim.at.position);
        // The first steps of a run see the bundle alone, without a look at the store.
        if plan.needs[step as usize].is_empty() {
            return Ok(Vec::new());
        }
        let layers = self.store.layers(claim.head.run).await?;
        if layers.is_empty() {
            return Ok(Vec::new());
        }
        let sources = plan.file_sources(step);
        let mut shown: Vec<Shown> = layers
            .into_iter()
            .filter_map(|layer| {
                let step = plan.base(layer.position)?;
                Some(Shown { place: sources.place(step)?, step, layer })
            })
            .collect();
        shown.sort_by_key(|shown| (shown.place, shown.layer.position));
        Ok(shown)
    }

    /// Rejects a task that this node cannot run. A task that needs files which are on one node alone is
    /// offered to that node in any case, because no other node can run it either.
    async fn check_node(&self, claim: &Claim, shown: &[Shown]) -> Result<(), Error> {
        let (plan, class) = (&claim.head.plan, claim.head.plan.class_of(claim.at.position));
        let is_asked = claim.head.placed == Placed::Spread && class != Class::of_processes();
        let kept = shown.iter().filter(|shown| is_asked && shown.layer.node.is_some());
        let Some(kept) = kept.max_by_key(|shown| shown.layer.bytes) else { return Ok(()) };
        let nodes = self.store.nodes(0).await?;
        let Some(this) = nodes.iter().find(|node| node.session == claim.at.session) else { return Ok(()) };
        let lacks = this.offer.as_ref().map(|offer| lacks(offer, &class)).unwrap_or_default();
        // An engine that does not answer may do so at the next attempt, and tells by itself.
        let lack = lacks.into_iter().find(|lack| *lack != Lack::Container);
        let Some(lack) = lack else { return Ok(()) };
        let layer = layer_on_node(plan, &kept.layer).unwrap_or_default();
        Err(Error::NotRunnableThere { layer, node: this.node.clone(), lack: lack.to_string() })
    }

    fn enter_now(
        &self,
        claim: &Claim,
        bundle: &ContentHash,
        shown: &[Shown],
    ) -> Result<(View, Vec<Hold>), Error> {
        let mut held = vec![self.bundles.hold([bundle])?];
        let base = self.bundle(bundle)?;
        if !shown.is_empty() {
            held.push(self.layers.hold(shown.iter().map(|shown| &shown.layer.hash))?);
        }
        let mut layers = Vec::with_capacity(shown.len());
        for shown in shown {
            layers.push(LayerDir::open(&self.layer(claim, shown)?)?);
        }
        let options = decide(claim, shown, &layers)?;
        let view = self.views.enter(claim.head.run, &base, &layers, &options)?;
        Ok((view, held))
    }

    fn bundle(&self, hash: &ContentHash) -> Result<PathBuf, Error> {
        self.bundles.get(hash, |fresh| {
            let bytes = Handle::current().block_on(self.store.blob(hash))?;
            bundle::unpack(&bytes, fresh)?;
            // The same on every node: else a source could look newer than what was built of it elsewhere.
            Ok(give_bundle_time(fresh)?)
        })
    }

    fn layer(&self, claim: &Claim, shown: &Shown) -> Result<PathBuf, Error> {
        let Layer { position, hash, .. } = &shown.layer;
        if let Some(layer) = layer_on_node(&claim.head.plan, &shown.layer) {
            return self.layers.find(hash)?.ok_or(Error::OnOtherNode(layer));
        }
        let run = claim.head.run;
        self.layers.get(hash, |fresh| {
            let bytes = self.packed(run, *position, hash)?;
            view::unpack(&bytes, fresh, |hash, to| {
                Handle::current().block_on(self.store.fetch_file(hash, to)).map_err(io::Error::other)
            })?;
            Ok(())
        })
    }

    fn packed(&self, run: RunId, position: Position, hash: &ContentHash) -> Result<Vec<u8>, Error> {
        let inline = Handle::current().block_on(self.store.packed_layer(run, position, hash))?;
        if let Some(bytes) = inline {
            return Ok(bytes);
        }
        let file = self.scratch_file();
        Handle::current().block_on(self.store.fetch_file(hash, &file))?;
        let bytes = std::fs::read(&file);
        drop(std::fs::remove_file(&file));
        Ok(bytes?)
    }

    /// Finds what an attempt changed. Called when its last process has ended.
    pub(super) async fn changes(&self, view: &AttemptView) -> Result<Changed, Error> {
        let (views, view, placed) = (self.views.clone(), Arc::clone(&view.view), view.placed.clone());
        blocking(move || Ok(Changed { captured: views.capture(&view, &placed)? })).await
    }

    /// Stores what an attempt changed, and returns the layer that commits with its end: on this node
    /// alone if it is too large. `None` for no change.
    pub(super) async fn keep(
        &self,
        claim: &Claim,
        view: &AttemptView,
        changed: &Changed,
    ) -> Result<Option<NewLayer>, Error> {
        if changed.captured.is_empty() {
            return Ok(None);
        }
        let captured = changed.captured.clone();
        let packed = blocking(move || Ok(view::pack(&captured)?)).await?;
        let packed = Arc::new(packed);
        // Of many small files the list of their names can be larger than what is in them.
        let own = packed.bytes.max(packed.manifest_and_small.len() as u64);
        let seen = view.shown_bytes.saturating_add(own);
        // Nodes of an embedded store are on one host, whose disk has room or not.
        if self.store.is_embedded() || seen <= self.max_bytes {
            return self.store_layer(&packed).await.map(Some);
        }
        let (files, limit) = (self.clone(), self.max_bytes);
        let oversize = Oversize { bytes: seen, limit, largest: largest(&changed.captured) };
        // The store binds the run to this node with it.
        let layer = layer_of(&packed, LayerContent::OnNode(oversize), Vec::new());
        let hash = layer.hash.clone();
        let run = claim.head.run;
        blocking(move || files.keep_on_node(run, &packed, &hash)).await?;
        Ok(Some(layer))
    }

    async fn store_layer(&self, packed: &PackedLayer) -> Result<NewLayer, Error> {
        // It has been compared with `workspace_max_bytes`, together with what the step saw.
        let most = u64::MAX;
        let mut files = Vec::with_capacity(packed.large.len() + 1);
        for large in &packed.large {
            files.push(self.store.keep_file(&large.path, most).await?.0);
        }
        let bytes = &packed.manifest_and_small;
        if bytes.len() <= MAX_INLINE_LAYER {
            return Ok(layer_of(packed, LayerContent::Inline(bytes.clone()), files));
        }
        let file = self.scratch_file();
        laneway_store::private::write(&file, bytes)?;
        let kept = self.store.keep_file(&file, most).await;
        drop(std::fs::remove_file(&file));
        files.push(kept?.0);
        Ok(layer_of(packed, LayerContent::File, files))
    }

    fn keep_on_node(&self, run: RunId, packed: &PackedLayer, hash: &ContentHash) -> Result<(), Error> {
        let fetch = |hash: &ContentHash, to: &Path| {
            let large = packed.large.iter().find(|large| large.hash == *hash);
            let large = large.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            std::fs::copy(&large.path, to).map(drop)
        };
        let _held = self.layers.hold([hash])?;
        let dir = self.layers.get(hash, |fresh| {
            view::unpack(&packed.manifest_and_small, fresh, fetch)?;
            Ok::<(), Error>(())
        })?;
        private::write(&dir.join(ONLY_COPY), run.to_string().as_bytes())?;
        Ok(())
    }

    /// Keeps the files of a layer again, so that a sweep cannot take them before the layer is named
    /// anew: of a result that is taken.
    pub(super) async fn renew(&self, layer: &NewLayer) -> laneway_store::Result<()> {
        for hash in &layer.files {
            let file = self.scratch_file();
            let fetched = self.store.fetch_file(hash, &file).await;
            let kept = match fetched {
                Ok(()) => self.store.keep_file(&file, u64::MAX).await.map(drop),
                Err(error) => Err(error),
            };
            drop(std::fs::remove_file(&file));
            kept?;
        }
        Ok(())
    }

    /// Returns what tasks changed, by position: for the merge of a group, which sees their layers.
    pub(super) async fn changes_of(&self, claim: &Claim) -> Result<HashMap<Position, Changes>, Error> {
        let shown = self.shown(claim).await?;
        let (files, claim) = (self.clone(), claim.clone());
        blocking(move || {
            let mut changes = HashMap::new();
            if shown.is_empty() {
                return Ok(changes);
            }
            let _held = files.layers.hold(shown.iter().map(|shown| &shown.layer.hash))?;
            for shown in &shown {
                let manifest = LayerDir::open(&files.layer(&claim, shown)?)?.manifest()?;
                changes.insert(shown.layer.position, merge_changes(&manifest));
            }
            Ok(changes)
        })
        .await
    }

    /// Removes a view. What cannot be removed is left for `tidy`.
    pub(super) async fn leave(&self, view: AttemptView) {
        let (views, view) = (self.views.clone(), Arc::into_inner(view.view));
        let Some(view) = view else { return };
        let left = tokio::task::spawn_blocking(move || views.leave(view)).await;
        if let Ok(Err(error)) = left {
            tracing::debug!(%error, "a view is left for the next look");
        }
    }

    /// Removes what processes that are gone left, and what has not been used for long. A layer that is
    /// on this node alone stays as long as its run.
    pub(super) async fn tidy(&self) {
        for hash in self.layers.all() {
            let mark = self.layers.path(&hash).join(ONLY_COPY);
            let run = std::fs::read_to_string(&mark).ok().and_then(|run| RunId::parse(&run));
            let Some(run) = run else { continue };
            if let Err(laneway_store::Error::NoSuchRun { .. }) = self.store.status(run).await {
                drop(std::fs::remove_file(mark));
            }
        }
        let files = self.clone();
        let tidied = tokio::task::spawn_blocking(move || {
            files.bundles.tidy(|_| false);
            files.layers.tidy(|hash| files.layers.path(hash).join(ONLY_COPY).exists());
            files.views.tidy()
        });
        if let Ok(Err(error)) = tidied.await {
            tracing::debug!(%error, "views of processes that are gone stay");
        }
    }

    fn scratch_file(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.scratch.join(format!("layer-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Marks a layer that is on this node alone.
const ONLY_COPY: &str = "only-copy";

/// The time of all files of a bundle, which keeps none: 2001-09-09, in seconds since the epoch.
const BUNDLE_TIME: i64 = 1_000_000_000;

fn give_bundle_time(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_bundle_time(&entry?.path())?;
        }
    }
    let time = Timespec { tv_sec: BUNDLE_TIME, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(futimens(std::fs::File::open(path)?, &times)?)
}

fn layer_of(packed: &PackedLayer, content: LayerContent, files: Vec<ContentHash>) -> NewLayer {
    NewLayer {
        paths: packed.paths,
        bytes: packed.bytes,
        hash: ContentHash::of(&packed.manifest_and_small),
        content,
        files,
    }
}

/// Decides the conflicts between layers of unordered steps, or names them.
fn decide(claim: &Claim, shown: &[Shown], layers: &[LayerDir]) -> Result<EnterOptions, Error> {
    let plan = &claim.head.plan;
    let directly = |pair: &[Shown]| plan.needs[pair[1].step as usize].contains(&pair[0].step);
    // The usual case, without a look at the whole plan: each step needs the one before.
    if shown.windows(2).all(directly) {
        return Ok(EnterOptions::default());
    }
    // A step was executed on top of the layers of all that it needs: found once for all of its
    // items.
    let mut after: HashMap<Position, BTreeSet<usize>> = HashMap::new();
    for one in shown {
        after.entry(one.step).or_insert_with(|| {
            let sources = plan.file_sources(one.step);
            let below = (0..).zip(shown).filter(|(_, other)| sources.place(other.step).is_some());
            below.map(|(index, _)| index).collect()
        });
    }
    let positions: Vec<LayerPosition> = (0..)
        .zip(shown)
        .map(|(index, one)| LayerPosition {
            index,
            step: plan.task_name(one.layer.position),
            after: after[&one.step].clone(),
        })
        .collect();
    if is_chain(&positions) {
        return Ok(EnterOptions::default());
    }
    let manifests = layers.iter().map(LayerDir::manifest).collect::<Result<Vec<_>, _>>()?;
    let ordered: Vec<OrderedLayer<'_>> = positions
        .iter()
        .zip(&manifests)
        .map(|(position, manifest)| OrderedLayer { position, manifest: manifest.as_ref() })
        .collect();
    let step = plan.step(claim.at.position);
    let on_conflict = match step.merges().map(|group| &plan.group(group).merge) {
        Some(Merge::Workspace { on_conflict }) => on_conflict.clone(),
        Some(Merge::Concatenate | Merge::Custom { .. }) => OnConflict::Fail,
        None => step.files().on_conflict.clone(),
    };
    match compose(&ordered, &on_conflict) {
        Ok(composition) => Ok(EnterOptions { decisions: composition.decisions }),
        Err(report) => Err(Error::Conflict(report.to_string())),
    }
}

/// A layer as a merge knows changes. Directories are there for what they hold.
fn merge_changes(manifest: &LayerManifest) -> Changes {
    let entry = |entry: &LayerEntry| match entry {
        LayerEntry::Directory { .. } => None,
        LayerEntry::Removed => Some(None),
        LayerEntry::Symlink { target, .. } => Some(Some(Entry::Symlink { target: target.clone() })),
        LayerEntry::File { attributes, content, .. } => {
            Some(Some(Entry::File { hash: content.hash.to_string(), mode: attributes.mode }))
        }
    };
    manifest.entries.iter().filter_map(|(path, found)| Some((path.clone(), entry(found)?))).collect()
}

/// Describes a layer that one node alone has. `None` for a layer that is in the store.
fn layer_on_node(plan: &Plan, layer: &Layer) -> Option<String> {
    let (node, step) = (layer.node.as_ref()?, plan.task_name(layer.position));
    let left = format!("`{step}` left {} on node {node}", bundle::size(layer.bytes));
    let Some(Oversize { bytes, limit, largest }) = &layer.oversize else {
        return Some(format!("{left}, more than `workspace_max_bytes` lets the store take"));
    };
    let seen = match layer.bytes > *limit {
        true => String::new(),
        false => format!(", {} with what it saw", bundle::size(*bytes)),
    };
    let named: Vec<String> =
        largest.iter().map(|(path, size)| format!("{path} ({})", bundle::size(*size))).collect();
    let files = match named.is_empty() {
        true => String::new(),
        false => format!(" (largest files: {})", named.join(", ")),
    };
    let limit = bundle::size(*limit);
    Some(format!("{left}{seen}, more than `workspace_max_bytes` ({limit}) lets the store take{files}"))
}

fn largest(captured: &Captured) -> Vec<(String, u64)> {
    let largest = captured.largest(NAMED_FILES).into_iter();
    largest.map(|(path, size)| (path.display().to_string(), size)).collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::Io(io::Error::other(error.to_string()))),
        },
    }
}
