//! Parses responses of `getProgramAccounts` and `getMultipleAccounts` from their bytes (pure).

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use solana_pubkey::Pubkey;

use crate::{account_snapshot::AccountSnapshot, decoded_account::DecodedAccount};

/// Error code of a node that has not reached `minContextSlot`.
const MIN_CONTEXT_SLOT_NOT_REACHED: i64 = -32016;

/// Why there is no snapshot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The node has not reached the slot yet.
    NotReached,
    /// The node said no.
    Refused {
        /// Error code of JSON-RPC, or the provider's own.
        code: i64,
        /// The node's text.
        message: String,
    },
    /// The body is not a response of the method.
    Malformed(String),
}

#[derive(Deserialize)]
struct Response<V> {
    result: Option<Found<V>>,
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Found<V> {
    context: Context,
    value: V,
}

#[derive(Deserialize)]
struct Context {
    slot: u64,
}

#[derive(Deserialize)]
struct Error {
    code: i64,
    message: String,
}

#[derive(Deserialize)]
struct ProgramAccount<'a> {
    #[serde(borrow)]
    pubkey: Cow<'a, str>,
    #[serde(borrow)]
    account: Account<'a>,
}

#[derive(Deserialize)]
struct Account<'a> {
    lamports: u64,
    #[serde(borrow)]
    owner: Cow<'a, str>,
    /// Text and the name of its encoding.
    #[serde(borrow)]
    data: (Cow<'a, str>, Cow<'a, str>),
}

/// Reads a response of `getProgramAccounts`, where the exchange's program is `exchange`.
pub(super) fn program_accounts(body: &[u8], exchange: &Pubkey) -> Result<AccountSnapshot, Fault> {
    let result: Found<Vec<ProgramAccount<'_>>> = result(body)?;
    let mut data = Vec::new();
    let accounts = result.value.iter().map(|found| {
        let pubkey = key(&found.pubkey)?;
        Ok((
            pubkey,
            decoded(exchange, &pubkey, &found.account, &mut data)?,
        ))
    });
    Ok(AccountSnapshot {
        context_slot: result.context.slot,
        accounts: accounts.collect::<Result<_, Fault>>()?,
    })
}

/// Reads a response of `getMultipleAccounts` about `keys`.
pub(super) fn multiple_accounts(
    body: &[u8],
    keys: &[Pubkey],
    exchange: &Pubkey,
) -> Result<AccountSnapshot, Fault> {
    let result: Found<Vec<Option<Account<'_>>>> = result(body)?;
    if result.value.len() != keys.len() {
        return Err(Fault::Malformed(format!(
            "{} accounts for {} keys",
            result.value.len(),
            keys.len()
        )));
    }
    let mut data = Vec::new();
    let accounts = keys.iter().zip(&result.value).map(|(pubkey, account)| {
        let account = match account {
            None => DecodedAccount::Absent,
            Some(account) => decoded(exchange, pubkey, account, &mut data)?,
        };
        Ok((*pubkey, account))
    });
    Ok(AccountSnapshot {
        context_slot: result.context.slot,
        accounts: accounts.collect::<Result<_, Fault>>()?,
    })
}

fn result<'a, V: Deserialize<'a>>(body: &'a [u8]) -> Result<Found<V>, Fault> {
    let response: Response<V> = serde_json::from_slice(body)
        .map_err(|error| Fault::Malformed(format!("another shape of answer: {error}")))?;
    match (response.result, response.error) {
        (Some(result), None) => Ok(result),
        (_, Some(error)) if error.code == MIN_CONTEXT_SLOT_NOT_REACHED => Err(Fault::NotReached),
        (_, Some(Error { code, message })) => Err(Fault::Refused { code, message }),
        (None, None) => Err(Fault::Malformed("neither a result nor an error".to_owned())),
    }
}

/// Decodes an account. `data` is the buffer for its bytes, kept from call to call.
fn decoded(
    exchange: &Pubkey,
    pubkey: &Pubkey,
    account: &Account<'_>,
    data: &mut Vec<u8>,
) -> Result<DecodedAccount, Fault> {
    let (text, encoding) = &account.data;
    data.clear();
    if encoding != "base64" || BASE64_STANDARD.decode_vec(text.as_bytes(), data).is_err() {
        return Err(Fault::Malformed(format!(
            "data of {pubkey} that is not base64"
        )));
    }
    let owner = key(&account.owner)?;
    Ok(DecodedAccount::decode(
        exchange,
        pubkey,
        &owner,
        account.lamports,
        data,
    ))
}

fn key(text: &str) -> Result<Pubkey, Fault> {
    text.parse()
        .map_err(|_| Fault::Malformed(format!("the address {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCHANGE: &Pubkey = &cpmm::ids::PROGRAM_ID;

    #[test]
    fn a_missing_account_is_absent_and_the_context_is_kept() {
        let key = Pubkey::from([1; 32]);
        let body = br#"{"jsonrpc":"2.0","result":{"context":{"slot":7},"value":[null]},"id":1}"#;
        let snapshot = AccountSnapshot {
            context_slot: 7,
            accounts: vec![(key, DecodedAccount::Absent)],
        };
        assert_eq!(multiple_accounts(body, &[key], EXCHANGE), Ok(snapshot));
        assert!(matches!(
            multiple_accounts(body, &[key, key], EXCHANGE),
            Err(Fault::Malformed(_))
        ));
    }

    #[test]
    fn a_listed_account_is_decoded_even_when_its_text_is_escaped() {
        let body = br#"{"result":{"context":{"slot":9},"value":[{"pubkey":"11111111111111111111111111111111",
            "account":{"lamports":1,"owner":"CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C",
            "data":["\/\/\/\/","base64"],"executable":false,"rentEpoch":0,"space":3}}]}}"#;
        let snapshot = AccountSnapshot {
            context_slot: 9,
            accounts: vec![(Pubkey::default(), DecodedAccount::Other)],
        };
        assert_eq!(program_accounts(body, EXCHANGE), Ok(snapshot));
    }

    #[test]
    fn errors_are_distinguished() {
        let error = |code: i64| format!(r#"{{"error":{{"code":{code},"message":"no"}},"id":1}}"#);
        assert_eq!(
            program_accounts(error(-32016).as_bytes(), EXCHANGE),
            Err(Fault::NotReached)
        );
        assert_eq!(
            program_accounts(error(-32602).as_bytes(), EXCHANGE),
            Err(Fault::Refused {
                code: -32602,
                message: "no".to_owned()
            })
        );
        assert!(matches!(
            program_accounts(b"{}", EXCHANGE),
            Err(Fault::Malformed(_))
        ));
        assert!(matches!(
            program_accounts(b"<html>", EXCHANGE),
            Err(Fault::Malformed(_))
        ));
    }
}
