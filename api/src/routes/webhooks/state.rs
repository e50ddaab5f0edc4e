//! State of the webhook routes: the store, their settings, the client of tests, the open relay streams.

use std::sync::Arc;

use service_kit::{CancellationToken, Clock};
use sluice_store::{Access, Store, Webhook};
use sluice_webhook_client::Client;

use super::{
    problem::{found, parse_id},
    relay_streams::RelayStreams,
    settings::Settings,
};
use crate::{auth::CallerLimiter, error::ApiError};

/// Shared by the handlers of the webhook routes.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) settings: Settings,
    pub(super) client: Client,
    pub(super) relay_streams: RelayStreams,
    pub(super) tests: Arc<CallerLimiter>,
    pub(super) clock: Clock,
    pub(super) shutdown: CancellationToken,
}

impl State {
    /// The webhook of this id that the caller may see, or [`ApiError::NotFound`].
    pub(super) async fn webhook(&self, access: &Access, id: &str) -> Result<Webhook, ApiError> {
        found(self.store.webhook(access, &parse_id(id)?).await, id)
    }
}
