//! How a person gets from a terminal to the web page: a code that is good once, and the token that it is exchanged for.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use laneway_core::role::Role;
use laneway_store::Error;
use laneway_store::model::Deed;
use tokio::time::Instant;

use crate::access::{CODE_LASTS, Caller, From, Given, make_web_session};
use crate::extract::Body;
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::wire;

pub(crate) async fn sign_in(
    State(app): State<App>,
    From(origin): From,
    Body(asked): Body<wire::SignIn>,
) -> Answer<impl IntoResponse> {
    let given = app.codes.take(&asked.code, Instant::now()).ok_or_else(|| {
        bad("the code was used, is older than an hour, or was made before the server was started")
    })?;
    let Given { role, by, token, name, .. } = given.clone();
    let (secret, kept) = match make_web_session(app.store.as_ref(), &name, role, (&by, token)).await {
        Ok(made) => made,
        Err(Error::NoSuchToken { .. }) => {
            return Err(bad("the token with which the code was made is revoked, or has expired"));
        }
        Err(error) => {
            if error.is_passing() {
                app.codes.put_back(&asked.code, given);
            }
            return Err(error.into());
        }
    };
    let what = format!("token {name} with the role {role}, by a code of {by}");
    app.store.record(Deed { by: name.clone(), act: "sign_in".to_owned(), what, origin }).await?;
    let token = secret.reveal().to_owned();
    let expires_at = kept.expires_at.map(wire::Moment);
    Ok((StatusCode::CREATED, Json(wire::CreatedToken { token, name, role, expires_at })))
}

fn bad(detail: &str) -> Problem {
    Problem::new(Code::BadCode, detail)
        .hint("`laneway web` prints a new link; any token of `laneway token create` is good here too")
}

pub(crate) async fn make_code(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<wire::MakeCode>,
) -> Answer<impl IntoResponse> {
    let role = asked.role.unwrap_or(caller.role);
    if role == Role::Worker || !caller.role.may(role) {
        let detail = format!("a token with the role {} cannot let somebody in as {role}", caller.role);
        return Err(Problem::new(Code::Forbidden, detail)
            .hint("ask for viewer, operator or admin, and no more than it may itself"));
    }
    let code = app.code(role, &caller.name, Some(&caller.token)).map_err(|error| {
        tracing::error!(%error, "no random bytes");
        Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
    })?;
    app.record(&caller, "make_code", format!("code to sign in with the role {role}")).await?;
    Ok((StatusCode::CREATED, Json(wire::SignInCode { code, role, lasts_s: CODE_LASTS.as_secs() })))
}

pub(crate) async fn me(Extension(caller): Extension<Caller>) -> Json<wire::Me> {
    let server_version = env!("CARGO_PKG_VERSION").to_owned();
    Json(wire::Me { name: caller.name, role: caller.role, server_version })
}
