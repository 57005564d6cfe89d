//! All pools of a node, found by what their containers are made of: two workflows that say the same of a pool share it,
//! and a tag that has moved to another image begins a new one. Owns which pools there are; each keeps its own containers.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::definition;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::{Lane, Plan, Position};
use laneway_core::pool::{Event, Fault, PortWaiter, Ticket, Waiter};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::calm::Calm;
use super::images::Images;
use super::keeper::{Common, Keeper, Message};
use super::lease::Lease;
use super::mounts::Mounts;
use super::ports::SharedPorts;
use super::vessel::{Recipe, Yard};
use super::{Outlet, PoolView, Tally, Told};
use crate::container::{Docker, HostMounts};
use crate::warden::Warden;

/// How long the end of everything is waited for; what is still there then is removed by whoever finds its session dead.
const CLOSE: Duration = Duration::from_secs(30);

/// What pools are made with.
#[derive(Debug)]
pub struct PoolMeans {
    pub docker: Docker,
    /// Removes what is left when this node dies.
    pub warden: Warden,
    /// Which places of the host pools may mount.
    pub host_mounts: HostMounts,
    pub session: SessionId,
    /// Of every container; they say whose it is.
    pub labels: HashMap<String, String>,
    /// An existing directory of this session.
    pub scratch: PathBuf,
    /// For endpoints.
    pub ports: RangeInclusive<u16>,
    /// Containers that start at once.
    pub start_concurrency: usize,
    /// Where pools and every transition are told.
    pub told: Option<mpsc::UnboundedSender<Told>>,
}

/// A way to the pools of a node. Cheap to clone; the containers live until `close`.
#[derive(Debug, Clone)]
pub struct Pools(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    common: Arc<Common>,
    keepers: Mutex<Keepers>,
    tickets: AtomicU64,
    images: Images,
}

#[derive(Debug, Default)]
struct Keepers {
    by_recipe: HashMap<Recipe, Named>,
    /// None is added any more: nobody would close it.
    is_closed: bool,
}

/// A pool, with all names that documents have for it.
#[derive(Debug)]
struct Named {
    keeper: Keeper,
    names: BTreeSet<String>,
    /// Whose tasks it is for, as far as nobody has said that they are over.
    runs: BTreeSet<RunId>,
    /// It is of one directory alone, and all of these are over.
    is_over: bool,
}

/// A pool that can be warmed at once.
#[derive(Debug)]
pub struct Ready(Keeper);

impl Ready {
    pub fn warm(&self, count: usize) {
        self.0.tell(Message::Event(Event::Warm(count)));
    }
}

/// What a task asks for.
#[derive(Debug)]
pub(super) struct Wish<'a> {
    pub(super) pool: &'a definition::Pool,
    pub(super) run: RunId,
    /// The run's directory.
    pub(super) dir: &'a Path,
    pub(super) dormancy: Option<Duration>,
    /// The task's name, and its attempt.
    pub(super) step: &'a str,
    pub(super) attempt: u32,
}

impl Pools {
    pub fn new(means: PoolMeans) -> Self {
        let mounts = Mounts::open(means.session)
            .inspect_err(|error| {
                tracing::debug!(%error, "this node may not mount; a warm container sees one directory only");
            })
            .ok();
        let outlet = Outlet::new(means.told);
        let tail = means.session.to_string().replace('-', "").split_off(20);
        let yard = Yard {
            docker: means.docker,
            warden: means.warden,
            host_mounts: means.host_mounts,
            labels: means.labels,
            prefix: format!("laneway-{tail}-warm-"),
            ports: SharedPorts::new(means.ports, outlet.clone()),
            starts: Semaphore::new(means.start_concurrency.max(1)),
            scratch: means.scratch.join("warm"),
            mounts,
        };
        let common = Common {
            yard,
            containers: AtomicU64::new(0),
            outlet,
            uses: AtomicU64::new(0),
            tally: Tally::default(),
            calm: Calm::default(),
        };
        Self(Arc::new(Inner {
            common: Arc::new(common),
            keepers: Mutex::default(),
            tickets: AtomicU64::new(0),
            images: Images::default(),
        }))
    }

    /// As they are now, by name.
    pub fn views(&self) -> Vec<PoolView> {
        let mut views: Vec<PoolView> =
            self.keepers().by_recipe.values().map(|named| named.keeper.view()).collect();
        views.sort_by(|one, other| (&one.name, &one.image).cmp(&(&other.name, &other.image)));
        views
    }

