//! Set of addresses in a filter: a list, or a cuckoo filter that stands for a long one.

use std::collections::HashSet;

use yellowstone_grpc_proto::{
    cuckoo::CuckooFilter,
    geyser::{CuckooFilter as WireCuckooFilter, CuckooHashAlgorithm},
};

use super::FilterError;
use crate::{config::AddressList, message::Address};

/// Slots of a bucket in the only layout that has an implementation.
const ENTRIES_PER_BUCKET: u32 = 4;

/// Bits of a fingerprint in that layout.
const FINGERPRINT_BITS: u32 = 16;

/// Bytes of a bucket in that layout.
const BUCKET_BYTES: usize = 8;

/// The addresses that a filter names, in one list and one cuckoo filter joined by OR.
#[derive(Debug, Default)]
pub(super) struct AddressSet {
    listed: HashSet<Address>,
    cuckoo: Option<CuckooFilter<Address>>,
}

impl AddressSet {
    /// Parses a list of base58 addresses.
    pub fn listed(
        texts: &[String],
        max: usize,
        rejected: &AddressList,
    ) -> Result<Self, FilterError> {
        if texts.len() > max {
            return Err(FilterError::Addresses(max));
        }
        let listed: HashSet<Address> = texts
            .iter()
            .map(|text| base58(text).ok_or_else(|| FilterError::Address(text.clone())))
            .collect::<Result<_, _>>()?;
        if let Some(address) = rejected.0.iter().find(|one| listed.contains(*one)) {
            return Err(FilterError::Rejected(bs58::encode(address).into_string()));
        }
        Ok(Self {
            listed,
            cuckoo: None,
        })
    }

    /// Adds the addresses that a cuckoo filter stands for, and the few others that it cannot distinguish from them.
    pub fn or_cuckoo(
        mut self,
        wire: Option<&WireCuckooFilter>,
        max_bytes: usize,
    ) -> Result<Self, FilterError> {
        let Some(wire) = wire else {
            return Ok(self);
        };
        let bytes = wire.data.len();
        if bytes > max_bytes {
            return Err(FilterError::CuckooSize {
                bytes,
                max: max_bytes,
            });
        }
        if wire.hash_algorithm != i32::from(CuckooHashAlgorithm::SipHash) {
            return Err(FilterError::Cuckoo("unknown hash algorithm"));
        }
        if (wire.entries_per_bucket, wire.fingerprint_bits)
            != (ENTRIES_PER_BUCKET, FINGERPRINT_BITS)
        {
            return Err(FilterError::Cuckoo(
                "only 4 entries of 16 bits in a bucket are supported",
            ));
        }
        let buckets = wire.bucket_count as usize;
        if !buckets.is_power_of_two() || buckets.checked_mul(BUCKET_BYTES) != Some(bytes) {
            return Err(FilterError::Cuckoo(
                "the data is not what bucket_count says",
            ));
        }
        self.cuckoo = Some(CuckooFilter::from(wire));
        Ok(self)
    }

    /// Whether neither a list nor a cuckoo filter was sent: the field does not restrict.
    pub fn is_absent(&self) -> bool {
        self.listed.is_empty() && self.cuckoo.is_none()
    }

    pub fn contains(&self, address: &Address) -> bool {
        self.listed.contains(address)
            || self
                .cuckoo
                .as_ref()
                .is_some_and(|cuckoo| cuckoo.contains(address))
    }

    /// Whether the field lets an address pass: it does not restrict, or names it.
    pub fn admits(&self, address: &Address) -> bool {
        self.is_absent() || self.contains(address)
    }

    /// The listed addresses.
    pub fn iter_listed(&self) -> impl Iterator<Item = &Address> {
        self.listed.iter()
    }
}

/// Decodes a text of exactly that many bytes.
pub(super) fn base58<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    match bs58::decode(text).onto(&mut bytes) {
        Ok(length) if length == BYTES => Some(bytes),
        _ => None,
    }
}
