//! Owners of the token accounts in a transaction's balances, and whether it changed those (pure).

use solana_transaction_status::{TransactionStatusMeta, TransactionTokenBalance};

use crate::message::{Address, TokenOwner};

/// Lists the owners of all token balances, before and after. A balance changed when its amount did, and when it was
/// there before and is gone after: the token account was closed.
pub(super) fn of(meta: &TransactionStatusMeta) -> Vec<TokenOwner> {
    let before = meta.pre_token_balances.as_deref().unwrap_or_default();
    let after = meta.post_token_balances.as_deref().unwrap_or_default();
    let same_account = |balances: &'_ [TransactionTokenBalance], index: u8| {
        let amount = |balance: &TransactionTokenBalance| balance.ui_token_amount.amount.clone();
        let found = balances
            .iter()
            .find(|balance| balance.account_index == index);
        found.map(amount)
    };
    let changed = |index: u8| {
        let (before, after) = (same_account(before, index), same_account(after, index));
        match (before, after) {
            (None, opened) => opened.is_some_and(|amount| amount != "0"),
            (Some(_), None) => true,
            (Some(before), Some(after)) => before != after,
        }
    };
    let mut owners: Vec<TokenOwner> = Vec::with_capacity(after.len());
    for balance in before.iter().chain(after) {
        let Some(owner) = address(&balance.owner) else {
            continue;
        };
        let entry = TokenOwner {
            owner,
            balance_changed: changed(balance.account_index),
        };
        if !owners.contains(&entry) {
            owners.push(entry);
        }
    }
    owners
}

/// A balance without an owner, as old validators reported it, has an empty text here.
fn address(text: &str) -> Option<Address> {
    let mut bytes = [0; 32];
    let length = bs58::decode(text).onto(&mut bytes).ok()?;
    (length == bytes.len()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use solana_transaction_status::TransactionStatusMeta;

    use super::*;

    fn balance(account_index: u8, owner: u8, amount: &str) -> TransactionTokenBalance {
        let ui_token_amount = serde_json::from_value(serde_json::json!({
            "uiAmount": null, "decimals": 0, "amount": amount, "uiAmountString": amount,
        }));
        TransactionTokenBalance {
            account_index,
            mint: String::new(),
            ui_token_amount: ui_token_amount.unwrap(),
            owner: bs58::encode([owner; 32]).into_string(),
            program_id: String::new(),
        }
    }

    fn owners(before: Vec<TransactionTokenBalance>, after: Vec<TransactionTokenBalance>) -> String {
        let meta = TransactionStatusMeta {
            pre_token_balances: Some(before),
            post_token_balances: Some(after),
            ..TransactionStatusMeta::default()
        };
        let texts: Vec<String> = of(&meta)
            .iter()
            .map(|one| {
                format!(
                    "{}{}",
                    one.owner[0],
                    if one.balance_changed { "!" } else { "" }
                )
            })
            .collect();
        texts.join(" ")
    }

    #[test]
    fn an_amount_that_moves_and_an_account_that_closes_are_changes() {
        let before = vec![balance(1, 7, "5"), balance(2, 8, "5"), balance(3, 9, "0")];
        let after = vec![balance(1, 7, "5"), balance(2, 8, "6")];
        assert_eq!(owners(before, after), "7 8! 9!");
    }

    #[test]
    fn an_account_opened_empty_is_no_change_and_a_new_owner_is_named() {
        let before = vec![balance(1, 7, "5")];
        let after = vec![balance(1, 8, "5"), balance(2, 9, "0"), balance(3, 10, "1")];
        assert_eq!(owners(before, after), "7 8 9 10!");
    }

    #[test]
    fn a_balance_without_an_owner_is_left_out() {
        let ownerless = TransactionTokenBalance {
            owner: String::new(),
            ..balance(1, 1, "5")
        };
        assert_eq!(owners(vec![ownerless], Vec::new()), "");
    }
}