    pub fn tally(&self) -> Tally {
        self.0.common.tally.clone()
    }

    pub(super) fn docker(&self) -> &Docker {
        &self.0.common.yard.docker
    }

    /// Waits its turn. Dropping it leaves the line.
    pub(super) async fn acquire(&self, wish: Wish<'_>) -> Result<Lease, Fault> {
        let beginning = self.0.common.calm.begin();
        let keeper = self.keeper(wish.pool, wish.dir, Some(wish.run)).await?;
        let ticket = Ticket(self.0.tickets.fetch_add(1, Ordering::Relaxed) + 1);
        let (reply, answer) = oneshot::channel();
        let waiter = Waiter { ticket, run: wish.run };
        let (timeout, dormancy) = (wish.pool.acquire_timeout, wish.dormancy);
        let task = PortWaiter {
            pool: wish.pool.name.clone(),
            run: wish.run,
            step: wish.step.to_owned(),
            attempt: wish.attempt,
        };
        keeper.tell(Message::Acquire { waiter, task, timeout, dormancy, reply });
        // A loop that is over drops what it was told.
        let mut leaving = Leaving { ticket, keeper: Some(&keeper) };
        let vessel = answer.await.unwrap_or(Err(Fault::Closed));
        leaving.keeper = None;
        let vessel = vessel?;
        let common = Arc::clone(&self.0.common);
        Ok(Lease::new(vessel, ticket, keeper.clone(), common, wish.pool.mode, beginning))
    }

    /// Starts containers for what comes next, in the background, when a step of a plan begins: those of the first parallel
    /// lane, as soon as the lane before it begins. Nobody waits for it, and what goes wrong is told to whoever needs one.
    pub fn prewarm(&self, plan: &Plan, begun: Position, run: RunId, dir: &Path) {
        for (pool, count) in wanted(plan, begun, self.is_of_directories()) {
            self.warm_for(Some(run), &pool, dir, count);
        }
    }

    /// Sees to it that a pool has so many containers, as far as its `max` allows.
    pub fn warm(&self, pool: &definition::Pool, dir: &Path, count: usize) {
        self.warm_for(None, pool, dir, count);
    }

    fn warm_for(&self, run: Option<RunId>, pool: &definition::Pool, dir: &Path, count: usize) {
        let (pools, pool, dir) = (self.clone(), pool.clone(), dir.to_owned());
        tokio::spawn(async move {
            match pools.keeper(&pool, &dir, run).await {
                Ok(keeper) => keeper.tell(Message::Event(match run {
                    Some(run) => Event::WarmFor(run, count),
                    None => Event::Warm(count),
                })),
                Err(why) => tracing::debug!(pool = pool.name, %why, "nothing was warmed"),
            }
        });
    }

    /// The same for pools that are there, by name. Gives how many were told.
    pub fn warm_named(&self, name: &str, count: usize) -> usize {
        self.tell_named(name, || Event::Warm(count))
    }

    /// Makes a pool ready to be warmed before any run, its image included. `None`: of a node that may not mount, containers see the
    /// directory of one run, and which that will be nobody knows.
    pub async fn ready(&self, pool: &definition::Pool) -> Result<Option<Ready>, Fault> {
        if self.is_of_directories() {
            return Ok(None);
        }
        self.keeper(pool, Path::new("/"), None).await.map(|keeper| Some(Ready(keeper)))
    }

    /// Lets go of what nobody uses; what is used goes after its task.
    pub fn drain(&self, name: &str) -> usize {
        self.tell_named(name, || Event::Drain)
    }

    fn tell_named(&self, name: &str, event: impl Fn() -> Event) -> usize {
        let keepers = self.keepers();
        let of_name = keepers.by_recipe.values().filter(|named| named.names.contains(name));
        of_name.map(|named| named.keeper.tell(Message::Event(event()))).count()
    }

    /// Removes whatever a run has used and nobody else uses now; comes back when that is done.
    pub async fn abort(&self, run: RunId) {
        self.ask_all(|done| Message::Abort(run, done)).await;
    }

    /// The engine may have been away: what rests is looked at, and what has died meanwhile goes.
    pub fn look_after(&self) {
        self.keepers().by_recipe.values().for_each(|named| named.keeper.tell(Message::LookAfter));
    }

