//! Preference as a table, and every law of a pool under random events: an edge that does what it is told, in any order,
//! and fails as it likes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

fn run(number: u8) -> RunId {
    RunId::parse(&format!("0199f2a0-0000-7000-8000-0000000000{number:02x}")).expect("an id")
}

fn acquire(ticket: u64) -> Event {
    Event::Acquire(Waiter { ticket: Ticket(ticket), run: run(1) })
}

fn released(ticket: u64) -> Event {
    Event::Released { ticket: Ticket(ticket), is_clean: true }
}

fn number(container: u64) -> ContainerNumber {
    ContainerNumber(container)
}

fn failed(container: u64, why: &str) -> Event {
    Event::StartFailed(number(container), Fault::StartFailed(why.into()))
}

/// What is to be done, in words.
fn told(actions: &[Action]) -> String {
    let word = |action: &Action| match action {
        Action::Moved { container, to, why: None } => format!("{} is {to}", container.0),
        Action::Moved { container, to, why: Some(why) } => format!("{} is {to}: {why}", container.0),
        Action::Start(container) => format!("start {}", container.0),
        Action::Wake(container) => format!("wake {}", container.0),
        Action::Hand { ticket, container, found } => {
            format!("hand {} to {} ({found})", container.0, ticket.0)
        }
        Action::Clean(container) => format!("clean {}", container.0),
        Action::Pause(container) => format!("pause {}", container.0),
        Action::Rest { container, rest } => format!("{} rests ({rest})", container.0),
        Action::Terminate(container) => format!("terminate {}", container.0),
        Action::Refuse { ticket, fault } => format!("refuse {}: {fault}", ticket.0),
        Action::RefuseForPort { ticket } => format!("refuse {} for a port", ticket.0),
        Action::AskSparePort(None) => "ask for a spare port".to_owned(),
        Action::AskSparePort(Some(_)) => "ask for a spare port for a run".to_owned(),
    };
    actions.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Plays events in their order; gives what the last one led to.
fn play(pool: &mut Pool, events: Vec<Event>) -> String {
    events.into_iter().map(|event| told(&pool.on(event))).last().unwrap_or_default()
}

/// One container that has been used and sleeps.
fn one_dormant(pool: &mut Pool) {
    let one = number(1);
    play(pool, vec![acquire(1), Event::Started(one), released(1), Event::Cleaned(one), Event::Paused(one)]);
    assert_eq!(pool.counts().dormant, 1);
}

#[test]
fn an_idle_container_is_preferred_to_a_dormant_one_and_that_to_a_start() {
    let mut pool = Pool::new(Mode::Multi, 3);
    one_dormant(&mut pool);
    play(&mut pool, vec![Event::Warm(2), Event::Started(number(2))]);
    assert_eq!(play(&mut pool, vec![acquire(2)]), "2 is running, hand 2 to 2 (idle)");
    assert_eq!(play(&mut pool, vec![acquire(3)]), "wake 1");
    assert_eq!(play(&mut pool, vec![acquire(4)]), "3 is starting, start 3");
    assert_eq!(play(&mut pool, vec![acquire(5)]), "", "starts in flight count: it waits");
    assert_eq!(
        play(&mut pool, vec![Event::Woke(number(1))]),
        "1 is idle, 1 is running, hand 1 to 3 (dormant)"
    );
}

#[test]
fn what_sleeps_is_woken_although_others_start_or_are_cleaned() {
    let mut pool = Pool::new(Mode::Multi, 3);
    one_dormant(&mut pool);
    play(&mut pool, vec![Event::Warm(2)]);
    assert_eq!(play(&mut pool, vec![acquire(2)]), "wake 1", "2 is only starting");
    play(&mut pool, vec![Event::Woke(number(1)), Event::Started(number(2)), acquire(3), released(2)]);
    play(&mut pool, vec![Event::Cleaned(number(1)), Event::Paused(number(1)), released(3)]);
    assert_eq!(play(&mut pool, vec![acquire(4)]), "wake 1", "2 is only being cleaned");
    assert_eq!(play(&mut pool, vec![acquire(5)]), "", "one of them is the other's");
    assert_eq!(play(&mut pool, vec![acquire(6)]), "3 is starting, start 3");
}

#[test]
fn cleaning_is_awaited_by_who_has_nothing_else_to_hope_for() {
    let mut pool = Pool::new(Mode::Multi, 2);
    one_dormant(&mut pool);
    play(&mut pool, vec![acquire(2), Event::Woke(number(1)), released(2)]);
    assert!(!pool.awaits_cleaning(), "nobody waits");
    play(&mut pool, vec![acquire(3)]);
    assert!(pool.awaits_cleaning(), "what is cleaned counts as coming, so nothing starts");
    play(&mut pool, vec![acquire(4), Event::Canceled(Ticket(3))]);
    assert!(!pool.awaits_cleaning(), "one starts for the other");
}

#[test]
fn what_sleeps_for_the_shortest_time_is_woken_first() {
    let mut pool = Pool::new(Mode::Multi, 2);
    let both = [1, 2].map(number);
    play(&mut pool, vec![acquire(1), acquire(2), Event::Started(both[0]), Event::Started(both[1])]);
    play(&mut pool, vec![released(1), released(2), Event::Cleaned(both[0]), Event::Cleaned(both[1])]);
    play(&mut pool, vec![Event::Paused(both[1]), Event::Paused(both[0])]);
    assert_eq!(play(&mut pool, vec![acquire(3)]), "wake 1");
}

#[test]
fn a_task_right_behind_another_waits_for_its_container_to_be_clean() {
    let mut pool = Pool::new(Mode::Multi, 2);
    play(&mut pool, vec![acquire(1), Event::Started(number(1))]);
    assert_eq!(play(&mut pool, vec![released(1)]), "clean 1");
    assert_eq!(play(&mut pool, vec![acquire(2)]), "", "no other is started");
    let told = play(&mut pool, vec![Event::Cleaned(number(1))]);
    assert_eq!(told, "1 is idle, 1 is running, hand 1 to 2 (released)", "it is not put to sleep to be woken");
}

#[test]
fn a_failed_wake_ends_that_container_and_goes_on_with_another() {
    let mut pool = Pool::new(Mode::Multi, 2);
    one_dormant(&mut pool);
    assert_eq!(play(&mut pool, vec![acquire(2)]), "wake 1");
    assert_eq!(
        play(&mut pool, vec![Event::WakeFailed(number(1))]),
        "1 is terminated: wake_failed, terminate 1, 2 is starting, start 2"
    );
    assert_eq!(
        play(&mut pool, vec![Event::Started(number(2))]),
        "2 is idle, 2 is running, hand 2 to 2 (nothing)"
    );
}

#[test]
fn what_is_being_removed_keeps_its_place_until_it_is_gone() {
    let mut pool = Pool::new(Mode::Multi, 1);
    one_dormant(&mut pool);
    let told = play(&mut pool, vec![acquire(2), Event::WakeFailed(number(1))]);
    assert_eq!(told, "1 is terminated: wake_failed, terminate 1");
    assert_eq!(play(&mut pool, vec![Event::Gone(number(1))]), "2 is starting, start 2");
}

#[test]
fn a_failed_start_refuses_the_first_in_line_and_the_next_one_tries_anew() {
    let mut pool = Pool::new(Mode::Multi, 1);
    play(&mut pool, vec![acquire(1), acquire(2)]);
    let told = play(&mut pool, vec![failed(1, "no such image")]);
    assert_eq!(told, "1 is terminated: start_failed, terminate 1, refuse 1: no such image");
    assert_eq!(play(&mut pool, vec![Event::Gone(number(1))]), "2 is starting, start 2");
}

#[test]
fn a_warm_start_that_fails_refuses_nobody_whose_own_is_on_its_way() {
    let mut pool = Pool::new(Mode::Multi, 4);
    play(&mut pool, vec![Event::Warm(2), acquire(1)]);
    let told = play(&mut pool, vec![failed(1, "no")]);
    assert_eq!(told, "1 is terminated: start_failed, terminate 1");
    assert_eq!(
        play(&mut pool, vec![Event::Started(number(2))]),
        "2 is idle, 2 is running, hand 2 to 1 (nothing)"
    );
}

#[test]
fn a_container_expires_only_in_the_rest_that_its_timer_is_of() {
    let mut pool = Pool::new(Mode::Multi, 1);
    one_dormant(&mut pool);
    let old = Event::Expired { container: number(1), rest: pool.last_rest };
    play(&mut pool, vec![acquire(2), Event::Woke(number(1)), released(2), Event::Cleaned(number(1))]);
    assert_eq!(play(&mut pool, vec![Event::Paused(number(1)), old]), "", "that was before it was used again");
    let now = Event::Expired { container: number(1), rest: pool.last_rest };
    assert_eq!(play(&mut pool, vec![now.clone()]), "1 is terminated: expired, terminate 1");
    assert_eq!(play(&mut pool, vec![now]), "", "twice is once");
    play(&mut pool, vec![Event::Gone(number(1))]);
    assert!(pool.is_empty());
}

#[test]
fn a_container_in_which_something_was_left_is_not_used_again() {
    let mut pool = Pool::new(Mode::Multi, 1);
    play(&mut pool, vec![acquire(1), Event::Started(number(1)), released(1)]);
    let told = play(&mut pool, vec![Event::CleanFailed(number(1))]);
    assert_eq!(told, "1 is terminated: dirty, terminate 1");
}

#[test]
fn a_woken_container_that_nobody_wants_any_more_goes_back_to_sleep() {
    let mut pool = Pool::new(Mode::Multi, 1);
    one_dormant(&mut pool);
    play(&mut pool, vec![acquire(2), Event::Canceled(Ticket(2))]);
    assert_eq!(play(&mut pool, vec![Event::Woke(number(1))]), "1 is idle, pause 1");
    assert!(play(&mut pool, vec![Event::Paused(number(1))]).starts_with("1 is dormant, 1 rests"));
}

#[test]
fn a_container_that_was_given_to_who_wants_none_any_more_is_free_again() {
    let mut pool = Pool::new(Mode::Multi, 1);
    play(&mut pool, vec![acquire(1), Event::Started(number(1)), acquire(2)]);
    assert_eq!(play(&mut pool, vec![Event::Canceled(Ticket(1))]), "clean 1");
    let told = play(&mut pool, vec![Event::Cleaned(number(1))]);
    assert_eq!(told, "1 is idle, 1 is running, hand 1 to 2 (released)");
    play(&mut pool, vec![released(2), Event::Cleaned(number(1))]);
    assert_eq!(play(&mut pool, vec![Event::Canceled(Ticket(2))]), "", "it has let go of it");
}

#[test]
fn whoever_waits_too_long_is_refused_and_told_what_to_do() {
    let mut pool = Pool::new(Mode::Multi, 1);
    play(&mut pool, vec![acquire(1), Event::Started(number(1)), acquire(2), acquire(3)]);
    let told = play(&mut pool, vec![Event::TimedOut(Ticket(2))]);
    assert!(
        told.starts_with("refuse 2: waited for a container longer than `acquire_timeout`; all 1"),
        "{told}"
    );
    assert_eq!(play(&mut pool, vec![Event::TimedOut(Ticket(1))]), "", "it has one");
    let told = play(&mut pool, vec![released(1), Event::Cleaned(number(1))]);
    assert_eq!(told, "1 is idle, 1 is running, hand 1 to 3 (released)");
}

#[test]
fn warming_stops_at_max_and_counts_what_there_is() {
    let mut pool = Pool::new(Mode::Multi, 3);
    play(&mut pool, vec![acquire(1)]);
    let told = play(&mut pool, vec![Event::Warm(9)]);
    assert_eq!(told, "2 is starting, start 2, 3 is starting, start 3");
    assert_eq!(play(&mut pool, vec![Event::Warm(9)]), "");
}

#[test]
fn draining_ends_what_rests_now_and_what_is_held_after_its_task() {
    let mut pool = Pool::new(Mode::Multi, 2);
    play(&mut pool, vec![acquire(1), Event::Started(number(1)), Event::Warm(2), Event::Started(number(2))]);
    assert_eq!(play(&mut pool, vec![Event::Drain]), "2 is terminated: drained, terminate 2");
    assert_eq!(play(&mut pool, vec![released(1)]), "1 is terminated: drained, terminate 1");
}

#[test]
fn an_aborted_run_leaves_nothing_of_what_it_used_and_others_keep_theirs() {
    let mut pool = Pool::new(Mode::Multi, 3);
    let of_other = Event::Acquire(Waiter { ticket: Ticket(3), run: run(2) });
    play(&mut pool, vec![acquire(1), acquire(2), of_other]);
    play(&mut pool, vec![Event::Started(number(1)), Event::Started(number(2)), Event::Started(number(3))]);
    play(&mut pool, vec![released(1), Event::Cleaned(number(1)), Event::Paused(number(1))]);
    assert_eq!(play(&mut pool, vec![Event::Abort(run(1))]), "1 is terminated: aborted, terminate 1");
    assert_eq!(
        play(&mut pool, vec![released(2)]),
        "2 is terminated: aborted, terminate 2",
        "also what ends later"
    );
    assert_eq!(play(&mut pool, vec![released(3)]), "clean 3");
}

#[test]
fn what_starts_for_an_aborted_run_goes_unless_somebody_else_waits_for_it() {
    let mut pool = Pool::new(Mode::Multi, 3);
    let of_other = Event::Acquire(Waiter { ticket: Ticket(4), run: run(2) });
    play(&mut pool, vec![acquire(1), acquire(2), acquire(3), of_other]);
    play(&mut pool, vec![Event::Started(number(1)), Event::Canceled(Ticket(2)), Event::Canceled(Ticket(3))]);
    assert_eq!(play(&mut pool, vec![Event::Abort(run(1))]), "");
    assert_eq!(play(&mut pool, vec![released(1)]), "1 is terminated: aborted, terminate 1");
    assert!(pool.has_left(run(1)), "one that starts is still there");
    let mut told = [2, 3].map(|one| play(&mut pool, vec![Event::Started(number(one))]));
    told.sort();
    let handed = |told: &String| told.contains("to 4 (nothing)");
    let ended = |told: &String| told.contains("terminated: aborted");
    assert_eq!(
        (told.iter().filter(|told| handed(told)).count(), told.iter().filter(|told| ended(told)).count()),
        (1, 1),
        "{told:?}"
    );
    play(&mut pool, vec![Event::Gone(number(1)), Event::Gone(number(2)), Event::Gone(number(3))]);
    assert!(!pool.has_left(run(1)));
}

#[test]
fn what_was_warmed_for_an_aborted_run_goes_with_it() {
    let mut pool = Pool::new(Mode::Multi, 3);
    play(
        &mut pool,
        vec![Event::Warm(1), Event::WarmFor(run(1), 3), Event::Started(number(1)), Event::Started(number(2))],
    );
    assert_eq!(play(&mut pool, vec![Event::Abort(run(1))]), "2 is terminated: aborted, terminate 2");
    assert_eq!(play(&mut pool, vec![Event::Started(number(3))]), "3 is terminated: aborted, terminate 3");
    assert_eq!(pool.counts().idle, 1, "what somebody else has asked for stays");
}

#[test]
fn closing_ends_everything_once_and_gives_nothing_out_any_more() {
    let mut pool = Pool::new(Mode::Multi, 1);
    play(&mut pool, vec![acquire(1), Event::Started(number(1)), acquire(2)]);
    let told = play(&mut pool, vec![Event::Close]);
    assert_eq!(told, "refuse 2: the pool is closed: this node stops, 1 is terminated: closed, terminate 1");
    assert_eq!(play(&mut pool, vec![Event::Close]), "", "tear-down twice is once");
    assert_eq!(play(&mut pool, vec![released(1)]), "");
    assert_eq!(play(&mut pool, vec![acquire(3)]), "refuse 3: the pool is closed: this node stops");
    assert_eq!(play(&mut pool, vec![Event::Gone(number(1))]), "");
    assert!(pool.is_empty());
}

#[test]
fn a_single_container_is_shared_and_lives_while_any_task_holds_it() {
    let mut pool = Pool::new(Mode::Single, 8);
    assert_eq!(play(&mut pool, vec![acquire(1)]), "1 is starting, start 1");
    assert_eq!(play(&mut pool, vec![acquire(2)]), "", "one is all there is");
    let told = play(&mut pool, vec![Event::Started(number(1))]);
    assert_eq!(told, "1 is idle, 1 is running, hand 1 to 1 (nothing), hand 1 to 2 (nothing)");
    assert_eq!(play(&mut pool, vec![acquire(3)]), "hand 1 to 3 (idle)");
    assert_eq!(play(&mut pool, vec![released(1), released(3)]), "", "2 holds it");
    assert_eq!(play(&mut pool, vec![released(2)]), "clean 1");
    assert_eq!(play(&mut pool, vec![Event::Warm(5)]), "");
}

#[test]
fn nobody_joins_a_shared_container_that_is_to_end() {
    let mut pool = Pool::new(Mode::Single, 1);
    play(&mut pool, vec![acquire(1), Event::Started(number(1)), Event::Died(number(1))]);
    assert_eq!(play(&mut pool, vec![acquire(2)]), "");
    assert_eq!(play(&mut pool, vec![released(1)]), "1 is terminated: died, terminate 1");
    assert_eq!(play(&mut pool, vec![Event::Gone(number(1))]), "2 is starting, start 2");
}

fn tickets(pool: &Pool) -> Vec<u64> {
    pool.port_tickets().into_iter().map(|ticket| ticket.0).collect()
}

#[test]
fn pool_that_needs_ports_starts_as_many_as_it_is_given() {
    let mut pool = Pool::new(Mode::Multi, 2).needing_ports();
    assert_eq!(play(&mut pool, vec![acquire(1), acquire(2), acquire(3)]), "");
    assert_eq!(tickets(&pool), [1, 2], "`max` is two");
    assert_eq!(play(&mut pool, vec![Event::PortGranted]), "1 is starting, start 1");
    assert_eq!(tickets(&pool), [2]);
    let told = play(&mut pool, vec![Event::Started(number(1))]);
    assert_eq!(told, "1 is idle, 1 is running, hand 1 to 1 (nothing)", "first come, first served");
    assert_eq!(tickets(&pool), [2]);
    play(&mut pool, vec![Event::PortGranted]);
    assert_eq!(tickets(&pool), [0; 0], "the third waits for a container of the pool");
    assert_eq!(play(&mut pool, vec![Event::PortGranted]), "", "and needs no port");
}

#[test]
fn task_that_needs_a_port_takes_what_its_pool_has_and_stops_waiting_when_it_leaves() {
    let cases = [
        ("canceled", vec![Event::Canceled(Ticket(2))], "", vec![]),
        ("timed out", vec![Event::TimedOut(Ticket(2))], "refuse 2 for a port", vec![]),
        ("a container is cleaned for it", vec![released(1)], "clean 1", vec![]),
        ("another one waits", vec![acquire(3)], "", vec![2, 3]),
        (
            "the pool closes",
            vec![Event::Close],
            "refuse 2: the pool is closed: this node stops, 1 is terminated: closed, terminate 1",
            vec![],
        ),
    ];
    for (case, events, expected, waiting) in cases {
        let mut pool = Pool::new(Mode::Multi, 3).needing_ports();
        play(&mut pool, vec![acquire(1), Event::PortGranted, Event::Started(number(1)), acquire(2)]);
        assert_eq!(tickets(&pool), [2], "{case}");
        assert_eq!(play(&mut pool, events), expected, "{case}");
        assert_eq!(tickets(&pool), waiting, "{case}");
    }
}

#[test]
fn port_that_another_program_took_costs_its_task_nothing_but_time() {
    let mut pool = Pool::new(Mode::Multi, 2).needing_ports();
    play(&mut pool, vec![acquire(1), Event::PortGranted]);
    let told = play(&mut pool, vec![Event::PortLost(number(1))]);
    assert_eq!(told, "1 is terminated: start_failed, terminate 1");
    assert_eq!(tickets(&pool), [1], "it waits on, with its old ticket");
    assert_eq!(play(&mut pool, vec![Event::PortGranted]), "2 is starting, start 2");
}

#[test]
fn only_dormant_containers_are_evicted() {
    let one = number(1);
    let dormant = vec![
        acquire(1),
        Event::PortGranted,
        Event::Started(one),
        released(1),
        Event::Cleaned(one),
        Event::Paused(one),
    ];
    let cases = [
        ("dormant", 6, "1 is terminated: evicted, terminate 1"),
        ("pausing", 5, ""),
        ("being cleaned", 4, ""),
        ("held", 3, ""),
        ("starting", 2, ""),
    ];
    for (case, count, expected) in cases {
        let mut pool = Pool::new(Mode::Multi, 2).needing_ports();
        play(&mut pool, dormant[..count].to_vec());
        assert_eq!(play(&mut pool, vec![Event::Evict(one)]), expected, "{case}");
    }
    let mut pool = Pool::new(Mode::Multi, 2).needing_ports();
    play(&mut pool, vec![Event::SparePort(None), Event::Started(one)]);
    assert_eq!(play(&mut pool, vec![Event::Evict(one)]), "", "idle");
    let mut pool = Pool::new(Mode::Multi, 2).needing_ports();
    play(&mut pool, dormant);
    assert_eq!(play(&mut pool, vec![acquire(2), Event::Evict(one)]), "", "it is being woken");
}

#[test]
fn warming_asks_for_spare_ports_and_waits_for_none() {
    let mut pool = Pool::new(Mode::Multi, 2).needing_ports();
    assert_eq!(play(&mut pool, vec![Event::Warm(1)]), "ask for a spare port");
    assert_eq!(tickets(&pool), [0; 0]);
    let told = play(&mut pool, vec![Event::WarmFor(run(1), 9)]);
    assert_eq!(told, "ask for a spare port for a run, ask for a spare port for a run");
    assert_eq!(play(&mut pool, vec![Event::SparePort(Some(run(1)))]), "1 is starting, start 1");
    assert_eq!(play(&mut pool, vec![Event::Warm(9)]), "ask for a spare port", "one is there");
    play(&mut pool, vec![Event::Close]);
    assert_eq!(play(&mut pool, vec![Event::SparePort(None)]), "");
}

/// An edge that does what it is told, in whatever order, and fails as often as it likes.
#[derive(Default)]
struct World {
    /// What is under way, with its answer.
    pending: VecDeque<(Event, Option<Event>)>,
    /// Who asked and has no answer yet, in order.
    waiting: VecDeque<u64>,
    holding: BTreeMap<u64, ContainerNumber>,
    /// Containers that exist outside.
    alive: BTreeSet<ContainerNumber>,
    rests: Vec<Event>,
    most: usize,
    asked: u64,
    answered: u64,
    /// Of a pool that needs ports: those that no container holds.
    free_ports: usize,
    spare: Vec<Event>,
}

impl World {
    fn act(&mut self, mode: Mode, max: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Moved { .. } => {}
                Action::Start(container) => {
                    assert!(self.alive.insert(container), "started once");
                    let failed = match container.0 % 2 {
                        0 => Event::PortLost(container),
                        _ => Event::StartFailed(container, Fault::StartFailed("it was to fail".into())),
                    };
                    self.pending.push_back((Event::Started(container), Some(failed)));
                }
                Action::AskSparePort(run) => self.spare.push(Event::SparePort(run)),
                Action::Wake(container) => {
                    let failed = Event::WakeFailed(container);
                    self.pending.push_back((Event::Woke(container), Some(failed)));
                }
                Action::Clean(container) => {
                    assert!(!self.holding.values().any(|held| *held == container), "nobody is in it");
                    let failed = Event::CleanFailed(container);
                    self.pending.push_back((Event::Cleaned(container), Some(failed)));
                }
                Action::Pause(container) => {
                    let failed = Event::PauseFailed(container);
                    self.pending.push_back((Event::Paused(container), Some(failed)));
                }
                Action::Rest { container, rest } => self.rests.push(Event::Expired { container, rest }),
                Action::Terminate(container) => self.pending.push_back((Event::Gone(container), None)),
                Action::Hand { ticket, container, .. } => {
                    let is_taken = self.holding.values().any(|held| *held == container);
                    assert!(mode == Mode::Single || !is_taken, "two acquirers have {container:?}");
                    assert!(self.alive.contains(&container), "it was given after it was gone");
                    assert_eq!(self.waiting.pop_front(), Some(ticket.0), "somebody was overtaken");
                    self.holding.insert(ticket.0, container);
                    self.answered += 1;
                }
                Action::Refuse { ticket, .. } | Action::RefuseForPort { ticket } => {
                    let before = self.waiting.len();
                    self.waiting.retain(|waiting| *waiting != ticket.0);
                    assert_eq!(self.waiting.len() + 1, before, "refused once, and only who waits");
                    self.answered += 1;
                }
            }
        }
        self.most = self.most.max(self.alive.len());
        assert!(self.most <= max, "{} containers, and at most {max} are allowed", self.most);
    }

    /// Answers one of the things under way.
    fn answer(&mut self, at: usize, fails: bool) -> Option<Event> {
        let at = at % self.pending.len().max(1);
        let (done, failed) = self.pending.remove(at)?;
        if let Event::Gone(container) = &done {
            self.alive.remove(container);
            self.free_ports += 1;
        }
        Some(failed.filter(|_| fails).unwrap_or(done))
    }

    /// Lets something happen, and gives out ports as the line for ports does.
    fn play(&mut self, pool: &mut Pool, event: Event) {
        let (mode, max) = (pool.mode, pool.max());
        self.act(mode, max, pool.on(event));
        while pool.needs_ports() {
            let event = match (pool.port_tickets().first(), self.spare.pop()) {
                (None, None) => break,
                (_, Some(_)) if self.free_ports == 0 => continue,
                (Some(_), Some(_)) => continue,
                (Some(_), None) if self.free_ports == 0 => break,
                (Some(_), None) => Event::PortGranted,
                (None, Some(spare)) => spare,
            };
            let before = self.alive.len();
            self.act(mode, max, pool.on(event));
            // What starts nothing gives the port back.
            self.free_ports -= self.alive.len() - before;
        }
    }
}

