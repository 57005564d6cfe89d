//! What the holder of a token may do. Each of viewer, operator and admin may all that the one before it may; a worker takes
//! work and does nothing else.

use crate::words::words;

words! {
    /// A stable word, kept with every token.
    pub enum Role {
        /// Looks.
        Viewer = "viewer",
        /// Starts, ends and changes runs.
        Operator = "operator",
        /// Changes what is everybody's: tokens, limits, nodes.
        Admin = "admin",
        /// Takes tasks and says how they ended.
        Worker = "worker",
    }
}

impl Role {
    /// Whether one with this role may what asks for `needed`.
    pub fn may(self, needed: Self) -> bool {
        let height = |role| match role {
            Self::Viewer => Some(0),
            Self::Operator => Some(1),
            Self::Admin => Some(2),
            Self::Worker => None,
        };
        match (height(self), height(needed)) {
            (Some(has), Some(needed)) => has >= needed,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_those_below_it_may_and_a_worker_stands_apart() {
        let table = [
            (Role::Viewer, "viewer"),
            (Role::Operator, "viewer operator"),
            (Role::Admin, "viewer operator admin"),
            (Role::Worker, "worker"),
        ];
        for (role, may) in table {
            let allowed: Vec<&str> =
                Role::ALL.iter().filter(|needed| role.may(**needed)).map(|needed| needed.as_str()).collect();
            assert_eq!(allowed.join(" "), may, "{role}");
        }
    }
}
