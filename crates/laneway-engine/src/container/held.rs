//! A container from before it is made until it is certainly gone. Whatever happens to the attempt, somebody sees to the end: this
//! handle, a task behind it where the container engine is away, and the warden where the node itself dies.

use std::time::Duration;

use super::docker::Docker;
use super::error::Error;
use crate::warden::Warden;

/// Between tries to remove what an engine that is away still has.
const AGAIN: Duration = Duration::from_secs(1);

/// A create whose answer never came may still be under way: so long its name is looked for.
const LATE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct Held {
    docker: Docker,
    warden: Warden,
    name: String,
    /// A create was asked for and not answered.
    pub(super) is_unsure: bool,
    is_gone: bool,
}

impl Held {
    /// To be said before it is made: from here on it does not outlive this node.
    pub fn new(docker: &Docker, warden: &Warden, name: &str) -> Self {
        warden.hold(docker.host(), name);
        Self {
            docker: docker.clone(),
            warden: warden.clone(),
            name: name.to_owned(),
            is_unsure: false,
            is_gone: false,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends and removes it. What cannot be removed now is removed as soon as that works.
    pub async fn remove(mut self) -> Result<(), Error> {
        let removed = remove(&self.docker, &self.name, self.is_unsure).await;
        if removed.is_ok() {
            self.is_gone = true;
            self.warden.release(&self.name);
        }
        removed
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        // Outside of a runtime the process is about to end, and the warden sees to it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (docker, warden) = (self.docker.clone(), self.warden.clone());
        let (name, is_unsure) = (self.name.clone(), self.is_unsure);
        runtime.spawn(async move {
            while let Err(error) = remove(&docker, &name, is_unsure).await {
                tracing::debug!(%error, name, "a container cannot be removed yet");
                tokio::time::sleep(AGAIN).await;
            }
            warden.release(&name);
        });
    }
}

async fn remove(docker: &Docker, name: &str, is_unsure: bool) -> Result<(), Error> {
    docker.remove(name).await?;
    let until = tokio::time::Instant::now() + LATE;
    while is_unsure && tokio::time::Instant::now() < until {
        tokio::time::sleep(LATE / 10).await;
        docker.remove(name).await?;
    }
    Ok(())
}
