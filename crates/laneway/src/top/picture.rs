//! The graph of a run in cells, made from the layout that every view shares (`wire::Graph`): its columns stay columns,
//! its heights become rows, and the lines between columns run through gutters. Made once for each run; what is drawn of it is
//! looked up cell by cell, so that a frame costs what the screen holds and not what the graph does. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use laneway_server::wire::{Graph, GraphEdge, GraphNode};

/// Pixels of the layout that make one row. Steps of a column are 48 apart, a step and a line beside it 28.
const ROW: i32 = 24;

/// Lines that run beside each other in one gutter. More share their cells.
const TRACKS: usize = 6;

/// Gutters that all lines together may go through.
const MAX_HOPS: usize = 2_000_000;

/// Where a line goes from a cell.
pub(super) const UP: u8 = 1;
pub(super) const RIGHT: u8 = 2;
pub(super) const DOWN: u8 = 4;
pub(super) const LEFT: u8 = 8;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Picture {
    /// In the order of the document.
    pub(super) nodes: Vec<Node>,
    pub(super) columns: Vec<Column>,
    /// How many rows there are.
    pub(super) height: usize,
    /// By column and row: the step that stands there.
    at: HashMap<(usize, usize), usize>,
    /// By column and row: the name of the group that begins below.
    pub(super) groups: HashMap<(usize, usize), String>,
    /// Rows of columns through which a line passes.
    passes: HashSet<(usize, usize)>,
    /// By gutter, its cell and row: where lines go from there.
    lines: HashMap<(usize, usize, usize), u8>,
    by_name: HashMap<String, usize>,
}

/// One step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) step: String,
    pub(super) column: usize,
    pub(super) row: usize,
    /// What it waits for, if that is a signal.
    pub(super) signal: Option<String>,
    pub(super) needs: Vec<usize>,
    pub(super) successors: Vec<usize>,
}

/// A column, and the gutter to the right of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Letters of the longest name.
    pub(super) name: usize,
    /// Cells of the gutter.
    pub(super) gutter: usize,
}

impl Picture {
    pub(super) fn new(layout: &Graph) -> Self {
        let middle = |node: &GraphNode| node.y + node.height / 2;
        let column_of: Vec<usize> = layout.nodes.iter().map(|node| node.layer as usize).collect();
        let width = column_of.iter().max().map_or(0, |last| last + 1);

        // Every height at which something is, brought together: rows without anything are left out.
        let mut heights: BTreeSet<i32> = layout.nodes.iter().map(|node| middle(node) / ROW).collect();
        heights.extend(layout.edges.iter().flat_map(|edge| &edge.points).map(|(_, y)| y / ROW));
        heights.extend(layout.groups.iter().map(|group| (group.y + ROW / 2) / ROW));
        let row_of: HashMap<i32, usize> = heights.iter().enumerate().map(|(row, y)| (*y, row)).collect();
        let row = |y: i32| row_of.get(&(y / ROW)).copied().unwrap_or(0);

        let mut nodes: Vec<Node> = (layout.nodes.iter())
            .map(|node| Node {
                step: node.step.clone(),
                column: node.layer as usize,
                row: row(middle(node)),
                signal: node.signal.clone(),
                needs: Vec::new(),
                successors: Vec::new(),
            })
            .collect();
        for edge in &layout.edges {
            let (from, to) = (edge.from as usize, edge.to as usize);
            nodes[to].needs.push(from);
            nodes[from].successors.push(to);
        }
        let mut columns: Vec<Column> = (0..width).map(|_| Column { name: 0, gutter: 0 }).collect();
        for node in &nodes {
            let column = &mut columns[node.column];
            column.name = column.name.max(node.step.chars().count());
        }

        let mut wires = Wires::default();
        let columns_of = |edge: &GraphEdge| (column_of[edge.from as usize], column_of[edge.to as usize]);
        let hops: usize =
            layout.edges.iter().map(|edge| columns_of(edge).1.saturating_sub(columns_of(edge).0)).sum();
        for edge in &layout.edges {
            let (from, to) = columns_of(edge);
            // Lines across the whole of a very large graph could not be told apart, and would take for ever.
            if hops > MAX_HOPS && to > from + 1 {
                continue;
            }
            // Each bend has two points at one height; without bends a long edge goes at the height of its end.
            let bends: Vec<usize> = edge.points.iter().skip(1).step_by(2).map(|(_, y)| row(*y)).collect();
            let end = nodes[edge.to as usize].row;
            let mut at = nodes[edge.from as usize].row;
            for (hop, gutter) in (from..to).enumerate() {
                let next = if gutter + 1 == to { end } else { bends.get(hop).copied().unwrap_or(end) };
                wires.add(gutter, at, next);
                if gutter + 1 < to {
                    wires.passes.insert((gutter + 1, next));
                }
                at = next;
            }
        }
        let lines = wires.lines(&mut columns);

        let mut groups = HashMap::new();
        for frame in &layout.groups {
            let name = &frame.name;
            let members = (layout.nodes.iter()).filter(|node| node.group.as_ref() == Some(name));
            if let Some(column) = members.map(|node| node.layer as usize).min() {
                groups.insert((column, row(frame.y + ROW / 2)), name.clone());
                columns[column].name = columns[column].name.max(name.chars().count());
            }
        }
        Self {
            at: nodes.iter().enumerate().map(|(at, node)| ((node.column, node.row), at)).collect(),
            by_name: nodes.iter().enumerate().map(|(at, node)| (node.step.clone(), at)).collect(),
            height: heights.len(),
            passes: wires.passes,
            nodes,
            columns,
            groups,
            lines,
        }
    }

