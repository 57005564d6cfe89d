//! R17: what attempts changed in their views of the files is stored with their ends, and a run
//! whose files are too large for the store stays on the node that has them.

use std::time::Duration;

use laneway_core::hash::ContentHash;
use laneway_core::state::TaskStatus;
use laneway_store::layer::{Layer, LayerContent, NewLayer, Oversize};
use laneway_store::model::{Finished, Outcome};
use laneway_store::prune::Keep;
use laneway_store::{Error, Fate, MAX_SHARED_FILE};

use crate::audit;
use crate::harness::{Held, Node, Place, TOOK, failed, flow, for_each_database, succeeded};

for_each_database! {
    layer_of_an_attempt_is_stored_with_its_end,
    layer_of_an_attempt_that_is_retried_is_not_kept,
    layer_of_a_step_that_failed_for_good_is_kept,
    layer_of_a_canceled_task_is_not_kept,
    layer_of_a_lost_claim_is_not_kept,
    layer_of_an_earlier_attempt_does_not_count,
    layer_that_was_damaged_is_not_handed_out,
    layers_of_items_go_with_their_list,
    file_of_a_layer_stays_as_long_as_its_run,
    layer_that_only_a_node_has_names_it,
}

fn inline(content: &[u8]) -> NewLayer {
    NewLayer {
        paths: 2,
        bytes: content.len() as u64,
        hash: ContentHash::of(content),
        content: LayerContent::Inline(content.to_vec()),
        files: Vec::new(),
    }
}

/// Ends an attempt with a layer.
async fn end(node: &Node, held: &Held, outcome: Outcome, layer: NewLayer) -> Fate {
    let finished = Finished { layer: Some(Box::new(layer)), ..Finished::new(held.at, outcome, TOOK) };
    let answer = node.store.finish(vec![finished], None).await.expect("an answer");
    audit::check(&*node.store, held.at.run).await;
    answer.fates[0]
}

async fn layer_of_an_attempt_is_stored_with_its_end(place: Place) {
    let (node, other) = (place.node("one").await, place.open());
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let a = node.begin(run, "a").await;
    assert_eq!(node.store.layers(run).await.expect("layers"), []);
    assert_eq!(end(&node, &a, succeeded(), inline(b"packed")).await, Fate::Recorded);
    let b = node.begin(run, "b").await;
    node.succeed(&b).await;
    let hash = ContentHash::of(b"packed");
    let expected = Layer {
        position: 0,
        attempt: 1,
        status: TaskStatus::Succeeded,
        paths: 2,
        bytes: 6,
        hash: hash.clone(),
        node: None,
        oversize: None,
    };
    assert_eq!(other.layers(run).await.expect("layers"), [expected], "b changed nothing");
    let packed = other.packed_layer(run, 0, &hash).await.expect("a layer");
    assert_eq!(packed.as_deref(), Some(&b"packed"[..]));
    let missing = other.packed_layer(run, 1, &hash).await;
    assert!(matches!(missing, Err(Error::NoSuchBlob { .. })), "{missing:?}");
}

async fn layer_of_an_attempt_that_is_retried_is_not_kept(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 1s}")])).await;
    let a = node.begin(run, "a").await;
    end(&node, &a, failed(1), inline(b"litter")).await;
    assert_eq!(node.store.layers(run).await.expect("layers"), []);
    place.advance(Duration::from_secs(5));
    node.store.promote().await.expect("promoted");
    let a = node.begin(run, "a").await;
    node.succeed(&a).await;
    assert_eq!(node.store.layers(run).await.expect("layers"), [], "the second changed nothing");
}

async fn layer_of_a_step_that_failed_for_good_is_kept(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a], when: all_done")])).await;
    let a = node.begin(run, "a").await;
    end(&node, &a, failed(1), inline(b"report")).await;
    let layers = node.store.layers(run).await.expect("layers");
    assert_eq!((layers.len(), layers[0].status), (1, TaskStatus::Failed));
}

async fn layer_of_a_canceled_task_is_not_kept(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let a = node.begin(run, "a").await;
    node.cancel(run).await;
    end(&node, &a, succeeded(), inline(b"late")).await;
    let layers = node.store.layers(run).await.expect("layers");
    assert_eq!(node.tasks(run).await, "a succeeded", "its result was good");
    assert_eq!(layers.len(), 1, "a layer counts as its attempt does");
    let run = node.submit(&flow("", &[("a", "")])).await;
    let a = node.begin(run, "a").await;
    node.cancel(run).await;
    let canceled = Outcome::Canceled { reason: laneway_core::reason::Reason::Canceled };
    end(&node, &a, canceled, inline(b"half")).await;
    assert_eq!(node.store.layers(run).await.expect("layers"), []);
}