/// The dice of one moment.
type Throw = (u8, usize, bool);

fn live(mut pool: Pool, ports: usize, throws: &[Throw]) {
    let mut world = World { free_ports: ports, ..World::default() };
    for (kind, at, fails) in throws {
        let event = match kind % 13 {
            0..=2 => {
                world.asked += 1;
                world.waiting.push_back(world.asked);
                Some(Event::Acquire(Waiter { ticket: Ticket(world.asked), run: run((*at % 3) as u8) }))
            }
            3..=5 => world.answer(*at, *fails),
            6 | 7 => {
                let held = world.holding.keys().nth(at % world.holding.len().max(1)).copied();
                held.map(|ticket| {
                    world.holding.remove(&ticket);
                    Event::Released { ticket: Ticket(ticket), is_clean: !fails }
                })
            }
            8 => {
                let waiting = world.waiting.get(at % world.waiting.len().max(1)).copied();
                waiting.map(|ticket| {
                    if *fails {
                        return Event::TimedOut(Ticket(ticket));
                    }
                    world.waiting.retain(|waiting| *waiting != ticket);
                    world.answered += 1;
                    Event::Canceled(Ticket(ticket))
                })
            }
            // Given one, and gone before it heard of it.
            12 => {
                let held = world.holding.keys().nth(at % world.holding.len().max(1)).copied();
                held.map(|ticket| {
                    world.holding.remove(&ticket);
                    Event::Canceled(Ticket(ticket))
                })
            }
            9 => world.rests.get(at % world.rests.len().max(1)).cloned(),
            10 if *fails => Some(Event::Drain),
            10 if at % 2 == 0 => Some(Event::WarmFor(run((*at % 3) as u8), at % 6)),
            10 => Some(Event::Warm(at % 6)),
            11 if *fails => Some(Event::Abort(run((*at % 3) as u8))),
            _ if at % 2 == 0 => Some(Event::Evict(number((at % 9) as u64))),
            _ => Some(Event::Died(number((at % 9) as u64))),
        };
        if let Some(event) = event {
            world.play(&mut pool, event);
        }
    }
    // Everything that is under way ends, and everybody lets go: nobody may be left waiting.
    while !world.pending.is_empty() || !world.holding.is_empty() {
        let event = world.answer(0, false).or_else(|| {
            let ticket = world.holding.pop_first()?.0;
            Some(Event::Released { ticket: Ticket(ticket), is_clean: true })
        });
        world.play(&mut pool, event.expect("one or the other"));
    }
    assert_eq!((world.waiting.len(), world.answered), (0, world.asked), "somebody was lost");
    world.play(&mut pool, Event::Close);
    while let Some(event) = world.answer(0, false) {
        world.play(&mut pool, event);
    }
    assert!(pool.is_empty() && world.alive.is_empty(), "something was left");
    assert!(!pool.needs_ports() || world.free_ports == ports, "a port was lost");
}

