//! S4, S5: tokens and the audit log, as the store keeps them, and what the service shows page by page or in figures.

use std::time::Duration;

use laneway_core::gate::Gate;
use laneway_core::role::Role;
use laneway_store::Error;
use laneway_store::model::{CancelMode, Deed, NewToken, RunFilter, Submission, TokenRotation};
use serde_json::json;

use crate::harness::{Node, Place, START, flow, for_each_database, submission};

for_each_database! {
    token_is_found_by_its_id_with_all_that_is_kept_of_it,
    name_of_a_token_in_use_is_taken_until_it_is_revoked,
    revoked_token_is_seen_as_such_by_everybody_at_once,
    revoked_token_takes_what_came_of_it_along,
    nothing_comes_of_a_token_that_is_revoked_meanwhile,
    five_who_make_one_token_at_once_make_one,
    token_is_live_until_it_expires_and_then_gives_up_its_name,
    what_comes_of_a_token_expires_no_later,
    rotated_token_has_a_new_secret_and_the_old_one_ends_after_its_grace,
    use_of_a_token_is_recorded_to_the_minute,
    audit_log_is_read_newest_first_and_page_by_page,
    run_that_the_service_was_asked_for_is_in_the_audit_log,
    list_of_runs_goes_on_behind_any_of_them,
    backlog_counts_what_nobody_has_taken_by_what_it_waits_for,
}

fn token(id: &str, name: &str) -> NewToken {
    let (id, name, by) = (id.to_owned(), name.to_owned(), "ada".to_owned());
    NewToken {
        id,
        name,
        role: Role::Operator,
        hash: [7; 32],
        tail: "wxyz".to_owned(),
        by,
        parent: None,
        lasts: None,
    }
}

fn token_of(parent: &str, id: &str, name: &str) -> NewToken {
    NewToken { parent: Some(parent.to_owned()), ..token(id, name) }
}

async fn token_is_found_by_its_id_with_all_that_is_kept_of_it(place: Place) {
    let store = place.open();
    let made = store.make_token(token("t1", "ci")).await.expect("a token");
    assert_eq!((made.role, made.hash, made.tail.as_str()), (Role::Operator, [7; 32], "wxyz"));
    assert_eq!((made.created_by.as_str(), made.created_at, &made.revoked), ("ada", START, &None));
    assert_eq!(place.open().token("t1").await.expect("an answer"), Some(made));
    assert_eq!(store.token("t2").await.expect("an answer"), None);
}

async fn name_of_a_token_in_use_is_taken_until_it_is_revoked(place: Place) {
    let store = place.open();
    store.make_token(token("t1", "ci")).await.expect("a token");
    let taken = store.make_token(token("t2", "ci")).await.expect_err("the name is taken");
    assert!(matches!(&taken, Error::TokenExists { name } if name == "ci"), "{taken}");
    store.revoke_token("ci", "bob").await.expect("a token in use");
    store.make_token(token("t2", "ci")).await.expect("the name is free");
    store.make_token(token("t3", "ada")).await.expect("another name");
    let listed: Vec<String> =
        store.tokens().await.expect("a list").into_iter().map(|token| token.id).collect();
    assert_eq!(listed, ["t3", "t2", "t1"], "those in use first, by name");
}

async fn revoked_token_is_seen_as_such_by_everybody_at_once(place: Place) {
    let (store, other) = (place.open(), place.open());
    store.make_token(token("t1", "ci")).await.expect("a token");
    assert_eq!(other.token("t1").await.expect("an answer").and_then(|token| token.revoked), None);
    let revoked = store.revoke_token("ci", "bob").await.expect("a token in use").token;
    assert_eq!(revoked.revoked, Some(("bob".to_owned(), START)));
    assert_eq!(other.token("t1").await.expect("an answer"), Some(revoked));
    let again = store.revoke_token("ci", "bob").await.expect_err("nothing is left to end");
    assert!(matches!(again, Error::NoSuchToken { .. }), "{again}");
}

