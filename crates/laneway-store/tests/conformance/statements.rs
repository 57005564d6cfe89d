//! The store's SQL statements by name (`build.rs`), for tests that read the databases' plans for
//! them.

pub(crate) mod sqlite {
    include!(concat!(env!("OUT_DIR"), "/sqlite_statements.rs"));
    pub(crate) use statement;
}

pub(crate) mod postgres {
    include!(concat!(env!("OUT_DIR"), "/postgres_statements.rs"));
    pub(crate) use statement;

    /// Name, index and text of each statement whose head names an index.
    pub(crate) const INDEXED: &[(&str, &str, &str)] =
        include!(concat!(env!("OUT_DIR"), "/postgres_indexes.rs"));
}
