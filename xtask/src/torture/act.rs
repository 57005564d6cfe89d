//! What is done to a run, also in words that can be typed again: `crash:POINT:PASSING:SCENE`, `kills:N`, `echo:N:MS`,
//! `neighbour`, `nothing`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, Result, bail};
use laneway_torture::Point;

/// What is done to a run. A further injection is one more variant here and one more arm in `case.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Dies at a passing of a point.
    Crash {
        point: Point,
        passing: u32,
        scene: Scene,
    },
    /// Random victims at random moments.
    Kills(u32),
    /// A finish is said twice, the second time so many milliseconds later.
    Echo {
        number: u32,
        late_ms: u32,
    },
    /// Another run in the same store.
    Neighbour,
    Nothing,
}

/// Who is armed, and what happens besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    /// Who starts the run.
    Run,
    /// Who resumes it, after a first death.
    Resume,
    /// Who starts the run, and is interrupted.
    Interrupt,
    /// Who cancels it from elsewhere.
    Cancel,
    /// Who starts the run, whose node is killed.
    Orphan,
}

const SCENES: [(Scene, &str); 5] = [
    (Scene::Run, "run"),
    (Scene::Resume, "resume"),
    (Scene::Interrupt, "interrupt"),
    (Scene::Cancel, "cancel"),
    (Scene::Orphan, "orphan"),
];

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { point, passing, scene } => {
                let scene = SCENES.iter().find(|(known, _)| known == scene).map_or("", |(_, name)| name);
                write!(f, "crash:{}:{passing}:{scene}", point.name())
            }
            Self::Kills(count) => write!(f, "kills:{count}"),
            Self::Echo { number, late_ms } => write!(f, "echo:{number}:{late_ms}"),
            Self::Neighbour => f.write_str("neighbour"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl FromStr for Act {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(':').collect();
        Ok(match words[..] {
            ["crash", point, passing, scene] => Self::Crash {
                point: Point::named(point).with_context(|| format!("there is no point `{point}`"))?,
                passing: passing.parse().context("the passing is a number")?,
                scene: SCENES.iter().find(|(_, name)| *name == scene).context("there is no such scene")?.0,
            },
            ["kills", count] => Self::Kills(count.parse().context("kills are a number")?),
            ["echo", number, late_ms] => Self::Echo {
                number: number.parse().context("an echo has a number")?,
                late_ms: late_ms.parse().context("an echo is late by a number")?,
            },
            ["neighbour"] => Self::Neighbour,
            ["nothing"] => Self::Nothing,
            _ => bail!("`{text}` is not crash:POINT:PASSING:SCENE, kills:N, echo:N:MS, neighbour or nothing"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_typed_again() {
        let crash = Act::Crash { point: Point::CommitBefore, passing: 3, scene: Scene::Resume };
        for act in [crash, Act::Kills(2), Act::Echo { number: 7, late_ms: 80 }, Act::Neighbour, Act::Nothing]
        {
            assert_eq!(act.to_string().parse::<Act>().expect("it was printed"), act);
        }
        assert!("crash:nowhere:1:run".parse::<Act>().is_err());
        assert!("sleep".parse::<Act>().is_err());
    }
}
