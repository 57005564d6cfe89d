//! From submit to the start of a step, as the step itself sees it, in a node that is up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use laneway_core::state::RunStatus;
use laneway_engine::warden::{Warden, WardenCommand};
use laneway_engine::worker::{Control, Drive};
use rustix::time::{ClockId, clock_gettime};

use super::Home;

/// Writes the moment, by the clock that all processes of a machine share.
pub(super) fn stamp(file: &Path) -> Result<()> {
    std::fs::write(file, moment().to_string())
        .with_context(|| format!("{} cannot be written", file.display()))
}

/// Milliseconds from submit to stamp, one run after the other.
pub(super) async fn samples(samples: usize, laneway: &Path) -> Result<Vec<f64>> {
    let home = Home::new().await?;
    let command = WardenCommand {
        program: laneway.to_owned(),
        args: vec!["warden".into()],
        lock: Some(laneway_store::warden_lock(home.store.dir(), home.session)),
        use_cgroups: true,
    };
    let warden = Warden::start(command).context("no warden")?;
    let own = std::env::current_exe().context("this program cannot find its own file")?;
    let file = std::env::current_dir().context("no current directory")?.join("stamp");
    let words = serde_json::to_string(&[own.as_path(), Path::new("drive"), Path::new("stamp"), &file])?;
    let yaml = format!("steps:\n  stamp: {{command: {words}}}\n");
    let mut took = Vec::with_capacity(samples);
    for _ in 0..samples {
        let begun = moment();
        let run = home.submit(&yaml, 1).await?;
        let drive = Drive {
            store: Arc::clone(&home.store),
            session: home.session,
            node: "bench:1".to_owned(),
            run,
            slots: 1,
            kill_grace: Duration::from_secs(5),
            warden: warden.clone(),
            by: "bench".to_owned(),
        };
        let status = drive.until_done(Control::new()).await?;
        if status != RunStatus::Succeeded {
            bail!("the run ended as {status:?}");
        }
        took.push((read(&file)? - begun) as f64 / 1e6);
    }
    home.store.retire(home.session).await?;
    Ok(took)
}

/// What a step stamped.
pub(crate) fn read(file: &Path) -> Result<i64> {
    let text = std::fs::read_to_string(file).context("the step stamped nothing")?;
    text.parse().with_context(|| format!("`{text}` is no moment"))
}

/// In nanoseconds.
pub(crate) fn moment() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
