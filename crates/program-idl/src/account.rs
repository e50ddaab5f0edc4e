//! IDL accounts: where a program's IDL is on the chain, and how it is packed there (pure).
//!
//! There are two ways: the account of the program metadata program that belongs to the program's own authority, and the
//! account that Anchor's command line wrote before there was one. Whoever may upgrade a program writes both.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::{GzDecoder, ZlibDecoder};
use solana_pubkey::{Pubkey, pubkey};
use thiserror::Error;

/// The program that keeps metadata of programs.
pub const METADATA_PROGRAM: Pubkey = pubkey!("ProgM6JCCvbYkfKqJYHePx4xxSUSqJp7rh8Lyv7nk7S");

/// Longest text that is unpacked: the largest IDLs that are published have a few hundred kilobytes, and a packed megabyte
/// could hold a thousand.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The seed of a metadata account with an IDL, filled up to its length.
const METADATA_SEED: [u8; 16] = *b"idl\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The seed of Anchor's account.
const ANCHOR_SEED: &str = "anchor:idl";

/// First bytes of Anchor's account.
const ANCHOR_DISCRIMINATOR: [u8; 8] = [24, 70, 98, 191, 58, 144, 123, 158];

/// Where the length of the packed text stands in Anchor's account: after discriminator and authority.
const ANCHOR_LENGTH_AT: usize = 40;

/// First byte of a metadata account that is written.
const METADATA_DISCRIMINATOR: u8 = 2;

/// Where a metadata account says how its data is written, packed, meant and found, a byte each, and how long it is.
const METADATA_KINDS_AT: usize = 83;

/// Length of the head of a metadata account.
const METADATA_HEAD: usize = 96;

/// Why an account holds no IDL that can be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AccountError {
    /// It belongs to a program that keeps no IDLs.
    #[error("its owner {0} keeps no IDLs of the program")]
    Owner(Pubkey),
    /// It does not begin as such accounts do, or ends too early.
    #[error("it does not have the layout of an IDL account")]
    Layout,
    /// It names a place elsewhere, or another format than JSON.
    #[error("its text is not JSON in the account itself")]
    Elsewhere,
    /// The text cannot be unpacked.
    #[error("its text cannot be unpacked: {0}")]
    Packing(String),
    /// The text is longer than [`MAX_TEXT_BYTES`].
    #[error("its text has more than {MAX_TEXT_BYTES} bytes")]
    TooLong,
}

/// Where a program's IDL may be, the place that counts first.
#[must_use]
pub fn addresses(program: &Pubkey) -> [Pubkey; 2] {
    let seeds = [program.as_ref(), &METADATA_SEED];
    let (metadata, _) = Pubkey::find_program_address(&seeds, &METADATA_PROGRAM);
    let (base, _) = Pubkey::find_program_address(&[], program);
    let anchor = Pubkey::create_with_seed(&base, ANCHOR_SEED, program)
        .expect("the seed is shorter than the longest");
    [metadata, anchor]
}

/// The text of the IDL in an account of one of the [`addresses`] of a program.
///
/// # Errors
/// [`AccountError`].
pub fn text(program: &Pubkey, owner: &Pubkey, data: &[u8]) -> Result<String, AccountError> {
    let bytes = if *owner == METADATA_PROGRAM {
        metadata(data)?
    } else if owner == program {
        anchor(data)?
    } else {
        return Err(AccountError::Owner(*owner));
    };
    String::from_utf8(bytes).map_err(|error| AccountError::Packing(error.to_string()))
}

fn anchor(data: &[u8]) -> Result<Vec<u8>, AccountError> {
    let rest = data
        .strip_prefix(&ANCHOR_DISCRIMINATOR)
        .and_then(|_| data.get(ANCHOR_LENGTH_AT..))
        .ok_or(AccountError::Layout)?;
    let (length, rest) = rest.split_first_chunk().ok_or(AccountError::Layout)?;
    unpacked(ZlibDecoder::new(first(rest, *length)?))
}

fn metadata(data: &[u8]) -> Result<Vec<u8>, AccountError> {
    let head = data.get(METADATA_KINDS_AT..METADATA_HEAD);
    let ([encoding, compression, format, source, a, b, c, d, ..], Some(METADATA_DISCRIMINATOR)) =
        (head.ok_or(AccountError::Layout)?, data.first().copied())
    else {
        return Err(AccountError::Layout);
    };
    const JSON: u8 = 1;
    const DIRECT: u8 = 0;
    if (*format, *source) != (JSON, DIRECT) {
        return Err(AccountError::Elsewhere);
    }
    let rest = data.get(METADATA_HEAD..).ok_or(AccountError::Layout)?;
    let packed = first(rest, [*a, *b, *c, *d])?;
    // Bytes that are no text themselves are kept as one.
    let decoded;
    let packed = match encoding {
        0 | 1 => packed,
        3 => {
            decoded = STANDARD
                .decode(packed)
                .map_err(|error| AccountError::Packing(error.to_string()))?;
            &decoded
        }
        other => {
            return Err(AccountError::Packing(format!("its encoding is {other}")));
        }
    };
    match compression {
        0 => unpacked(packed),
        1 => unpacked(GzDecoder::new(packed)),
        2 => unpacked(ZlibDecoder::new(packed)),
        other => Err(AccountError::Packing(format!("its packing is {other}"))),
    }
}

fn first(rest: &[u8], length: [u8; 4]) -> Result<&[u8], AccountError> {
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| AccountError::Layout)?;
    rest.get(..length).ok_or(AccountError::Layout)
}

/// Reads to the end, or to one byte more than is taken: what is packed may be a thousand times as long.
fn unpacked(reader: impl Read) -> Result<Vec<u8>, AccountError> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
    reader
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| AccountError::Packing(error.to_string()))?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(AccountError::TooLong);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
