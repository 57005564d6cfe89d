//! An experiment, not a benchmark of the product: eight connections finish tasks of one run on Postgres, two claim beside
//! them, in each of the ways that a store could do it. What it taught stands in docs/design/postgres.md.
//!
//! ```sh
//! cargo xtask postgres --durable cargo run --package laneway-bench --example postgres_contention
//! ```
#![expect(clippy::print_stdout, reason = "its table is its result")]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::Poll;
use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

const SCHEMA: &str = include_str!("../../crates/laneway-store/src/postgres/migrations/0001_first.sql");
const CLAIMERS: usize = 2;

/// How a batch of finishes is said to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Lock, then a statement for each row, each waiting for the answer to the one before.
    OneByOne,
    /// The same statements in two flights: what is read, and what is written with the commit.
    Pipelined,
    /// Two flights, and each statement is about the whole batch.
    SetBased,
    /// All of it in one statement that commits by itself.
    OneStatement,
}

/// The statements of one connection, prepared.
struct Sql {
    lock: Statement,
    facts: Statement,
    finish: Statement,
    attempt: Statement,
    event: Statement,
    count: Statement,
    live: Statement,
    waiting: Statement,
    promote: Statement,
    save: Statement,
    all: Statement,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let url = std::env::var("LANEWAY_TEST_POSTGRES").context("run it by `cargo xtask postgres`")?;
    let tasks: i64 = std::env::args().nth(1).map_or(Ok(1_024), |tasks| tasks.parse()).context("tasks")?;
    println!(
        "| way | connections | batch | finishes/s | of the first | claims/s beside | WAL a task | promoted |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut first = None;
    for (way, connections, batch) in cases() {
        let figures = measure(&url, way, connections, batch, tasks).await?;
        let base = *first.get_or_insert(figures.rate);
        println!(
            "| {way:?} | {connections} | {batch} | {:.0} | {:.1}x | {:.0} | {:.0} B | {} of {tasks} |",
            figures.rate,
            figures.rate / base,
            figures.claims,
            figures.wal,
            figures.promoted
        );
    }
    Ok(())
}

fn cases() -> Vec<(Way, usize, i64)> {
    let mut cases = Vec::new();
    for way in [Way::OneByOne, Way::Pipelined, Way::SetBased, Way::OneStatement] {
        cases.extend([1, 8, 32].map(|batch| (way, 8, batch)));
    }
    cases.extend([8, 32, 256].map(|batch| (Way::SetBased, 1, batch)));
    cases
}

struct Figures {
    rate: f64,
    claims: f64,
    wal: f64,
    promoted: i64,
}

async fn measure(url: &str, way: Way, connections: usize, batch: i64, tasks: i64) -> Result<Figures> {
    let admin = connect(url).await?;
    admin.batch_execute("DROP SCHEMA IF EXISTS contention CASCADE; CREATE SCHEMA contention").await?;
    admin.batch_execute("SET search_path = contention").await?;
    admin.batch_execute(SCHEMA).await?;
    seed(&admin, tasks).await?;
    admin.batch_execute("VACUUM ANALYZE tasks").await?;
    admin.batch_execute("CHECKPOINT").await?;
    let before: String = admin.query_one("SELECT pg_current_wal_lsn()::text", &[]).await?.get(0);
    let next = AtomicI64::new(0);
    let is_over = AtomicBool::new(false);
    let claimed = AtomicI64::new(0);
    let mut clients = Vec::new();
    for _ in 0..connections + CLAIMERS {
        let client = connect(url).await?;
        client.batch_execute("SET search_path = contention").await?;
        let sql = prepare(&client).await?;
        clients.push((client, sql));
    }
    let (finishers, claimers) = clients.split_at(connections);
    let begun = Instant::now();
    let running = AtomicI64::new(finishers.len() as i64);
    let mut work: Vec<Pin<Box<dyn Future<Output = Result<()>>>>> = Vec::new();
    for (client, sql) in finishers {
        work.push(Box::pin(async {
            loop {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= tasks {
                    break;
                }
                let positions: Vec<i64> = (from..tasks.min(from + batch)).collect();
                finish(client, sql, way, &positions).await?;
            }
            if running.fetch_sub(1, Ordering::Relaxed) == 1 {
                is_over.store(true, Ordering::Relaxed);
            }
            Ok(())
        }));
    }
    for (client, _) in claimers {
        work.push(Box::pin(async {
            let claim = client.prepare(CLAIM).await?;
            while !is_over.load(Ordering::Relaxed) {
                let rows = client.query(&claim, &[]).await?;
                claimed.fetch_add(rows.len() as i64, Ordering::Relaxed);
                if rows.is_empty() {
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
            }
            Ok(())
        }));
    }
    in_order(work).await.into_iter().collect::<Result<Vec<()>>>()?;
    let took = begun.elapsed().as_secs_f64();
    let wal = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::float8";
    let wal: f64 = admin.query_one(wal, &[&before]).await?.get(0);
    let promoted = "SELECT count(*) FROM events WHERE name = 'task_available'";
    let promoted: i64 = admin.query_one(promoted, &[]).await?.get(0);
    let gaps = "SELECT count(*) = max(seq) AND max(seq) = (SELECT last_event FROM runs) FROM events";
    anyhow::ensure!(admin.query_one(gaps, &[]).await?.get::<_, bool>(0), "events have gaps");
    Ok(Figures {
        rate: tasks as f64 / took,
        claims: claimed.load(Ordering::Relaxed) as f64 / took,
        wal: wal / tasks as f64,
        promoted,
    })
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// As many that are running as are to be finished, and as many again that wait in line for a place.
async fn seed(client: &Client, tasks: i64) -> Result<()> {
    client
        .batch_execute(&format!(
            "INSERT INTO runs (id, tail, workflow, version, dir, params, max_parallel, status, submitted_by,
                               submitted_at, started_at, last_event, unsettled, is_visible)
             VALUES ('r', 'r', 'w', 'v', '/', '{{}}', {tasks}, 'running', 'me', 0, 0, 0, 2 * {tasks}, true);
             INSERT INTO tasks (run_no, position, class, status, session, attempt)
             SELECT 1, n, -1, 'running', 'holder', 1 FROM generate_series(0, {tasks} - 1) AS n;
             INSERT INTO tasks (run_no, position, class, status, gate, rank)
             SELECT 1, n, -1, 'pending', 'max_parallel', n FROM generate_series({tasks}, 2 * {tasks} - 1) AS n;
             INSERT INTO needs_sets (run_no, set_no, unsettled) VALUES (1, 0, {tasks})"
        ))
        .await?;
    Ok(())
}

/// The claimers take four at a time. Nothing is locked after the tasks' rows.
const CLAIM: &str = "UPDATE tasks SET status = 'running', session = 'claimer', attempt = attempt + 1
    FROM (SELECT run_no, position FROM tasks WHERE status = 'available' AND class = -1
          ORDER BY rank, run_no, position LIMIT 4 FOR UPDATE SKIP LOCKED) AS next
    WHERE tasks.run_no = next.run_no AND tasks.position = next.position RETURNING tasks.position";

/// What an event says is about this long.
const BODY: &str =
    r#"{"step":"a_step_of_some_name","attempt":1,"status":"succeeded","exit_code":0,"took_ms":7}"#;

async fn prepare(client: &Client) -> Result<Sql> {
    Ok(Sql {
        lock: client.prepare("SELECT last_event, unsettled FROM runs WHERE no = 1 FOR UPDATE").await?,
        facts: client
            .prepare("SELECT status, attempt, session FROM tasks WHERE run_no = 1 AND position = ANY($1::bigint[])")
            .await?,
        finish: client
            .prepare(
                "UPDATE tasks SET status = 'succeeded', session = NULL, finished_at = 1, took_ms = 7
                 WHERE run_no = 1 AND position = ANY($1::bigint[]) AND attempt = 1 AND session = 'holder'
                   AND status = 'running'",
            )
            .await?,
        attempt: client
            .prepare(
                "INSERT INTO attempts (run_no, position, attempt, session, node, outcome, finished_at)
                 SELECT 1, p, 1, 'holder', 'node', 'succeeded', 1 FROM unnest($1::bigint[]) AS p",
            )
            .await?,
        event: client
            .prepare(
                "INSERT INTO events (run_no, seq, at, name, version, body)
                 SELECT 1, * FROM (SELECT s, 1, n, 1, b FROM unnest($1::bigint[], $2::text[], $3::text[]) AS e (s, n, b)) AS e",
            )
            .await?,
        count: client
            .prepare(
                "UPDATE needs_sets SET unsettled = unsettled - $1::bigint, succeeded = succeeded + $1::bigint
                 WHERE run_no = 1 AND set_no = 0",
            )
            .await?,
        live: client
            .prepare("SELECT count(*) FROM tasks WHERE run_no = 1 AND status IN ('available', 'running')")
            .await?,
        waiting: client
            .prepare(
                "SELECT position FROM tasks WHERE run_no = 1 AND gate = 'max_parallel' ORDER BY rank, position
                 LIMIT $1::bigint",
            )
            .await?,
        promote: client
            .prepare(
                "UPDATE tasks SET status = 'available', gate = NULL
                 WHERE run_no = 1 AND position = ANY($1::bigint[]) AND status = 'pending'",
            )
            .await?,
        save: client
            .prepare("UPDATE runs SET last_event = $1::bigint, unsettled = $2::bigint WHERE no = 1")
            .await?,
        all: client.prepare(ALL).await?,
    })
}

/// It locks and looks in one statement: what it sees of the line is from before it got the lock.
const ALL: &str = "
    WITH r AS (SELECT last_event FROM runs WHERE no = 1 FOR UPDATE),
    t AS (UPDATE tasks SET status = 'succeeded', session = NULL, finished_at = 1, took_ms = 7 FROM r
          WHERE run_no = 1 AND position = ANY($1::bigint[]) AND attempt = 1 AND session = 'holder'
            AND status = 'running' RETURNING position),
    a AS (INSERT INTO attempts (run_no, position, attempt, session, node, outcome, finished_at)
          SELECT 1, position, 1, 'holder', 'node', 'succeeded', 1 FROM t),
    n AS (UPDATE needs_sets SET unsettled = unsettled - (SELECT count(*) FROM t),
                                succeeded = succeeded + (SELECT count(*) FROM t) WHERE run_no = 1 AND set_no = 0),
    w AS (SELECT position FROM tasks, r WHERE run_no = 1 AND gate = 'max_parallel' ORDER BY rank, position
          LIMIT cardinality($1::bigint[]) FOR UPDATE OF tasks),
    p AS (UPDATE tasks SET status = 'available', gate = NULL FROM w
          WHERE tasks.run_no = 1 AND tasks.position = w.position AND status = 'pending' RETURNING tasks.position),
    e AS (SELECT position, 0 AS o, 'task_started' AS name FROM t UNION ALL SELECT position, 1, 'task_finished' FROM t
          UNION ALL SELECT position, 2, 'task_available' FROM p),
    i AS (INSERT INTO events (run_no, seq, at, name, version, body)
          SELECT 1, (SELECT last_event FROM r) + row_number() OVER (ORDER BY o, position), 1, name, 1, $2::text FROM e)
    UPDATE runs SET last_event = runs.last_event + (SELECT count(*) FROM e), unsettled = unsettled - (SELECT count(*) FROM t)
    WHERE no = 1";

async fn finish(client: &Client, sql: &Sql, way: Way, positions: &[i64]) -> Result<()> {
    if way == Way::OneStatement {
        client.execute(&sql.all, &[&positions, &BODY]).await?;
        return Ok(());
    }
    let ones: Vec<Vec<i64>> = match way {
        Way::OneByOne | Way::Pipelined => positions.iter().map(|position| vec![*position]).collect(),
        Way::SetBased | Way::OneStatement => vec![positions.to_vec()],
    };
    let count = positions.len() as i64;
    let mut reads = Flight::new(client, way);
    reads.say("BEGIN");
    reads.ask(&sql.lock, Vec::new());
    for positions in &ones {
        reads.ask(&sql.facts, vec![positions]);
    }
    reads.ask(&sql.live, Vec::new());
    reads.ask(&sql.waiting, vec![&count]);
    let answers = reads.land().await?;
    let (lock, waiting) = (&answers[1], &answers[answers.len() - 1]);
    let (mut seq, unsettled): (i64, i64) = (lock[0].get(0), lock[0].get(1));
    let next: Vec<i64> = waiting.iter().map(|row| row.get(0)).collect();
    let nexts: Vec<Vec<i64>> =
        if ones.len() == 1 { vec![next] } else { next.iter().map(|next| vec![*next]).collect() };

    let numbered = |seq: &mut i64, of: usize, names: &[&'static str]| -> Vec<Events> {
        let mut facts: Vec<(i64, &'static str)> = Vec::new();
        for name in names.iter().cycle().take(of * names.len()) {
            *seq += 1;
            facts.push((*seq, name));
        }
        let size = if way == Way::SetBased { facts.len().max(1) } else { 1 };
        facts.chunks(size).map(Events::of).collect()
    };
    let ended: Vec<Vec<Events>> =
        ones.iter().map(|one| numbered(&mut seq, one.len(), &["task_started", "task_finished"])).collect();
    let opened: Vec<Vec<Events>> =
        nexts.iter().map(|next| numbered(&mut seq, next.len(), &["task_available"])).collect();
    let counts: Vec<i64> = ones.iter().map(|one| one.len() as i64).collect();
    let left = unsettled - count;
    let mut writes = Flight::new(client, way);
    for ((one, events), count) in ones.iter().zip(&ended).zip(&counts) {
        writes.ask(&sql.finish, vec![one]);
        writes.ask(&sql.attempt, vec![one]);
        for events in events {
            writes.ask(&sql.event, vec![&events.seqs, &events.names, &events.bodies]);
        }
        writes.ask(&sql.count, vec![count]);
    }
    for (next, events) in nexts.iter().zip(&opened) {
        writes.ask(&sql.promote, vec![next]);
        for events in events {
            writes.ask(&sql.event, vec![&events.seqs, &events.names, &events.bodies]);
        }
    }
    writes.ask(&sql.save, vec![&seq, &left]);
    writes.say("COMMIT");
    writes.land().await?;
    Ok(())
}

struct Events {
    seqs: Vec<i64>,
    names: Vec<&'static str>,
    bodies: Vec<&'static str>,
}

impl Events {
    fn of(facts: &[(i64, &'static str)]) -> Self {
        Self {
            seqs: facts.iter().map(|(seq, _)| *seq).collect(),
            names: facts.iter().map(|(_, name)| *name).collect(),
            bodies: vec![BODY; facts.len()],
        }
    }
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + 'a>>;

/// Statements that are sent one behind the other, without waiting for answers unless the way says so.
struct Flight<'a> {
    client: &'a Client,
    way: Way,
    asked: Vec<Asked<'a>>,
}

impl<'a> Flight<'a> {
    fn new(client: &'a Client, way: Way) -> Self {
        Self { client, way, asked: Vec::new() }
    }

    fn say(&mut self, words: &'static str) {
        let client = self.client;
        self.asked.push(Box::pin(async move { client.batch_execute(words).await.map(|()| Vec::new()) }));
    }

    fn ask(&mut self, statement: &'a Statement, values: Vec<&'a (dyn ToSql + Sync)>) {
        let client = self.client;
        self.asked.push(Box::pin(async move { client.query(statement, &values).await }));
    }

    async fn land(self) -> Result<Vec<Vec<Row>>, Error> {
        if self.way != Way::OneByOne {
            return in_order(self.asked).await.into_iter().collect();
        }
        let mut answers = Vec::new();
        for asked in self.asked {
            answers.push(asked.await?);
        }
        Ok(answers)
    }
}

/// All of them at once, each polled behind the one before: so they are sent in this order.
async fn in_order<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|context| {
        for (future, answer) in &mut waiting {
            if answer.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *answer = Some(value);
            }
        }
        if waiting.iter().all(|(_, answer)| answer.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, answer)| answer).collect()
}
