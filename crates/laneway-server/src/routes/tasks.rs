//! Tasks of a run and their attempts.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_store::Error;
use laneway_store::model::ItemsAsked;
use serde::Deserialize;
use utoipa::IntoParams;

use super::page;
use super::runs::has_takers;
use crate::access::Caller;
use crate::extract::{Body, MEDIUM, Path, Query};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only the items of this step with `for_each`, in their order, a page of them
    step: Option<String>,
    /// `next_after` of the page before
    after: Option<u32>,
    /// How many, 1 to 1000; without it 100 items of a step, or all tasks of a run
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

pub(crate) async fn list(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<wire::TaskList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let Some(step) = query.step else {
        let limit = query.limit.map(|limit| page(Some(limit))).transpose()?;
        return Ok(Json(ask::tasks(app.store.as_ref(), run, query.after, limit).await?));
    };
    let limit = page(query.limit)?;
    // Asked first: it refuses a step that the run does not have, and knows the nearest.
    app.store.attempts(run, &step).await?;
    let head = app.store.head(run).await?;
    let plan = &head.plan;
    if !plan.position(&step).is_some_and(|position| plan.is_growing(position)) {
        let what = format!("`{step}` has no items: `for_each` of its workflow makes some");
        return Err(Problem::new(Code::Unprocessable, what).hint("ask for the task itself: /tasks/STEP"));
    }
    // One more says whether there is another page.
    let asked = ItemsAsked { step, after: query.after, limit: limit + 1 };
    let items = app.store.items(run, asked).await?;
    let has_more = items.len() > limit;
    let tasks: Vec<wire::Task> = items.iter().take(limit).map(wire::Task::from).collect();
    let next_after = tasks.last().filter(|_| has_more).and_then(|task| task.index);
    Ok(Json(wire::TaskList { tasks, next_after }))
}

pub(crate) async fn show(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::Task>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    // Asked first: it refuses a step that the run does not have, and knows the nearest.
    app.store.attempts(run, &step).await?;
    let head = app.store.head(run).await?;
    let plan = &head.plan;
    let item = plan.position(&step).and_then(|position| plan.item(position));
    let task = match item {
        // Of a run with many items one is read alone.
        Some((of, index)) => {
            let (of, after) = (plan.step(of).name.clone(), index.checked_sub(1));
            let found = app.store.items(run, ItemsAsked { step: of, after, limit: 1 }).await?;
            found.iter().map(wire::Task::from).find(|task| task.index == Some(index))
        }
        None => ask::run(app.store.as_ref(), run).await?.tasks.into_iter().find(|task| task.name() == step),
    };
    Ok(Json(task.ok_or(Error::NoSuchStep { run, step, nearest: None })?))
}

pub(crate) async fn explain(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::ExplainedStep>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::explain_step(app.store.as_ref(), run, &step).await?))
}

pub(crate) async fn attempts(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::AttemptList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::attempts(app.store.as_ref(), run, &step).await?))
}

pub(crate) async fn skip(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::Reopened>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    has_takers(&app, run).await?;
    Ok(Json(ask::skip(app.store.as_ref(), run, &step, &caller.author()).await?))
}

pub(crate) async fn signal(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((run, step)): Path<(String, String)>,
    Body(signal): Body<wire::Signal, MEDIUM>,
) -> Answer<Json<wire::Signaled>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::signal(app.store.as_ref(), run, &step, signal, &caller.author()).await?))
}
