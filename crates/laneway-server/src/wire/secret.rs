//! Secrets of the store. A value goes in, and never out.

use std::fmt;

use laneway_store::model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Moment;

/// A value to keep sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSecret {
    #[schema(min_length = 4)]
    pub value: String,
}

impl fmt::Debug for SetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetSecret").finish_non_exhaustive()
    }
}

/// A secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredSecret {
    pub name: String,
    pub set_at: Moment,
    pub set_by: String,
}

/// By name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    pub secrets: Vec<StoredSecret>,
}

/// Whether a secret is set from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretSet {
    pub name: String,
    pub set: bool,
}

impl From<&model::SecretView> for StoredSecret {
    fn from(view: &model::SecretView) -> Self {
        Self { name: view.name.clone(), set_at: Moment(view.set_at), set_by: view.set_by.clone() }
    }
}
