//! A workflow becomes known by its name, with the files that go with it.

use std::path::Path;
use std::sync::Arc;

use laneway_core::hash::ContentHash;
use laneway_core::plan::Plan;
use laneway_core::trigger::Start;
use laneway_store::model::Application;
use laneway_store::{Result, Store};

use super::Documents;
use super::documents::name_of;
use super::submit::{absolute, parse_hash};
use super::{Author, firing_nodes};
use crate::problem::{Answer, Code, Problem};
use crate::wire;

/// Keeps files of a workflow under their hash, which whoever brings them has to know: what was broken on the way is refused.
pub async fn bring(store: &dyn Store, hash: &str, bytes: Vec<u8>, author: &Author) -> Answer<wire::Brought> {
    let told = ContentHash::parse(hash).ok_or_else(|| bad_hash(hash))?;
    if bytes.is_empty() {
        return Err(Problem::new(Code::Unprocessable, "there is no body: bring the files as a tar"));
    }
    if ContentHash::of(&bytes) != told {
        return Err(Problem::new(Code::Unprocessable, "the body has another hash than the address says"));
    }
    let length = bytes.len() as u64;
    let hash = store.keep_blob(bytes).await?;
    author.record(store, "bring", format!("bundle {hash}")).await?;
    Ok(wire::Brought { hash: hash.to_string(), bytes: length })
}

/// Where neither files nor a directory come with it, its steps run in `otherwise`.
pub async fn apply(
    store: &dyn Store,
    documents: &Documents,
    asked: wire::Apply,
    author: &Author,
    otherwise: &Path,
) -> Answer<wire::Applied> {
    let wire::Apply { document, name, bundle, directory } = asked;
    if [&name, &directory].into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(Problem::new(Code::Unprocessable, "there is a zero byte in a name"));
    }
    let bundle = bundle.map(|hash| parse_hash(&hash)).transpose()?;
    let directory = directory.map(|given| absolute(&given)).transpose()?;
    let (plan, document) = documents.compile(document, name_of(name)?).await?;
    let dir = directory.as_deref().unwrap_or(otherwise);
    Ok(apply_plan(store, (plan, document), (dir, bundle), author).await?)
}

/// The same of a document that was read, with where it lies and the files that were brought with it.
pub async fn apply_plan(
    store: &dyn Store,
    (plan, document): (Plan, String),
    (dir, bundle): (&Path, Option<ContentHash>),
    author: &Author,
) -> Result<wire::Applied> {
    let workflow = plan.workflow.name.clone();
    let (dir, by) = (dir.to_string_lossy().into_owned(), author.name.clone());
    let has_schedule =
        plan.workflow.triggers.iter().any(|trigger| matches!(trigger.start, Start::Schedule(_)));
    let plan = Arc::new(plan);
    let applied = store.apply(Application { plan, document, dir, bundle: bundle.clone(), by }).await?;
    author.record(store, "apply", format!("workflow {workflow} as version {}", applied.no)).await?;
    let bundle = bundle.as_ref().map(ContentHash::to_string);
    let fired_by = if has_schedule { Some(firing_nodes(store).await?) } else { None };
    Ok(wire::Applied { workflow, version: applied.no, changed: !applied.was_there, bundle, fired_by })
}

fn bad_hash(text: &str) -> Problem {
    let shown: String = text.chars().take(80).collect();
    Problem::new(Code::BadRequest, format!("`{}` is no hash of content", shown.escape_debug()))
}
