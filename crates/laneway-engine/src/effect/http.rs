//! What is said on the socket of an attempt: plain HTTP, so that an image in which our program cannot run needs no more than curl.
//! docs/design/effects.md describes it for people.
//!
//! ```text
//! POST   …/effects/NAME?key=&on_unknown=&hold=       201 run it, the body names the execution   200 what is recorded
//! PUT    …/effects/NAME?key=&execution=&exit_code=&on_failure=   with what it printed            200 what is recorded
//! DELETE …/effects/NAME?key=&execution=              204 nobody knows what became of it
//! ```
//! Where attempts share a socket, the ticket of one stands in front.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use laneway_core::effect::{EffectId, MAX_STDOUT, OnFailure, OnUnknown};
use laneway_core::output;
use laneway_store::effect::EffectResult;
use tokio::net::UnixStream;

use super::desk::{Answer, Desk, Ended, Hold, Refused};
use super::host::Room;

/// What is read of a result: one byte more than what is kept tells that there is too much.
const MAX_BODY: usize = MAX_STDOUT + output::LIMIT + 2;

pub(crate) const EXIT_CODE: &str = "laneway-exit-code";
pub(crate) const OUTPUT_LENGTH: &str = "laneway-output-length";
pub(crate) const EFFECT_ID: &str = "laneway-effect-id";
/// Fencing token of a step with a `lock`.
pub(crate) const FENCE: &str = "laneway-fence";
/// The word for a refusal, for programs.
pub(crate) const REFUSAL: &str = "laneway-refusal";

type Reply = Response<Full<Bytes>>;

/// What a connection holds goes with it: whoever asked on it with `hold` is gone then.
type Held = Mutex<Vec<(Hold, Instant)>>;

pub(super) async fn converse(stream: UnixStream, room: Room) {
    let held = Arc::new(Held::default());
    let service = service_fn(|request: Request<Incoming>| {
        let (room, held) = (room.clone(), Arc::clone(&held));
        async move { Ok::<_, Infallible>(answer(request, &room, &held).await) }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "somebody who asked for an effect went away");
    }
}

async fn answer(request: Request<Incoming>, room: &Room, held: &Held) -> Reply {
    let (desk, path) = match found(room, request.uri().path()) {
        Ok(found) => found,
        Err(reply) => return *reply,
    };
    let asked = match Asked::read(path, request.uri().query().unwrap_or_default()) {
        Ok(asked) => asked,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, "bad_request", why),
    };
    let desk = &desk;
    match *request.method() {
        Method::POST => begin(asked, desk, held).await,
        Method::PUT => commit(asked, request, desk, held).await,
        Method::DELETE => leave(&asked, desk, held),
        _ => refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "bad_request",
            "POST begins an effect, PUT says how it ended, DELETE that nobody knows".to_owned(),
        ),
    }
}

/// Whose effect it is, and the rest of the path.
fn found<'p>(room: &Room, path: &'p str) -> Result<(Arc<Desk>, &'p str), Box<Reply>> {
    let desks = match room {
        Room::Own(desk) => return Ok((Arc::clone(desk), path)),
        Room::Shared(desks) => desks,
    };
    let ticket =
        path.strip_prefix('/').and_then(|path| path.split_once('/')).map_or("", |(ticket, _)| ticket);
    let desk = desks.find(ticket).ok_or_else(|| {
        let why = "no attempt of this node has that ticket, or it is over; ask at $LANEWAY_EFFECT_URL/NAME"
            .to_owned();
        Box::new(refuse(StatusCode::NOT_FOUND, "claim_lost", why))
    })?;
    Ok((desk, &path[ticket.len() + 1..]))
}

/// What the line of a request says.
struct Asked {
    id: EffectId,
    values: HashMap<String, String>,
}

const VALUES: [&str; 6] = ["key", "on_unknown", "on_failure", "hold", "execution", "exit_code"];

