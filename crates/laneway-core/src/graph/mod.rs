//! Drawings of a plan: a layered layout of our own, shared by every view, and the texts made from it.
//! Arrows lead from a step to one that needs it, in the direction of time.

mod dot;
mod layers;
mod layout;
mod mermaid;
mod place;
mod svg;
mod sweep;

pub use dot::dot;
pub use layout::{Edge, Frame, Layout, Node, layout};
pub use mermaid::mermaid;
pub use svg::svg;
