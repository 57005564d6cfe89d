//! Stands between a node and Postgres, and can cut the line around a COMMIT: after the node has sent it and before the
//! answer is back, so that the node cannot know whether it was kept. It reads the frontend's messages as far as it takes
//! to know which statements a transaction is made of; everything is passed on as it came.
//!
//! ```text
//!   node ──▶ up: messages ──▶ Postgres        one thread each way, for each connection
//!   node ◀── down: bytes  ◀── Postgres
//! ```

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long an answer that will not be passed on is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// On which side of the server's work the line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// The server never sees the transaction's last flight: nothing is kept.
    Before,
    /// The server has committed; nobody hears of it.
    After,
}

/// What is cut next.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) moment: Moment,
    /// Only transactions with a statement that has these words in it.
    pub(super) about: Option<&'static str>,
    pub(super) times: u32,
}

#[derive(Debug, Default)]
struct Orders {
    next: Mutex<Option<Order>>,
    done: AtomicU32,
    /// Notifications are not passed on.
    is_deaf: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Proxy {
    orders: Arc<Orders>,
    port: u16,
    is_over: Arc<AtomicBool>,
}

impl Proxy {
    /// Listens at an address of ours for as long as it lives, and passes on to another one.
    pub(super) fn start(address: &str, to: u16) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).context("a proxy finds no port")?;
        let port = listener.local_addr()?.port();
        let (orders, is_over) = (Arc::new(Orders::default()), Arc::new(AtomicBool::new(false)));
        let (known, over) = (Arc::clone(&orders), Arc::clone(&is_over));
        let address = address.to_owned();
        thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), known) = (client, Arc::clone(&known)) else { continue };
                // Where there is no server, the client sees a line that is closed.
                let Ok(server) = TcpStream::connect((address.as_str(), to)) else { continue };
                thread::spawn(move || join(client, server, &known));
            }
        });
        Ok(Self { orders, port, is_over })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn order(&self, order: Option<Order>) {
        *self.orders.next.lock().unwrap_or_else(PoisonError::into_inner) = order;
    }

    /// Whether what others notify is lost on its way.
    pub(super) fn deafen(&self, is_deaf: bool) {
        self.orders.is_deaf.store(is_deaf, Ordering::SeqCst);
    }

    /// How many lines were cut so far.
    pub(super) fn cuts(&self) -> u32 {
        self.orders.done.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Orders {
    /// Whether this transaction is to be cut; counts it as done.
    fn take(&self, statements: &[Arc<str>]) -> Option<Moment> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let order = next.as_mut()?;
        let is_about = order.about.is_none_or(|words| statements.iter().any(|text| text.contains(words)));
        if !is_about {
            return None;
        }
        let moment = order.moment;
        order.times -= 1;
        if order.times == 0 {
            *next = None;
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        Some(moment)
    }
}

/// One connection, until either end closes it or it is cut.
fn join(client: TcpStream, server: TcpStream, orders: &Orders) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let is_cut = AtomicBool::new(false);
    let has_committed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = down(&server, &client, orders, (&is_cut, &has_committed));
            close(&client, &server);
        });
        let _ = up(&client, &server, orders, (&is_cut, &has_committed));
        close(&client, &server);
    });
}

