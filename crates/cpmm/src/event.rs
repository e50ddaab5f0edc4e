//! Event of the exchange: what it writes into the log of every swap.

use solana_pubkey::Pubkey;

use crate::{
    bytes::{DecodeError, Reader},
    units::Amount,
};

/// First eight bytes of the event.
pub const SWAP_EVENT_DISCRIMINATOR: [u8; 8] = [0x40, 0xc6, 0xcd, 0xe8, 0x26, 0x08, 0x71, 0xe2];

/// Length of the event, discriminator included. Builds before the creator fee wrote 89 bytes, without the mints.
pub const SWAP_EVENT_LEN: usize = 170;

const KIND: &str = "swap event";

/// Which amount of a swap is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FixedAmount {
    /// What goes in: `swap_base_input`.
    In,
    /// What comes out: `swap_base_output`.
    Out,
}

/// One swap, as the exchange reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapEvent {
    /// The pool.
    pub pool: Pubkey,
    /// Reserve of the input token before the swap, accrued fees excluded.
    pub reserve_in: Amount,
    /// Reserve of the output token before the swap, accrued fees excluded.
    pub reserve_out: Amount,
    /// What came in, the transfer fee excluded.
    pub in_net: Amount,
    /// What the vault sent, the transfer fee included.
    pub amount_out: Amount,
    /// Withheld by the input mint.
    pub input_transfer_fee: Amount,
    /// Withheld by the output mint.
    pub output_transfer_fee: Amount,
    /// Which amount was given.
    pub fixed: FixedAmount,
    /// Mint that went in.
    pub input_mint: Pubkey,
    /// Mint that came out.
    pub output_mint: Pubkey,
    /// Trade fee, input token.
    pub trade_fee: Amount,
    /// Creator fee.
    pub creator_fee: Amount,
    /// Whether the creator fee was in the input token.
    pub creator_fee_on_input: bool,
}

impl SwapEvent {
    /// Reads the event.
    ///
    /// # Errors
    /// When the bytes are none, or an older build's.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() != SWAP_EVENT_LEN {
            let found = bytes.len();
            return Err(DecodeError::Length { kind: KIND, found });
        }
        let mut reader = Reader::new(bytes);
        if reader.array() != SWAP_EVENT_DISCRIMINATOR {
            return Err(DecodeError::Discriminator { kind: KIND });
        }
        let amount = |reader: &mut Reader<'_>| Amount::new(reader.u64());
        Ok(Self {
            pool: reader.pubkey(),
            reserve_in: amount(&mut reader),
            reserve_out: amount(&mut reader),
            in_net: amount(&mut reader),
            amount_out: amount(&mut reader),
            input_transfer_fee: amount(&mut reader),
            output_transfer_fee: amount(&mut reader),
            fixed: if flag(&mut reader, "base_input")? {
                FixedAmount::In
            } else {
                FixedAmount::Out
            },
            input_mint: reader.pubkey(),
            output_mint: reader.pubkey(),
            trade_fee: amount(&mut reader),
            creator_fee: amount(&mut reader),
            creator_fee_on_input: flag(&mut reader, "creator_fee_on_input")?,
        })
    }
}

fn flag(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match reader.u8() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Field { kind: KIND, field }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Writer;

    fn encoded(base_input: u8) -> Vec<u8> {
        let amounts = |writer: Writer, amounts: &[u64]| {
            amounts
                .iter()
                .fold(writer, |writer, amount| writer.u64(*amount))
        };
        let writer = Writer::default()
            .bytes(&SWAP_EVENT_DISCRIMINATOR)
            .pubkey(&Pubkey::from([1; 32]));
        let writer = amounts(writer, &[10, 20, 3, 4, 5, 6])
            .u8(base_input)
            .pubkey(&Pubkey::from([2; 32]))
            .pubkey(&Pubkey::from([3; 32]));
        amounts(writer, &[7, 8]).u8(1).finish()
    }

    #[test]
    fn every_field_is_read_from_its_place() {
        let event = SwapEvent::decode(&encoded(1)).expect("an event");
        let amounts = [
            event.reserve_in,
            event.reserve_out,
            event.in_net,
            event.amount_out,
            event.input_transfer_fee,
            event.output_transfer_fee,
            event.trade_fee,
            event.creator_fee,
        ];
        assert_eq!(amounts, [10, 20, 3, 4, 5, 6, 7, 8].map(Amount::new));
        assert_eq!(event.fixed, FixedAmount::In);
        assert!(event.creator_fee_on_input);
        assert_eq!(
            [event.pool, event.input_mint, event.output_mint],
            [1, 2, 3].map(|byte| Pubkey::from([byte; 32]))
        );
    }

    #[test]
    fn other_bytes_are_no_event() {
        let event = encoded(0);
        assert!(SwapEvent::decode(&event).is_ok_and(|event| event.fixed == FixedAmount::Out));
        // What builds before the creator fee wrote.
        assert!(SwapEvent::decode(&event[..89]).is_err());
        assert!(SwapEvent::decode(&encoded(2)).is_err());
        let mut other = event;
        other[0] ^= 1;
        assert!(SwapEvent::decode(&other).is_err());
    }
}
