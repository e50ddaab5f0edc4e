//! Extensions of mints: which of Token-2022's a mint has, and what each is called.

/// Names of extensions by their record type, as `ExtensionType` of `spl-token-2022-interface` has them; those of token
/// accounts among them, which no mint has.
const NAMES: [&str; 29] = [
    "Uninitialized",
    "TransferFeeConfig",
    "TransferFeeAmount",
    "MintCloseAuthority",
    "ConfidentialTransferMint",
    "ConfidentialTransferAccount",
    "DefaultAccountState",
    "ImmutableOwner",
    "MemoTransfer",
    "NonTransferable",
    "InterestBearingConfig",
    "CpiGuard",
    "PermanentDelegate",
    "NonTransferableAccount",
    "TransferHook",
    "TransferHookAccount",
    "ConfidentialTransferFeeConfig",
    "ConfidentialTransferFeeAmount",
    "MetadataPointer",
    "TokenMetadata",
    "GroupPointer",
    "TokenGroup",
    "GroupMemberPointer",
    "TokenGroupMember",
    "ConfidentialMintBurn",
    "ScaledUiAmount",
    "Pausable",
    "PausableAccount",
    "PermissionedBurn",
];

/// Record types of the extensions that a transfer looks for in a mint: its fee, its permanent delegate, its hook.
pub(crate) const TRANSFER_FEE_CONFIG: u16 = 1;
pub(crate) const PERMANENT_DELEGATE: u16 = 12;
pub(crate) const TRANSFER_HOOK: u16 = 14;

/// The name of an extension; `None` of one that is younger than this list.
#[must_use]
pub fn extension_name(kind: u16) -> Option<&'static str> {
    NAMES.get(usize::from(kind)).copied()
}

/// Extensions of a mint by their record types, as a set. Small, because hundreds of thousands of mints are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MintExtensions(u64);

impl MintExtensions {
    /// None.
    pub const NONE: Self = Self(0);

    /// These and one more. Types from 64 on, of which there are none yet, are left out.
    #[must_use]
    pub const fn with(self, kind: u16) -> Self {
        match 1_u64.checked_shl(kind as u32) {
            Some(bit) => Self(self.0 | bit),
            None => self,
        }
    }

    /// Whether this one is among them.
    #[must_use]
    pub const fn has(self, kind: u16) -> bool {
        Self::NONE.with(kind).0 & self.0 != 0
    }

    /// Their record types, the smallest first.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        (0..64_u16).filter(move |kind| self.has(*kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it_and_nothing_else() {
        let all = MintExtensions::NONE.with(63).with(1).with(14).with(1);
        assert_eq!(all.iter().collect::<Vec<_>>(), [1, 14, 63]);
        assert_eq!(all.with(64), all);
        assert!(all.has(14) && !all.has(15) && !all.has(64));
        assert_eq!(MintExtensions::NONE.iter().count(), 0);
    }

    #[test]
    fn extensions_are_called_as_their_program_calls_them() {
        for (kind, name) in [
            (1, "TransferFeeConfig"),
            (14, "TransferHook"),
            (25, "ScaledUiAmount"),
        ] {
            assert_eq!(extension_name(kind), Some(name));
        }
        assert_eq!(extension_name(29), None);
    }
}
