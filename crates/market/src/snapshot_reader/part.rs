//! Part of the list of pools, for providers that refuse the whole of it (pure).

use serde_json::{Value, json};

/// Offset of the address of the first vault in a pool, bytes: behind discriminator, configuration and creator.
const VAULT_0_OFFSET: usize = 72;

/// Most bytes of that address that a part is cut by: a part of a 65,536th is a handful of pools.
const MAX_DEPTH: usize = 2;

/// The pools whose first vault's address begins with these bytes; without a byte, all pools.
///
/// Filters of nodes compare bytes for equality and nothing else, so that 256 parts are the fewest an address can be cut
/// into, and configurations, of which nearly all pools share one, would cut nothing. The address of a vault is a hash: the
/// parts are of one size, whatever those want who open pools. Together they are the whole list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    prefix: Vec<u8>,
}

impl Part {
    /// Filters of `getProgramAccounts` for it.
    pub(super) fn filters(&self) -> Value {
        let memcmp = |offset: usize, bytes: &[u8]| {
            let bytes = bs58::encode(bytes).into_string();
            json!({ "memcmp": { "offset": offset, "bytes": bytes } })
        };
        let mut filters = vec![
            json!({ "dataSize": cpmm::POOL_STATE_LEN }),
            memcmp(0, &cpmm::POOL_STATE_DISCRIMINATOR),
        ];
        if !self.prefix.is_empty() {
            filters.push(memcmp(VAULT_0_OFFSET, &self.prefix));
        }
        filters.into()
    }

    /// The parts that it consists of; `None` when it is as small as can be.
    pub(super) fn split(&self) -> Option<Vec<Self>> {
        let longer = |byte| {
            let prefix = [&self.prefix[..], &[byte]].concat();
            Self { prefix }
        };
        (self.prefix.len() < MAX_DEPTH).then(|| (0..=u8::MAX).map(longer).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::fixtures::{VAULT_0, key, pool_state};

    use super::*;

    #[test]
    fn the_bytes_compared_are_those_of_the_first_vault() {
        let pool = pool_state(1).encode();
        assert_eq!(pool[VAULT_0_OFFSET..][..32], key(VAULT_0).to_bytes());
    }

    #[test]
    fn parts_are_distinct_and_complete_down_to_the_last_byte() {
        let whole = Part::default();
        assert_eq!(whole.filters().as_array().map(Vec::len), Some(2));
        let parts = whole.split().expect("the whole can be cut");
        assert_eq!(parts.len(), 256);
        let smaller: Vec<Part> = parts.iter().filter_map(Part::split).flatten().collect();
        let prefixes: HashSet<&[u8]> = smaller.iter().map(|part| &part.prefix[..]).collect();
        assert_eq!(prefixes.len(), 65_536);
        assert!(smaller.iter().all(|part| part.split().is_none()));
        let filter = &smaller[0x0102].filters()[2]["memcmp"];
        assert_eq!(filter["offset"], VAULT_0_OFFSET);
        let bytes = filter["bytes"].as_str().expect("base 58");
        assert_eq!(bs58::decode(bytes).into_vec(), Ok(vec![1, 2]));
    }
}
