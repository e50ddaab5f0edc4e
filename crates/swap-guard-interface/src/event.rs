//! Events of the guard: `Swapped`, which it emits after a swap, and `GuardedSwap`, which earlier versions did.

use solana_pubkey::Pubkey;

/// First eight bytes of a `Swapped`.
pub const SWAPPED_DISCRIMINATOR: [u8; 8] = [0xd9, 0x34, 0x34, 0x53, 0x93, 0x87, 0x60, 0x6d];

/// Length of a `Swapped` with its discriminator, bytes.
pub const SWAPPED_LEN: usize = 88;

/// A swap that went through the guard. Amounts are smallest units. What else there is to know of it (the mints, the
/// bounds, the receiver) stands in the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swapped {
    /// Who signed.
    pub user: Pubkey,
    /// Pool that paid the output: of two hops, the second.
    pub pool: Pubkey,
    /// What the input account lost, measured.
    pub spent: u64,
    /// What the output account gained, measured.
    pub received: u64,
}

impl Swapped {
    /// Decodes the bytes of a `Program data:` line that the guard wrote. `None` for another event.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let data: &[u8; SWAPPED_LEN] = data.try_into().ok()?;
        let (discriminator, mut rest) = data.split_first_chunk::<8>()?;
        if *discriminator != SWAPPED_DISCRIMINATOR {
            return None;
        }
        Some(Self {
            user: Pubkey::from(take::<32>(&mut rest)?),
            pool: Pubkey::from(take::<32>(&mut rest)?),
            spent: u64::from_le_bytes(take(&mut rest)?),
            received: u64::from_le_bytes(take(&mut rest)?),
        })
    }
}

/// First eight bytes of a `GuardedSwap`.
pub const GUARDED_SWAP_DISCRIMINATOR: [u8; 8] = [0x58, 0x36, 0x21, 0xa8, 0xc8, 0xa2, 0xc7, 0xe8];

/// Length of a `GuardedSwap` with its discriminator, bytes.
pub const GUARDED_SWAP_LEN: usize = 168;

/// A swap that went through an earlier version of the guard. Amounts are smallest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedSwap {
    /// Who signed.
    pub user: Pubkey,
    /// Pool that was traded with.
    pub pool: Pubkey,
    /// Mint that went in.
    pub input_mint: Pubkey,
    /// Mint that came out.
    pub output_mint: Pubkey,
    /// What the caller offered.
    pub amount_in: u64,
    /// The least the caller accepted.
    pub minimum_out: u64,
    /// What the output account gained, measured.
    pub received: u64,
    /// Slot of the swap.
    pub slot: u64,
}

impl GuardedSwap {
    /// Decodes the bytes of a `Program data:` line that the guard wrote. `None` for another event.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let data: &[u8; GUARDED_SWAP_LEN] = data.try_into().ok()?;
        let (discriminator, mut rest) = data.split_first_chunk::<8>()?;
        if *discriminator != GUARDED_SWAP_DISCRIMINATOR {
            return None;
        }
        Some(Self {
            user: Pubkey::from(take::<32>(&mut rest)?),
            pool: Pubkey::from(take::<32>(&mut rest)?),
            input_mint: Pubkey::from(take::<32>(&mut rest)?),
            output_mint: Pubkey::from(take::<32>(&mut rest)?),
            amount_in: u64::from_le_bytes(take(&mut rest)?),
            minimum_out: u64::from_le_bytes(take(&mut rest)?),
            received: u64::from_le_bytes(take(&mut rest)?),
            slot: u64::from_le_bytes(take(&mut rest)?),
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_discriminators_are_the_hashes_of_the_event_names() {
        let hash = Sha256::digest(b"event:GuardedSwap");
        assert_eq!(GUARDED_SWAP_DISCRIMINATOR, hash[..8]);
        let hash = Sha256::digest(b"event:Swapped");
        assert_eq!(SWAPPED_DISCRIMINATOR, hash[..8]);
    }

    #[test]
    fn fields_of_a_swap_are_read_in_order() {
        let mut data = SWAPPED_DISCRIMINATOR.to_vec();
        for n in 1..=2u8 {
            data.extend_from_slice(&[n; 32]);
        }
        for n in 3..=4u64 {
            data.extend_from_slice(&n.to_le_bytes());
        }
        let expected = Swapped {
            user: Pubkey::from([1; 32]),
            pool: Pubkey::from([2; 32]),
            spent: 3,
            received: 4,
        };
        assert_eq!(Swapped::decode(&data), Some(expected));
        assert_eq!(GuardedSwap::decode(&data), None);
    }

    #[test]
    fn fields_are_read_in_order() {
        let mut data = GUARDED_SWAP_DISCRIMINATOR.to_vec();
        for n in 1..=4u8 {
            data.extend_from_slice(&[n; 32]);
        }
        for n in 5..=8u64 {
            data.extend_from_slice(&n.to_le_bytes());
        }
        let event = GuardedSwap::decode(&data).expect("well formed");
        assert_eq!(event.output_mint, Pubkey::from([4; 32]));
        let numbers = (
            event.amount_in,
            event.minimum_out,
            event.received,
            event.slot,
        );
        assert_eq!(numbers, (5, 6, 7, 8));
    }

    #[test]
    fn other_bytes_are_no_event() {
        assert_eq!(GuardedSwap::decode(&[]), None);
        assert_eq!(GuardedSwap::decode(&[1; GUARDED_SWAP_LEN]), None);
        assert_eq!(Swapped::decode(&[]), None);
        assert_eq!(Swapped::decode(&[1; SWAPPED_LEN]), None);
    }
}
