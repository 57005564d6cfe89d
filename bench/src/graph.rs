//! The graphs that are run, in the words of every program that runs them. Each task is /bin/true. Knows
//! nothing of how they are measured.

use std::fmt::Write as _;

/// A graph, and how many of its tasks may run at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graph {
    pub(crate) shape: Shape,
    pub(crate) at_once: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nobody waits for anybody.
    Flat(usize),
    /// Each waits for the one before.
    Chain(usize),
    /// Each waits for all of the level before.
    Levels { levels: usize, width: usize },
}

/// A task with the names of those it waits for.
type Task = (String, Vec<String>);

impl Graph {
    pub(crate) fn tasks(self) -> usize {
        match self.shape {
            Shape::Flat(tasks) | Shape::Chain(tasks) => tasks,
            Shape::Levels { levels, width } => levels * width,
        }
    }

    pub(crate) fn laneway(self) -> String {
        let mut text = format!("max_parallel: {}\nsteps:\n", self.at_once);
        for (name, needs) in self.list() {
            put(
                &mut text,
                format_args!("  {name}: {{needs: [{}], command: [/bin/true]}}\n", needs.join(", ")),
            );
        }
        text
    }

    pub(crate) fn makefile(self) -> String {
        let tasks = self.list();
        let names: Vec<&str> = tasks.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(" ");
        let mut text = format!(".PHONY: all {names}\nall: {names}\n");
        for (name, needs) in &tasks {
            put(&mut text, format_args!("{name}: {}\n\t@/bin/true\n", needs.join(" ")));
        }
        text
    }

    pub(crate) fn ninja(self) -> String {
        let mut text = String::from("rule true\n  command = /bin/true\n");
        for (name, needs) in self.list() {
            put(&mut text, format_args!("build {name}: true {}\n", needs.join(" ")));
        }
        text
    }

    pub(crate) fn dagu(self) -> String {
        let mut text = format!("type: graph\nmaxActiveSteps: {}\nsteps:\n", self.at_once);
        for (name, needs) in self.list() {
            put(&mut text, format_args!("  - name: {name}\n    command: /bin/true\n"));
            if !needs.is_empty() {
                put(&mut text, format_args!("    depends: [{}]\n", needs.join(", ")));
            }
        }
        text
    }

    /// For drivers that build the graph themselves.
    pub(crate) fn words(self) -> Vec<String> {
        match self.shape {
            Shape::Flat(tasks) => vec!["flat".to_owned(), tasks.to_string()],
            Shape::Chain(tasks) => vec!["chain".to_owned(), tasks.to_string()],
            Shape::Levels { levels, width } => {
                vec!["levels".to_owned(), levels.to_string(), width.to_string()]
            }
        }
    }

    fn list(self) -> Vec<Task> {
        match self.shape {
            Shape::Flat(tasks) => (0..tasks).map(|task| (format!("t{task}"), Vec::new())).collect(),
            Shape::Chain(tasks) => (0..tasks)
                .map(|task| (format!("t{task}"), task.checked_sub(1).map(|before| format!("t{before}"))))
                .map(|(name, before)| (name, before.into_iter().collect()))
                .collect(),
            Shape::Levels { levels, width } => {
                let name = |level: usize, place: usize| format!("l{level}_{place}");
                let needs = |level: usize| match level.checked_sub(1) {
                    None => Vec::new(),
                    Some(before) => (0..width).map(|place| name(before, place)).collect(),
                };
                let places = (0..levels).flat_map(|level| (0..width).map(move |place| (level, place)));
                places.map(|(level, place)| (name(level, place), needs(level))).collect()
            }
        }
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_says_the_same_graph() {
        let graph = Graph { shape: Shape::Levels { levels: 2, width: 2 }, at_once: 2 };
        assert_eq!(graph.tasks(), 4);
        assert!(graph.laneway().contains("  l1_0: {needs: [l0_0, l0_1], command: [/bin/true]}\n"));
        assert!(graph.makefile().contains("l1_0: l0_0 l0_1\n\t@/bin/true\n"));
        assert!(graph.ninja().contains("build l1_0: true l0_0 l0_1\n"));
        assert!(graph.dagu().contains("  - name: l1_0\n    command: /bin/true\n    depends: [l0_0, l0_1]\n"));
    }

    #[test]
    fn a_chain_has_one_that_waits_for_nobody() {
        let chain = Graph { shape: Shape::Chain(3), at_once: 1 }.list();
        assert_eq!(chain.iter().map(|(_, needs)| needs.len()).collect::<Vec<_>>(), [0, 1, 1]);
    }
}
