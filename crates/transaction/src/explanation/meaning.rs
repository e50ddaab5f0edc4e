//! Meaning of one instruction: its name, the roles of its accounts, what it takes, in words (pure).

use std::fmt::Display;

use solana_pubkey::Pubkey;

/// What an instruction does.
pub(super) struct Meaning {
    /// What its program calls it.
    pub name: &'static str,
    /// What it takes its accounts for, in their order.
    pub roles: &'static [&'static str],
    /// What it is given beside accounts.
    pub arguments: Vec<Argument>,
    /// In words.
    pub says: String,
    /// Why to look twice.
    pub caution: Option<&'static str>,
    /// What it takes from whom.
    pub spend: Option<Spend>,
}

/// A value that an instruction is given beside accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What it is.
    pub name: &'static str,
    /// The value as text.
    pub value: String,
}

/// What an instruction takes at most, by its data. The rent of an account that another program creates is not among it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spend {
    /// The wallet, or the token account; `None` where its address is not known.
    pub from: Option<Pubkey>,
    /// Of what.
    pub what: Spent,
    /// Smallest units.
    pub amount: u64,
}

/// What is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Native SOL.
    Lamports,
    /// Tokens, of this mint where the instruction names it.
    Tokens(Option<Pubkey>),
}

/// The addresses of an instruction's accounts.
#[derive(Clone, Copy)]
pub(super) struct Accounts<'a>(pub &'a [Option<Pubkey>]);

impl Accounts<'_> {
    /// The address at this position, if it is known.
    pub fn key(self, position: usize) -> Option<Pubkey> {
        self.0.get(position).copied().flatten()
    }

    /// The address at this position as text.
    pub fn at(self, position: usize) -> String {
        match self.0.get(position) {
            Some(Some(address)) => address.to_string(),
            Some(None) => "an account of a lookup table".to_owned(),
            None => "an account that is missing".to_owned(),
        }
    }
}

impl Meaning {
    /// An instruction of these roles, which takes nothing.
    pub fn new(name: &'static str, roles: &'static [&'static str], says: String) -> Self {
        Self {
            name,
            roles,
            arguments: Vec::new(),
            says,
            caution: None,
            spend: None,
        }
    }

    /// With one argument more.
    pub fn with(mut self, name: &'static str, value: impl Display) -> Self {
        self.arguments.push(Argument {
            name,
            value: value.to_string(),
        });
        self
    }

    /// With what it takes.
    pub fn spending(mut self, from: Option<Pubkey>, what: Spent, amount: u64) -> Self {
        self.spend = Some(Spend { from, what, amount });
        self
    }

    /// With a reason to look twice.
    pub fn cautious(mut self, why: &'static str) -> Self {
        self.caution = Some(why);
        self
    }
}
