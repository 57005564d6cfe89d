//! What is done to nodes, to their network and to the database, also in words that can be typed
//! again: `kill:0:200`, `freeze:1`, `freeze-all:1`, `cut:2:in:4000`, `restart:immediate`,
//! `outage:5000`, `answers:0:after:3`, …

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, Result, bail};
use laneway_torture::Point;

use super::super::dice::Dice;
use super::network::Cut;
use super::proxy::Moment;
use super::{LEASE, NODES, PROXIED};
use crate::postgres::Stop;

/// One thing that goes wrong. A further one is a variant here, its words, and its arm in `case.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// `kill -9`; started again after so many milliseconds.
    Kill {
        node: usize,
        rest_ms: u64,
    },
    /// SIGSTOP for twice the lease, then CONT.
    Freeze {
        node: usize,
    },
    /// The same of the node and its warden.
    FreezeAll {
        node: usize,
    },
    /// Cut off for so many milliseconds.
    Cut {
        node: usize,
        cut: Cut,
        for_ms: u64,
    },
    /// All of them from everything, so that nobody can renew.
    CutAll {
        for_ms: u64,
    },
    /// On and off, so many times.
    Flap {
        node: usize,
        times: u32,
    },
    Restart {
        stop: Stop,
    },
    /// Every two seconds.
    Restarts {
        times: u32,
    },
    /// The database is away for so many milliseconds.
    Outage {
        for_ms: u64,
    },
    /// The line breaks around so many commits of a node.
    Answers {
        node: usize,
        moment: Moment,
        times: u32,
    },
    /// The same, of its claims alone.
    Claims {
        node: usize,
        times: u32,
    },
    /// Nobody can renew, for so many milliseconds; everything else can be said.
    Renewals {
        for_ms: u64,
    },
    /// What is notified does not arrive anywhere, for so many milliseconds.
    Deaf {
        for_ms: u64,
    },
    /// Dies at a passing of a point, in its next life.
    Crash {
        node: usize,
        point: Point,
        passing: u32,
    },
    /// Somebody submits a run and dies with the commit, before it could say so.
    SubmitCrash,
    /// Nothing, for so many milliseconds.
    Rest {
        for_ms: u64,
    },
}

const CUTS: [(Cut, &str); 4] =
    [(Cut::Full, "full"), (Cut::In, "in"), (Cut::Out, "out"), (Cut::Database, "database")];
const STOPS: [(Stop, &str); 2] = [(Stop::Fast, "fast"), (Stop::Immediate, "immediate")];
const MOMENTS: [(Moment, &str); 2] = [(Moment::Before, "before"), (Moment::After, "after")];

impl Fault {
    /// One of each kind, in an order by chance, so that a few cases have seen them all.
    pub(super) fn all_kinds(dice: &mut Dice) -> Vec<Self> {
        let lease = LEASE.as_millis() as u64;
        let mut faults = vec![
            Self::Kill { node: any(dice), rest_ms: 0 },
            Self::Kill { node: any(dice), rest_ms: lease * 2 },
            Self::Freeze { node: any(dice) },
            Self::FreezeAll { node: any(dice) },
            Self::Cut { node: any(dice), cut: Cut::Full, for_ms: lease + 1000 },
            Self::Cut { node: any(dice), cut: Cut::In, for_ms: lease + 1000 },
            Self::Cut { node: any(dice), cut: Cut::Out, for_ms: lease + 1000 },
            Self::Cut { node: any(dice), cut: Cut::Database, for_ms: lease + 1000 },
            Self::Cut { node: any(dice), cut: dice.one_of(&CUTS).0, for_ms: lease / 3 },
            Self::Flap { node: any(dice), times: 4 },
            Self::Restart { stop: Stop::Fast },
            Self::Restarts { times: 3 },
            Self::Outage { for_ms: lease + lease / 2 },
            Self::Answers { node: proxied(dice), moment: Moment::After, times: 1 + dice.up_to(4) },
            Self::Answers { node: proxied(dice), moment: Moment::Before, times: 1 + dice.up_to(4) },
            Self::Claims { node: proxied(dice), times: 2 },
            Self::Renewals { for_ms: lease },
            Self::Deaf { for_ms: lease },
            Self::SubmitCrash,
        ];
        for place in (1..faults.len()).rev() {
            faults.swap(place, dice.up_to(place as u32 + 1) as usize - 1);
        }
        faults
    }

