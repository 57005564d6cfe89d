//! From what somebody sent to a run: who listens there, whether it is signed and of now, and only then what is in it. Each
//! delivery starts one run, however often it is sent: it is submitted under a key made of it.

use std::time::Duration;

use axum::http::HeaderMap;
use laneway_core::time::Millis;
use laneway_core::trigger::{Scheme, Start, Webhook};
use laneway_engine::fire::{Armed, Firer};
use laneway_engine::secret;
use laneway_store::model::Deed;
use laneway_store::trigger::{HOLD_SIGNATURES, LastFired, Listening, Outcome, TriggerView};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::extract::Raw;
use crate::problem::{Answer, Code, Problem};
use crate::routes::hooks::MOST;
use crate::service::App;
use crate::sign::{Proof, WINDOW_SECONDS, check_nothing};
use crate::wire;

/// Refusals of senders that have proven nothing are answered at a multiple of this after the request came: whether there is a
/// listener, and what was read for it, is not to be learned from the time that took. Much longer than these reads take on a
/// loaded server: on a grid of 50 ms a known path came late a little more often.
const REFUSAL_GRID: Duration = Duration::from_millis(250);

pub(crate) async fn take(
    app: &App,
    path: &str,
    headers: &HeaderMap,
    body: Raw<MOST>,
) -> Answer<wire::Submitted> {
    let begun = Instant::now();
    let Some((listener, proof)) = prove(app, path, headers, &body.bytes).await? else {
        // It needs no memory while it waits.
        drop(body);
        sleep_until(next_on_grid(begun, Instant::now())).await;
        return Err(refused());
    };
    start(app, listener, proof, &body.bytes).await
}

fn next_on_grid(begun: Instant, now: Instant) -> Instant {
    let passed = u32::try_from((now - begun).as_micros() / REFUSAL_GRID.as_micros()).unwrap_or(u32::MAX);
    begun + REFUSAL_GRID.saturating_mul(passed.saturating_add(1))
}

/// What listens at a path.
struct Listener {
    path: String,
    trigger: TriggerView,
    firer: Firer,
    armed: Armed,
    scheme: Scheme,
    secret: String,
    now: Millis,
}

/// The listener, if what was sent is signed with its secret. Whatever is missing, one signature is computed over the body.
async fn prove<'a>(
    app: &App,
    path: &str,
    headers: &'a HeaderMap,
    body: &[u8],
) -> Answer<Option<(Listener, Proof<'a>)>> {
    let listener = find(app, path).await?;
    let proof = listener.as_ref().and_then(|listener| Proof::read(headers, listener.scheme));
    let Some((listener, proof)) = listener.zip(proof) else {
        check_nothing(body);
        return Ok(None);
    };
    Ok(proof.holds(&listener.secret, body).then_some((listener, proof)))
}

async fn find(app: &App, path: &str) -> Answer<Option<Listener>> {
    let Some(Listening { trigger, now }) = app.store.listening(path).await? else { return Ok(None) };
    let firer = Firer { store: app.store.clone(), session: app.session(), max_parallel: app.max_parallel };
    let armed = match firer.armed(&trigger.at).await {
        Ok(armed) => armed,
        Err(error) if error.is_passing() => return Err(error.into()),
        Err(error) => {
            tracing::error!("the webhook {path} cannot be checked: {error}");
            None
        }
    };
    let Some(armed) = armed else { return Ok(None) };
    let Start::Webhook(webhook) = &armed.trigger.start else { return Ok(None) };
    let Some(secret) = secret(app, &armed, webhook).await? else { return Ok(None) };
    let scheme = webhook.scheme;
    let path = path.to_owned();
    Ok(Some(Listener { path, trigger, firer, armed, scheme, secret, now }))
}

async fn start(app: &App, listener: Listener, proof: Proof<'_>, body: &[u8]) -> Answer<wire::Submitted> {
    let Listener { path, trigger, firer, armed, scheme, secret: _, now } = listener;
    let store = app.store.as_ref();
    // From here on the sender is known, and is told what is wrong.
    if !proof.is_of(now.0.div_euclid(1_000)) {
        let detail = format!("the moment of the delivery is more than {WINDOW_SECONDS} seconds from now");
        return Err(
            Problem::new(Code::BadSignature, detail).hint("look at the sender's clock, or send it anew")
        );
    }
    if trigger.pause.is_some() {
        let detail = format!("the triggers of `{}` are paused", trigger.at.workflow);
        let hint = format!("`laneway schedule resume {}` lets it start again", trigger.at.workflow);
        return Err(Problem::new(Code::TriggersPaused, detail).hint(hint));
    }
    let payload: Value = serde_json::from_slice(body)
        .map_err(|error| Problem::new(Code::BadBody, format!("the body cannot be read: {error}")))?;
    let given = armed.trigger.params_of(payload).map_err(|error| error.message);
    match scheme {
        // Its moment is signed: outside of the window it was refused above, within it the delivery is known by its name.
        Scheme::Laneway => {}
        Scheme::Github => {
            let first = store.remember_signature(&path, proof.signature, proof.delivery).await?;
            if first != proof.delivery {
                let detail = format!("this body was already delivered as {first}");
                return Err(Problem::new(Code::Replayed, detail).hint(format!(
                    "send it again under that name, or use `scheme: laneway`, which tells equal bodies apart; \
                     it is remembered for {} days",
                    HOLD_SIGNATURES.as_secs() / 86_400
                )));
            }
        }
    }
    let key = format!("{} {}", trigger.at.key, proof.delivery);
    let outcome = firer.start(&armed, given, key, "webhook").await?;
    store.note_fired(trigger.at.clone(), LastFired { at: now, outcome: outcome.clone() }).await?;
    match outcome {
        Outcome::Started(run) => {
            let (by, what) = (trigger.at.key, format!("run {run}"));
            let deed =
                Deed { by, act: "submit".to_owned(), what, origin: format!("delivery {}", proof.delivery) };
            store.record(deed).await?;
            Ok(wire::Submitted { run, workflow: trigger.at.workflow })
        }
        Outcome::Refused(why) => Err(Problem::new(Code::BadParams, why)),
    }
}

/// One answer to all who cannot prove who they are: nobody learns which paths there are.
fn refused() -> Problem {
    Problem::new(Code::BadSignature, "it is not signed as it has to be, or nobody listens here")
        .hint("`laneway schedule list` shows who listens where; /openapi.json says how to sign")
}

/// `None` where it is not to be found: no sender has proven anything yet, so none is told.
async fn secret(app: &App, armed: &Armed, webhook: &Webhook) -> Answer<Option<String>> {
    let declared = armed.plan.workflow.secrets.iter().find(|(name, _)| *name == webhook.secret);
    let Some((name, source)) = declared else { return Ok(None) };
    let dir = std::path::Path::new(&armed.known.dir);
    match secret::find(app.store.as_ref(), name, source, dir).await {
        Ok(secret) => Ok(Some(secret)),
        // As the store says of any path then: it may be sent again.
        Err(secret::Error::Store(error)) if error.is_passing() => Err(error.into()),
        Err(error) => {
            tracing::error!("the webhook {} cannot be checked: {error}", webhook.path);
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_answered_on_a_grid_whatever_they_took() {
        let begun = Instant::now();
        let after = |millis| next_on_grid(begun, begun + Duration::from_millis(millis)) - begun;
        assert_eq!(after(0), REFUSAL_GRID);
        assert_eq!(after(249), REFUSAL_GRID);
        assert_eq!(after(250), 2 * REFUSAL_GRID);
        assert_eq!(after(749), 3 * REFUSAL_GRID);
    }
}