proptest! {
    #[test]
    fn never_more_than_max_nobody_lost_and_order_kept(
        max in 1_usize..5,
        throws in prop::collection::vec((any::<u8>(), 0_usize..64, any::<bool>()), 1..300),
    ) {
        live(Pool::new(Mode::Multi, max), 0, &throws);
    }

    #[test]
    fn never_more_than_the_ports_nobody_lost_and_order_kept(
        max in 1_usize..5,
        ports in 1_usize..4,
        throws in prop::collection::vec((any::<u8>(), 0_usize..64, any::<bool>()), 1..300),
    ) {
        live(Pool::new(Mode::Multi, max).needing_ports(), ports, &throws);
        live(Pool::new(Mode::Single, 4).needing_ports(), ports, &throws);
    }

    #[test]
    fn a_shared_container_is_the_only_one_whatever_happens(
        throws in prop::collection::vec((any::<u8>(), 0_usize..64, any::<bool>()), 1..300),
    ) {
        live(Pool::new(Mode::Single, 4), 0, &throws);
    }
}

#[test]
fn two_hundred_acquirers_share_three_containers_in_their_order() {
    let mut pool = Pool::new(Mode::Multi, 3);
    let mut world = World::default();
    for ticket in 1..=200 {
        world.asked += 1;
        world.waiting.push_back(ticket);
        world.act(Mode::Multi, 3, pool.on(acquire(ticket)));
    }
    let mut served = Vec::new();
    while served.len() < 200 {
        if let Some((ticket, _)) = world.holding.pop_first() {
            served.push(ticket);
            world.act(Mode::Multi, 3, pool.on(released(ticket)));
        } else {
            let event = world.answer(0, false).expect("something is under way");
            world.act(Mode::Multi, 3, pool.on(event));
        }
    }
    assert_eq!(served, (1..=200).collect::<Vec<_>>());
    assert_eq!((world.most, pool.last_number), (3, 3), "three were enough");
}
