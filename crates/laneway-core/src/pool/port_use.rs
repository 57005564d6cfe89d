//! Who holds the ports of a node, in words: for the task that waited too long for one, and for
//! `laneway explain` while it waits.

use std::fmt;

use crate::id::RunId;

/// Holders that a text names; the others are counted.
const MAX_NAMED_HOLDERS: usize = 5;

/// A container that holds a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHolder {
    pub port: u16,
    pub pool: String,
    pub container: String,
    pub state: super::ContainerState,
    /// The task that has it: its run and its name.
    pub task: Option<(RunId, String)>,
}

/// How the ports of a node are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortUse {
    pub first: u16,
    pub last: u16,
    /// Containers that hold one, by port. May be cut; `held` counts them all.
    pub holders: Vec<PortHolder>,
    pub held: usize,
}

impl PortUse {
    /// The range, as the setting `ports` writes it.
    pub fn range(&self) -> String {
        if self.first == self.last { self.first.to_string() } else { format!("{}-{}", self.first, self.last) }
    }

    /// Ports of the range that programs outside Laneway hold, while none is free.
    pub fn others(&self) -> usize {
        usize::from(self.last - self.first) + 1 - self.held.min(usize::from(self.last - self.first) + 1)
    }

    /// The command that frees ports of idle containers, if there are any.
    pub fn drain_command(&self) -> Option<String> {
        let idle = self.holders.iter().find(|holder| holder.state == super::ContainerState::Idle)?;
        Some(format!("laneway pool drain {}", idle.pool))
    }
}

/// "no port of 49200-49202 is free: 49200 by …, 49201 by …, and 1 by another program".
impl fmt::Display for PortUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (range, others) = (self.range(), self.others());
        let of_others = match others {
            1 => "1 by another program".to_owned(),
            _ => format!("{others} by other programs"),
        };
        if self.held == 0 {
            return write!(f, "no port of {range} is free: {of_others}");
        }
        let named: Vec<String> =
            self.holders.iter().take(MAX_NAMED_HOLDERS).map(ToString::to_string).collect();
        write!(f, "no port of {range} is free: {}", named.join(", "))?;
        if self.held > named.len() {
            write!(f, " and {} more containers", self.held - named.len())?;
        }
        if others > 0 {
            write!(f, ", and {of_others}")?;
        }
        Ok(())
    }
}

/// "49200 by laneway-1a2b-warm-1 of pool `web` (runs build of run 1a2b3c4d)".
impl fmt::Display for PortHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::ContainerState as S;
        write!(f, "{} by {} of pool `{}` (", self.port, self.container, self.pool)?;
        match (self.state, &self.task) {
            (S::Running, Some((run, step))) => write!(f, "runs {step} of run {})", run.short()),
            (S::Starting | S::Idle | S::Running | S::Dormant, _) => write!(f, "{})", self.state),
            (S::Terminated, _) => f.write_str("being removed)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ContainerState as S;
    use super::*;

    fn holder(port: u16, state: S, task: Option<&str>) -> PortHolder {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        PortHolder {
            port,
            pool: "web".into(),
            container: format!("c{port}"),
            state,
            task: task.map(|step| (run, step.to_owned())),
        }
    }

    #[test]
    fn text_names_the_range_the_holders_and_what_other_programs_have() {
        let states = [S::Starting, S::Idle, S::Running, S::Dormant, S::Terminated];
        let holders: Vec<PortHolder> =
            (10..).zip(states).map(|(port, state)| holder(port, state, None)).collect();
        let busy = holder(10, S::Running, Some("build"));
        let cases = [
            (
                10,
                10,
                vec![busy.clone()],
                1,
                "no port of 10 is free: 10 by c10 of pool `web` (runs build of run 1a2b3c4d)",
            ),
            (
                10,
                11,
                vec![holder(10, S::Idle, None)],
                1,
                "no port of 10-11 is free: 10 by c10 of pool `web` (idle), and 1 by another program",
            ),
            (10, 12, Vec::new(), 0, "no port of 10-12 is free: 3 by other programs"),
            (
                10,
                16,
                holders,
                7,
                "no port of 10-16 is free: 10 by c10 of pool `web` (starting), 11 by c11 of pool `web` (idle), \
                 12 by c12 of pool `web` (running), 13 by c13 of pool `web` (dormant), \
                 14 by c14 of pool `web` (being removed) and 2 more containers",
            ),
        ];
        for (first, last, holders, held, expected) in cases {
            assert_eq!(PortUse { first, last, holders, held }.to_string(), expected);
        }
    }

    #[test]
    fn idle_containers_can_be_drained() {
        let of = |state| PortUse { first: 10, last: 10, holders: vec![holder(10, state, None)], held: 1 };
        assert_eq!(of(S::Idle).drain_command().as_deref(), Some("laneway pool drain web"));
        assert_eq!(of(S::Running).drain_command(), None);
    }
}
