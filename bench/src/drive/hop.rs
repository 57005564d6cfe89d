//! From the end of a step to the start of its successor on another node: a chain whose steps run by turns on two nodes, each
//! a process of its own. Beside it what cannot be left out: a commit, a notification, and a commit of whoever heard it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use laneway_core::state::RunStatus;
use laneway_engine::function::{Call, Functions};
use laneway_engine::worker::Control;
use serde_json::{Value, json};
use tokio_postgres::{AsyncMessage, NoTls};

use super::enqueue::moment;
use super::many::{Node, address, plan};
use crate::meter::program;
use crate::report::print;

/// The first steps warm both nodes up.
const WARM_UP: usize = 10;

/// Milliseconds from the start of a step, which does nothing, to that of the next on the other node.
pub(super) async fn hops(steps: usize) -> Result<()> {
    let steps = steps + WARM_UP;
    let mut sides = ["left", "right"].into_iter().map(start).collect::<Result<Vec<Child>>>()?;
    let node = Node::begin(&[], None, 1).await?;
    let document = chain(steps);
    let plan = plan(&document)?;
    // Until both are there.
    while node.store.nodes(0).await?.iter().filter(|node| node.offer.is_some()).count() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let run = node.submit(&plan, &document).await?;
    let status = loop {
        let status = node.store.status(run).await?;
        if status.is_final() {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut moments: Vec<i64> = Vec::new();
    for side in &mut sides {
        // The end of its input ends it.
        drop(side.stdin.take());
        let mut told = String::new();
        side.stdout.take().context("a side tells what it saw")?.read_to_string(&mut told)?;
        moments.extend(serde_json::from_str::<Vec<i64>>(&told).context("a side told no moments")?);
        side.wait().context("a side cannot be waited for")?;
    }
    node.end().await?;
    if status != RunStatus::Succeeded || moments.len() != steps {
        bail!("the run ended as {status:?}, and {} of {steps} steps were seen", moments.len());
    }
    moments.sort_unstable();
    let hops = moments.windows(2).skip(WARM_UP).map(|pair| (pair[1] - pair[0]) as f64 / 1e6);
    print(&json!({ "ms": hops.collect::<Vec<f64>>() }).to_string());
    Ok(())
}

fn start(side: &str) -> Result<Child> {
    std::fs::create_dir_all(side).context("no directory for a side")?;
    let own = std::env::current_exe().context("this program cannot find its own file")?;
    let mut command = program(own);
    command.current_dir(side).args(["drive", "hop-side", side]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().context("a side could not be started")
}

/// A node of which the steps of one side ask; it tells when each started.
pub(super) async fn side(side: &str) -> Result<()> {
    let node = Node::begin(&["hop"], Some(side), 2).await?;
    let moments = Arc::new(Mutex::new(Vec::new()));
    let functions = Functions::new().add("hop", {
        let moments = Arc::clone(&moments);
        move |_: Call<Value>| {
            moments.lock().unwrap_or_else(PoisonError::into_inner).push(moment());
            std::future::ready(Ok::<_, Infallible>(()))
        }
    });
    let control = Control::new();
    let told = control.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        told.cancel();
    });
    node.work(2, functions, control).await?;
    node.end().await?;
    let moments = moments.lock().unwrap_or_else(PoisonError::into_inner).clone();
    print(&serde_json::to_string(&moments)?);
    Ok(())
}

fn chain(steps: usize) -> String {
    let mut text = String::from("steps:\n");
    for step in 0..steps {
        let needs = step.checked_sub(1).map_or(String::new(), |before| format!("s{before}"));
        let side = if step % 2 == 0 { "left" } else { "right" };
        text += &format!("  s{step}: {{needs: [{needs}], runs_on: {{side: {side}}}, function: hop}}\n");
    }
    text
}

/// Milliseconds from the begin of a commit to the end of one by a connection that heard of it.
pub(super) async fn bare(samples: usize) -> Result<()> {
    let url = address()?;
    let connect = || async { tokio_postgres::connect(&url, NoTls).await.context("no connection") };
    let (one, line) = connect().await?;
    tokio::spawn(line);
    let (hint, line) = connect().await?;
    tokio::spawn(line);
    let (other, line) = connect().await?;
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut line = line;
        while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
            if matches!(message, AsyncMessage::Notification(_)) && heard.send(()).is_err() {
                return;
            }
        }
    });
    one.batch_execute("CREATE TABLE hops (no BIGINT PRIMARY KEY, what TEXT)").await?;
    // As ours: a hint need not be on disk.
    hint.batch_execute("SET synchronous_commit = off").await?;
    other.batch_execute("LISTEN hops").await?;
    let insert = "INSERT INTO hops VALUES ($1, 'a change of some length')";
    let (first, second) = (one.prepare(insert).await?, other.prepare(insert).await?);
    let mut ms = Vec::new();
    for sample in 0..i64::try_from(samples + WARM_UP)? {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let begun = Instant::now();
        one.execute(&first, &[&(2 * sample)]).await?;
        hint.batch_execute("NOTIFY hops").await?;
        hears.recv().await.context("the other connection broke")?;
        other.execute(&second, &[&(2 * sample + 1)]).await?;
        ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    print(&json!({ "ms": ms.split_off(WARM_UP) }).to_string());
    Ok(())
}
