//! Settings of the webhook routes, from the configuration.

use std::time::Duration;

use sluice_config::WebhooksConfig;
use sluice_store::FilterLimits;
use sluice_webhook_client::Reach;

use crate::auth::RateLimit;

/// Bytes that an address takes in a body: 44 characters of base58, quotes, a comma, and a line's indentation.
const BYTES_PER_ADDRESS: usize = 80;

/// Bytes for everything else in a body.
const OTHER_BYTES: usize = 64 * 1024;

/// What the configuration decides about webhooks.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where callback URLs may point.
    pub reach: Reach,
    /// Most webhooks of one API key.
    pub max_webhooks: u32,
    /// Most addresses of one webhook.
    pub addresses: FilterLimits,
    /// The deadline of an attempt.
    pub delivery_timeout: Duration,
    /// How long the secret before signs as well after a rotation.
    pub secret_overlap: Duration,
    /// How often one caller may have tests sent.
    pub tests: RateLimit,
}

impl Settings {
    /// Longest body with filters, bytes.
    #[must_use]
    pub const fn max_body_bytes(&self) -> usize {
        self.addresses
            .accounts
            .saturating_add(self.addresses.programs)
            .saturating_add(self.addresses.token_owners)
            .saturating_mul(BYTES_PER_ADDRESS)
            .saturating_add(OTHER_BYTES)
    }
}

impl From<&WebhooksConfig> for Settings {
    fn from(config: &WebhooksConfig) -> Self {
        Self {
            reach: if config.allow_http_loopback {
                Reach::PublicAndLoopback
            } else {
                Reach::Public
            },
            max_webhooks: config.max_per_key,
            addresses: FilterLimits {
                accounts: config.max_accounts,
                programs: config.max_programs,
                // A wallet is one address among others: an integrator that watches its users' has as many of either kind.
                token_owners: config.max_accounts,
            },
            delivery_timeout: config.delivery_timeout(),
            secret_overlap: config.secret_overlap(),
            tests: RateLimit {
                per_minute: config.tests_per_minute,
                burst: config.tests_per_minute,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use solana_pubkey::Pubkey;

    use super::*;

    #[test]
    fn as_many_addresses_as_allowed_fit_in_a_body_however_it_is_written() {
        let settings = Settings::from(&WebhooksConfig::default());
        assert_eq!(settings.addresses.accounts, 100_000);
        let addresses = |count| vec![Pubkey::new_from_array([255; 32]).to_string(); count];
        let body = json!({
            "webhook": { "filters": {
                "accounts": addresses(settings.addresses.accounts),
                "programs": addresses(settings.addresses.programs),
                "tokenOwners": addresses(settings.addresses.token_owners),
            } },
        });
        let text = serde_json::to_string_pretty(&body).expect("JSON");
        assert!(text.len() <= settings.max_body_bytes(), "{}", text.len());
    }
}
