//! One instruction of a transaction, with everything that is said about it beside its bytes.

use solana_instruction::Instruction;

/// An instruction, what it is for, and what it may cost.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is for, as the manifest names it.
    pub name: &'static str,
    /// The role of each of its accounts, in their order.
    pub roles: &'static [&'static str],
    /// The instruction.
    pub instruction: Instruction,
    /// The most compute units it uses.
    pub units: u32,
}

/// Names and roles, as the manifest shows them.
pub(super) mod manifest {
    /// A name and the roles of the accounts.
    pub(in crate::chain) type Entry = (&'static str, &'static [&'static str]);

    pub(in crate::chain) const UNIT_PRICE: Entry = ("setComputeUnitPrice", &[]);
    pub(in crate::chain) const UNIT_LIMIT: Entry = ("setComputeUnitLimit", &[]);
    pub(in crate::chain) const CREATE_TOKEN_ACCOUNT: Entry = (
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
    pub(in crate::chain) const CREATE_TEMPORARY: Entry =
        ("createTemporaryAccount", &["payer", "temporaryAccount"]);
    pub(in crate::chain) const INITIALIZE_TEMPORARY: Entry =
        ("initializeTemporaryAccount", &["temporaryAccount", "mint"]);
    pub(in crate::chain) const WRAP: Entry = ("wrapSol", &["user", "wrappedSolAccount"]);
    pub(in crate::chain) const SYNC: Entry = ("syncWrappedSol", &["wrappedSolAccount"]);
    pub(in crate::chain) const SWAP: Entry = (
        "guardedSwap",
        &[
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
        ],
    );
    pub(in crate::chain) const UNWRAP: Entry =
        ("unwrapSol", &["wrappedSolAccount", "user", "owner"]);
}