impl Asked {
    fn read(path: &str, query: &str) -> Result<Self, String> {
        let name = path
            .strip_prefix("/effects/")
            .ok_or_else(|| format!("there is nothing at {path}; effects are at $LANEWAY_EFFECT_URL/NAME"))?;
        let mut values = HashMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !VALUES.contains(&name) {
                return Err(format!("`{name}` is not known here; there are {}", VALUES.join(", ")));
            }
            values.insert(
                name.to_owned(),
                decoded(value).ok_or_else(|| format!("`{name}` is not UTF-8 text"))?,
            );
        }
        let key = values.get("key").map_or("", String::as_str);
        let id = EffectId::new(name, key).map_err(|error| error.to_string())?;
        Ok(Self { id, values })
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn word<T>(&self, name: &str, parse: fn(&str) -> Option<T>, default: T, all: &str) -> Result<T, String> {
        match self.value(name) {
            None => Ok(default),
            Some(word) => parse(word).ok_or_else(|| format!("`{name}` is {all}, not `{word}`")),
        }
    }

    fn execution(&self) -> Result<&str, String> {
        self.value("execution")
            .ok_or_else(|| "`execution` is missing: it is what POST answered with 201".to_owned())
    }
}

async fn begin(asked: Asked, desk: &Arc<Desk>, held: &Held) -> Reply {
    let on_unknown = match asked.word("on_unknown", OnUnknown::parse, OnUnknown::Fail, "fail or retry") {
        Ok(on_unknown) => on_unknown,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, "bad_request", why),
    };
    let holds = asked.value("hold").is_some();
    match desk.begin(asked.id, on_unknown).await {
        Err(refused) => refusal(&refused),
        Ok(Answer::Recorded(result)) => recorded(result),
        Ok(Answer::Run(hold, granted)) => {
            let execution = if holds {
                let execution = hold.execution().to_owned();
                locked(held).push((hold, Instant::now()));
                execution
            } else {
                hold.lend()
            };
            let mut reply = Response::builder().status(StatusCode::CREATED).header(EFFECT_ID, granted.token);
            if let Some(fence) = granted.fence {
                reply = reply.header(FENCE, fence);
            }
            finished(reply, execution.into_bytes())
        }
    }
}

async fn commit(asked: Asked, request: Request<Incoming>, desk: &Arc<Desk>, held: &Held) -> Reply {
    let bad = |why: String| refuse(StatusCode::BAD_REQUEST, "bad_request", why);
    let on_failure = match asked.word("on_failure", OnFailure::parse, OnFailure::Retry, "retry or record") {
        Ok(on_failure) => on_failure,
        Err(why) => return bad(why),
    };
    let exit_code: i32 = match asked.value("exit_code").unwrap_or("0").parse() {
        Ok(code) => code,
        Err(_) => return bad("`exit_code` is a number: how the command ended".to_owned()),
    };
    let length = request.headers().get(OUTPUT_LENGTH).map(|text| text.to_str().ok()?.trim().parse().ok());
    let Some(output_length) = length.unwrap_or(Some(0_usize)) else {
        return bad(format!("{OUTPUT_LENGTH} is a number: how many bytes at the end are output"));
    };
    let found = match asked.execution() {
        Ok(execution) => take(&asked.id, execution, desk, held),
        Err(why) => return bad(why),
    };
    let Some((hold, begun)) = found else {
        let why = "no such execution is under way in this attempt: it is over, or was never begun".to_owned();
        return refuse(StatusCode::CONFLICT, "claim_lost", why);
    };
    let body = match Limited::new(request.into_body(), MAX_BODY).collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(error) if error.downcast_ref::<http_body_util::LengthLimitError>().is_some() => {
            // It has happened, and that is recorded; what it printed is too much, however much it is.
            vec![0; MAX_STDOUT + 1]
        }
        // Dropping the hold leaves it unknown.
        Err(error) => return bad(format!("what it printed did not arrive: {error}")),
    };
    let mut stdout = body;
    let Some(at) = stdout.len().checked_sub(output_length) else {
        return bad(format!("{OUTPUT_LENGTH} is larger than the body"));
    };
    let output = stdout.split_off(at);
    let status = on_failure.status(exit_code);
    let took = begun.map(|begun| begun.elapsed());
    match hold.commit(Ended { status, exit_code, stdout, output, took }).await {
        Err(refused) => refusal(&refused),
        Ok(result) => recorded(result),
    }
}

