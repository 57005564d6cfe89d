//! The other end of `sse.rs`: events of a server as they happen, read by a client. Nothing is queued beyond what has arrived
//! with one packet; whoever does not read is simply further behind.

use std::collections::VecDeque;
use std::time::Duration;

use laneway_core::id::RunId;
use serde_json::Value;
use tokio::time::timeout;

use crate::line::Answer;

/// A server says something, if only a comment, every 15 s. One that is silent for longer than twice that is gone.
const SILENCE: Duration = Duration::from_secs(40);

/// The longest event that is taken. Outputs of steps are not in them.
const MOST: usize = 8 << 20;

/// What to be told of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscription {
    /// Runs, each behind the event of this number.
    pub runs: Vec<(RunId, u64)>,
    /// That something changed, whatever it was, about once a second.
    pub changes: bool,
}

impl Subscription {
    pub(crate) fn query(&self) -> String {
        let mut parts = Vec::new();
        if !self.runs.is_empty() {
            let runs: Vec<String> = self.runs.iter().map(|(run, after)| format!("{run}:{after}")).collect();
            parts.push(format!("runs={}", runs.join(",")));
        }
        if self.changes {
            parts.push("changes=1".to_owned());
        }
        parts.join("&")
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub event: String,
    /// Null if it is no JSON.
    pub data: Value,
}

/// A stream that is open.
#[derive(Debug)]
pub struct Listening {
    answer: Answer,
    parser: Parser,
    ready: VecDeque<Said>,
}

impl Listening {
    pub(crate) fn new(answer: Answer) -> Self {
        Self { answer, parser: Parser::default(), ready: VecDeque::new() }
    }

    /// The next event; `None` when the stream has ended, for whatever reason. May be dropped while it waits: nothing is lost.
    pub async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.ready.pop_front() {
                return Some(said);
            }
            let bytes = timeout(SILENCE, self.answer.bytes()).await.ok()??;
            self.ready.extend(self.parser.push(&bytes)?);
        }
    }
}

/// Text that comes in pieces, as events. Of an event only its name and its data are of interest.
#[derive(Debug, Default)]
struct Parser {
    rest: Vec<u8>,
}

impl Parser {
    /// Events that these bytes end; `None` if what is sent cannot be one.
    fn push(&mut self, bytes: &[u8]) -> Option<Vec<Said>> {
        self.rest.extend_from_slice(bytes);
        let mut said = Vec::new();
        while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            said.extend(read(&String::from_utf8_lossy(&block)));
        }
        (self.rest.len() <= MOST).then_some(said)
    }
}

/// Nothing for a comment.
fn read(block: &str) -> Option<Said> {
    let field = |name: &str| -> Vec<&str> {
        let values = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        values.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect()
    };
    let data = field("data");
    if data.is_empty() {
        return None;
    }
    let event = field("event").first().copied().unwrap_or("message").to_owned();
    Some(Said { event, data: serde_json::from_str(&data.join("\n")).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_wherever_the_pieces_are_cut() {
        let text = ": events\nretry: 1000\n\nid: 3\nevent: task_started\ndata: {\"step\":\"ä\"}\n\n: \n\nevent: changed\ndata: {}\n\nevent: half";
        let whole = [("task_started", json!({"step": "ä"})), ("changed", json!({}))]
            .map(|(event, data)| Said { event: event.to_owned(), data });
        for cut in 0..text.len() {
            let mut parser = Parser::default();
            let mut said = parser.push(&text.as_bytes()[..cut]).expect("text");
            said.extend(parser.push(&text.as_bytes()[cut..]).expect("text"));
            assert_eq!(said, whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_stream_without_an_end_of_its_event_is_given_up() {
        let mut parser = Parser::default();
        assert!(parser.push(&vec![b'x'; MOST]).is_some());
        assert!(parser.push(b"x").is_none());
    }

    #[test]
    fn a_subscription_is_a_query() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        let both = Subscription { runs: vec![(run, 7)], changes: true };
        assert_eq!(both.query(), format!("runs={run}:7&changes=1"));
        assert_eq!(Subscription::default().query(), "");
    }
}
