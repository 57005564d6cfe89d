//! What names of images mean to a node. Looked up once for all who ask at the same moment: one pull serves a whole lane, and is told once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use laneway_core::definition;
use laneway_core::pool::Fault;

use super::keeper::Common;
use super::{Pull, Told};
use crate::container::pull::Pulling;

/// How long an image's name is taken to mean the same. A look costs a question to the engine for each task, and a tag that
/// moves does so while somebody pulls.
const KNOWN: Duration = Duration::from_secs(5);

type Sought = BoxFuture<'static, Result<String, Fault>>;

#[derive(Debug, Default)]
pub(super) struct Images(Mutex<HashMap<Key, Image>>);

/// A name, and how it is looked up: two pools may name one image and differ in whether it is pulled.
type Key = (String, definition::Pull);

#[derive(Debug)]
enum Image {
    /// Its id, and since when that is known.
    Known(String, Instant),
    /// Somebody looks for it, as long as anybody waits for the answer.
    Sought(WeakShared<Sought>),
}

impl Images {
    /// The id of a pool's image, which is pulled if the pool says so.
    pub(super) async fn id(&self, common: &Arc<Common>, pool: &definition::Pool) -> Result<String, Fault> {
        let key = (pool.container.image.clone(), pool.container.pull);
        let sought = {
            let mut images = self.images();
            let under_way = match images.get(&key) {
                Some(Image::Known(id, since)) if since.elapsed() < KNOWN => return Ok(id.clone()),
                Some(Image::Sought(sought)) => sought.upgrade(),
                Some(Image::Known(..)) | None => None,
            };
            let sought = under_way.unwrap_or_else(|| seek(Arc::clone(common), pool.clone()));
            if let Some(weak) = sought.downgrade() {
                images.insert(key.clone(), Image::Sought(weak));
            }
            sought
        };
        let found = sought.clone().await;
        let mut images = self.images();
        // Of all who waited the first one notes the answer; what stands there later is of somebody who looked anew.
        let is_ours = match images.get(&key) {
            Some(Image::Sought(there)) => there.upgrade().is_some_and(|there| there.ptr_eq(&sought)),
            Some(Image::Known(..)) | None => false,
        };
        match &found {
            Ok(id) if is_ours => drop(images.insert(key, Image::Known(id.clone(), Instant::now()))),
            // Who comes next tries it once more.
            Err(_) if is_ours => drop(images.remove(&key)),
            Ok(_) | Err(_) => {}
        }
        found
    }

    /// Held for a look or an insertion, never across a wait.
    fn images(&self) -> MutexGuard<'_, HashMap<Key, Image>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seek(common: Arc<Common>, pool: definition::Pool) -> Shared<Sought> {
    let seek = async move {
        let name = pool.container.image.clone();
        let mut pulling = Pulling::of(&name);
        let tell = |(bytes, of), is_done| {
            let (pool, image) = (pool.name.clone(), name.clone());
            common.tell(Told::Pulling(Pull { pool, image, bytes, of, is_done }));
        };
        let found = common.yard.docker.ensure_image(&name, pool.container.pull, |progress| {
            if let Some(bytes) = pulling.told(&progress, tokio::time::Instant::now()) {
                tell(bytes, false);
            }
        });
        let found = found.await?;
        if let Some(bytes) = pulling.done() {
            tell(bytes, true);
        }
        Ok(found)
    };
    seek.boxed().shared()
}
