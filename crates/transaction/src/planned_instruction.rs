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
    pub(crate) type Entry = (&'static str, &'static [&'static str]);

    pub(crate) const UNIT_PRICE: Entry = ("setComputeUnitPrice", &[]);
    pub(crate) const UNIT_LIMIT: Entry = ("setComputeUnitLimit", &[]);
    pub(crate) const CREATE_TOKEN_ACCOUNT: Entry = (
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
    pub(crate) const CREATE_TEMPORARY: Entry =
        ("createTemporaryAccount", &["payer", "temporaryAccount"]);
    pub(crate) const INITIALIZE_TEMPORARY: Entry =
        ("initializeTemporaryAccount", &["temporaryAccount", "mint"]);
    pub(crate) const WRAP: Entry = ("wrapSol", &["user", "wrappedSolAccount"]);
    pub(crate) const SYNC: Entry = ("syncWrappedSol", &["wrappedSolAccount"]);
    pub(crate) const SWAP: Entry = (
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
    pub(crate) const UNWRAP: Entry = ("unwrapSol", &["wrappedSolAccount", "user", "owner"]);
}
