//! Signing in at the web page: codes that are good once, and whose token it is.

use laneway_core::role::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A code, as the link has it that was printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub code: String,
}

/// A code that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeCode {
    /// viewer, operator or admin, and no more than whoever asks may; the same as that without it.
    #[serde(default)]
    #[schema(schema_with = super::role_of_a_person)]
    pub role: Option<Role>,
}

/// A code. It is in this answer and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInCode {
    pub code: String,
    #[schema(schema_with = super::role)]
    pub role: Role,
    /// For how many seconds it is good, at the process that made it.
    pub lasts_s: u64,
}

/// Whose token it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub name: String,
    #[schema(schema_with = super::role)]
    pub role: Role,
    pub server_version: String,
}
