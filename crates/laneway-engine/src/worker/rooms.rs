//! Room in the pools of a node, for claims of runs that no other node works on: one for which there is no container waits here,
//! in order, and holds no slot. Of shared runs the store gives no more than there is room for. Pure; `lineup.rs` asks.

use std::collections::{HashMap, VecDeque};

use laneway_core::class::Room;
use laneway_store::ClaimRef;
use laneway_store::model::{Claim, Placed};

#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Who has a place: what runs, and what waits for a slot.
    holders: HashMap<ClaimRef, Room>,
    /// In the order of the line.
    waiting: VecDeque<(Room, Claim)>,
    /// How many host ports the containers of this node can have. `None`: not known.
    ports: Option<u32>,
}

impl Rooms {
    pub(super) fn with_ports(ports: u32) -> Self {
        Self { ports: Some(ports), ..Self::default() }
    }

    /// Gives back what may go on: what needs no room, or has it from here on. Else it waits.
    pub(super) fn admit(&mut self, claim: Claim) -> Option<Claim> {
        let Some(room) = room_of(&claim) else { return Some(claim) };
        if self.has_place(&room) {
            self.holders.insert(claim.at, room);
            Some(claim)
        } else {
            self.waiting.push_back((room, claim));
            None
        }
    }

    /// A claim is over, or went back. Gives the one that has its place now.
    pub(super) fn leave(&mut self, claim: ClaimRef) -> Option<Claim> {
        let room = self.holders.remove(&claim)?;
        let next = self.waiting.iter().position(|(wanted, _)| *wanted == room)?;
        let (room, claim) = self.waiting.remove(next)?;
        self.holders.insert(claim.at, room);
        Some(claim)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn has_waiting(&self, claim: &ClaimRef) -> bool {
        self.waiting.iter().any(|(_, waiting)| waiting.at == *claim)
    }

    /// Takes out those who wait and are meant.
    pub(super) fn let_go(&mut self, is_meant: impl Fn(&Claim) -> bool) -> Vec<ClaimRef> {
        let (gone, kept): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|(_, claim)| is_meant(claim));
        self.waiting = kept;
        gone.into_iter().map(|(_, claim)| claim.at).collect()
    }

    fn has_place(&self, room: &Room) -> bool {
        let held = self.holders.values().filter(|held| *held == room).count();
        held < usize::try_from(room.places_with(self.ports)).unwrap_or(usize::MAX)
    }
}

fn room_of(claim: &Claim) -> Option<Room> {
    let plan = &claim.head.plan;
    if plan.workflow.pools.is_empty() {
        return None;
    }
    match claim.head.placed {
        Placed::Local | Placed::Pinned { .. } => plan.class_of(claim.at.position).room,
        Placed::Spread if claim.is_bound => plan.class_of(claim.at.position).room,
        // Counted by the store. If one is too many after all, it waits in the pool's own line.
        Placed::Spread => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use laneway_core::definition::{Source, compile};
    use laneway_core::id::{RunId, SessionId};
    use laneway_store::model::RunHead;

    use super::*;

    /// Four steps of a pool of two, and one without.
    fn claims(placed: Placed) -> Vec<Claim> {
        claims_of(placed, "")
    }

    /// With more settings of the pool.
    fn claims_of(placed: Placed, more: &str) -> Vec<Claim> {
        let text = "pools: {warm: {image: 'busybox:1', max: 2MORE}}
steps:
  a: {pool: warm, run: x}
  b: {pool: warm, run: x}
  c: {pool: warm, run: x}
  d: {pool: warm, run: x}
  plain: {run: x}
"
        .replace("MORE", more);
        let source = Source { file: "t".into(), default_name: "t".into(), text };
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let run = RunId::parse(id).expect("an id");
        let head = Arc::new(RunHead {
            bundle: None,
            run,
            plan: Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)))),
            dir: "/".into(),
            params: serde_json::Map::new(),
            max_parallel: 9,
            submitted_from: String::new(),
            keys: Default::default(),
            placed,
            own_class: -1,
            parent: None,
            no_cache: false,
        });
        let session = SessionId::parse(id).expect("an id");
        let claim = |position| Claim {
            at: ClaimRef { run, position, attempt: 1, generation: 1, session },
            head: Arc::clone(&head),
            start_by: None,
            is_bound: false,
        };
        (0..5).map(claim).collect()
    }

    /// Positions of those that may go on.
    fn admitted(rooms: &mut Rooms, claims: Vec<Claim>) -> Vec<u32> {
        claims.into_iter().filter_map(|claim| rooms.admit(claim)).map(|claim| claim.at.position).collect()
    }

    #[test]
    fn what_finds_no_room_waits_in_order_and_holds_up_nobody_else() {
        let claims = claims(Placed::Local);
        let at: Vec<ClaimRef> = claims.iter().map(|claim| claim.at).collect();
        let mut rooms = Rooms::default();
        assert_eq!(admitted(&mut rooms, claims), [0, 1, 4]);
        assert!(rooms.waiting() == 2 && rooms.has_waiting(&at[2]) && !rooms.has_waiting(&at[1]));
        assert_eq!(rooms.leave(at[4]).map(|claim| claim.at), None, "it had no room to give");
        assert_eq!(rooms.leave(at[1]).map(|claim| claim.at), Some(at[2]));
        assert_eq!(rooms.leave(at[1]).map(|claim| claim.at), None, "it has left already");
        assert_eq!(rooms.let_go(|claim| claim.at == at[3]), [at[3]]);
        assert_eq!(rooms.leave(at[0]).map(|claim| claim.at), None);
        assert_eq!(rooms.waiting(), 0);
    }

    #[test]
    fn pool_whose_containers_need_ports_has_no_more_room_than_there_are_ports() {
        let endpoint = ", endpoint: {port: 80}";
        for (more, ports, expected) in
            [(endpoint, 1, vec![0, 4]), (endpoint, 9, vec![0, 1, 4]), ("", 1, vec![0, 1, 4])]
        {
            let mut rooms = Rooms::with_ports(ports);
            assert_eq!(admitted(&mut rooms, claims_of(Placed::Local, more)), expected, "{more} {ports}");
        }
    }

    #[test]
    fn of_shared_runs_the_store_has_counted() {
        assert_eq!(admitted(&mut Rooms::default(), claims(Placed::Spread)), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn of_shared_runs_that_are_bound_to_this_node_the_worker_counts() {
        let bound = claims(Placed::Spread).into_iter().map(|claim| Claim { is_bound: true, ..claim });
        assert_eq!(admitted(&mut Rooms::default(), bound.collect()), [0, 1, 4]);
    }
}
