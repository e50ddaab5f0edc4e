//! Refusals of a node: what the error codes of its block calls mean (pure).

use serde::Deserialize;

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WireError {
    /// Its number.
    pub code: i64,
    /// Its text.
    pub message: String,
}

/// Why a node does not answer with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The slot has no block, or the node has a hole there: only the next block's parent shows which.
    Skipped,
    /// The block is not there yet, or not confirmed yet.
    NotYet,
    /// The node's ledger begins later, at this slot where it says so.
    BeforeLedger(Option<u64>),
    /// The block has transactions of a version that this build does not ask for.
    UnsupportedVersion,
    /// The node keeps no blocks or results at all.
    NoHistory,
    /// The node cannot answer now: it is behind, overloaded or restarting.
    Busy(String),
    /// Anything else: asking again will not help.
    Other(String),
}

impl Refusal {
    /// The meaning of an error.
    #[must_use]
    pub fn of(error: WireError) -> Self {
        let WireError { code, message } = error;
        match code {
            // Skipped, or missing since the node jumped to a snapshot; the same of a long-term store.
            -32_007 | -32_009 => Self::Skipped,
            // Not available for the slot; its status not yet available.
            -32_004 | -32_014 => Self::NotYet,
            // Cleaned up.
            -32_001 => Self::BeforeLedger(first_available(&message)),
            -32_015 => Self::UnsupportedVersion,
            // No transaction history.
            -32_011 => Self::NoHistory,
            // Unhealthy; minimum slot not reached; long-term store unreachable; internal; a provider's rate limit.
            -32_005 | -32_016 | -32_019 | -32_603 | 429 | -32_429 => {
                Self::Busy(format!("{message} ({code})"))
            }
            _ => Self::Other(format!("{message} ({code})")),
        }
    }
}

/// "Block 5 cleaned up, does not exist on node. First available block: 9".
fn first_available(message: &str) -> Option<u64> {
    let (_, slot) = message.rsplit_once("First available block: ")?;
    slot.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_nodes_are_distinguished() {
        let refusal = |code, message: &str| {
            Refusal::of(WireError {
                code,
                message: message.to_owned(),
            })
        };
        let cases = [
            (
                -32_001,
                "Block 5 cleaned up, does not exist on node. First available block: 9",
                Refusal::BeforeLedger(Some(9)),
            ),
            (-32_001, "gone", Refusal::BeforeLedger(None)),
            (-32_004, "Block not available for slot 5", Refusal::NotYet),
            (
                -32_014,
                "Block status not yet available for slot 5",
                Refusal::NotYet,
            ),
            (
                -32_007,
                "Slot 5 was skipped, or missing due to ledger jump to recent snapshot",
                Refusal::Skipped,
            ),
            (
                -32_009,
                "Slot 5 was skipped, or missing in long-term storage",
                Refusal::Skipped,
            ),
            (
                -32_015,
                "Transaction version (2) is not supported by the requesting client. Please try the request again \
                 with the following configuration parameter: \"maxSupportedTransactionVersion\": 2",
                Refusal::UnsupportedVersion,
            ),
            (
                -32_011,
                "Transaction history is not available from this node",
                Refusal::NoHistory,
            ),
            (
                -32_005,
                "Node is behind by 42 slots",
                Refusal::Busy("Node is behind by 42 slots (-32005)".to_owned()),
            ),
            (
                -32_602,
                "Invalid params",
                Refusal::Other("Invalid params (-32602)".to_owned()),
            ),
        ];
        for (code, message, expected) in cases {
            assert_eq!(refusal(code, message), expected, "{code}");
        }
    }
}
