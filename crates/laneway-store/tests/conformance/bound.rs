//! R17: a run whose files are too large to follow it is bound to the node that has them, and goes
//! on there as a pinned run does.

use laneway_core::class::Offer;
use laneway_core::event::{Fact, KeptFiles};
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_store::Fate;
use laneway_store::layer::{LayerContent, NewLayer, Oversize};
use laneway_store::model::{Finished, NewSession, Whom};

use crate::audit;
use crate::harness::{Held, Node, Place, TOOK, flow, for_each_database, left, names, succeeded};

for_each_database! {
    layer_that_one_node_has_binds_its_run_to_that_node,
    task_that_runs_elsewhere_ends_there_and_what_follows_it_is_bound,
    claim_of_another_node_that_goes_back_or_is_lost_is_bound,
    bound_run_is_offered_to_all_when_its_node_is_gone,
    task_that_the_bound_node_cannot_run_is_offered_elsewhere_unless_it_needs_the_files,
    task_of_a_remote_worker_is_not_bound,
    last_step_binds_nothing,
    bound_run_that_is_retried_goes_on_where_its_files_are,
    run_whose_large_step_is_done_again_is_bound_to_no_node,
    bound_node_that_takes_nothing_more_says_so,
    run_stays_on_its_node_when_another_node_leaves_large_files_too,
    items_of_a_bound_run_go_to_its_node,
    pinned_run_that_is_retried_goes_on_where_its_files_are,
}

const MIB: u64 = 1 << 20;

fn large() -> NewLayer {
    let largest = vec![("node_modules/a".to_owned(), 200 * MIB)];
    NewLayer {
        paths: 2,
        bytes: 300 * MIB,
        hash: ContentHash::of(b"large"),
        content: LayerContent::OnNode(Oversize { bytes: 301 * MIB, limit: 256 * MIB, largest }),
        files: Vec::new(),
    }
}

/// Ends an attempt that leaves files which are too large to follow.
async fn leave_large(node: &Node, held: &Held) {
    let layer = Some(Box::new(large()));
    let finished = Finished { layer, ..Finished::new(held.at, succeeded(), TOOK) };
    let answer = node.store.finish(vec![finished], None).await.expect("an answer");
    audit::check(&*node.store, held.at.run).await;
    assert_eq!(answer.fates, [Fate::Recorded]);
}

/// What events tell of where the run stays, in order.
async fn moves(node: &Node, run: RunId) -> Vec<String> {
    let told = node.events(run).await.into_iter().filter_map(|event| match event.fact {
        Fact::RunBound(bound) => {
            let step = bound.files.map(|files| format!(" for {}", files.step)).unwrap_or_default();
            Some(format!("bound to {}{step}", bound.node))
        }
        Fact::RunReleased(released) => Some(format!("released by {}", released.node)),
        _ => None,
    });
    told.collect()
}

/// Two nodes, and a run of which the first has done `a`, which left large files.
async fn bound(place: &Place, steps: &[(&str, &str)]) -> (Node, Node, RunId) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &["gpu=a100"]).await;
    let run = one.share(&flow("", steps)).await;
    let a = one.take_any(1).await.remove(0);
    assert_eq!(a.step, "a");
    leave_large(&one, &a).await;
    (one, two, run)
}

async fn layer_that_one_node_has_binds_its_run_to_that_node(place: Place) {
    let (one, two, run) =
        bound(&place, &[("a", ""), ("free", ""), ("b", "needs: [a]"), ("c", "needs: [b, free]")]).await;
    assert_eq!(one.tasks(run).await, "a succeeded, free available, b available, c pending");
    assert!(two.take_any(9).await.is_empty(), "also what was available before");
    let why = one.why(run, "b").await;
    assert_eq!(
        why,
        "ready, waits for a free slot; its run is bound to node one, where its files are 301 MiB with what \
         `a` left, more than `workspace_max_bytes` (256 MiB) lets follow a run"
    );
    let files = KeptFiles { step: "a".into(), bytes: 301 * MIB, limit: 256 * MIB };
    let facts: Vec<Fact> = one.events(run).await.into_iter().map(|event| event.fact).collect();
    let told = facts.iter().find_map(|fact| match fact {
        Fact::RunBound(bound) => Some((bound.node.as_str(), bound.files.as_ref())),
        _ => None,
    });
    assert_eq!(told, Some(("one", Some(&files))));
    let held = one.take_any(9).await;
    assert_eq!(names(&held), ["free", "b"]);
    for held in &held {
        one.succeed(held).await;
    }
    assert!(two.take_any(9).await.is_empty());
    one.succeed(&one.take_any(9).await[0]).await;
    assert_eq!(one.status(run).await, RunStatus::Succeeded);
    let layers = one.store.layers(run).await.expect("layers");
    assert_eq!((layers.len(), layers[0].node.as_deref()), (1, Some("one")));
    assert_eq!(layers[0].oversize.as_ref(), large().content.oversize());
    let next = two.share(&flow("", &[("d", "")])).await;
    assert_eq!(names(&two.take_any(9).await), ["d"], "other runs are not bound");
    assert_eq!(two.status(next).await, RunStatus::Running);
}

