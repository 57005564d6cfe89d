//! A document as a tree with spans, built from the parser's events without recursion.
//!
//! Owns every bound on size: depth, nodes, and what aliases expand to (they share their target, and
//! only its weight is counted). JSON comes from `json.rs`. Refused here: several documents,
//! tags, merge keys (`<<`: an alias stands for a whole value instead), keys that are no scalars, and
//! duplicate keys.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::finding::{Finding, Findings, Span, shown};
use super::json;
use super::text::Walk;

const MAX_DEPTH: usize = 64;
/// Counts every use of an alias as all that it stands for.
const MAX_NODES: usize = 2_000_000;

/// What the scanner may hold before it hands something out; each token takes about 100 bytes.
const MAX_AHEAD: usize = 1_000_000;

pub(super) type NodeId = u32;

#[derive(Debug)]
pub(super) struct Tree<'t> {
    nodes: Vec<Node<'t>>,
    pub(super) root: NodeId,
}

#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) span: Span,
    pub(super) data: Data<'t>,
}

#[derive(Debug)]
pub(super) enum Data<'t> {
    Scalar {
        text: Cow<'t, str>,
        is_plain: bool,
    },
    List(Box<[NodeId]>),
    /// Keys and values in turn. Keys are scalars, each once.
    Map(Box<[NodeId]>),
}

impl<'t> Tree<'t> {
    pub(super) fn node(&self, id: NodeId) -> &Node<'t> {
        &self.nodes[id as usize]
    }

    /// The text of a key, which is always a scalar.
    pub(super) fn key(&self, id: NodeId) -> &str {
        match &self.node(id).data {
            Data::Scalar { text, .. } => text,
            Data::List(_) | Data::Map(_) => "",
        }
    }

    /// Pairs of a mapping.
    pub(super) fn pairs(flat: &[NodeId]) -> impl ExactSizeIterator<Item = (NodeId, NodeId)> {
        flat.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }
}

/// `None` if the document has no tree: then `findings` says why.
pub(super) fn parse<'t>(text: &'t str, findings: &mut Findings) -> Option<Tree<'t>> {
    // A byte order mark is allowed in front, and is not part of the first key.
    let skipped = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let body = &text[skipped..];
    let mut found = Findings::default();
    let mut builder = Builder::new(text);
    let mut parsed = None;
    if body.trim_start().starts_with('{') {
        let take = |event, span: Span| builder.take(event, span.behind(skipped), &mut found);
        parsed = json::events(body, take);
    }
    let parsed = parsed.unwrap_or_else(|| {
        found = Findings::default();
        builder = Builder::new(text);
        events(body, |event, span| builder.take(event, span.behind(skipped), &mut found))
    });
    findings.append(found);
    if let Err(finding) = parsed {
        findings.push(finding);
        return None;
    }
    match builder.root {
        Some(root) => Some(Tree { nodes: builder.nodes, root }),
        None => {
            findings.push(
                Finding::whole("the document is empty")
                    .hint("a workflow has at least `steps: {hello: {run: echo hello}}`"),
            );
            None
        }
    }
}

/// Calls `take` for each event until it fails.
fn events<'t>(
    text: &'t str,
    mut take: impl FnMut(Event<'t>, Span) -> Result<(), Finding>,
) -> Result<(), Finding> {
    let ahead = Rc::new(Cell::new(0));
    let characters = Characters { rest: text.chars(), ahead: Rc::clone(&ahead) };
    let mut walk = Walk::new(text);
    let mut last = Span::default();
    for event in Parser::new_from_iter(characters) {
        if ahead.replace(0) > MAX_AHEAD {
            return Err(Finding::new("a single value is too large to be read", last)
                .hint("keep data in files of its own; write large lists and mappings in block style, or the whole document as JSON"));
        }
        let (event, span) =
            event.map_err(|error| syntax(text, error.info(), walk.byte(error.marker().index())))?;
        last = Span::new(walk.byte(span.start.index()), walk.byte(span.end.index()));
        take(event, last)?;
    }
    Ok(())
}

/// The characters of the document, until the scanner has read too far ahead: it keeps every token of
/// a `[…]` or `{…}` until that ends, in case the whole is a key.
#[derive(Debug)]
struct Characters<'t> {
    rest: std::str::Chars<'t>,
    /// Tokens, at most, that were made since the last event.
    ahead: Rc<Cell<usize>>,
}

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        let tokens = match next {
            ':' => 3,
            ',' => 2,
            '[' | ']' | '{' | '}' => 1,
            _ => return Some(next),
        };
        let ahead = self.ahead.get() + tokens;
        self.ahead.set(ahead);
        (ahead <= MAX_AHEAD).then_some(next)
    }
}

