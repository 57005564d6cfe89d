//! What verbs write on Postgres, counted row by row: what must not grow with what a node runs, and
//! what goes together.

use std::sync::Arc;

use laneway_core::class::Offer;
use laneway_store::contract::*;
use laneway_store::model::{Ask, NewSession, Tally};
use serde_json::json;
use tokio_postgres::Client;

use crate::harness::{block_on, flat, submission};
use crate::server::Schema;

/// Notes the table of every row that is written from here on.
const NOTE: &str = "
    CREATE TABLE noted (name TEXT NOT NULL, by BIGINT NOT NULL);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO noted VALUES (TG_TABLE_NAME, txid_current()); RETURN NULL; END $$;
    DO $$ DECLARE each TEXT; BEGIN
        FOR each IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema AND tablename <> 'noted' LOOP
            EXECUTE format('CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION note()', each);
        END LOOP;
    END $$;";

/// Rows written since, by table.
async fn noted(beneath: &Client) -> Vec<(String, i64)> {
    let rows = beneath.query("SELECT name, count(*) FROM noted GROUP BY name ORDER BY name", &[]).await;
    rows.expect("an answer").iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn heartbeat_writes_one_row_however_much_its_session_runs() {
    block_on(async {
        let schema = Schema::new();
        let store = schema.open();
        let session = store.register(NewSession::ephemeral("a:1", 1_000)).await.expect("a session");
        let run = store.submit(submission(&flat(1_000, 1_000), json!({}), session)).await.expect("a run");
        let ask = Ask { session, run: Some(run), limit: 1_000, ahead: 0 };
        let claims: Vec<_> =
            store.claim(ask).await.expect("claims").into_iter().map(|claim| claim.at).collect();
        assert_eq!(claims.len(), 1_000);
        store.start(claims).await.expect("they run");
        let beneath = schema.beneath().await;
        beneath.batch_execute(NOTE).await.expect("triggers");
        for _ in 0..3 {
            store.renew(session, Tally::default()).await.expect("a session that lives");
        }
        assert_eq!(noted(&beneath).await, [("sessions".to_owned(), 3)]);
    });
}

#[test]
fn runs_that_are_submitted_at_once_share_transactions() {
    block_on(async {
        let schema = Schema::new();
        let store = Arc::new(schema.open());
        let offer = Offer { node: "a".to_owned(), has_process: true, ..Offer::default() };
        let node = NewSession { offer: Some(offer), ..NewSession::ephemeral("a:1", 8) };
        let session = store.register(node).await.expect("a session");
        let beneath = schema.beneath().await;
        beneath.batch_execute(NOTE).await.expect("triggers");
        let mut submitting = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let (store, mut one) = (Arc::clone(&store), submission(&flat(2, 2), json!({}), session));
            one.is_shared = true;
            submitting.spawn(async move { store.submit(one).await.expect("a run") });
        }
        let runs: std::collections::BTreeSet<_> = submitting.join_all().await.into_iter().collect();
        assert_eq!(runs.len(), 200, "each has its own");
        let counted = "SELECT count(*), count(DISTINCT by) FROM noted WHERE name = 'runs'";
        let row = beneath.query_one(counted, &[]).await.expect("an answer");
        let (written, transactions): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(written, 200, "a row is written once, as it is in the end");
        assert!(transactions <= 50, "{transactions} transactions");
        let ask = Ask { session, run: None, limit: 1_000, ahead: 0 };
        assert_eq!(store.claim(ask).await.expect("claims").len(), 400, "all of it can be run");
    });
}
