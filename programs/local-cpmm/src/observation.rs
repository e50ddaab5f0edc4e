//! Price oracle of a pool: a ring of cumulative prices, written at every swap.

use crate::{
    error::ExchangeError,
    state::{Discriminated, Key},
};
use bytemuck::{Pod, Zeroable};

/// Entries in the ring.
pub const ENTRIES: usize = 100;
/// Seconds covered by one entry.
const ENTRY_SECONDS: u64 = 15;

/// One entry. Prices are Q32.32 in the low 64 bits, the rest is room for accumulation.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub struct Observation {
    pub block_timestamp: u64,
    pub cumulative_prices_x32: [u128; 2],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub struct ObservationState {
    pub initialized: u8,
    /// The most recent entry.
    pub index: u16,
    pub pool_id: Key,
    pub entries: [Observation; ENTRIES],
    /// Unix seconds; zero in accounts older than the field.
    pub last_update_timestamp: u64,
    pub padding: [u64; 3],
}

impl Discriminated for ObservationState {
    const DISCRIMINATOR: [u8; 8] = [0x7a, 0xae, 0xc5, 0x35, 0x81, 0x09, 0xa5, 0x84];
    const LEN: usize = 4075;
}

const _: () = assert!(8 + size_of::<ObservationState>() == ObservationState::LEN);

impl ObservationState {
    /// Accumulates the prices that held since the last update.
    ///
    /// The first update only takes the time; a second one within the same second changes nothing. Within an entry's
    /// 15 seconds the entry is updated in place: the published description leaves this choice open, and nothing here
    /// reads the prices back.
    ///
    /// # Errors
    /// `MathOverflow` when a price times the seconds does not fit; the accumulation itself wraps.
    pub fn update(&mut self, now: u64, prices_x32: [u128; 2]) -> Result<(), ExchangeError> {
        let mut entries = EntryRing(&mut self.entries);
        let index = self.index;
        let mut entry = entries.get(index)?;
        if self.initialized == 0 {
            self.initialized = 1;
            entry.block_timestamp = now;
            entry.cumulative_prices_x32 = [0; 2];
            self.last_update_timestamp = now;
            return entries.set(index, entry);
        }
        let last_update = match self.last_update_timestamp {
            0 => entry.block_timestamp,
            timestamp => timestamp,
        };
        let seconds = u128::from(now.saturating_sub(last_update));
        if seconds == 0 {
            return Ok(());
        }
        let cumulative = entry.cumulative_prices_x32;
        let accumulate = |i: usize| {
            prices_x32[i]
                .checked_mul(seconds)
                .map(|product| cumulative[i].wrapping_add(product))
                .ok_or(ExchangeError::MathOverflow)
        };
        entry.cumulative_prices_x32 = [accumulate(0)?, accumulate(1)?];
        self.last_update_timestamp = now;
        if now.saturating_sub(entry.block_timestamp) < ENTRY_SECONDS {
            return entries.set(index, entry);
        }
        entry.block_timestamp = now;
        let next = EntryRing::after(index);
        self.index = next;
        entries.set(next, entry)
    }
}

/// The ring's entries, addressed by indexes that come from account data.
struct EntryRing<'a>(&'a mut [Observation; ENTRIES]);

impl EntryRing<'_> {
    fn get(&self, index: u16) -> Result<Observation, ExchangeError> {
        let entry = self.0.get(usize::from(index));
        entry
            .copied()
            .ok_or(ExchangeError::AccountDidNotDeserialize)
    }

    fn set(&mut self, index: u16, entry: Observation) -> Result<(), ExchangeError> {
        let slot = self.0.get_mut(usize::from(index));
        *slot.ok_or(ExchangeError::AccountDidNotDeserialize)? = entry;
        Ok(())
    }

    const fn after(index: u16) -> u16 {
        let next = index.wrapping_add(1);
        if next as usize >= ENTRIES { 0 } else { next }
    }
}
