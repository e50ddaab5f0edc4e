//! Answers of `getProgramAccounts` and `getMultipleAccounts`, read from their bytes.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use solana_pubkey::Pubkey;

use crate::{content::Content, ledger::Answer};

/// Error code of a node that has not reached `minContextSlot`.
const MIN_CONTEXT_SLOT_NOT_REACHED: i64 = -32016;

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The node has not reached the slot yet.
    NotReached,
    /// The node said no.
    Refused(String),
    /// The body is not an answer of the method.
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
struct Listed<'a> {
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

/// Reads an answer of `getProgramAccounts`.
pub(super) fn listed(body: &[u8]) -> Result<Answer, Fault> {
    let result: Found<Vec<Listed<'_>>> = result(body)?;
    let mut data = Vec::new();
    let accounts = result.value.iter().map(|listed| {
        let pubkey = key(&listed.pubkey)?;
        Ok((pubkey, content(&pubkey, &listed.account, &mut data)?))
    });
    Ok(Answer {
        context_slot: result.context.slot,
        accounts: accounts.collect::<Result<_, Fault>>()?,
    })
}

/// Reads an answer of `getMultipleAccounts` about `keys`.
pub(super) fn asked(body: &[u8], keys: &[Pubkey]) -> Result<Answer, Fault> {
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
        let content = match account {
            None => Content::Absent,
            Some(account) => content(pubkey, account, &mut data)?,
        };
        Ok((*pubkey, content))
    });
    Ok(Answer {
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
        (_, Some(error)) => Err(Fault::Refused(format!(
            "{} ({})",
            error.message, error.code
        ))),
        (None, None) => Err(Fault::Malformed("neither a result nor an error".to_owned())),
    }
}

/// Decodes an account. `data` is the buffer for its bytes, kept from call to call.
fn content(pubkey: &Pubkey, account: &Account<'_>, data: &mut Vec<u8>) -> Result<Content, Fault> {
    let (text, encoding) = &account.data;
    data.clear();
    if encoding != "base64" || BASE64_STANDARD.decode_vec(text.as_bytes(), data).is_err() {
        return Err(Fault::Malformed(format!(
            "data of {pubkey} that is not base64"
        )));
    }
    let owner = key(&account.owner)?;
    Ok(Content::decode(pubkey, &owner, account.lamports, data))
}

fn key(text: &str) -> Result<Pubkey, Fault> {
    text.parse()
        .map_err(|_| Fault::Malformed(format!("the address {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_account_is_absent_and_the_context_is_kept() {
        let key = Pubkey::from([1; 32]);
        let body = br#"{"jsonrpc":"2.0","result":{"context":{"slot":7},"value":[null]},"id":1}"#;
        let answer = Answer {
            context_slot: 7,
            accounts: vec![(key, Content::Absent)],
        };
        assert_eq!(asked(body, &[key]), Ok(answer));
        assert!(matches!(asked(body, &[key, key]), Err(Fault::Malformed(_))));
    }

    #[test]
    fn a_listed_account_is_decoded_even_when_its_text_is_escaped() {
        let body = br#"{"result":{"context":{"slot":9},"value":[{"pubkey":"11111111111111111111111111111111",
            "account":{"lamports":1,"owner":"CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C",
            "data":["\/\/\/\/","base64"],"executable":false,"rentEpoch":0,"space":3}}]}}"#;
        let answer = Answer {
            context_slot: 9,
            accounts: vec![(Pubkey::default(), Content::Other)],
        };
        assert_eq!(listed(body), Ok(answer));
    }

    #[test]
    fn errors_are_told_apart() {
        let error = |code: i64| format!(r#"{{"error":{{"code":{code},"message":"no"}},"id":1}}"#);
        assert_eq!(listed(error(-32016).as_bytes()), Err(Fault::NotReached));
        assert_eq!(
            listed(error(-32602).as_bytes()),
            Err(Fault::Refused("no (-32602)".to_owned()))
        );
        assert!(matches!(listed(b"{}"), Err(Fault::Malformed(_))));
        assert!(matches!(listed(b"<html>"), Err(Fault::Malformed(_))));
    }
}