    /// For the table of what was injected.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Kill { rest_ms: 0, .. } => "kill of a node, started again at once".to_owned(),
            Self::Kill { .. } => "kill of a node, started again later".to_owned(),
            Self::Freeze { .. } => "freeze of a node for twice the lease".to_owned(),
            Self::FreezeAll { .. } => "freeze of a node and its warden for twice the lease".to_owned(),
            Self::Cut { cut, for_ms, .. } => {
                let is_long = u128::from(*for_ms) > LEASE.as_millis();
                let cut = match cut {
                    Cut::Full => "full",
                    Cut::In => "inwards",
                    Cut::Out => "outwards",
                    Cut::Database => "database only",
                };
                format!("partition, {cut}{}", if is_long { "" } else { ", shorter than the lease" })
            }
            Self::CutAll { .. } => "partition of all nodes".to_owned(),
            Self::Flap { .. } => "partition, flapping".to_owned(),
            Self::Restart { stop: Stop::Fast } => "restart of Postgres, fast".to_owned(),
            Self::Restart { stop: Stop::Immediate } | Self::Restarts { .. } => {
                "restart of Postgres, immediate".to_owned()
            }
            Self::Outage { .. } => "outage of Postgres, longer than the lease".to_owned(),
            Self::Answers { moment: Moment::After, .. } => {
                "line cut after COMMIT, before its answer".to_owned()
            }
            Self::Answers { moment: Moment::Before, .. } => "line cut before COMMIT arrived".to_owned(),
            Self::Claims { .. } => "answer to a claim cut off".to_owned(),
            Self::Renewals { .. } => "renewals cut off".to_owned(),
            Self::Deaf { .. } => "notifications lost".to_owned(),
            Self::Crash { .. } => "death at a point".to_owned(),
            Self::SubmitCrash => "death of who submits, behind its commit".to_owned(),
            Self::Rest { .. } => "rest".to_owned(),
        }
    }

    /// Whether callers beside the nodes may see that the database is away.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Restart { .. } | Self::Restarts { .. } | Self::Outage { .. } => true,
            Self::Kill { .. }
            | Self::Freeze { .. }
            | Self::FreezeAll { .. }
            | Self::Cut { .. }
            | Self::CutAll { .. }
            | Self::Flap { .. }
            | Self::Answers { .. }
            | Self::Claims { .. }
            | Self::Renewals { .. }
            | Self::Deaf { .. }
            | Self::Crash { .. }
            | Self::SubmitCrash
            | Self::Rest { .. } => false,
        }
    }

    /// Whom it hits alone.
    pub(super) fn node(&self) -> Option<usize> {
        match self {
            Self::Kill { node, .. }
            | Self::Freeze { node }
            | Self::FreezeAll { node }
            | Self::Cut { node, .. }
            | Self::Flap { node, .. }
            | Self::Answers { node, .. }
            | Self::Claims { node, .. }
            | Self::Crash { node, .. } => Some(*node),
            Self::CutAll { .. }
            | Self::Restart { .. }
            | Self::Restarts { .. }
            | Self::Outage { .. }
            | Self::Renewals { .. }
            | Self::Deaf { .. }
            | Self::SubmitCrash
            | Self::Rest { .. } => None,
        }
    }
}

/// What `--only` takes for a case without faults.
const NO_FAULTS: &str = "none";

/// As `--only` takes them.
pub(super) fn words(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return NO_FAULTS.to_owned();
    }
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn parse_all(words: &str) -> Result<Vec<Fault>> {
    if words == NO_FAULTS {
        return Ok(Vec::new());
    }
    words.split(',').map(str::parse).collect()
}

fn any(dice: &mut Dice) -> usize {
    dice.up_to(NODES as u32) as usize - 1
}

/// Lines that go through a proxy.
fn proxied(dice: &mut Dice) -> usize {
    dice.up_to(PROXIED as u32) as usize - 1
}

