//! Event `GuardedSwap`, which the guard emits after a swap.

use solana_pubkey::Pubkey;

/// First eight bytes of a `GuardedSwap`.
pub const GUARDED_SWAP_DISCRIMINATOR: [u8; 8] = [0x58, 0x36, 0x21, 0xa8, 0xc8, 0xa2, 0xc7, 0xe8];

/// Length of a `GuardedSwap` with its discriminator, bytes.
pub const GUARDED_SWAP_LEN: usize = 168;

/// A swap that went through the guard. Amounts are smallest units.
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
    fn the_discriminator_is_the_hash_of_the_event_name() {
        let hash = Sha256::digest(b"event:GuardedSwap");
        assert_eq!(GUARDED_SWAP_DISCRIMINATOR, hash[..8]);
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
    }
}
