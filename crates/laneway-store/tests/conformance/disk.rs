//! A full disk: verbs fail in words, nothing that was acknowledged is lost, and work goes on when space
//! returns. Then the same disk read-only. The disk is a small file system in memory, in a mount namespace of a child of this test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model::Finished;
use laneway_store::sqlite::SqliteStore;
use laneway_store::{Error, Fate, Open};
use serde_json::json;

use crate::audit;
use crate::harness::{Held, Node, block_on, command, flat, submission, succeeded, succeeded_with};

/// Names the small disk to the process that fills it.
const DISK: &str = "LANEWAY_TEST_DISK";

#[test]
fn full_disk_loses_nothing_that_was_acknowledged() {
    if let Some(disk) = std::env::var_os(DISK) {
        return fill(&PathBuf::from(disk));
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    // A user namespace lets everybody mount; the mount ends with the child.
    let script = "mount -t tmpfs -o size=4m tmpfs \"$LANEWAY_TEST_DISK\" && exec \"$0\" \"$@\"";
    let output = command("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "disk::full_disk_loses_nothing_that_was_acknowledged", "--nocapture"])
        .env(DISK, place.path())
        .output()
        .expect("`unshare` and `mount` of util-linux");
    let told = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&told));
}

fn fill(disk: &Path) {
    block_on(async {
        let path = disk.join("laneway.db");
        let open = || SqliteStore::open(&path, Open::Create).expect("a store");
        let node = Node::register(std::sync::Arc::new(open()), "one").await;
        let run = node.submit(&flat(2000, 2000)).await;
        let mut held = node.take(run, 2000).await;
        let ballast = disk.join("ballast");
        take_space(&ballast);

        let (recorded, refused) = finish_until_full(&node, &mut held).await;
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        assert!(refused.is_passing() && refused.is_about_the_store());
        let late = submission(&flat(50, 2), json!({}), node.session);
        let refusal = node.store.submit(late).await.expect_err("there is no space");
        assert!(matches!(refusal, Error::Full { .. }), "{refusal}");
        assert_kept(&node, run, &recorded).await;

        fs::remove_file(&ballast).expect("space to return");
        let held = held.pop().expect("the claim whose finish failed");
        assert_eq!(node.finish(&held, succeeded()).await, Fate::Recorded, "the same call succeeds later");
        assert_kept(&node, run, &recorded).await;
        assert_eq!(node.cancel(run).await, RunStatus::Running);
        drop(node);

        let file = rusqlite::Connection::open(&path).expect("the file");
        let sound: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
        assert_eq!(sound, "ok");
        drop(file);
        let again = Node::register(std::sync::Arc::new(open()), "two").await;
        assert_kept(&again, run, &recorded).await;
        again.store.reap().await.expect("an answer");
        audit::check(&*again.store, run).await;
        assert_eq!(again.status(run).await, RunStatus::Canceled);
        drop(again);

        let remount = command("mount").args(["-o", "remount,ro"]).arg(disk).status();
        assert!(remount.expect("`mount`").success());
        let refusal = SqliteStore::open(&path, Open::Existing).expect_err("the file system is read-only");
        assert!(matches!(refusal, Error::ReadOnly { .. }), "{refusal}");
        let refusal = SqliteStore::open(&disk.join("new.db"), Open::Create).expect_err("nor can one be made");
        assert!(matches!(refusal, Error::ReadOnly { .. }), "{refusal}");
    });
}

/// Writes until nothing more fits, then leaves a little room for the store.
fn take_space(path: &Path) {
    let mut file = fs::File::create(path).expect("a file");
    let chunk = [7_u8; 4096];
    let mut taken = 0_u64;
    while file.write_all(&chunk).is_ok() {
        taken += chunk.len() as u64;
    }
    file.set_len(taken.saturating_sub(128 * 1024)).expect("a shorter file");
}

/// Finishes tasks with some output until the disk is full. The claim whose finish failed stays the last.
async fn finish_until_full(node: &Node, held: &mut Vec<Held>) -> (Vec<Held>, Error) {
    let output = "x".repeat(2000);
    let mut recorded = Vec::new();
    loop {
        let next = held.last().expect("the disk is full before the tasks are finished").clone();
        let finished =
            Finished::new(next.at, succeeded_with(json!({"log": output})), std::time::Duration::ZERO);
        match node.store.finish(vec![finished], None).await {
            Ok(answer) => assert_eq!(answer.fates, [Fate::Recorded]),
            Err(error) => return (recorded, error),
        }
        held.pop();
        recorded.push(next);
    }
}

async fn assert_kept(node: &Node, run: RunId, recorded: &[Held]) {
    let state = node.state(run).await;
    assert!(!recorded.is_empty());
    for held in recorded {
        let task = &state.tasks[held.at.position as usize];
        assert_eq!((task.status, task.output.len()), (TaskStatus::Succeeded, 1), "{}", held.step);
    }
    audit::check(&*node.store, run).await;
}
