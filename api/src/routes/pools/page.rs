//! Page: the next few addresses after a cursor, of any number in no order (pure).

use std::collections::BinaryHeap;

use solana_pubkey::Pubkey;

/// Addresses in their order, and whether there are more.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// At most as many as were asked for.
    pub addresses: Vec<Pubkey>,
    /// Whether some come after them.
    pub has_more: bool,
}

/// The `limit` smallest addresses after `cursor`. Of hundreds of thousands only these are kept while the rest passes by.
#[must_use]
pub fn page(
    addresses: impl Iterator<Item = Pubkey>,
    cursor: Option<&Pubkey>,
    limit: usize,
) -> Page {
    let mut smallest = BinaryHeap::with_capacity(limit.saturating_add(2));
    let after = addresses.filter(|address| cursor.is_none_or(|cursor| address > cursor));
    for address in after {
        smallest.push(address);
        // One more than is shown says that there are more.
        if smallest.len() > limit.saturating_add(1) {
            smallest.pop();
        }
    }
    let mut addresses = smallest.into_sorted_vec();
    let has_more = addresses.len() > limit;
    addresses.truncate(limit);
    Page {
        addresses,
        has_more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lead_through_all_addresses_once() {
        let all: Vec<_> = (0..10_u8).rev().map(|n| Pubkey::from([n; 32])).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let Page {
                addresses,
                has_more,
            } = page(all.iter().copied(), cursor.as_ref(), 3);
            cursor = addresses.last().copied();
            seen.extend(addresses);
            if !has_more {
                break;
            }
        }
        let mut sorted = all;
        sorted.sort();
        assert_eq!(seen, sorted);
    }

    #[test]
    fn a_page_that_is_just_full_is_the_last() {
        let all = [Pubkey::from([1; 32]), Pubkey::from([2; 32])];
        assert!(!page(all.into_iter(), None, 2).has_more);
        assert!(page(all.into_iter(), None, 1).has_more);
        assert!(page(all.into_iter(), Some(&all[1]), 1).addresses.is_empty());
    }
}
