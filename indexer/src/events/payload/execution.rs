//! Execution of a transaction in the shapes of `getTransaction`: instructions, inner ones, and tokens (pure).

use serde_json::{Value, json};
use sluice_geyser::{TokenBalance, TransactionUpdate};

/// Depth of an instruction that the transaction itself makes.
const TOP_LEVEL: u32 = 1;

/// The instructions of the message.
pub(super) fn instructions(transaction: &TransactionUpdate) -> Vec<Value> {
    let instructions = transaction.instructions.iter();
    instructions
        .map(|each| {
            instruction(
                each.program_index,
                &each.accounts,
                &each.data,
                Some(TOP_LEVEL),
            )
        })
        .collect()
}

/// Those that programs invoked, by the instruction under which they ran.
pub(super) fn inner_instructions(transaction: &TransactionUpdate) -> Vec<Value> {
    let group = |(index, inner): &(u8, Vec<sluice_geyser::InnerInstruction>)| {
        let inner = inner.iter().map(|each| {
            let (program, depth) = (each.program_index, each.stack_height);
            instruction(program, &each.accounts, &each.data, depth)
        });
        json!({ "index": index, "instructions": inner.collect::<Vec<_>>() })
    };
    transaction.inner_instructions.iter().map(group).collect()
}

fn instruction(program: u8, accounts: &[u8], data: &[u8], stack_height: Option<u32>) -> Value {
    json!({
        "programIdIndex": program,
        "accounts": accounts,
        "data": bs58::encode(data).into_string(),
        "stackHeight": stack_height,
    })
}

/// Tokens before or after.
pub(super) fn token_balances(balances: &[TokenBalance]) -> Vec<Value> {
    balances.iter().map(token_balance).collect()
}

fn token_balance(balance: &TokenBalance) -> Value {
    let mut written = json!({
        "accountIndex": balance.account_index,
        "mint": balance.mint.to_string(),
        "uiTokenAmount": {
            "amount": balance.amount.to_string(),
            "decimals": balance.decimals,
            "uiAmount": shown(&balance.shown_amount),
            "uiAmountString": balance.shown_amount,
        },
    });
    // Nodes leave out what an old validator did not record.
    let recorded = [("owner", balance.owner), ("programId", balance.program)];
    for (name, key) in recorded {
        if let Some(key) = key {
            written[name] = key.to_string().into();
        }
    }
    written
}

/// As nodes write it: null where it is nothing.
fn shown(amount: &str) -> Option<f64> {
    let number: f64 = amount.parse().ok()?;
    (number.abs() > f64::EPSILON).then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use sluice_geyser::{InnerInstruction, Instruction, TransactionUpdate};
    use solana_pubkey::Pubkey;

    use super::*;
    use crate::slots::slot_events::fixtures;

    #[test]
    fn what_was_executed_is_written_as_nodes_write_it() {
        let transaction = TransactionUpdate {
            instructions: vec![Instruction {
                program_index: 2,
                accounts: vec![0, 1],
                data: vec![0, 1, 255],
            }],
            inner_instructions: vec![(
                0,
                vec![InnerInstruction {
                    program_index: 3,
                    accounts: vec![1],
                    data: Vec::new(),
                    stack_height: Some(2),
                }],
            )],
            ..fixtures::transaction(7, 1)
        };
        let outer =
            json!([{ "programIdIndex": 2, "accounts": [0, 1], "data": "19p", "stackHeight": 1 }]);
        assert_eq!(Value::from(instructions(&transaction)), outer);
        let inner = json!([{
            "index": 0,
            "instructions": [{ "programIdIndex": 3, "accounts": [1], "data": "", "stackHeight": 2 }],
        }]);
        assert_eq!(Value::from(inner_instructions(&transaction)), inner);
    }

    #[test]
    fn tokens_are_written_as_nodes_write_them_and_nothing_as_null() {
        let key = |number| Pubkey::new_from_array([number; 32]);
        let balance = TokenBalance {
            account_index: 4,
            mint: key(1),
            owner: Some(key(2)),
            program: Some(key(3)),
            amount: 1_500_000,
            decimals: 6,
            shown_amount: "1.5".to_owned(),
        };
        let old = TokenBalance {
            owner: None,
            program: None,
            amount: 0,
            shown_amount: "0".to_owned(),
            ..balance.clone()
        };
        let amount =
            json!({ "amount": "1500000", "decimals": 6, "uiAmount": 1.5, "uiAmountString": "1.5" });
        let nothing =
            json!({ "amount": "0", "decimals": 6, "uiAmount": null, "uiAmountString": "0" });
        let written = json!([
            {
                "accountIndex": 4, "mint": key(1).to_string(), "owner": key(2).to_string(),
                "programId": key(3).to_string(), "uiTokenAmount": amount,
            },
            { "accountIndex": 4, "mint": key(1).to_string(), "uiTokenAmount": nothing },
        ]);
        assert_eq!(Value::from(token_balances(&[balance, old])), written);
    }
}
