//! What is done inside of a warm container between two tasks: everything but what it started with is killed, its temporary
//! files go, and what cannot be made as it was is found out. Owns the scripts; decides nothing about the container.
//!
//! It is done with the image's own shell, because only a process in there may signal the others in there whoever runs this
//! node. A container without one is used once.

use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::StreamExt as _;

use super::super::docker::{Docker, Exec};
use super::super::error::Error;

/// A container in which a few small tools take longer than this is not worth keeping.
const PATIENCE: Duration = Duration::from_secs(20);

/// Of what these scripts print.
const MAX_PRINTED: usize = 64 * 1024;

/// Prints who runs, each with the moment of its start, since numbers are used again; itself left out.
const WHO: &str = r#"for d in /proc/[0-9]*; do
  p=${d#/proc/}; [ "$p" = "$$" ] && continue
  { read -r line < "$d/stat"; } 2>/dev/null || continue
  set -- ${line##*) }; [ "$1" = Z ] || echo "$p:${20}"
done"#;

/// Signals ($2) all but those of $1, as often as there are some if it kills; zombies are init's to reap.
const ALL_BUT: &str = r#"keep=" $1 "; signal=$2; rounds=0
while :; do
  found=
  for d in /proc/[0-9]*; do
    p=${d#/proc/}; [ "$p" = "$$" ] && continue
    { read -r line < "$d/stat"; } 2>/dev/null || continue
    set -- ${line##*) }; [ "$1" = Z ] && continue
    case "$keep" in *" $p:${20} "*) continue;; esac
    found=1; kill "-$signal" "$p" 2>/dev/null
  done
  [ -n "$found" ] && [ "$signal" = KILL ] || exit 0
  rounds=$((rounds + 1)); [ "$rounds" -lt 200 ] || exit 3
done"#;

/// The same for those that carry a mark ($1) in their environment: one task of a container that others use as well.
const MARKED: &str = r#"mark=$1; signal=$2; rounds=0
while :; do
  found=
  for d in /proc/[0-9]*; do
    p=${d#/proc/}; [ "$p" = "$$" ] && continue
    { read -r line < "$d/stat"; } 2>/dev/null || continue
    set -- ${line##*) }; [ "$1" = Z ] && continue
    grep -qs "$mark" "$d/environ" || continue
    found=1; kill "-$signal" "$p" 2>/dev/null
  done
  [ -n "$found" ] && [ "$signal" = KILL ] || exit 0
  rounds=$((rounds + 1)); [ "$rounds" -lt 200 ] || exit 3
done"#;

/// Empties what can be written although the root cannot.
const EMPTY: &str =
    "rm -rf /tmp/* /tmp/.[!.]* /tmp/..?* /dev/shm/* /dev/shm/.[!.]* /dev/shm/..?* 2>/dev/null";

/// What else a task may have changed: files of /dev, queues, and memory that outlives its processes. Of what is in /dev a name says
/// nothing: it may have become a file, a link, or another device. Sizes and times are left out, as those of directories change by themselves.
const TRACES: &str = r#"ls -A /tmp /dev /dev/shm /dev/mqueue 2>/dev/null
{ ls -lnA /dev; ls -ldn /tmp /dev /dev/shm /dev/mqueue; } 2>/dev/null | while read -r mode links user group major minor more; do
  case "$mode" in
    [bc]*) echo "$mode $user $group $major $minor";;
    l*) echo "$mode $user $group ${more#* -> }";;
    *) echo "$mode $user $group";;
  esac
done; cat /proc/sysvipc/* 2>/dev/null"#;

/// How often something in there was killed for memory, as the container's own group counts it: of the second kind of groups, and of
/// the first. Belongs to the traces as well: what was hit may have been a process with which the container started.
const KILLS: &str = r#"for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$f" ] || continue
  while read -r word count; do [ "$word" = oom_kill ] && echo "oom_kill $count"; done < "$f"
done; exit 0"#;

/// The variable by which a task's processes are known among those of others.
pub(super) const MARK: &str = "LANEWAY_EXEC";

/// A container as it was when nobody had used it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pristine {
    /// `pid:start` of each process.
    processes: Vec<String>,
    traces: String,
    layer: Vec<(String, i64)>,
}

/// Whose processes are meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose<'a> {
    /// All but those with which it started.
    Guests(&'a Pristine),
    /// Those of one task.
    Marked(&'a str),
}

/// Takes down how it is. `None`: there is no shell to ask.
pub(super) async fn pristine(docker: &Docker, id: &str) -> Result<Option<Pristine>, Error> {
    let (code, printed) = match run(docker, id, &[WHO]).await {
        Err(Error::Refused { .. }) => return Ok(None),
        answer => answer?,
    };
    if code != 0 {
        return Ok(None);
    }
    let processes = printed.split_whitespace().map(str::to_owned).collect();
    Ok(Some(Pristine { processes, traces: traces(docker, id).await?, layer: layer(docker, id).await? }))
}

/// Sends a signal (`TERM`, `KILL`) to them; after KILL none of them is left if it says true.
pub(super) async fn signal(docker: &Docker, id: &str, whose: Whose<'_>, signal: &str) -> Result<bool, Error> {
    let (script, whom) = match whose {
        Whose::Guests(pristine) => (ALL_BUT, pristine.processes.join(" ")),
        Whose::Marked(mark) => (MARKED, format!("{MARK}={mark}")),
    };
    run(docker, id, &[script, &whom, signal]).await.map(|(code, _)| code == 0)
}

/// How often something in there was killed for memory, since it was made. `None`: the container cannot tell.
pub(super) async fn kills(docker: &Docker, id: &str) -> Result<Option<u64>, Error> {
    run(docker, id, &[KILLS]).await.map(|(_, printed)| kills_of(&printed))
}

fn kills_of(printed: &str) -> Option<u64> {
    printed.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

impl Pristine {
    /// Those with which it started.
    pub(super) fn processes(&self) -> &[String] {
        &self.processes
    }

    /// How often something was killed for memory before anybody used it.
    pub(super) fn kills(&self) -> u64 {
        kills_of(&self.traces).unwrap_or_default()
    }
}

/// Empties what can be emptied, once nothing of a guest runs in there. False: it is not as it was.
pub(super) async fn is_as_before(docker: &Docker, id: &str, pristine: &Pristine) -> Result<bool, Error> {
    Ok(traces(docker, id).await? == pristine.traces && layer(docker, id).await? == pristine.layer)
}

async fn traces(docker: &Docker, id: &str) -> Result<String, Error> {
    let script = format!("{EMPTY}\n{TRACES}\n{KILLS}");
    run(docker, id, &[&script]).await.map(|(_, printed)| printed)
}

async fn layer(docker: &Docker, id: &str) -> Result<Vec<(String, i64)>, Error> {
    let changes = docker.changes(id).await?;
    let mut changes: Vec<_> =
        changes.into_iter().map(|change| (change.path, i64::from(change.kind as i32))).collect();
    changes.sort_unstable();
    Ok(changes)
}

/// Runs a script with its arguments in the image's shell.
async fn run(docker: &Docker, id: &str, script: &[&str]) -> Result<(i64, String), Error> {
    let mut argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), script[0].to_owned(), "laneway".to_owned()];
    argv.extend(script[1..].iter().map(|word| (*word).to_owned()));
    run_program(docker, id, argv, PATIENCE).await
}

/// Runs a program in there to its end, and gives its exit code with what it printed.
pub(super) async fn run_program(
    docker: &Docker,
    id: &str,
    argv: Vec<String>,
    within: Duration,
) -> Result<(i64, String), Error> {
    let asked = async {
        let mut started = docker.exec(id, Exec { argv, ..Exec::default() }).await?;
        let mut printed = Vec::new();
        while let Some(Ok(piece)) = started.output.next().await {
            let bytes = bytes_of(&piece);
            printed.extend_from_slice(&bytes[..bytes.len().min(MAX_PRINTED - printed.len())]);
        }
        let code = docker.exec_end(&started.id).await?;
        Ok((code, String::from_utf8_lossy(&printed).into_owned()))
    };
    let verb = "finish a small program in a container";
    tokio::time::timeout(within, asked).await.unwrap_or(Err(Error::TooSlow { verb, within }))
}

pub(super) fn bytes_of(piece: &LogOutput) -> &[u8] {
    match piece {
        LogOutput::StdErr { message }
        | LogOutput::StdOut { message }
        | LogOutput::StdIn { message }
        | LogOutput::Console { message } => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_for_memory_are_found_among_the_rest() {
        assert_eq!(kills_of("/dev:\nnull\noom_kill 3\n"), Some(3));
        assert_eq!(kills_of("oom_kill_disable 1\n"), None);
        assert_eq!(kills_of(""), None);
        assert!(KILLS.contains("memory.events") && KILLS.contains("memory.oom_control"));
    }
}