async fn revoked_token_takes_what_came_of_it_along(place: Place) {
    let (store, other) = (place.open(), place.open());
    store.make_token(token("t1", "ci")).await.expect("a token");
    store.make_token(token("t2", "ada")).await.expect("a token");
    for (parent, id, name) in
        [("t1", "t3", "web-b"), ("t3", "t4", "web-a"), ("t1", "t5", "web-c"), ("t2", "t6", "web-d")]
    {
        let made = store.make_token(token_of(parent, id, name)).await.expect("a token");
        assert_eq!(made.parent.as_deref(), Some(parent));
    }
    store.revoke_token("web-c", "bob").await.expect("a token in use");
    let revoked = store.revoke_token("ci", "bob").await.expect("a token in use");
    assert_eq!(
        (revoked.token.id.as_str(), revoked.along.as_slice()),
        ("t1", &["web-a".to_owned(), "web-b".to_owned()][..])
    );
    let in_use: Vec<String> = other
        .tokens()
        .await
        .expect("a list")
        .into_iter()
        .filter(|token| token.revoked.is_none())
        .map(|token| token.id)
        .collect();
    assert_eq!(in_use, ["t2", "t6"]);
    for parent in ["t1", "t4", "nobody"] {
        let refused = other.make_token(token_of(parent, "t7", "web-e")).await.expect_err("it is revoked");
        assert!(matches!(refused, Error::NoSuchToken { .. }), "{refused}");
    }
}

/// Whichever comes first: there is none in use that came of one which is not.
async fn nothing_comes_of_a_token_that_is_revoked_meanwhile(place: Place) {
    let (store, other) = (place.open(), place.open());
    for round in 0..20 {
        let (first, name) = (format!("t{round}"), format!("ci{round}"));
        store.make_token(token(&first, &name)).await.expect("a token");
        let second = format!("w{round}");
        store.make_token(token_of(&first, &second, &format!("web-{round}"))).await.expect("a token");
        let third = token_of(&second, &format!("v{round}"), &format!("web-{round}-2"));
        let (made, revoked) = tokio::join!(store.make_token(third), other.revoke_token(&name, "bob"));
        revoked.expect("a token in use");
        assert!(matches!(made, Ok(_) | Err(Error::NoSuchToken { .. })), "{made:?}");
        let in_use =
            store.tokens().await.expect("a list").into_iter().filter(|token| token.revoked.is_none());
        assert_eq!(in_use.map(|token| token.name).collect::<Vec<_>>(), Vec::<String>::new());
    }
}

async fn five_who_make_one_token_at_once_make_one(place: Place) {
    let making = (0..5).map(|index| {
        let store = place.open();
        tokio::spawn(async move { store.make_token(token(&format!("t{index}"), "admin")).await })
    });
    let mut made = 0;
    for answer in making.collect::<Vec<_>>() {
        match answer.await.expect("an answer") {
            Ok(_) => made += 1,
            Err(error) => assert!(matches!(error, Error::TokenExists { .. }), "{error}"),
        }
    }
    assert_eq!(made, 1);
}

async fn token_is_live_until_it_expires_and_then_gives_up_its_name(place: Place) {
    let store = place.open();
    let lasts = Some(Duration::from_secs(90));
    let made = store.make_token(NewToken { lasts, ..token("t1", "ci") }).await.expect("a token");
    assert_eq!(made.expires_at, Some(START.after(Duration::from_secs(90))));
    let read = async || store.token("t1").await.expect("an answer").expect("a token");
    place.advance(Duration::from_millis(89_999));
    assert!(read().await.is_live(Duration::ZERO));
    assert!(!read().await.is_live(Duration::from_millis(1)), "it grows old with whoever has read it");
    let taken = store.make_token(token("t2", "ci")).await.expect_err("the name is taken");
    assert!(matches!(taken, Error::TokenExists { .. }), "{taken}");
    place.advance(Duration::from_millis(1));
    assert!(!read().await.is_live(Duration::ZERO));
    let refused = store.make_token(token_of("t1", "t3", "web-a")).await.expect_err("it has expired");
    assert!(matches!(refused, Error::NoSuchToken { .. }), "{refused}");
    store.make_token(token("t2", "ci")).await.expect("the name is free");
    assert_eq!(read().await.revoked.map(|(by, _)| by).as_deref(), Some("expiry"));
}

