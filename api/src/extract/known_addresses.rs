//! Known addresses: those that were converted lately, with their texts. The same mints and pools are asked for and answered
//! over and over, and to convert an address takes ten times as long as to find it here.

use std::cell::RefCell;

use arrayvec::ArrayString;
use five8::BASE58_ENCODED_32_MAX_LEN;
use solana_pubkey::Pubkey;

/// Places for addresses, a power of two: more than the mints and pools that most is asked for, and with both tables 80 kB of
/// each thread that answers.
const PLACES: usize = 512;

/// The text of an address: 32 bytes in base58.
pub(super) type Text = ArrayString<BASE58_ENCODED_32_MAX_LEN>;

/// An address, and its text.
type Known = (Pubkey, Text);

/// An address in each place, which another one that belongs there takes.
struct Table(Vec<Known>);

thread_local! {
    /// By what is converted: texts, and public keys.
    static TABLES: RefCell<[Table; 2]> = RefCell::new([Table::new(), Table::new()]);
}

/// The address of a text, which has no other text; `None` where it is that of none.
pub(super) fn of_text(text: &str) -> Option<Known> {
    TABLES.with_borrow_mut(|[by_text, _]| {
        let place = by_text.place(text.as_bytes().last_chunk()?)?;
        if place.1.as_str() != text {
            *place = (text.parse().ok()?, ArrayString::from(text).ok()?);
        }
        Some(*place)
    })
}

/// The text of an address.
pub(super) fn of_pubkey(pubkey: &Pubkey) -> Text {
    TABLES.with_borrow_mut(|[_, by_pubkey]| {
        let begin = pubkey.as_array().first_chunk();
        let place = begin.and_then(|begin| by_pubkey.place(begin));
        match place {
            Some((known, text)) if known == pubkey => *text,
            Some(place) => {
                *place = (*pubkey, convert(pubkey));
                place.1
            }
            None => convert(pubkey),
        }
    })
}

fn convert(pubkey: &Pubkey) -> Text {
    let mut text = [0; BASE58_ENCODED_32_MAX_LEN];
    let length = five8::encode_32(pubkey.as_array(), &mut text);
    let text = text.get(..usize::from(length));
    let text = text.and_then(|text| str::from_utf8(text).ok());
    let text = text.and_then(|text| ArrayString::from(text).ok());
    text.expect("base58 is ASCII, and its length is that of what was written")
}

impl Table {
    /// In every place is a true pair from the beginning.
    fn new() -> Self {
        let pubkey = Pubkey::default();
        Self(vec![(pubkey, convert(&pubkey)); PLACES])
    }

    /// The place of what has these bytes. They are multiplied by 2^64 divided by the golden ratio, which spreads what differs
    /// in any of them.
    fn place(&mut self, bytes: &[u8; 8]) -> Option<&mut Known> {
        let spread = u64::from_le_bytes(*bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = spread >> (u64::BITS - PLACES.ilog2());
        self.0.get_mut(usize::try_from(place).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_what_converting_gives() {
        // Several for each place, so that they take each other's.
        let pubkeys = (0..4 * PLACES).map(|n| {
            let mut bytes = [7; 32];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            bytes[24..].copy_from_slice(&n.to_be_bytes());
            Pubkey::from(bytes)
        });
        let pubkeys: Vec<_> = pubkeys.collect();
        for pubkey in pubkeys.iter().chain(pubkeys.iter().rev()) {
            let text = pubkey.to_string();
            for _ in 0..2 {
                assert_eq!(of_pubkey(pubkey).as_str(), text);
                let (parsed, kept) = of_text(&text).expect("an address");
                assert_eq!((parsed, kept.as_str()), (*pubkey, &*text));
            }
        }
    }

    #[test]
    fn an_address_beside_a_known_one_is_not_taken_for_it() {
        let known = Pubkey::from([9; 32]);
        let text = known.to_string();
        assert_eq!(of_text(&text).map(|(pubkey, _)| pubkey), Some(known));
        for other in [
            format!("1{text}"),
            text.replacen('c', "d", 1),
            text[1..].to_owned(),
        ] {
            let parsed: Option<Pubkey> = other.parse().ok();
            assert_ne!(parsed, Some(known), "{other}");
            assert_eq!(of_text(&other).map(|(pubkey, _)| pubkey), parsed, "{other}");
        }
        for none in ["", "1", "1111111", "not an address", &"1".repeat(33)] {
            assert_eq!(of_text(none), None, "{none}");
        }
        let mut beside = [9; 32];
        beside[31] = 8;
        let beside = Pubkey::from(beside);
        assert_eq!(of_pubkey(&known).as_str(), text);
        assert_eq!(of_pubkey(&beside).as_str(), beside.to_string());
    }
}