async fn layer_of_a_lost_claim_is_not_kept(place: Place) {
    let (dying, node) =
        (Node::worker(place.open(), "one", &[]).await, Node::worker(place.open(), "two", &[]).await);
    let run = node.share(&flow("", &[("a", "")])).await;
    let lost = dying.take_any(1).await.remove(0);
    dying.start(&lost).await;
    drop(dying);
    node.store.reap().await.expect("reaped");
    assert_eq!(end(&node, &lost, succeeded(), inline(b"stale")).await, Fate::ClaimLost);
    assert_eq!(node.store.layers(run).await.expect("layers"), []);
    let again = node.take_any(1).await.remove(0);
    assert_eq!(end(&node, &again, succeeded(), inline(b"good")).await, Fate::Recorded);
    assert_eq!(node.store.layers(run).await.expect("layers")[0].hash, ContentHash::of(b"good"));
}

async fn layer_of_an_earlier_attempt_does_not_count(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let a = node.begin(run, "a").await;
    end(&node, &a, succeeded(), inline(b"first")).await;
    let b = node.begin(run, "b").await;
    node.fail(&b).await;
    node.retry(run, Some("a")).await.expect("retried");
    assert_eq!(node.store.layers(run).await.expect("layers"), [], "it is pending");
    let a = node.begin(run, "a").await;
    node.succeed(&a).await;
    assert_eq!(node.store.layers(run).await.expect("layers"), [], "its second attempt changed nothing");
}

async fn layer_that_was_damaged_is_not_handed_out(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let a = node.begin(run, "a").await;
    let lied = NewLayer { content: LayerContent::Inline(b"other".to_vec()), ..inline(b"packed") };
    end(&node, &a, succeeded(), lied).await;
    let hash = ContentHash::of(b"packed");
    let damaged = node.store.packed_layer(run, 0, &hash).await;
    assert!(matches!(damaged, Err(Error::Unreadable { .. })), "{damaged:?}");
}

async fn layers_of_items_go_with_their_list(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&flow(
            "",
            &[("list", ""), ("each", "needs: [list], for_each: [x, y]"), ("z", "needs: [each]")],
        ))
        .await;
    let list = node.begin(run, "list").await;
    node.succeed(&list).await;
    for held in node.take(run, 9).await {
        end(&node, &held, succeeded(), inline(held.step.as_bytes())).await;
    }
    let layers = node.store.layers(run).await.expect("layers");
    assert_eq!(layers.len(), 2, "each item has one: {layers:?}");
    let z = node.begin(run, "z").await;
    node.fail(&z).await;
    node.retry(run, Some("list")).await.expect("retried");
    let list = node.begin(run, "list").await;
    node.succeed(&list).await;
    for held in node.take(run, 9).await {
        node.succeed(&held).await;
    }
    let layers = node.store.layers(run).await.expect("layers");
    assert_eq!(layers, [], "new items changed nothing");
}

async fn file_of_a_layer_stays_as_long_as_its_run(place: Place) {
    let node = place.node("one").await;
    let source = node.store.dir().join("source");
    std::fs::write(&source, "a large file").expect("written");
    let (file, _) = node.store.keep_file(&source, MAX_SHARED_FILE).await.expect("kept");
    let run = node.submit(&flow("", &[("a", "")])).await;
    let a = node.begin(run, "a").await;
    end(&node, &a, succeeded(), NewLayer { files: vec![file.clone()], ..inline(b"packed") }).await;
    let day = Duration::from_secs(24 * 3600);
    // Files are as old as the machine says, and the clock of this store is behind it.
    place.advance(day * 20 * 365);
    assert_eq!(node.store.sweep().await.expect("swept").things, 0, "the layer names it");
    let fetched = node.store.dir().join("fetched");
    node.store.fetch_file(&file, &fetched).await.expect("fetched");
    assert_eq!(std::fs::read_to_string(&fetched).expect("read"), "a large file");
    // The newest run of a workflow stays.
    let newer = node.submit(&flow("", &[("a", "")])).await;
    let a = node.begin(newer, "a").await;
    node.succeed(&a).await;
    let keep = Keep { runs: Some(1), ..Keep::default() };
    for going in node.store.prunable(keep, 9).await.expect("a list") {
        node.store.prune(going.run).await.expect("pruned");
    }
    assert!(matches!(node.store.layers(run).await, Err(Error::NoSuchRun { .. })));
    place.advance(day * 2);
    assert_eq!(node.store.sweep().await.expect("swept").things, 1, "nothing names it any more");
}

async fn layer_that_only_a_node_has_names_it(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let run = one.share(&flow("placement: pinned", &[("a", ""), ("b", "needs: [a]")])).await;
    let a = one.take_any(1).await.remove(0);
    let oversize = Oversize { bytes: 9 << 30, limit: 1 << 30, largest: vec![("data".into(), 9 << 30)] };
    let large = NewLayer { content: LayerContent::OnNode(oversize.clone()), bytes: 9 << 30, ..inline(b"x") };
    assert_eq!(end(&one, &a, succeeded(), large).await, Fate::Recorded);
    let layers = one.store.layers(run).await.expect("layers");
    assert_eq!(layers[0].node.as_deref(), Some("one"));
    assert_eq!(layers[0].oversize.as_ref(), Some(&oversize));
    assert_eq!(one.store.packed_layer(run, 0, &layers[0].hash).await.expect("an answer"), None);
}