fn close(client: &TcpStream, server: &TcpStream) {
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

fn down(
    mut server: &TcpStream,
    mut client: &TcpStream,
    orders: &Orders,
    (is_cut, has_committed): (&AtomicBool, &AtomicBool),
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut frames = Frames { bytes: Vec::new(), has_begun: true };
    loop {
        let count = server.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        frames.bytes.extend_from_slice(&buffer[..count]);
        let mut passed = Vec::with_capacity(count);
        while let Some((kind, frame)) = frames.next() {
            // `CommandComplete` names what it completes.
            let is_end = kind == b'C' && [&b"COMMIT\0"[..], b"ROLLBACK\0"].contains(&&frame[5..]);
            if is_cut.load(Ordering::SeqCst) {
                has_committed.fetch_or(is_end, Ordering::SeqCst);
            } else if kind != b'A' || !orders.is_deaf.load(Ordering::SeqCst) {
                passed.extend(frame);
            }
        }
        client.write_all(&passed)?;
    }
}

fn up(
    mut client: &TcpStream,
    mut server: &TcpStream,
    orders: &Orders,
    (is_cut, has_committed): (&AtomicBool, &AtomicBool),
) -> io::Result<()> {
    let mut reader = Messages::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let commits = reader.add(&buffer[..count]);
        let Some(moment) = commits.iter().find_map(|statements| orders.take(statements)) else {
            server.write_all(&buffer[..count])?;
            continue;
        };
        if moment == Moment::Before {
            return Ok(());
        }
        // From here on nothing is passed on to the node.
        is_cut.store(true, Ordering::SeqCst);
        server.write_all(&buffer[..count])?;
        let begun = Instant::now();
        while !has_committed.load(Ordering::SeqCst) && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        return Ok(());
    }
}

/// What a client says, message by message.
#[derive(Debug, Default)]
struct Messages {
    frames: Frames,
    /// Texts of prepared statements.
    prepared: HashMap<Vec<u8>, Arc<str>>,
    /// Of the transaction that is open.
    statements: Vec<Arc<str>>,
}

impl Messages {
    /// Gives the statements of each transaction that is committed by these bytes.
    fn add(&mut self, bytes: &[u8]) -> Vec<Vec<Arc<str>>> {
        self.frames.bytes.extend_from_slice(bytes);
        let mut commits = Vec::new();
        while let Some((kind, frame)) = self.frames.next() {
            let mut words = frame.get(5..).unwrap_or_default().split(|byte| *byte == 0);
            let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            match kind {
                b'P' => {
                    let text: Arc<str> = String::from_utf8_lossy(second).into();
                    self.prepared.insert(first.to_vec(), text);
                }
                b'B' => self.statements.extend(self.prepared.get(second).cloned()),
                b'Q' if first.starts_with(b"BEGIN") => self.statements.clear(),
                b'Q' if first == b"COMMIT" => commits.push(std::mem::take(&mut self.statements)),
                _ => {}
            }
        }
        commits
    }
}

/// Bytes as they came, cut into messages: a type, but for a client's first one, a length, and a body.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    has_begun: bool,
}

impl Frames {
    /// The type, and the whole message.
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = usize::from(self.has_begun);
        let length: [u8; 4] = self.bytes.get(head..head + 4)?.try_into().ok()?;
        let end = head + u32::from_be_bytes(length) as usize;
        if self.bytes.len() < end {
            return None;
        }
        let kind = if self.has_begun { self.bytes[0] } else { 0 };
        self.has_begun = true;
        Some((kind, self.bytes.drain(..end).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        [&[kind][..], &length, body].concat()
    }

    #[test]
    fn a_commit_is_known_by_the_statements_before_it_however_the_bytes_come() {
        let mut said = [&8_u32.to_be_bytes()[..], b"strt"].concat();
        said.extend(message(b'P', b"s1\0SELECT claim\0\0\0"));
        said.extend(message(b'Q', b"BEGIN\0"));
        said.extend(message(b'B', b"\0s1\0\0\0\0\0\0\0"));
        said.extend(message(b'Q', b"COMMIT\0"));
        for size in [1, 7, said.len()] {
            let mut messages = Messages::default();
            let commits: Vec<_> = said.chunks(size).flat_map(|chunk| messages.add(chunk)).collect();
            assert_eq!(commits, vec![vec![Arc::from("SELECT claim")]], "in pieces of {size}");
        }
    }

    #[test]
    fn an_order_is_for_what_it_is_about_and_ends() {
        let orders = Orders::default();
        *orders.next.lock().expect("nobody panics") =
            Some(Order { moment: Moment::After, about: Some("claim"), times: 1 });
        assert_eq!(orders.take(&[Arc::from("renew")]), None);
        assert_eq!(orders.take(&[Arc::from("a claim")]), Some(Moment::After));
        assert_eq!(orders.take(&[Arc::from("a claim")]), None);
    }
}
