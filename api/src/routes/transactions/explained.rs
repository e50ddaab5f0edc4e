//! Explanation of a transaction, on the wire.

use serde::Serialize;
use sluice_transaction::{
    Failure,
    explanation::{Explanation, Spend, Spent, Step},
};
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::wire::FailureView;
use crate::{
    extract::{Address, Digits},
    rpc::Landed,
};

/// Lines of the logs in an answer: a swap through two pools writes some seventy.
const MOST_LINES: usize = 100;

/// What a transaction does.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationResponse {
    /// Its first signature, which names it; null while it has none.
    #[schema(required)]
    signature: Option<String>,
    /// Its wire format: `legacy`, `0` or `1`.
    version: &'static str,
    /// Its length, bytes.
    size: usize,
    /// A recent blockhash, or the value of a nonce.
    blockhash: String,
    /// Whether `blockhash` is the value of a nonce: it can land until that is advanced.
    has_nonce: bool,
    /// Who must sign; the first pays the fees.
    signers: Vec<SignerView>,
    /// Whether every instruction is known here. Of one that is not nothing is said but its program and its data.
    is_known: bool,
    /// Whether it calls the guard.
    calls_guard: bool,
    costs: ExplainedCosts,
    /// Every instruction, in its order.
    instructions: Vec<StepView>,
    /// What became of it; null unless it was asked for by its signature.
    #[schema(required)]
    execution: Option<ExecutionView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExplainedSigner)]
struct SignerView {
    pubkey: Address,
    /// Whether the transaction has a valid signature of it.
    has_signed: bool,
}

/// What it may cost.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExplainedCosts {
    base_fee_lamports: u64,
    base_fee_lamports_string: Digits,
    /// The most that is charged for priority.
    priority_fee_lamports: u64,
    priority_fee_lamports_string: Digits,
    /// Null where it states none.
    #[schema(required)]
    compute_unit_limit: Option<u32>,
    /// What its instructions take at most, each by itself: SOL that is wrapped and then swapped stands in two. The rent of accounts
    /// that the associated token program creates is not among it, nor what an unknown instruction takes.
    spends: Vec<SpendView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExplainedSpend)]
struct SpendView {
    /// The position of the instruction.
    instruction: usize,
    /// The wallet, or the token account; null where it stands in a lookup table that is not known here.
    #[schema(required)]
    from: Option<Address>,
    /// `lamports` or `tokens`.
    asset: &'static str,
    /// Of which tokens; null of lamports, and where the instruction does not say.
    #[schema(required)]
    mint: Option<Address>,
    amount: u64,
    amount_string: Digits,
}

/// One instruction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExplainedInstruction)]
struct StepView {
    program: Address,
    /// `guard`, `exchange`, `token`, `token2022`, `associatedToken`, `system`, `computeBudget` or `memo`; null of another one.
    #[schema(required)]
    program_name: Option<&'static str>,
    /// What its program calls it; null where that is not known here.
    #[schema(required)]
    name: Option<&'static str>,
    /// In words.
    says: String,
    /// Why to look twice before signing; null where there is no reason in the instruction alone.
    #[schema(required)]
    caution: Option<&'static str>,
    /// What it is given beside accounts.
    arguments: Vec<ArgumentView>,
    accounts: Vec<AccountView>,
    /// Its data, hexadecimal.
    data: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExplainedArgument)]
struct ArgumentView {
    name: &'static str,
    /// As text, whatever its type.
    value: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExplainedAccount)]
struct AccountView {
    /// What the instruction takes it for; null where that is not known here.
    #[schema(required)]
    role: Option<&'static str>,
    /// Null where it stands in a lookup table that is not known here.
    #[schema(required)]
    pubkey: Option<Address>,
    is_signer: bool,
    is_writable: bool,
}

/// What became of a transaction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExplainedExecution)]
pub struct ExecutionView {
    slot: u64,
    /// Unix time of that slot, seconds; null where the node does not know.
    #[schema(required)]
    block_time: Option<i64>,
    fee_lamports: u64,
    fee_lamports_string: Digits,
    /// Null where the node does not say.
    #[schema(required)]
    compute_units: Option<u64>,
    #[schema(required)]
    compute_units_string: Option<Digits>,
    /// Why it failed; null where it did not.
    #[schema(required)]
    error: Option<FailureView>,
    /// The first lines of what its programs logged.
    logs: Vec<String>,
}

impl ExplanationResponse {
    /// The answer for an explanation, and for what became of the transaction.
    pub fn new(explanation: &Explanation, execution: Option<ExecutionView>) -> Self {
        let costs = explanation.costs;
        let signers = explanation.signers.iter();
        let steps = explanation.steps.iter();
        let spends = steps.clone().enumerate().filter_map(|(position, step)| {
            let spend = step.spend.as_ref()?;
            Some(SpendView::new(position, spend))
        });
        Self {
            signature: explanation.signature.map(|signature| signature.to_string()),
            version: explanation.version.name(),
            size: explanation.size,
            blockhash: explanation.blockhash.to_string(),
            has_nonce: explanation.has_nonce,
            signers: signers
                .map(|(pubkey, has_signed)| SignerView {
                    pubkey: Address::new(pubkey),
                    has_signed: *has_signed,
                })
                .collect(),
            is_known: explanation.is_known(),
            calls_guard: explanation.calls_guard(),
            costs: ExplainedCosts {
                base_fee_lamports: costs.base_fee,
                base_fee_lamports_string: Digits(costs.base_fee),
                priority_fee_lamports: costs.priority_fee,
                priority_fee_lamports_string: Digits(costs.priority_fee),
                compute_unit_limit: costs.unit_limit,
                spends: spends.collect(),
            },
            instructions: steps.map(StepView::from).collect(),
            execution,
        }
    }
}

impl SpendView {
    fn new(instruction: usize, spend: &Spend) -> Self {
        let (asset, mint) = match spend.what {
            Spent::Lamports => ("lamports", None),
            Spent::Tokens(mint) => ("tokens", mint),
        };
        Self {
            instruction,
            from: spend.from.as_ref().map(Address::new),
            asset,
            mint: mint.as_ref().map(Address::new),
            amount: spend.amount,
            amount_string: Digits(spend.amount),
        }
    }
}

impl From<&Step> for StepView {
    fn from(step: &Step) -> Self {
        let arguments = step.arguments.iter().map(|argument| ArgumentView {
            name: argument.name,
            value: argument.value.clone(),
        });
        let accounts = step.accounts.iter().map(|account| AccountView {
            role: account.role,
            pubkey: account.address.as_ref().map(Address::new),
            is_signer: account.is_signer,
            is_writable: account.is_writable,
        });
        Self {
            program: Address::new(&step.program),
            program_name: step.program_name,
            name: step.name,
            says: step.says.clone(),
            caution: step.caution,
            arguments: arguments.collect(),
            accounts: accounts.collect(),
            data: hex::encode(&step.data),
        }
    }
}

impl ExecutionView {
    /// What came of it, where the exchange's program is `exchange`.
    pub fn new(landed: &Landed, exchange: &Pubkey) -> Self {
        let failure = landed.error.as_deref();
        let failure = failure.map(|error| Failure::of(error, &landed.logs, exchange));
        Self {
            slot: landed.slot,
            block_time: landed.block_time,
            fee_lamports: landed.fee,
            fee_lamports_string: Digits(landed.fee),
            compute_units: landed.units,
            compute_units_string: landed.units.map(Digits),
            error: failure.as_ref().map(FailureView::from),
            logs: landed.logs.iter().take(MOST_LINES).cloned().collect(),
        }
    }
}