async fn task_that_runs_elsewhere_ends_there_and_what_follows_it_is_bound(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow("", &[("a", ""), ("side", ""), ("b", "needs: [side]")])).await;
    let a = one.take_any(1).await.remove(0);
    let side = two.take_any(1).await.remove(0);
    two.start(&side).await;
    leave_large(&one, &a).await;
    assert_eq!(one.tasks(run).await, "a succeeded, side running, b pending");
    two.succeed(&side).await;
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["b"]);
}

async fn claim_of_another_node_that_goes_back_or_is_lost_is_bound(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow("", &[("a", ""), ("back", ""), ("lost", "")])).await;
    let a = one.take_any(1).await.remove(0);
    let held = two.take_any(2).await;
    two.start(&held[1]).await;
    leave_large(&one, &a).await;
    two.give_back(&held[0]).await;
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["back"]);
    drop(two);
    let three = Node::worker(place.open(), "three", &[]).await;
    three.store.reap().await.expect("a reaped session");
    assert_eq!(three.tasks(run).await, "a succeeded, back available, lost available");
    assert!(three.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["lost"]);
}

async fn bound_run_is_offered_to_all_when_its_node_is_gone(place: Place) {
    let steps = [("a", ""), ("free", ""), ("b", "needs: [a]"), ("c", "needs: [b]")];
    let (one, two, run) = bound(&place, &steps).await;
    let b = one.take_any(2).await.remove(1);
    assert_eq!(b.step, "b");
    one.start(&b).await;
    drop(one);
    two.store.reap().await.expect("a reaped session");
    audit::check(&*two.store, run).await;
    assert_eq!(moves(&two, run).await, ["bound to one for a", "released by one"]);
    let held = two.take_any(9).await;
    assert_eq!(names(&held), ["free", "b"]);
    // The worker finds out that it does not have the files. This one has, and leaves more of them.
    leave_large(&two, &held[1]).await;
    assert_eq!(moves(&two, run).await[2..], ["bound to two for b"]);
    let three = Node::worker(place.open(), "three", &[]).await;
    assert!(three.take_any(9).await.is_empty());
    two.store.retire(two.session, left()).await.expect("a session that can end");
    assert_eq!(names(&three.take_any(9).await), ["free", "c"]);
}

async fn task_that_the_bound_node_cannot_run_is_offered_elsewhere_unless_it_needs_the_files(place: Place) {
    let gpu = "runs_on: {gpu: a100}";
    let behind = format!("needs: [first], {gpu}");
    let needs = format!("needs: [a], {gpu}");
    let steps = [("a", ""), ("first", ""), ("apart", behind.as_str()), ("b", needs.as_str())];
    let (one, two, run) = bound(&place, &steps).await;
    assert!(two.take_any(9).await.is_empty(), "`b` would wait for ever for a node that has its files");
    let held = one.take_any(9).await;
    assert_eq!(names(&held), ["first", "b"]);
    one.succeed(&held[0]).await;
    assert!(one.take_any(9).await.is_empty());
    assert_eq!(names(&two.take_any(9).await), ["apart"]);
    assert_eq!(moves(&two, run).await, ["bound to one for a"]);
}

async fn task_of_a_remote_worker_is_not_bound(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let offer = Offer { node: "py".to_owned(), queues: ["mail".to_owned()].into(), ..Offer::default() };
    let mail =
        Node::join(place.open(), NewSession { offer: Some(offer), ..NewSession::ephemeral("py", 4) }).await;
    let text =
        "name: flow\nsteps:\n  a: {run: x}\n  b: {queue: mail, needs: [a]}\n  c: {run: x, needs: [b]}\n";
    let run = one.share(text).await;
    let a = one.take_any(9).await.remove(0);
    leave_large(&one, &a).await;
    assert!(one.take_any(9).await.is_empty());
    let b = mail.take_any(9).await.remove(0);
    mail.succeed(&b).await;
    assert_eq!(names(&one.take_any(9).await), ["c"]);
    assert_eq!(moves(&one, run).await, ["bound to one for a"]);
}

