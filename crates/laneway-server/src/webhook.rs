//! From what somebody sent to a run: who listens there, whether it is signed and of now, and only then what is in it. Each
//! delivery starts one run, however often it is sent: it is submitted under a key made of it.

use axum::http::HeaderMap;
use laneway_core::trigger::{Start, Webhook};
use laneway_engine::fire::{Armed, Firer};
use laneway_engine::secret;
use laneway_store::model::Deed;
use laneway_store::trigger::{LastFired, Listening, Outcome};
use serde_json::Value;

use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::sign::{Proof, WINDOW_SECONDS};
use crate::wire;

pub(crate) async fn take(app: &App, path: &str, headers: &HeaderMap, body: &[u8]) -> Answer<wire::Submitted> {
    let store = app.store.as_ref();
    let Some(Listening { trigger, now }) = store.listening(path).await? else { return Err(refused()) };
    let firer = Firer { store: app.store.clone(), session: app.session(), max_parallel: app.max_parallel };
    let Some(armed) = firer.armed(&trigger.at).await? else { return Err(refused()) };
    let Start::Webhook(webhook) = &armed.trigger.start else { return Err(refused()) };
    let proof = Proof::read(headers, webhook.scheme).ok_or_else(refused)?;
    if !proof.holds(&secret(app, &armed, webhook).await?, body) {
        return Err(refused());
    }
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

async fn secret(app: &App, armed: &Armed, webhook: &Webhook) -> Answer<String> {
    let declared = armed.plan.workflow.secrets.iter().find(|(name, _)| *name == webhook.secret);
    let Some((name, source)) = declared else { return Err(refused()) };
    let dir = std::path::Path::new(&armed.known.dir);
    secret::find(app.store.as_ref(), name, source, dir).await.map_err(|error| match error {
        // As the store says of any path then: it may be sent again.
        secret::Error::Store(error) if error.is_passing() => error.into(),
        // Nothing is proven yet, so whoever asks is told no more than a stranger.
        error => {
            tracing::error!("the webhook {} cannot be checked: {error}", webhook.path);
            refused()
        }
    })
}