fn leave(asked: &Asked, desk: &Arc<Desk>, held: &Held) -> Reply {
    match asked.execution() {
        Err(why) => refuse(StatusCode::BAD_REQUEST, "bad_request", why),
        Ok(execution) => {
            drop(take(&asked.id, execution, desk, held));
            finished(Response::builder().status(StatusCode::NO_CONTENT), Vec::new())
        }
    }
}

/// The right to run it: on this connection, or lent to whoever can name it.
fn take(id: &EffectId, execution: &str, desk: &Arc<Desk>, held: &Held) -> Option<(Hold, Option<Instant>)> {
    let mut held = locked(held);
    if let Some(place) = held.iter().position(|(hold, _)| hold.execution() == execution) {
        let (hold, begun) = held.swap_remove(place);
        return Some((hold, Some(begun)));
    }
    desk.find(id, execution).map(|hold| (hold, None))
}

fn locked(held: &Held) -> std::sync::MutexGuard<'_, Vec<(Hold, Instant)>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What it printed, and behind it what it wrote to `$LANEWAY_OUTPUT`.
fn recorded(result: EffectResult) -> Reply {
    let reply = Response::builder()
        .header(EXIT_CODE, result.exit_code.to_string())
        .header(OUTPUT_LENGTH, result.output.len().to_string());
    let mut body = result.stdout;
    body.extend_from_slice(result.output.as_bytes());
    finished(reply, body)
}

fn refusal(refused: &Refused) -> Reply {
    let (status, word) = match refused {
        Refused::Unknown { .. } => (StatusCode::CONFLICT, "unknown"),
        Refused::Lacking { .. } => (StatusCode::GONE, "lacking"),
        Refused::Stopping => (StatusCode::CONFLICT, "stopping"),
        Refused::ClaimLost => (StatusCode::CONFLICT, "claim_lost"),
        Refused::Taken { .. } => (StatusCode::CONFLICT, "taken"),
        Refused::Store(_) => (StatusCode::SERVICE_UNAVAILABLE, "store"),
    };
    refuse(status, word, refused.to_string())
}

fn refuse(status: StatusCode, word: &str, why: String) -> Reply {
    finished(Response::builder().status(status).header(REFUSAL, word), format!("{why}\n").into_bytes())
}

fn finished(reply: hyper::http::response::Builder, body: Vec<u8>) -> Reply {
    reply.body(Full::new(Bytes::from(body))).expect("headers of words and numbers")
}

/// `%20` is a blank, and so is `+`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [*rest.next()?, *rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_request_is_read_or_refused_in_words() {
        let read = |line: &str| {
            line.split_once('?')
                .map_or_else(|| Asked::read(line, ""), |(path, query)| Asked::read(path, query))
        };
        let good = read("/effects/charge?key=order%2017+b&hold").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((good.id.name.as_str(), good.id.key.as_str()), ("charge", "order 17 b"));
        assert!(good.value("hold").is_some() && good.execution().is_err());
        let why = |line: &str| read(line).err().expect("refused");
        assert_eq!(why("/other"), "there is nothing at /other; effects are at $LANEWAY_EFFECT_URL/NAME");
        assert_eq!(
            why("/effects/a?keys=b"),
            "`keys` is not known here; there are key, on_unknown, on_failure, hold, execution, exit_code"
        );
        assert!(why("/effects/a%2Fb").starts_with("`a%2Fb` cannot be the name of an effect"));
        assert_eq!(why("/effects/a?key=%f"), "`key` is not UTF-8 text");
    }
}
