//! Rent: the lamports that exempt an account of a given length, from the Rent sysvar (pure).

/// Bytes that every account is charged for beside its data.
const ACCOUNT_OVERHEAD: u64 = 128;

/// Length of the Rent sysvar, bytes: lamports per byte, threshold, burn percentage.
const RENT_LEN: usize = 17;

/// Bits of the two thresholds that the sysvar has ever held: 2.0 years, and 1.0 since the unit is no longer a year.
const TWO: u64 = 0x4000_0000_0000_0000;
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// The price of an account's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rent {
    /// Lamports for each byte of data and overhead.
    pub lamports_per_byte: u64,
}

impl Rent {
    /// Reads the Rent sysvar. `None` for other bytes, or for a threshold that is none of the known ones.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let (lamports, rest) = data.split_first_chunk::<8>()?;
        let (threshold, _) = rest.split_first_chunk::<8>()?;
        let factor = match u64::from_le_bytes(*threshold) {
            ONE => 1,
            TWO => 2,
            _ => return None,
        };
        let lamports_per_byte = u64::from_le_bytes(*lamports).checked_mul(factor)?;
        (data.len() == RENT_LEN).then_some(Self { lamports_per_byte })
    }

    /// Lamports that exempt an account with this many bytes of data.
    #[must_use]
    pub fn exempt(self, len: usize) -> u64 {
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        ACCOUNT_OVERHEAD
            .saturating_add(len)
            .saturating_mul(self.lamports_per_byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysvar(lamports: u64, threshold: f64) -> Vec<u8> {
        [
            &lamports.to_le_bytes()[..],
            &threshold.to_le_bytes()[..],
            &[50],
        ]
        .concat()
    }

    #[test]
    fn both_forms_of_the_sysvar_give_the_same_rent() {
        for data in [sysvar(3_480, 2.0), sysvar(6_960, 1.0)] {
            let rent = Rent::decode(&data).expect("known");
            assert_eq!(rent.exempt(0), 890_880);
            assert_eq!(rent.exempt(165), 2_039_280);
        }
    }

    #[test]
    fn anything_else_is_not_guessed_at() {
        assert_eq!(Rent::decode(&[]), None);
        assert_eq!(Rent::decode(&sysvar(3_480, 1.5)), None);
        assert_eq!(Rent::decode(&[&sysvar(1, 1.0)[..], &[0]].concat()), None);
    }
}