fn word<T: PartialEq>(words: &[(T, &'static str)], wanted: &T) -> &'static str {
    words.iter().find(|(known, _)| known == wanted).map_or("", |(_, word)| word)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { node, rest_ms } => write!(f, "kill:{node}:{rest_ms}"),
            Self::Freeze { node } => write!(f, "freeze:{node}"),
            Self::FreezeAll { node } => write!(f, "freeze-all:{node}"),
            Self::Cut { node, cut, for_ms } => write!(f, "cut:{node}:{}:{for_ms}", word(&CUTS, cut)),
            Self::CutAll { for_ms } => write!(f, "cut:all:{for_ms}"),
            Self::Flap { node, times } => write!(f, "flap:{node}:{times}"),
            Self::Restart { stop } => write!(f, "restart:{}", word(&STOPS, stop)),
            Self::Restarts { times } => write!(f, "restarts:{times}"),
            Self::Outage { for_ms } => write!(f, "outage:{for_ms}"),
            Self::Answers { node, moment, times } => {
                write!(f, "answers:{node}:{}:{times}", word(&MOMENTS, moment))
            }
            Self::Claims { node, times } => write!(f, "claims:{node}:{times}"),
            Self::Renewals { for_ms } => write!(f, "renewals:{for_ms}"),
            Self::Deaf { for_ms } => write!(f, "deaf:{for_ms}"),
            Self::Crash { node, point, passing } => write!(f, "crash:{node}:{}:{passing}", point.name()),
            Self::SubmitCrash => f.write_str("submit-crash"),
            Self::Rest { for_ms } => write!(f, "rest:{for_ms}"),
        }
    }
}

impl FromStr for Fault {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(':').collect();
        let number = |word: &str| word.parse::<u64>().with_context(|| format!("`{word}` is no number"));
        let node = |word: &str| -> Result<usize> {
            let node = number(word)? as usize;
            if node >= NODES {
                bail!("there are only {NODES} nodes, from 0")
            }
            Ok(node)
        };
        let times = |word: &str| number(word).map(|times| times.clamp(1, 1000) as u32);
        fn one_of<T: Copy>(words: &[(T, &str)], wanted: &str) -> Result<T> {
            let found = words.iter().find(|(_, word)| *word == wanted);
            found.map(|(known, _)| *known).with_context(|| format!("`{wanted}` is not known"))
        }
        Ok(match words[..] {
            ["kill", at, rest] => Self::Kill { node: node(at)?, rest_ms: number(rest)? },
            ["freeze", at] => Self::Freeze { node: node(at)? },
            ["freeze-all", at] => Self::FreezeAll { node: node(at)? },
            ["cut", "all", long] => Self::CutAll { for_ms: number(long)? },
            ["cut", at, cut, long] => {
                Self::Cut { node: node(at)?, cut: one_of(&CUTS, cut)?, for_ms: number(long)? }
            }
            ["flap", at, often] => Self::Flap { node: node(at)?, times: times(often)? },
            ["restart", stop] => Self::Restart { stop: one_of(&STOPS, stop)? },
            ["restarts", often] => Self::Restarts { times: times(often)? },
            ["outage", long] => Self::Outage { for_ms: number(long)? },
            ["answers", at, moment, often] => {
                Self::Answers { node: node(at)?, moment: one_of(&MOMENTS, moment)?, times: times(often)? }
            }
            ["claims", at, often] => Self::Claims { node: node(at)?, times: times(often)? },
            ["renewals", long] => Self::Renewals { for_ms: number(long)? },
            ["deaf", long] => Self::Deaf { for_ms: number(long)? },
            ["crash", at, point, passing] => Self::Crash {
                node: node(at)?,
                point: Point::named(point).with_context(|| format!("there is no point `{point}`"))?,
                passing: times(passing)?,
            },
            ["submit-crash"] => Self::SubmitCrash,
            ["rest", long] => Self::Rest { for_ms: number(long)? },
            _ => bail!("`{text}` is no fault; docs/design/torture.md lists them"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_typed_again() {
        let mut faults = Fault::all_kinds(&mut Dice::new(3));
        faults.extend([
            Fault::CutAll { for_ms: 5 },
            Fault::Restart { stop: Stop::Immediate },
            Fault::Crash { node: 2, point: Point::Claimed, passing: 3 },
            Fault::SubmitCrash,
            Fault::Rest { for_ms: 7 },
        ]);
        for fault in &faults {
            assert_eq!(&fault.to_string().parse::<Fault>().expect("it was printed"), fault);
        }
        assert_eq!(parse_all(&words(&faults)).expect("they were printed"), faults);
        assert_eq!(parse_all(&words(&[])).expect("it was printed"), []);
        assert!("kill:7:0".parse::<Fault>().is_err());
        assert!("sleep".parse::<Fault>().is_err());
    }
}
