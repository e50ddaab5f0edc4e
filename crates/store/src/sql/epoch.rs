//! Epoch: the number of a leadership, which fences the writes of leaders that another one has followed.

use crate::{
    StoreError,
    backend::{Connection, Sql, values},
};

/// Finds the epoch, if it is the newest, and has a new leader wait until this transaction is over.
const EPOCH: Sql = Sql {
    sqlite: "SELECT epoch FROM leadership WHERE epoch = $1",
    postgres: "SELECT epoch FROM leadership WHERE epoch = $1 FOR KEY SHARE",
};

/// Keeps the epoch the newest for the rest of the transaction.
pub(super) async fn hold_epoch(write: &mut Connection, epoch: i64) -> Result<(), StoreError> {
    match write.row(EPOCH, values![epoch]).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::NotLeader),
    }
}