async fn what_comes_of_a_token_expires_no_later(place: Place) {
    let store = place.open();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    store.make_token(NewToken { lasts: seconds(100), ..token("t1", "ci") }).await.expect("a token");
    store.make_token(token("t2", "ada")).await.expect("a token");
    for (parent, id, lasts, expires) in [
        ("t1", "t3", seconds(200), seconds(100)),
        ("t1", "t4", seconds(50), seconds(50)),
        ("t1", "t5", None, seconds(100)),
        ("t2", "t6", seconds(200), seconds(200)),
        ("t2", "t7", None, None),
    ] {
        let made = store.make_token(NewToken { lasts, ..token_of(parent, id, id) }).await.expect("a token");
        assert_eq!(made.expires_at, expires.map(|span| START.after(span)), "{id}");
    }
}

async fn rotated_token_has_a_new_secret_and_the_old_one_ends_after_its_grace(place: Place) {
    let (store, other) = (place.open(), place.open());
    let rotation = |id: &str, grace| TokenRotation {
        name: "ci".to_owned(),
        id: id.to_owned(),
        hash: [8; 32],
        tail: "abcd".to_owned(),
        by: "bob".to_owned(),
        lasts: None,
        grace: Duration::from_secs(grace),
    };
    let none = store.rotate_token(rotation("t2", 0)).await.expect_err("there is none");
    assert!(matches!(none, Error::NoSuchToken { .. }), "{none}");
    let lasts = Some(Duration::from_secs(500));
    store.make_token(NewToken { lasts, ..token("t1", "ci") }).await.expect("a token");
    store.make_token(token_of("t1", "w1", "web-a")).await.expect("a token");
    place.advance(Duration::from_secs(100));
    let now = START.after(Duration::from_secs(100));
    let rotated = store.rotate_token(rotation("t2", 60)).await.expect("a token");
    assert_eq!((rotated.token.id.as_str(), rotated.token.hash), ("t2", [8; 32]));
    assert_eq!((rotated.token.role, rotated.token.created_by.as_str()), (Role::Operator, "bob"));
    assert_eq!(rotated.token.expires_at, Some(now.after(Duration::from_secs(500))), "as long as before");
    assert_eq!(rotated.replaced.id, "t1");
    assert_eq!(rotated.replaced.revoked, Some(("bob".to_owned(), now.after(Duration::from_secs(60)))));
    let live =
        async |id: &str| other.token(id).await.expect("an answer").expect("a token").is_live(Duration::ZERO);
    assert!(live("t1").await && live("t2").await && live("w1").await);
    place.advance(Duration::from_secs(60));
    assert!(!live("t1").await && live("t2").await && !live("w1").await, "the grace is over");
    store.rotate_token(rotation("t3", 60)).await.expect("a token");
    assert!(live("t2").await && live("t3").await);
    store.revoke_token("ci", "bob").await.expect("tokens in use");
    assert!(!live("t2").await && !live("t3").await, "a grace does not outlive a revocation");
    store.make_token(NewToken { lasts, ..token("t4", "ci") }).await.expect("a token");
    place.advance(Duration::from_secs(600));
    store.rotate_token(rotation("t5", 60)).await.expect("also one that has expired");
    assert!(!live("t4").await && live("t5").await, "a grace does not outlive an expiry");
}

async fn use_of_a_token_is_recorded_to_the_minute(place: Place) {
    let (store, other) = (place.open(), place.open());
    store.make_token(token("t1", "ci")).await.expect("a token");
    let used = async || store.token("t1").await.expect("an answer").expect("a token");
    assert!(used().await.used_at.is_none() && used().await.is_use_stale(Duration::ZERO));
    store.note_token_use("t1").await.expect("an answer");
    assert_eq!(used().await.used_at, Some(START));
    place.advance(Duration::from_millis(59_999));
    assert!(!used().await.is_use_stale(Duration::ZERO));
    other.note_token_use("t1").await.expect("an answer");
    assert_eq!(used().await.used_at, Some(START), "less than a minute ago");
    place.advance(Duration::from_millis(1));
    assert!(used().await.is_use_stale(Duration::ZERO));
    other.note_token_use("t1").await.expect("an answer");
    assert_eq!(used().await.used_at, Some(START.after(Duration::from_secs(60))));
}