    pub(super) fn find(&self, step: &str) -> Option<usize> {
        self.by_name.get(step).copied()
    }

    pub(super) fn node_at(&self, column: usize, row: usize) -> Option<usize> {
        self.at.get(&(column, row)).copied()
    }

    pub(super) fn is_passed(&self, column: usize, row: usize) -> bool {
        self.passes.contains(&(column, row))
    }

    /// Where lines go from a cell of a gutter; 0 where there are none.
    pub(super) fn line_at(&self, gutter: usize, cell: usize, row: usize) -> u8 {
        self.lines.get(&(gutter, cell, row)).copied().unwrap_or(0)
    }

    /// The step in a direction: up and down within the column, left and right the nearest of the next column that has one.
    pub(super) fn beside(&self, from: usize, (across, down): (isize, isize)) -> usize {
        let Some(node) = self.nodes.get(from) else { return from };
        let (column, row) = (node.column, node.row);
        let in_column =
            |column: usize| self.nodes.iter().enumerate().filter(move |(_, other)| other.column == column);
        let found = if down == 0 {
            let linked = if across > 0 { &node.successors } else { &node.needs };
            let next = column.checked_add_signed(across);
            let by_link = linked.iter().copied().min_by_key(|at| {
                let other = &self.nodes[*at];
                (other.column.abs_diff(column), other.row.abs_diff(row))
            });
            by_link.or_else(|| {
                let nearest = in_column(next?).min_by_key(|(_, other)| other.row.abs_diff(row));
                nearest.map(|(at, _)| at)
            })
        } else {
            let is_ahead = |other: usize| if down > 0 { other > row } else { other < row };
            let ahead: BTreeMap<usize, usize> = in_column(column)
                .filter(|(_, other)| is_ahead(other.row))
                .map(|(at, other)| (other.row.abs_diff(row), at))
                .collect();
            let steps = down.unsigned_abs();
            ahead.values().nth(steps - 1).or_else(|| ahead.values().last()).copied()
        };
        found.unwrap_or(from)
    }
}

/// Lines of the gutters while they are gathered.
#[derive(Debug, Default)]
struct Wires {
    /// By gutter and the row that they leave: the rows that they lead to.
    leads: BTreeMap<(usize, usize), BTreeSet<usize>>,
    passes: HashSet<(usize, usize)>,
}

impl Wires {
    fn add(&mut self, gutter: usize, from: usize, to: usize) {
        self.leads.entry((gutter, from)).or_default().insert(to);
    }

