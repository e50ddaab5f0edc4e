//! Room on SQLite's disk: which failures are for want of it, though SQLite does not say so.

use std::io::{self, ErrorKind};

use crate::StoreError;

/// What SQLite answers when a write, a sync or the growth of its index of the log fails: for a quota that is used up as for a disk
/// that is broken.
const FAILED_WRITES: [&str; 3] = ["778", "1034", "4874"];

/// Whether SQLite may have failed for want of room without saying so.
pub(super) fn may_lack_room(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| FAILED_WRITES.contains(&&*code))
}

/// What such a failure means where it was tried since whether there is room.
pub(super) fn meaning(error: sqlx::Error, tried: io::Result<()>) -> StoreError {
    match tried {
        Err(found) if lacks_room(&found) => StoreError::Full(found.into()),
        _ => error.into(),
    }
}

/// Whether the system refused a write for want of room, on the disk or in a quota of it.
pub(super) fn lacks_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// A failure of SQLite with this code.
#[cfg(test)]
#[derive(Debug, thiserror::Error)]
#[error("disk I/O error")]
pub(super) struct Refused(&'static str);

#[cfg(test)]
impl Refused {
    pub(super) const WRITE: Self = Self("778");
}

#[cfg(test)]
impl sqlx::error::DatabaseError for Refused {
    fn message(&self) -> &'static str {
        "disk I/O error"
    }

    fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some(self.0.into())
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> sqlx::error::ErrorKind {
        sqlx::error::ErrorKind::Other
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    fn refused(code: &'static str) -> sqlx::Error {
        Refused(code).into()
    }

    #[test]
    fn a_failed_write_is_for_want_of_room_where_none_is_found_on_the_disk_or_in_the_quota() {
        for code in FAILED_WRITES {
            for full in [Errno::EDQUOT, Errno::ENOSPC] {
                assert!(may_lack_room(&refused(code)), "{code}");
                let means = meaning(refused(code), Err(full.into()));
                assert!(matches!(means, StoreError::Full(_)), "{code}: {means:?}");
            }
            for other in [Ok(()), Err(Errno::EIO.into()), Err(Errno::EFBIG.into())] {
                let means = meaning(refused(code), other);
                assert!(
                    matches!(means, StoreError::Database(_)),
                    "{code}: {means:?}"
                );
            }
        }
    }

    #[test]
    fn failures_that_are_not_of_writing_say_nothing_of_room() {
        // A read, a busy file, a damaged one, and one that is full by SQLite's own word.
        for code in ["266", "5", "11", "13"] {
            assert!(!may_lack_room(&refused(code)), "{code}");
        }
    }
}