    /// Of a node that may not mount: a container sees one directory, and is of no use to anybody but the runs that have it.
    fn is_of_directories(&self) -> bool {
        self.0.common.yard.mounts.is_none()
    }

    /// Runs that have asked for containers, so that somebody tells when they are over.
    pub fn runs(&self) -> BTreeSet<RunId> {
        self.keepers().by_recipe.values().flat_map(|named| named.runs.iter().copied()).collect()
    }

    /// These are over: what is of their directories alone goes. Told again, and nothing is left of such a pool, it is forgotten.
    pub fn leave(&self, over: &BTreeSet<RunId>) {
        let mut keepers = self.keepers();
        for (recipe, named) in keepers.by_recipe.iter_mut().filter(|(_, named)| !named.runs.is_empty()) {
            named.runs.retain(|run| !over.contains(run));
            if named.runs.is_empty() && recipe.dir.is_some() {
                named.is_over = true;
                named.keeper.tell(Message::Event(Event::Drain));
            }
        }
        keepers.by_recipe.retain(|_, named| {
            let is_left = !named.is_over || named.keeper.view().counts.waiting > 0;
            let is_left = is_left || !named.keeper.view().containers.is_empty();
            if !is_left {
                // Its loop ends.
                named.keeper.tell(Message::Close(oneshot::channel().0));
            }
            is_left
        });
    }

    /// Removes everything, and gives nothing out any more; comes back when that is done. Twice is once.
    pub async fn close(&self) {
        self.keepers().is_closed = true;
        self.ask_all(Message::Close).await;
        self.0.common.outlet.close();
    }

    async fn ask_all(&self, ask: impl Fn(oneshot::Sender<()>) -> Message) {
        let asked: Vec<_> = self
            .keepers()
            .by_recipe
            .values()
            .map(|named| {
                let (done, answer) = oneshot::channel();
                named.keeper.tell(ask(done));
                answer
            })
            .collect();
        let all = async {
            for answer in asked {
                // A loop that is over has nothing left.
                let _ = answer.await;
            }
        };
        if tokio::time::timeout(CLOSE, all).await.is_err() {
            tracing::warn!(
                "warm containers are still there after {CLOSE:?}; they go as soon as the container engine answers"
            );
        }
    }

    /// The pool of these containers, made if it is the first time that somebody asks for it.
    async fn keeper(&self, pool: &definition::Pool, dir: &Path, run: Option<RunId>) -> Result<Keeper, Fault> {
        let image = self.0.images.id(&self.0.common, pool).await?;
        let mut pool = pool.clone();
        let name = std::mem::take(&mut pool.name);
        let common = &self.0.common;
        let dir = self.is_of_directories().then(|| dir.to_owned());
        let recipe = Recipe { pool, image, dir };
        let mut keepers = self.keepers();
        // Looked at behind the pull, which may have taken longer than the node has lived.
        if keepers.is_closed {
            return Err(Fault::Closed);
        }
        let named = keepers.by_recipe.entry(recipe).or_insert_with_key(|recipe| Named {
            keeper: Keeper::start(name.clone(), recipe.clone(), Arc::clone(common)),
            names: BTreeSet::new(),
            runs: BTreeSet::new(),
            is_over: false,
        });
        if let Some(run) = run {
            named.runs.insert(run);
            named.is_over = false;
        }
        if !named.names.contains(&name) {
            let PoolView { image, max, .. } = named.keeper.view();
            common.tell(Told::Pool { name: name.clone(), image, max });
            named.names.insert(name);
        }
        Ok(named.keeper.clone())
    }

    /// Held for a look or an insertion, never across a wait.
    fn keepers(&self) -> MutexGuard<'_, Keepers> {
        self.0.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the line when it is dropped, unless it was served.
struct Leaving<'a> {
    ticket: Ticket,
    keeper: Option<&'a Keeper>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper {
            keeper.tell(Message::Event(Event::Canceled(self.ticket)));
        }
    }
}