async fn last_step_binds_nothing(place: Place) {
    let (one, _two, run) = bound(&place, &[("a", "")]).await;
    assert_eq!(one.status(run).await, RunStatus::Succeeded);
    assert_eq!(moves(&one, run).await, [""; 0]);
}

async fn bound_run_that_is_retried_goes_on_where_its_files_are(place: Place) {
    let (one, two, run) = bound(&place, &[("a", ""), ("b", "needs: [a]")]).await;
    let b = one.take_any(9).await.remove(0);
    one.fail(&b).await;
    assert_eq!(one.status(run).await, RunStatus::Failed);
    two.retry(run, None).await.expect("a run that can be retried");
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(moves(&two, run).await, ["bound to one for a", "bound to one for a"]);
    let b = one.take_any(9).await.remove(0);
    one.fail(&b).await;
    // A node of that address has the files again.
    one.store.retire(one.session, left()).await.expect("a session that can end");
    let one = Node::worker(place.open(), "one", &[]).await;
    two.retry(run, None).await.expect("a run that can be retried");
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["b"]);
}

async fn run_whose_large_step_is_done_again_is_bound_to_no_node(place: Place) {
    let (one, two, run) = bound(&place, &[("a", ""), ("b", "needs: [a]")]).await;
    let b = one.take_any(9).await.remove(0);
    one.fail(&b).await;
    two.retry(run, Some("a")).await.expect("a run that can be retried");
    let a = two.take_any(9).await.remove(0);
    two.succeed(&a).await;
    assert_eq!(names(&two.take_any(9).await), ["b"], "the layer of the second attempt counts");
}

async fn bound_node_that_takes_nothing_more_says_so(place: Place) {
    let (one, two, run) = bound(&place, &[("a", ""), ("b", "needs: [a]"), ("c", "needs: [b]")]).await;
    let b = one.take_any(9).await.remove(0);
    two.store.drain(Whom::Node("one".into()), left()).await.expect("a node of that name");
    one.succeed(&b).await;
    assert_eq!(one.tasks(run).await, "a succeeded, b succeeded, c pending");
    let why = two.why(run, "c").await;
    assert!(
        why.contains("node one, to which its run is bound") && why.contains("takes no new work"),
        "{why}"
    );
    one.store.retire(one.session, left()).await.expect("a session that can end");
    assert_eq!(names(&two.take_any(9).await), ["c"]);
}

async fn run_stays_on_its_node_when_another_node_leaves_large_files_too(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow("", &[("a", ""), ("side", ""), ("b", "needs: [a, side]")])).await;
    let a = one.take_any(1).await.remove(0);
    let side = two.take_any(1).await.remove(0);
    leave_large(&one, &a).await;
    leave_large(&two, &side).await;
    assert_eq!(moves(&one, run).await, ["bound to one for a"]);
    let layers = one.store.layers(run).await.expect("layers");
    let nodes: Vec<_> = layers.iter().map(|layer| layer.node.as_deref()).collect();
    assert_eq!(nodes, [Some("one"), Some("two")], "b fails by name where it starts");
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["b"]);
}

async fn items_of_a_bound_run_go_to_its_node(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let steps = [("each", "for_each: [x, y, z]"), ("join", "needs: [each]")];
    let run = one.share(&flow("max_parallel: 2", &steps)).await;
    let (x, y) = (one.take_any(1).await.remove(0), two.take_any(1).await.remove(0));
    leave_large(&one, &x).await;
    assert_eq!(moves(&one, run).await, ["bound to one for each[0]"]);
    assert!(two.take_any(9).await.is_empty());
    let z = one.take_any(9).await.remove(0);
    two.succeed(&y).await;
    one.succeed(&z).await;
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["join"]);
}

async fn pinned_run_that_is_retried_goes_on_where_its_files_are(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow("placement: pinned", &[("a", ""), ("b", "needs: [a]")])).await;
    let a = one.take_any(9).await.remove(0);
    leave_large(&one, &a).await;
    let b = one.take_any(9).await.remove(0);
    one.fail(&b).await;
    two.retry(run, None).await.expect("a run that can be retried");
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["b"]);
    assert_eq!(moves(&one, run).await, ["bound to one", "bound to one for a"]);
}
