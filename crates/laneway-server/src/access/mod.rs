//! Who may do what: tokens (`token.rs`), when each was last used (`token_uses.rs`), the names by which the service may be asked (`origin.rs`), codes to sign in with (`sign_in.rs`), and the guard in front of
//! every route (`guard.rs`). The rules themselves stand in `table.rs`, one for each route. See `docs/design/service.md`.

mod guard;
mod origin;
mod sign_in;
mod token;
mod token_uses;

pub(crate) use guard::{From, Guarded, ReadToken, admit, front, no_method, no_such_route, token};
pub use origin::Names;
pub use sign_in::CODE_LASTS;
pub(crate) use sign_in::{Codes, Given};
pub(crate) use token::make_web_session;
pub use token::{Rotate, Secret, WEB_SESSION_LASTS, admin_token, check_name, make, read_admin_token, rotate};

pub(crate) use token_uses::TokenUses;

use laneway_core::role::Role;
use laneway_store::model::Stamp;

use crate::ask::Author;

/// Who may ask for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Without a token: whether the service lives, the web page, and signing in at it.
    Anybody,
    /// Without a token: what is sent is signed, and the route looks at that.
    Signed,
    /// With a token of this role, or of one that may more.
    AtLeast(Role),
}

/// Who asked, as far as it matters to what follows.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the token: what events and the audit log say.
    pub name: String,
    pub role: Role,
    /// Its id, to look again whether it is still good.
    pub token: String,
    /// The address it asked from.
    pub origin: String,
    /// How far the store had come when its token was looked at.
    pub(crate) stamp: Option<Stamp>,
}

impl Caller {
    /// As what they change is written down.
    pub(crate) fn author(&self) -> Author {
        Author { name: self.name.clone(), origin: self.origin.clone() }
    }
}