async fn audit_log_is_read_newest_first_and_page_by_page(place: Place) {
    let store = place.open();
    let deed = |act: &str| Deed {
        by: "ada".to_owned(),
        act: act.to_owned(),
        what: "run 1".to_owned(),
        origin: "127.0.0.1".to_owned(),
    };
    for (number, act) in ["submit", "cancel", "retry"].into_iter().enumerate() {
        assert_eq!(store.record(deed(act)).await.expect("a number"), number as u64 + 1);
    }
    let page = store.audit(None, 2).await.expect("entries");
    let told: Vec<(u64, &str)> = page.iter().map(|entry| (entry.seq, entry.deed.act.as_str())).collect();
    assert_eq!(told, [(3, "retry"), (2, "cancel")]);
    assert_eq!((page[0].at, &page[0].deed), (START, &deed("retry")));
    let rest = place.open().audit(Some(2), 9).await.expect("entries");
    assert_eq!(rest.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1]);
}

/// In the transaction of the run itself: there is none without the other.
async fn run_that_the_service_was_asked_for_is_in_the_audit_log(place: Place) {
    let node = place.node("one").await;
    for (key, max_runs) in [(None, ""), (Some("k".to_owned()), ""), (None, "max_runs: 1\n")] {
        let document = flow(max_runs, &[("a", "")]);
        let given = Submission {
            origin: Some("10.1.2.3".to_owned()),
            by: "ada".to_owned(),
            key: key.clone(),
            is_shared: true,
            ..submission(&document, json!({}), node.session)
        };
        let run = node.store.submit(given.clone()).await.expect("a run");
        let entry = node.store.audit(None, 1).await.expect("entries").remove(0);
        let name = &given.plan.workflow.name;
        let Deed { by, act, what, origin } = &entry.deed;
        assert_eq!((by.as_str(), act.as_str(), origin.as_str()), ("ada", "submit", "10.1.2.3"));
        assert_eq!(*what, format!("run {run} of {name}"));
        if key.is_some() {
            assert_eq!(node.store.submit(given).await.expect("the same run"), run);
            let last = node.store.audit(None, 1).await.expect("entries").remove(0);
            assert_eq!(last.seq, entry.seq, "nothing was changed");
        }
    }
    let before = node.store.audit(None, 99).await.expect("entries").len();
    node.share(&flow("", &[("a", "")])).await;
    assert_eq!(node.store.audit(None, 99).await.expect("entries").len(), before, "nobody asked the service");
}

async fn list_of_runs_goes_on_behind_any_of_them(place: Place) {
    let node = place.node("one").await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.insert(0, node.share(&flow("", &[("a", "")])).await);
    }
    let page = |before, limit| {
        let filter = RunFilter { before, limit, ..RunFilter::default() };
        let store = &node.store;
        async move {
            let listed = store.runs(filter).await.expect("a list");
            listed.into_iter().map(|run| run.run).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(None, 2).await, runs[..2]);
    assert_eq!(page(Some(runs[1]), 2).await, runs[2..4]);
    assert_eq!(page(Some(runs[3]), 2).await, runs[4..]);
    assert!(page(Some(runs[4]), 2).await.is_empty());
}

async fn backlog_counts_what_nobody_has_taken_by_what_it_waits_for(place: Place) {
    let node = Node::worker(place.open(), "one:1", &[]).await;
    let told = || async {
        let backlog = node.store.backlog().await.expect("a backlog");
        let word = |(gate, tasks): &(Option<Gate>, u64)| {
            format!("{tasks} {}", gate.map_or("available", Gate::as_str))
        };
        backlog.iter().map(word).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(told().await, "");
    let run = node.share(&flow("", &[("a", ""), ("b", ""), ("c", "needs: [a, b]")])).await;
    node.share(&flow("", &[("x", "runs_on: {zone: nowhere}")])).await;
    assert_eq!(told().await, "2 available, 1 needs, 1 node");
    node.take_any(1).await;
    assert_eq!(told().await, "1 available, 1 needs, 1 node");
    assert_eq!(node.store.parked().await.expect("a count"), 0);
    node.store.cancel(run, "ada", CancelMode::CleanUp).await.expect("a run that can be canceled");
    assert_eq!(told().await, "1 node");
}