#[derive(Debug)]
struct Builder<'t> {
    text: &'t str,
    nodes: Vec<Node<'t>>,
    /// Finished children of all open containers, innermost last.
    children: Vec<NodeId>,
    open: Vec<Open>,
    /// By the parser's number: the node and its weight; `None` while it is open.
    anchors: HashMap<usize, Option<(NodeId, usize)>>,
    /// Nodes so far, aliases counted in full.
    weight: usize,
    root: Option<NodeId>,
}

#[derive(Debug)]
struct Open {
    is_map: bool,
    start: Span,
    first_child: usize,
    anchor: usize,
    weight_before: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            nodes: Vec::new(),
            children: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            weight: 0,
            root: None,
        }
    }

    fn take(&mut self, event: Event<'t>, span: Span, findings: &mut Findings) -> Result<(), Finding> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Finding::new("a second document starts here", span)
                    .hint("one file holds one workflow; put the other one into a file of its own"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.is_some(), span)?;
                let before = self.weight;
                let is_plain = style == ScalarStyle::Plain;
                let text = self.borrowed(text, span);
                let id = self.add(span, Data::Scalar { text, is_plain })?;
                if anchor > 0 {
                    self.anchors.insert(anchor, Some((id, self.weight - before)));
                }
                self.place(id);
                Ok(())
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(Some((id, weight))) => {
                    let (id, weight) = (*id, *weight);
                    self.weigh(weight, span)?;
                    self.place(id);
                    Ok(())
                }
                Some(None) | None => Err(Finding::new("an alias cannot stand inside of what it names", span)),
            },
            Event::SequenceStart(anchor, tag) => self.enter(false, anchor, tag.is_some(), span),
            Event::MappingStart(anchor, tag) => self.enter(true, anchor, tag.is_some(), span),
            Event::SequenceEnd | Event::MappingEnd => self.leave(span, findings),
        }
    }

    /// The parser copies every scalar. Most stand in the document as they are, perhaps between
    /// quotes, and need no copy: a document of millions of words would not fit otherwise.
    fn borrowed(&self, text: Cow<'t, str>, span: Span) -> Cow<'t, str> {
        let raw = self.text.get(span.range()).unwrap_or_default();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        match text {
            Cow::Owned(owned) if owned == raw => Cow::Borrowed(raw),
            Cow::Owned(owned) if owned == inner => Cow::Borrowed(inner),
            other @ (Cow::Owned(_) | Cow::Borrowed(_)) => other,
        }
    }

    fn enter(&mut self, is_map: bool, anchor: usize, has_tag: bool, span: Span) -> Result<(), Finding> {
        refuse_tag(has_tag, span)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open {
            is_map,
            start: span,
            first_child: self.children.len(),
            anchor,
            weight_before: self.weight,
        });
        Ok(())
    }

    fn leave(&mut self, end: Span, findings: &mut Findings) -> Result<(), Finding> {
        let Some(open) = self.open.pop() else {
            return Err(Finding::new("a list or mapping ends that never started", end));
        };
        let children: Box<[NodeId]> = self.children.drain(open.first_child..).collect();
        let last = children.last().map_or(open.start.end, |id| {
            let last = self.nodes[*id as usize].span;
            // An alias's target may lie far before its use.
            if last.start >= open.start.start { last.end } else { open.start.end }
        });
        // A block ends where the next thing starts; its own text ends with its last child. The end
        // of a `{…}` is its bracket, though the parser counts the comment behind it as well.
        let end = if end.is_empty() { last } else { end.start + 1 };
        let span = Span::new(open.start.start as usize, end as usize);
        let data =
            if open.is_map { Data::Map(self.check_keys(children, findings)) } else { Data::List(children) };
        let id = self.add(span, data)?;
        if open.anchor > 0 {
            self.anchors.insert(open.anchor, Some((id, self.weight - open.weight_before)));
        }
        self.place(id);
        Ok(())
    }

    fn add(&mut self, span: Span, data: Data<'t>) -> Result<NodeId, Finding> {
        self.weigh(1, span)?;
        self.nodes.push(Node { span, data });
        Ok(self.nodes.len() as NodeId - 1)
    }

    fn weigh(&mut self, weight: usize, span: Span) -> Result<(), Finding> {
        self.weight += weight;
        if self.weight > MAX_NODES {
            return Err(Finding::new(
                format!("the document has more than {MAX_NODES} values, with its aliases written out"),
                span,
            )
            .hint("split it into several workflows, or use fewer aliases of aliases"));
        }
        Ok(())
    }

    fn place(&mut self, id: NodeId) {
        if self.open.is_empty() {
            self.root = Some(id);
        } else {
            self.children.push(id);
        }
    }

    /// Drops pairs whose key cannot be used, after saying so.
    fn check_keys(&self, flat: Box<[NodeId]>, findings: &mut Findings) -> Box<[NodeId]> {
        let count = flat.len() / 2;
        let mut seen: HashMap<&str, NodeId> = HashMap::new();
        let mut dropped = Vec::new();
        for (index, (key, _)) in Tree::pairs(&flat).enumerate() {
            let node = &self.nodes[key as usize];
            let Data::Scalar { text, is_plain } = &node.data else {
                findings.push(
                    Finding::new("a key must be a name, not a list or a mapping", node.span)
                        .hint("a value that contains `${{ … }}`, `{` or `[` must be in quotes"),
                );
                dropped.push(index);
                continue;
            };
            if *is_plain && text == "<<" {
                findings.push(
                    Finding::new("merge keys (`<<`) are not supported", node.span)
                        .hint("write the keys out, or let an alias stand for a whole value: `env: *common`"),
                );
                dropped.push(index);
                continue;
            }
            // Most mappings have a handful of keys, for which comparing is cheaper than hashing.
            let earlier = if count <= 8 {
                Tree::pairs(&flat)
                    .take(index)
                    .map(|(id, _)| id)
                    .find(|id| matches!(&self.nodes[*id as usize].data, Data::Scalar { text: other, .. } if other == text))
            } else {
                seen.insert(text, key)
            };
            if let Some(earlier) = earlier {
                if count > 8 {
                    seen.insert(text, earlier);
                }
                findings.push(
                    Finding::new(format!("the key {} is given twice", shown(text)), node.span)
                        .note("first given here", self.nodes[earlier as usize].span),
                );
                dropped.push(index);
            }
        }
        if dropped.is_empty() {
            return flat;
        }
        let mut dropped = dropped.into_iter().peekable();
        Tree::pairs(&flat)
            .enumerate()
            .filter(|(index, _)| dropped.next_if_eq(index).is_none())
            .flat_map(|(_, (key, value))| [key, value])
            .collect()
    }
}

