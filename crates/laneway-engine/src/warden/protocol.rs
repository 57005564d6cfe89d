//! What node and warden say to each other: frames of a length and a body, numbers in little-endian order.
//! Both ends are the same build of the same program, so there is no version. The write ends of a step's
//! stdout and stderr travel with the first byte of its `Spawn` frame.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::time::Duration;

/// More than the system takes as arguments and environment of one program.
pub(super) const MAX_FRAME: usize = 16 << 20;

/// In the place of a deadline, for a step without a timeout.
const NO_DEADLINE: u64 = u64::MAX;

/// From the node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Spawn(Spawn),
    /// TERM, and CONT so that it is heard, to everything of the task. What outlives the leader is left alone
    /// until `Kill`: the grace is for all.
    Term(u64),
    Kill(u64),
    /// What runs is killed at this moment, in milliseconds of the clock that goes on while the machine sleeps, unless another
    /// one is named before: so long nobody else takes the node for dead.
    Lease(u64),
    /// The node runs, and its lease is this file: if the warden hears nothing more for so many milliseconds, it condemns
    /// the session, kills everything and ends.
    Heard {
        span: u64,
        lease: OsString,
    },
    /// A container of this name, at the container engine of this address, does not outlive the node. Said before it is made.
    Hold {
        host: OsString,
        name: OsString,
    },
    /// That container is gone.
    Release(OsString),
}

/// A program to start. Everything is resolved: nothing is looked up by the warden.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spawn {
    pub(super) id: u64,
    pub(super) program: OsString,
    pub(super) arg0: OsString,
    pub(super) args: Vec<OsString>,
    /// On top of the warden's own environment, which is the node's; otherwise this is all there is.
    pub(super) inherits: bool,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) workdir: OsString,
    /// A file to read from; empty for none.
    pub(super) stdin: OsString,
    pub(super) limits: Limits,
}

/// When the warden ends a step by itself, because its node did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// End of the step's timeout, on the clock of `monotonic_time`. `None` if the step has no timeout.
    pub(crate) deadline: Option<Duration>,
    /// Time between TERM and KILL.
    pub(crate) grace: Duration,
}

/// From the warden. There is no `started`: whoever did not fail has started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The first one: the directory of its cgroups, or why there are none.
    Ready(Result<OsString, String>),
    /// Nothing was started; the system's number for the reason.
    Failed(u64, i32),
    Exited(u64, Exit),
    /// Nothing of the task is left.
    Gone(u64),
    /// The task's timeout passed, the node did not act, and the warden sends TERM. Precedes `Exited`.
    TimedOut(u64),
}

/// How a program ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut frame = Encoder::default();
        match self {
            Self::Spawn(spawn) => {
                frame.byte(0).number(spawn.id).bytes(&spawn.program).bytes(&spawn.arg0);
                frame.number(spawn.args.len() as u64);
                for arg in &spawn.args {
                    frame.bytes(arg);
                }
                frame.byte(u8::from(spawn.inherits)).number(spawn.env.len() as u64);
                for (name, value) in &spawn.env {
                    frame.bytes(name).bytes(value);
                }
                frame.bytes(&spawn.workdir).bytes(&spawn.stdin);
                let Limits { deadline, grace } = spawn.limits;
                frame.number(deadline.map_or(NO_DEADLINE, millis)).number(millis(grace))
            }
            Self::Term(id) => frame.byte(1).number(*id),
            Self::Kill(id) => frame.byte(2).number(*id),
            Self::Lease(until) => frame.byte(3).number(*until),
            Self::Hold { host, name } => frame.byte(4).bytes(host).bytes(name),
            Self::Release(name) => frame.byte(5).bytes(name),
            Self::Heard { span, lease } => frame.byte(6).number(*span).bytes(lease),
        };
        frame.finish()
    }

    /// `None` if this is no request.
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let mut body = Decoder(body);
        Some(match body.byte()? {
            0 => Self::Spawn(Spawn {
                id: body.number()?,
                program: body.bytes()?,
                arg0: body.bytes()?,
                args: (0..body.number()?).map(|_| body.bytes()).collect::<Option<_>>()?,
                inherits: body.byte()? == 1,
                env: (0..body.number()?)
                    .map(|_| Some((body.bytes()?, body.bytes()?)))
                    .collect::<Option<_>>()?,
                workdir: body.bytes()?,
                stdin: body.bytes()?,
                limits: {
                    let (deadline, grace) = (body.number()?, Duration::from_millis(body.number()?));
                    let deadline = (deadline != NO_DEADLINE).then(|| Duration::from_millis(deadline));
                    Limits { deadline, grace }
                },
            }),
            1 => Self::Term(body.number()?),
            2 => Self::Kill(body.number()?),
            3 => Self::Lease(body.number()?),
            4 => Self::Hold { host: body.bytes()?, name: body.bytes()? },
            5 => Self::Release(body.bytes()?),
            6 => Self::Heard { span: body.number()?, lease: body.bytes()? },
            _ => return None,
        })
    }
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut frame = Encoder::default();
        match self {
            Self::Ready(Ok(dir)) => frame.byte(0).bytes(dir),
            Self::Ready(Err(why)) => frame.byte(1).bytes(OsStr::new(why)),
            Self::Failed(id, errno) => frame.byte(2).number(*id).signed(*errno),
            Self::Exited(id, Exit::Code(code)) => frame.byte(3).number(*id).signed(*code),
            Self::Exited(id, Exit::Signal(signal)) => frame.byte(4).number(*id).signed(*signal),
            Self::Gone(id) => frame.byte(5).number(*id),
            Self::TimedOut(id) => frame.byte(6).number(*id),
        };
        frame.finish()
    }

    /// `None` if this is no answer.
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let mut body = Decoder(body);
        Some(match body.byte()? {
            0 => Self::Ready(Ok(body.bytes()?)),
            1 => Self::Ready(Err(body.bytes()?.to_string_lossy().into_owned())),
            2 => Self::Failed(body.number()?, body.signed()?),
            3 => Self::Exited(body.number()?, Exit::Code(body.signed()?)),
            4 => Self::Exited(body.number()?, Exit::Signal(body.signed()?)),
            5 => Self::Gone(body.number()?),
            6 => Self::TimedOut(body.number()?),
            _ => return None,
        })
    }
}

