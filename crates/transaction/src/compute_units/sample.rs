//! Sample of a swap: what a call of the exchange used, beside what the profile says of the swap in its event.

use base64::{Engine, prelude::BASE64_STANDARD};
use cpmm::{Clock, Direction, PoolSnapshot, SwapEvent, SwapOperands};
use solana_pubkey::Pubkey;

use super::{calibration::Sample, log_walk::ExchangeCall, profile::Profile};

impl ExchangeCall<'_> {
    /// The sample of this call. `find` knows the pools, whose rates and mints the event does not show, and the chain's time.
    /// `None` where the event is not whole, or of an older build, or of a pool that is not known.
    pub fn sample<P: AsRef<PoolSnapshot>>(
        &self,
        profile: &Profile,
        find: impl FnOnce(&Pubkey) -> Option<(P, Clock)>,
    ) -> Option<Sample> {
        let event = BASE64_STANDARD.decode(self.event?).ok()?;
        let event = SwapEvent::decode(&event).ok()?;
        let (snapshot, clock) = find(&event.pool)?;
        let snapshot = snapshot.as_ref();
        let mints = &snapshot.pool.mints;
        let direction = [Direction::ZeroForOne, Direction::OneForZero]
            .into_iter()
            .find(|direction| direction.input(mints) == event.input_mint)?;
        let (shape, modelled) =
            profile.of_swap(snapshot, direction, &SwapOperands::from(&event), &clock);
        Some(Sample {
            pool: event.pool,
            shape,
            modelled,
            used: self.used,
        })
    }
}
