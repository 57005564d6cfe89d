//! The verbs, one file each. Every function runs inside one transaction of the writer.

pub(super) mod cancel;
pub(super) mod claim;
pub(super) mod finish;
pub(super) mod give_back;
pub(super) mod lives;
pub(super) mod promote;
pub(super) mod reopen;
pub(super) mod start;
pub(super) mod submit;