/// Returns whole milliseconds. A span beyond what the frame can hold becomes the longest one.
pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes as they came, cut into frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Up to here they were handed out.
    taken: usize,
}

impl Frames {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The body of the next whole frame. An error is a peer that does not speak this protocol.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, NotAFrame> {
        let rest = &self.bytes[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(NotAFrame);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.taken + size_of::<u32>();
        self.taken = start + length;
        Ok(Some(&self.bytes[start..self.taken]))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the other end does not speak the warden's protocol")]
pub(super) struct NotAFrame;

#[derive(Debug)]
pub(super) struct Encoder(Vec<u8>);

impl Default for Encoder {
    /// With room for the length, which is known at the end.
    fn default() -> Self {
        Self(vec![0; size_of::<u32>()])
    }
}

impl Encoder {
    fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn signed(&mut self, number: i32) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn bytes(&mut self, text: &OsStr) -> &mut Self {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        // A frame beyond `MAX_FRAME` is refused before it is sent, so the length fits.
        let length = u32::try_from(self.0.len() - size_of::<u32>()).unwrap_or(u32::MAX);
        self.0[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
        std::mem::take(&mut self.0)
    }
}

pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl Decoder<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn signed(&mut self) -> Option<i32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_le_bytes(*number))
    }

    pub(super) fn bytes(&mut self) -> Option<OsString> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(OsString::from_vec(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn() -> Request {
        Request::Spawn(Spawn {
            id: 7,
            program: "/bin/sh".into(),
            arg0: "sh".into(),
            args: vec!["-c".into(), OsString::from_vec(vec![0xff, b'x']), "".into()],
            inherits: true,
            env: vec![("A".into(), "x".repeat(300_000).into())],
            workdir: "/tmp".into(),
            stdin: "/tmp/in".into(),
            limits: Limits { deadline: None, grace: Duration::from_secs(5) },
        })
    }

    fn limited() -> Request {
        let Request::Spawn(spawn) = spawn() else { unreachable!("made above") };
        let limits = Limits { deadline: Some(Duration::from_millis(77_001)), grace: Duration::ZERO };
        Request::Spawn(Spawn { limits, ..spawn })
    }

    #[test]
    fn requests_and_answers_survive_the_way_in_pieces_of_any_size() {
        let hold = || Request::Hold { host: "unix:///run/x.sock".into(), name: "laneway-1-a-a1".into() };
        let requests = || {
            [
                spawn(),
                limited(),
                Request::Term(1),
                Request::Kill(u64::MAX),
                hold(),
                Request::Release("laneway-1-a-a1".into()),
                Request::Heard { span: 4_500, lease: "/s/sessions/1.lease".into() },
            ]
        };
        let bytes: Vec<u8> = requests().iter().flat_map(Request::encode).collect();
        for piece in [1_000, 65_536, bytes.len()] {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            for bytes in bytes.chunks(piece) {
                frames.add(bytes);
                while let Some(body) = frames.next().expect("frames") {
                    seen.push(Request::decode(body).expect("a request"));
                }
            }
            assert_eq!(seen, requests());
        }
        let answers = [
            Answer::Ready(Ok("/sys/x".into())),
            Answer::Ready(Err("none".to_owned())),
            Answer::Failed(1, 2),
            Answer::Exited(3, Exit::Code(255)),
            Answer::Exited(4, Exit::Signal(9)),
            Answer::Gone(5),
            Answer::TimedOut(6),
        ];
        for answer in answers {
            let bytes = answer.encode();
            let mut frames = Frames::default();
            frames.add(&bytes);
            assert_eq!(Answer::decode(frames.next().expect("a frame").expect("whole")), Some(answer));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused_and_never_read_beyond_its_end() {
        let mut frames = Frames::default();
        frames.add(b"GET / HTTP/1.1\r\n");
        assert!(frames.next().is_err());
        let body = spawn().encode()[size_of::<u32>()..].to_vec();
        for end in (0..200).chain([body.len() - 1]) {
            assert_eq!(Request::decode(&body[..end]), None);
        }
        assert_eq!(Answer::decode(&[9]), None);
    }
}
