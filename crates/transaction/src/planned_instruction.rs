//! Planned instruction: an instruction with its name, the roles of its accounts and its compute units.

use solana_instruction::Instruction;

/// An instruction, what it is for, and what it may cost.
#[derive(Clone, Debug)]
pub struct PlannedInstruction {
    /// What it is for, as the manifest names it.
    pub name: &'static str,
    /// The role of each of its accounts, in their order.
    pub roles: &'static [&'static str],
    /// The instruction.
    pub instruction: Instruction,
    /// The most compute units it uses.
    pub units: u32,
}

impl PlannedInstruction {
    /// The instruction under its label, with the most compute units it uses.
    pub(crate) fn new(label: Label, instruction: Instruction, units: u32) -> Self {
        let Label(name, roles) = label;
        debug_assert_eq!(roles.len(), instruction.accounts.len(), "{name}");
        Self {
            name,
            roles,
            instruction,
            units,
        }
    }
}

/// What an instruction is for, and the roles of its accounts in their order.
#[derive(Clone, Copy)]
pub(crate) struct Label(&'static str, &'static [&'static str]);

impl Label {
    /// The name, and the roles.
    pub(crate) const fn parts(self) -> (&'static str, &'static [&'static str]) {
        (self.0, self.1)
    }
}

/// Names and roles, as the manifest shows them.
pub(crate) mod manifest {
    use super::Label;

    pub(crate) const ADVANCE_NONCE: Label = Label(
        "advanceNonce",
        &["nonceAccount", "recentBlockhashes", "nonceAuthority"],
    );
    pub(crate) const UNIT_PRICE: Label = Label("setComputeUnitPrice", &[]);
    pub(crate) const UNIT_LIMIT: Label = Label("setComputeUnitLimit", &[]);
    pub(crate) const LOADED_BYTES: Label = Label("setLoadedAccountsDataSizeLimit", &[]);
    pub(crate) const CREATE_TOKEN_ACCOUNT: Label = Label(
        "createTokenAccount",
        &[
            "payer",
            "tokenAccount",
            "owner",
            "mint",
            "systemProgram",
            "tokenProgram",
        ],
    );
    pub(crate) const CREATE_TEMPORARY: Label =
        Label("createTemporaryAccount", &["payer", "temporaryAccount"]);
    pub(crate) const CREATE_TEMPORARY_FOR_USER: Label = Label(
        "createTemporaryAccount",
        &["payer", "temporaryAccount", "user"],
    );
    pub(crate) const INITIALIZE_TEMPORARY: Label =
        Label("initializeTemporaryAccount", &["temporaryAccount", "mint"]);
    pub(crate) const WRAP: Label = Label("wrapSol", &["user", "wrappedSolAccount"]);
    pub(crate) const SYNC: Label = Label("syncWrappedSol", &["wrappedSolAccount"]);
    pub(crate) const PLATFORM_FEE_IN_SOL: Label = Label("payPlatformFee", &["user", "feeWallet"]);
    pub(crate) const PLATFORM_FEE: Label = Label(
        "payPlatformFee",
        &["inputTokenAccount", "mint", "feeTokenAccount", "user"],
    );
    const SWAP_ROLES: [&str; 14] = [
        "user",
        "exchangeProgram",
        "exchangeAuthority",
        "ammConfig",
        "pool",
        "inputTokenAccount",
        "outputTokenAccount",
        "inputVault",
        "outputVault",
        "inputTokenProgram",
        "outputTokenProgram",
        "inputMint",
        "outputMint",
        "observation",
    ];
    pub(crate) const SWAP: Label = Label("guardedSwap", &SWAP_ROLES);
    /// Roles of a swap straight at the exchange: those of the guard's without the exchange itself.
    pub(crate) const EXCHANGE_ROLES: [&str; 13] = {
        let [user, _, rest @ ..] = &SWAP_ROLES;
        let mut roles = [*user; 13];
        let (_, others) = roles.split_at_mut(1);
        others.copy_from_slice(rest);
        roles
    };
    pub(crate) const SWAP_TWO_HOPS: Label = Label(
        "guardedSwapTwoHops",
        &[
            "user",
            "exchangeProgram",
            "exchangeAuthority",
            "firstAmmConfig",
            "firstPool",
            "inputTokenAccount",
            "middleTokenAccount",
            "outputTokenAccount",
            "firstInputVault",
            "firstOutputVault",
            "firstObservation",
            "secondAmmConfig",
            "secondPool",
            "secondInputVault",
            "secondOutputVault",
            "secondObservation",
            "inputTokenProgram",
            "middleTokenProgram",
            "outputTokenProgram",
            "inputMint",
            "middleMint",
            "outputMint",
        ],
    );
    pub(crate) const UNWRAP: Label = Label("unwrapSol", &["wrappedSolAccount", "user", "owner"]);
    pub(crate) const UNWRAP_TO: Label =
        Label("unwrapSol", &["wrappedSolAccount", "solReceiver", "owner"]);
    pub(crate) const CLOSE: Label = Label(
        "closeTokenAccount",
        &["tokenAccount", "rentReceiver", "owner"],
    );
}
