//! From what somebody sent to a run: its document is read, its parameters bound, and it is submitted for whoever takes it.

use std::path::{Path, PathBuf};

use laneway_core::definition::Placement;
use laneway_core::hash::ContentHash;
use laneway_core::id::SessionId;
use laneway_core::not_before::NotBefore;
use laneway_core::params;
use laneway_store::Store;
use laneway_store::model::Submission;

use super::Documents;
use crate::problem::{Answer, Code, Problem};
use crate::wire;

/// On what terms something is submitted.
#[derive(Debug, Clone)]
pub struct Terms {
    pub session: SessionId,
    pub by: String,
    /// From where the service was asked, for the audit log.
    pub origin: Option<String>,
    /// Whoever submits with the same key again gets the same run.
    pub key: Option<String>,
    /// Tasks of a run at once, where neither the request nor the document says so.
    pub max_parallel: u32,
    /// Where steps of a document run that comes without a directory.
    pub directory: PathBuf,
}

pub async fn submit(
    store: &dyn Store,
    documents: &Documents,
    asked: wire::Submit,
    terms: Terms,
) -> Answer<wire::Submitted> {
    let wire::Submit {
        document,
        name,
        workflow,
        directory,
        bundle,
        params,
        max_parallel,
        paused,
        no_cache,
        not_before,
    } = asked;
    if [&name, &workflow, &directory].into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(Problem::new(Code::Unprocessable, "there is a zero byte in a name"));
    }
    let brought = bundle.map(|hash| parse_hash(&hash)).transpose()?;
    let directory = directory.map(|given| absolute(&given)).transpose()?;
    let (plan, document, dir, bundle) = match (document, workflow) {
        (Some(document), None) => {
            let dir = directory.unwrap_or(terms.directory);
            let (plan, document) = documents.read(document, name).await?;
            (plan, document, dir.to_string_lossy().into_owned(), brought)
        }
        (None, Some(workflow)) => {
            let known = store.latest(&workflow).await?;
            let plan = store.plan(&known.version).await?;
            let document = store.document(&known.version).await?;
            // In a directory that somebody names its steps find what is there, and not what was applied.
            let (dir, bundle) = match directory {
                Some(dir) => (dir.to_string_lossy().into_owned(), None),
                None => (known.dir, known.bundle),
            };
            (plan, document, dir, bundle)
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::new(Code::Unprocessable, "give either `document` or `workflow`"));
        }
    };
    if store.is_embedded() && bundle.is_none() && !Path::new(&dir).is_dir() {
        return Err(Problem::new(
            Code::NotRunnable,
            format!("there is no directory {dir} on the server's host"),
        ));
    }
    if plan.workflow.placement == Placement::Local {
        let detail = "`placement: local` keeps a run on the node it is submitted to, and the service is none";
        return Err(
            Problem::new(Code::NotRunnable, detail).hint("use `laneway run`, or leave `placement` out")
        );
    }
    let params = params::bind(&plan.workflow, params).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Problem::new(Code::BadParams, lines.join("\n"))
    })?;
    let max_parallel = match max_parallel {
        Some(0) => return Err(Problem::new(Code::BadBody, "`max_parallel` is at least 1")),
        Some(given) => given,
        None => plan.workflow.max_parallel.map_or(terms.max_parallel, |number| number.get()),
    };
    let not_before = not_before.map(|text| NotBefore::parse(&text)).transpose();
    let not_before =
        not_before.map_err(|why| Problem::new(Code::Unprocessable, format!("`not_before` is {why}")))?;
    let workflow = plan.workflow.name.clone();
    let Terms { session, by, origin, key, .. } = terms;
    let submission = Submission {
        dir,
        bundle,
        params,
        max_parallel,
        is_shared: true,
        is_paused: paused,
        key,
        by,
        origin,
        no_cache,
        not_before,
        ..Submission::new(plan, document, session)
    };
    let run = store.submit(submission).await?;
    Ok(wire::Submitted { run, workflow })
}

pub(super) fn parse_hash(text: &str) -> Answer<ContentHash> {
    ContentHash::parse(text).ok_or_else(|| Problem::new(Code::BadBody, "`bundle` is no hash of content"))
}

/// No path is put together from what somebody sent; one that leads from nowhere would be.
pub(super) fn absolute(given: &str) -> Answer<PathBuf> {
    let path = Path::new(given);
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    Err(Problem::new(Code::BadBody, "`directory` is no absolute path"))
}
