//! Deployment slot: in which slot the exchange's code was deployed last, of its program data account.

use solana_account_decoder_client_types::{UiAccountEncoding, UiDataSliceConfig};
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::Pubkey;
use solana_rpc_client_api::config::RpcAccountInfoConfig;

use super::{
    account::held,
    call::{Node, malformed},
};
use crate::error::ApiError;

/// First four bytes of a program data account.
const PROGRAM_DATA: [u8; 4] = [3, 0, 0, 0];

/// The kind, and the slot after it; the code comes later.
const HEAD: usize = 12;

/// The slot in a program data account; `None` where it is none.
#[must_use]
pub fn deployment_slot(data: &[u8]) -> Option<u64> {
    let (kind, rest) = data.split_first_chunk::<4>()?;
    let slot = rest.first_chunk::<8>()?;
    (*kind == PROGRAM_DATA).then(|| u64::from_le_bytes(*slot))
}

/// Reads it of the account at this address. A program that cannot be deployed anew has no such account, and was deployed in slot 0 once and for all.
pub(super) async fn read(program_data: &Pubkey, node: &Node) -> Result<u64, ApiError> {
    let config = RpcAccountInfoConfig {
        encoding: Some(UiAccountEncoding::Base64),
        data_slice: Some(UiDataSliceConfig {
            offset: 0,
            length: HEAD,
        }),
        commitment: Some(CommitmentConfig::confirmed()),
        ..RpcAccountInfoConfig::default()
    };
    let keys = [*program_data];
    let call = node.call("getMultipleAccounts", async |client| {
        client
            .get_multiple_ui_accounts_with_config(&keys, config)
            .await
    });
    let found = call.await?.value.pop();
    match found {
        Some(None) => Ok(0),
        Some(Some(account)) => held(&account)
            .and_then(|account| deployment_slot(&account.data))
            .ok_or_else(|| malformed("an unreadable program data account")),
        None => Err(malformed("another number of accounts than asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_stands_after_the_kind() {
        let data = [3, 0, 0, 0, 7, 1, 0, 0, 0, 0, 0, 0, 1, 9, 9];
        assert_eq!(deployment_slot(&data), Some(263));
        assert_eq!(deployment_slot(&data[..11]), None);
        // A program account names its data instead.
        assert_eq!(deployment_slot(&[2; 36]), None);
    }
}
