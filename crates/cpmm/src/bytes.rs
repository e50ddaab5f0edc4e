//! Cursors that read and write little-endian fields in order.

use solana_pubkey::Pubkey;
use thiserror::Error;

/// Why account bytes were not what they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Too few bytes, or a length that no account of this kind has.
    #[error("account is {found} bytes long, which no {kind} is")]
    Length {
        /// What was decoded.
        kind: &'static str,
        /// Bytes given.
        found: usize,
    },
    /// The first eight bytes belong to another kind of account.
    #[error("account does not start with the discriminator of {kind}")]
    Discriminator {
        /// What was decoded.
        kind: &'static str,
    },
    /// A field holds a value that its type does not have.
    #[error("{kind}: field {field} holds a value outside its range")]
    Field {
        /// What was decoded.
        kind: &'static str,
        /// Offending field.
        field: &'static str,
    },
}

/// Reads fields one after the other. A read past the end yields zeros and is reported once, by
/// [`Reader::finish`], which keeps the layouts readable as plain lists of fields.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    overrun: bool,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            overrun: false,
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                *head
            }
            None => {
                self.overrun = true;
                [0; N]
            }
        }
    }

    pub(crate) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn pubkey(&mut self) -> Pubkey {
        Pubkey::from(self.array::<32>())
    }

    pub(crate) fn skip<const N: usize>(&mut self) {
        let _ = self.array::<N>();
    }

    /// `true` when every read was inside the bytes.
    pub(crate) const fn finish(self) -> bool {
        !self.overrun
    }
}

/// Appends fields one after the other.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn pubkey(self, value: &Pubkey) -> Self {
        self.bytes(value.as_ref())
    }

    /// Zeros up to `len` bytes in all; does nothing when there are that many already.
    pub(crate) fn pad_to(mut self, len: usize) -> Self {
        if self.0.len() < len {
            self.0.resize(len, 0);
        }
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}
