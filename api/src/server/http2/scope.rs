//! Scope of a connection: what routes keep for as long as it lasts, for the requests that share it.

use std::sync::Arc;

use axum::http::Extensions;
use parking_lot::Mutex;

/// What is kept for one connection, by its type: an extension of each of its requests. Clones keep the same.
#[derive(Clone, Default)]
pub struct ConnectionScope(Arc<Mutex<Extensions>>);

impl ConnectionScope {
    /// What is kept of this type, which is made when it is first asked for.
    pub fn kept<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        self.0.lock().get_or_insert_default::<T>().clone()
    }
}