/// Which pools to warm when a step begins, and how far. Where a container sees one directory only, none for members that will work in
/// copies: there are none yet.
fn wanted(plan: &Plan, begun: Position, is_of_directories: bool) -> Vec<(definition::Pool, usize)> {
    let prewarm = plan.prewarm;
    if plan.workflow.pools.is_empty() || prewarm.width == 0 {
        return Vec::new();
    }
    // At once, if the first lane is the parallel one. Nothing of the lane before may ever begin here: a step there waits for somebody, was
    // skipped, or is another node's. Then it is late, and better than never.
    let (before, parallel) = prewarm.lane.map_or((0, 0), |lane| (lane, lane + 1));
    let steps = |lane: usize| match plan.lanes.get(lane) {
        Some(Lane::Step(position)) => std::slice::from_ref(position),
        Some(Lane::Group { steps, .. }) => steps.as_slice(),
        None => &[],
    };
    // An item begins in the place of its step.
    let begun = plan.base(begun).unwrap_or(begun);
    if !steps(before).contains(&begun) && !steps(parallel).contains(&begun) {
        return Vec::new();
    }
    let has_copy =
        |position: Position| plan.group_of(position).is_some_and(|group| plan.group(group).isolate);
    let is_for_it = |position: &&Position| !(is_of_directories && has_copy(**position));
    let mut pools: Vec<(definition::Pool, usize)> = Vec::new();
    let members = steps(parallel).iter().filter(is_for_it);
    for pool in members.filter_map(|position| plan.pool_of(*position)) {
        match pools.iter_mut().find(|(known, _)| *known == pool) {
            Some((_, count)) => *count += 1,
            None => pools.push((pool, 1)),
        }
    }
    pools
}

#[cfg(test)]
mod tests {
    use laneway_core::definition::{Source, compile};

    use super::*;

    fn warmed(text: &str, step: &str) -> Vec<(String, usize)> {
        warmed_by(text, step, false)
    }

    fn warmed_by(text: &str, step: &str, is_of_directories: bool) -> Vec<(String, usize)> {
        let source = Source { file: "t".into(), default_name: "t".into(), text: text.to_owned() };
        let plan = compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let position = plan.position(step).expect("a step");
        let wanted = wanted(&plan, position, is_of_directories);
        wanted.into_iter().map(|(pool, count)| (pool.name.clone(), count)).collect()
    }

    const STEPS: &str = "pools:
  warm: {image: 'busybox:1', max: 2}
  other: {image: 'busybox:1', max: 2}
groups: {g: {steps: [b, c, d]}}
steps:
  first: {run: x}
  a: {run: x, needs: [first]}
  b: {pool: warm, run: x, needs: [a]}
  c: {pool: warm, run: x, needs: [a]}
  d: {run: x, needs: [a]}
";

    #[test]
    fn the_lane_before_the_first_parallel_one_warms_its_pools_and_no_others() {
        assert_eq!(warmed(STEPS, "a"), [("warm".to_owned(), 2)]);
        assert_eq!(warmed(STEPS, "first"), []);
        assert_eq!(
            warmed(STEPS, "b"),
            [("warm".to_owned(), 2)],
            "late: the lane before was not executed here"
        );
    }

    #[test]
    fn an_item_of_the_lane_before_warms_as_its_step_does() {
        let text = STEPS.replace("a: {run", "a: {for_each: [1, 2], run");
        let source = Source { file: "t".into(), default_name: "t".into(), text };
        let plan = compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let step = plan.position("a").expect("a step");
        let item = plan.items_of(step).start + 1;
        assert_eq!(wanted(&plan, item, false).len(), wanted(&plan, step, false).len());
        assert!(!wanted(&plan, item, false).is_empty());
    }

    #[test]
    fn who_may_not_mount_warms_nothing_for_members_that_will_have_copies() {
        assert_eq!(warmed_by(STEPS, "a", true), [("warm".to_owned(), 2)]);
        let apart = STEPS.replace("steps: [b, c, d]", "steps: [b, c, d], isolate: true");
        assert_eq!(warmed_by(&apart, "a", false), [("warm".to_owned(), 2)]);
        assert_eq!(warmed_by(&apart, "a", true), []);
    }

    #[test]
    fn a_parallel_first_lane_is_warmed_at_once() {
        let text = "pools: {warm: {image: 'busybox:1'}}
groups: {g: {steps: [a, b]}}
steps: {a: {pool: warm, run: x}, b: {pool: warm, run: x}}
";
        assert_eq!(warmed(text, "a"), [("warm".to_owned(), 2)]);
    }
}