fn too_deep(span: Span) -> Finding {
    Finding::new(format!("the document is nested deeper than {MAX_DEPTH} levels"), span)
}

fn refuse_tag(has_tag: bool, span: Span) -> Result<(), Finding> {
    if has_tag {
        return Err(Finding::new("tags (`!name`) are not supported", span)
            .hint("put a value that starts with `!` in quotes"));
    }
    Ok(())
}

/// The parser's own words, with advice for the two mistakes that are made most.
fn syntax(text: &str, info: &str, at: usize) -> Finding {
    let at = at.min(text.len());
    let line_start = text[..at].rfind('\n').map_or(0, |found| found + 1);
    let line_end = text[at..].find('\n').map_or(text.len(), |found| at + found);
    let line = &text[line_start..line_end];
    let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
    // The scanner reads ahead of what it hands out, and has a bound of its own.
    if info.contains("recursion limit") {
        return too_deep(Span::new(at, end));
    }
    let finding = Finding::new(format!("this is not valid YAML: {info}"), Span::new(at, end));
    if line.trim_start_matches(' ').starts_with('\t') {
        finding.hint("indent with spaces, not with tabs")
    } else if let Some(quoted) = colon_in_value(line).filter(|_| is_about_colons(info)) {
        finding.hint(format!("a value that contains `: ` needs quotes: {quoted}"))
    } else if line.contains("${{") {
        finding.hint("put a value that contains `${{ … }}` in quotes: \"${{ … }}\"")
    } else {
        finding
    }
}

/// Whether the parser may have stopped at a colon of a value that it took for that of a key.
fn is_about_colons(info: &str) -> bool {
    info.contains("mapping values are not allowed") || info.contains("did not find expected ',' or '}'")
}

/// A key whose value has a `: ` of its own, as it has to be written: `run: "echo: hi"`.
fn colon_in_value(line: &str) -> Option<String> {
    let colons: Vec<usize> = line.match_indices(": ").map(|(at, _)| at).collect();
    let is_plain = |text: &str| !text.contains(['{', '}', ',', '[', ']', '"', '\'']);
    let is_block = !line.contains('{');
    let pair = colons.windows(2).find(|pair| is_block || is_plain(&line[pair[0]..pair[1]]))?;
    let begin = line[..pair[0]].rfind(['{', ',']).map_or(0, |at| at + 1);
    let key = line[begin..pair[0]].trim().trim_start_matches("- ").trim();
    let rest = &line[pair[0] + 2..];
    let end = rest.find(['}', ',']).filter(|_| !is_block).unwrap_or(rest.len());
    let value = rest[..end].trim();
    if value.starts_with(['"', '\'']) || value.contains('"') && value.contains('\'') {
        return None;
    }
    let quote = if value.contains('"') { '\'' } else { '"' };
    (!key.is_empty() && key.len() + value.len() <= 80).then(|| format!("{key}: {quote}{value}{quote}"))
}
