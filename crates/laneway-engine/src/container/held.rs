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
    made: Made,
    is_gone: bool,
}

/// Whether there is a container of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    No,
    /// It was asked for, and the answer is not here yet, or was lost.
    Perhaps,
    Yes,
}

impl Held {
    /// To be said before it is made: from here on it does not outlive this node.
    pub fn new(docker: &Docker, warden: &Warden, name: &str) -> Self {
        warden.hold(docker.host(), name);
        Self {
            docker: docker.clone(),
            warden: warden.clone(),
            name: name.to_owned(),
            made: Made::No,
            is_gone: false,
        }
    }

    /// To be said before the create is sent: from here on there may be one, whether we hear of it or not.
    pub fn asked(&mut self) {
        self.made = Made::Perhaps;
    }

    /// The answer to the create.
    pub fn answered<T>(&mut self, answer: &Result<T, Error>) {
        match answer {
            Ok(_) => self.made = Made::Yes,
            Err(error) if error.is_unknown() => {}
            Err(_) => self.made = Made::No,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends and removes it. What cannot be removed now is removed as soon as that works.
    pub async fn remove(mut self) -> Result<(), Error> {
        let removed = remove(&self.docker, &self.name, self.made).await;
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
        if self.made == Made::No {
            self.warden.release(&self.name);
            return;
        }
        // Outside of a runtime the process is about to end, and the warden sees to it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (docker, warden) = (self.docker.clone(), self.warden.clone());
        let (name, made) = (self.name.clone(), self.made);
        runtime.spawn(async move {
            while let Err(error) = remove(&docker, &name, made).await {
                tracing::debug!(%error, name, "a container cannot be removed yet");
                tokio::time::sleep(AGAIN).await;
            }
            warden.release(&name);
        });
    }
}

async fn remove(docker: &Docker, name: &str, made: Made) -> Result<(), Error> {
    if made == Made::No {
        return Ok(());
    }
    docker.remove(name).await?;
    let until = tokio::time::Instant::now() + LATE;
    while made == Made::Perhaps && tokio::time::Instant::now() < until {
        tokio::time::sleep(LATE / 10).await;
        docker.remove(name).await?;
    }
    Ok(())
}