    /// Gives each row that is left a track of its own, as far as there are some, and draws.
    fn lines(&self, columns: &mut [Column]) -> HashMap<(usize, usize, usize), u8> {
        let mut tracks: HashMap<(usize, usize), usize> = HashMap::new();
        let mut used: HashMap<usize, usize> = HashMap::new();
        for ((gutter, from), to) in &self.leads {
            // What only goes straight on needs none.
            if to.iter().any(|to| to != from) {
                let used = used.entry(*gutter).or_default();
                tracks.insert((*gutter, *from), *used % TRACKS);
                *used += 1;
            }
        }
        for (gutter, _) in self.leads.keys() {
            // A cell on either side of the tracks: one to leave by, one for the head of the arrow.
            columns[*gutter].gutter = used.get(gutter).map_or(0, |used| (*used).min(TRACKS)) + 3;
        }
        let mut lines: HashMap<(usize, usize, usize), u8> = HashMap::new();
        let mut draw = |gutter: usize, cell: usize, row: usize, goes: u8| {
            *lines.entry((gutter, cell, row)).or_default() |= goes;
        };
        for ((gutter, from), to) in &self.leads {
            let (gutter, from) = (*gutter, *from);
            let width = columns[gutter].gutter;
            let track = tracks.get(&(gutter, from)).map_or(width - 1, |track| track + 1);
            for cell in 0..track {
                draw(gutter, cell, from, LEFT | RIGHT);
            }
            let (first, last) =
                to.iter().fold((from, from), |(first, last), row| (first.min(*row), last.max(*row)));
            for row in first..=last {
                let mut goes = 0;
                if row > first {
                    goes |= UP;
                }
                if row < last {
                    goes |= DOWN;
                }
                if row == from {
                    goes |= LEFT;
                }
                if to.contains(&row) {
                    goes |= RIGHT;
                }
                draw(gutter, track, row, goes);
            }
            for row in to {
                for cell in track + 1..width {
                    draw(gutter, cell, *row, LEFT | RIGHT);
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::definition::{Source, compile};

    use super::*;

    fn picture(text: &str) -> Picture {
        let source = Source { file: "t.yaml".into(), default_name: "t".into(), text: text.to_owned() };
        Picture::new(&Graph::of(&compile(&source).expect("a good document")))
    }

    const DIAMOND: &str = "steps: {a: {run: x}, b: {needs: [a], run: x}, c: {needs: [a], run: x}, d: {needs: [b, c, a], run: x}}";

    #[test]
    fn every_step_has_a_cell_of_its_own_and_lines_lead_to_it() {
        let picture = picture(DIAMOND);
        let cells: HashSet<(usize, usize)> = picture.nodes.iter().map(|n| (n.column, n.row)).collect();
        assert_eq!(cells.len(), 4);
        assert_eq!(picture.columns.len(), 3);
        let column = |name: &str| picture.nodes[picture.find(name).expect("a step")].column;
        assert_eq!(["a", "b", "c", "d"].map(column), [0, 1, 1, 2]);
        for node in picture.nodes.iter().filter(|node| !node.needs.is_empty()) {
            let gutter = node.column - 1;
            let last = picture.columns[gutter].gutter - 1;
            assert_ne!(picture.line_at(gutter, last, node.row) & RIGHT, 0, "{} is led to", node.step);
        }
        for node in picture.nodes.iter().filter(|node| !node.successors.is_empty()) {
            assert_ne!(picture.line_at(node.column, 0, node.row) & LEFT, 0, "{} is left", node.step);
        }
        // The edge from a to d goes past the column between them.
        assert!(
            (0..picture.height).any(|row| picture.is_passed(1, row) && picture.node_at(1, row).is_none())
        );
    }

    #[test]
    fn arrows_move_along_the_graph() {
        let picture = picture(DIAMOND);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| picture.find(name).expect("a step"));
        assert_eq!(picture.beside(d, (1, 0)), d, "there is nothing behind the last");
        assert!([b, c].contains(&picture.beside(a, (1, 0))));
        let (upper, lower) = if picture.nodes[b].row < picture.nodes[c].row { (b, c) } else { (c, b) };
        assert_eq!(picture.beside(upper, (0, 1)), lower);
        assert_eq!(picture.beside(lower, (0, 9)), lower);
        assert_eq!(picture.beside(lower, (0, -1)), upper);
        assert_eq!(picture.beside(b, (-1, 0)), a);
    }

    #[test]
    fn a_large_graph_is_drawn_in_bounded_time_and_space() {
        let steps: Vec<String> = (0..10_000)
            .map(|n| {
                if n < 5_000 {
                    format!("a{n}: {{run: x}}")
                } else {
                    format!("b{n}: {{needs: [a{}], run: x}}", n - 5_000)
                }
            })
            .collect();
        let picture = picture(&format!("steps: {{{}}}", steps.join(", ")));
        assert_eq!(picture.nodes.len(), 10_000);
        assert!(picture.lines.len() < 5_000 * 40, "{}", picture.lines.len());
    }
}
