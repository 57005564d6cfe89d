//! The key `for_each`, and those that say how its items run: `max_parallel` and `fail_fast`. Owns their form and what such a step
//! cannot be; what becomes of the items is decided in `growth.rs` and by the gate keeper. docs/design/growth.md.

use super::finding::{Finding, Findings};
use super::input::Input;
use super::model::{ForEach, Workflow};
use super::read::Spans;
use super::reader::{Field, Reader};
use super::yaml::Data;
use crate::growth::MAX_STEPS;

const LIST: &str = "a list, or an expression that gives one, such as ${{ steps.fetch.output.files }}";

/// The keys of a step that are about its items, as they were found.
#[derive(Debug, Default)]
pub(super) struct Growing<'t> {
    pub(super) items: Option<Field<'t>>,
    pub(super) max_parallel: Option<Field<'t>>,
    pub(super) fail_fast: Option<Field<'t>>,
    /// `order` of the same step.
    pub(super) order: Option<Field<'t>>,
}

impl Growing<'_> {
    pub(super) fn read(self, reader: &mut Reader<'_>) -> Option<Box<ForEach>> {
        let Some(items) = self.items else {
            for field in self.max_parallel.into_iter().chain(self.fail_fast) {
                let span = reader.tree.node(field.key).span;
                let message = format!("`{}` of a step is about the items of its `for_each`", field.name);
                let hint =
                    "this step has no `for_each`; the workflow and groups have a `max_parallel` of their own";
                reader.findings.push(Finding::new(message, span).hint(hint));
            }
            return None;
        };
        if let Some(order) = self.order {
            let span = reader.tree.node(order.key).span;
            let message =
                "a step with `for_each` cannot have an `order`: its items would all be of one version";
            reader.findings.push(Finding::new(message, span).hint("put it on a step before or behind it"));
        }
        let max_parallel = self.max_parallel.and_then(|field| reader.at_least_one(field));
        let fail_fast = self.fail_fast.and_then(|field| reader.boolean(field)).unwrap_or_default();
        let items = reader.items(items)?;
        Some(Box::new(ForEach { items, max_parallel, fail_fast }))
    }
}

impl Reader<'_> {
    /// A list as it is written, in whose strings expressions may stand, or one expression that gives a list.
    fn items(&mut self, field: Field<'_>) -> Option<Input> {
        let before = self.sites.len();
        let items = match &self.tree.node(field.value).data {
            Data::List(_) => self.input_value(field),
            Data::Map(_) => None,
            Data::Scalar { .. } => {
                self.string(field, LIST)?;
                let template = self.template(field)?;
                let is_one = template.parts.len() == 1 && template.expressions().next().is_some();
                is_one.then_some(Input::Text(template))
            }
        };
        for site in &mut self.sites[before..] {
            site.is_list = true;
        }
        if items.is_none() && !matches!(self.tree.node(field.value).data, Data::List(_)) {
            let finding = self.wrong(field, LIST);
            self.findings.push(finding);
        }
        items
    }
}

/// What a step with `for_each` cannot be.
pub(super) fn check(workflow: &Workflow, spans: &Spans, findings: &mut Findings) {
    let growing: Vec<usize> =
        (0..workflow.steps.len()).filter(|index| workflow.steps[*index].for_each.is_some()).collect();
    if let Some(index) = growing.get(MAX_STEPS) {
        let message = format!("the workflow has more than {MAX_STEPS} steps with `for_each`");
        let finding = Finding::new(message, spans.step[*index].name);
        findings.push(finding.hint("let one step have the items of several"));
    }
    for (group, places) in workflow.groups.iter().zip(&spans.group) {
        for (name, span) in group.steps.iter().zip(&places.members) {
            let step = growing.iter().find(|index| workflow.steps[**index].name == *name);
            if step.is_some() {
                let message = format!("step `{name}` has `for_each`, and cannot be a member of a group");
                let finding = Finding::new(message, *span);
                findings.push(finding.hint(
                    "its items run side by side already, and `steps.NAME.output` is the list of their outputs",
                ));
            }
        }
    }
}
