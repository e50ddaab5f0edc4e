//! Log walk: the exchange's calls in a transaction's logs, with what each used and the event that it emitted.
//!
//! The runtime writes `Program X invoke [d]`, `Program X consumed N of M compute units` and `Program X success` around every
//! call. What a program prints comes behind `Program log: ` or `Program data: `, so no program can forge these lines.

use std::str::FromStr;

use solana_pubkey::Pubkey;

/// A call of the exchange that succeeded, also inside a transaction that failed later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeCall<'a> {
    /// Compute units of the call, those of its own calls included.
    pub used: u32,
    /// The event it emitted, base64: the last `Program data` line of its own.
    pub event: Option<&'a str>,
}

/// How the logs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// They are whole.
    Complete,
    /// The validator cut them: later calls are missing.
    Truncated,
    /// A line closes a call that was not opened, or the reverse: nothing after it can be attributed.
    Unbalanced,
}

/// The line with which a validator says that it keeps no more logs of a transaction.
const TRUNCATED: &str = "Log truncated";

/// A call of the exchange that used up all that the transaction had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortCall {
    /// What it had, compute units.
    pub units: u32,
    /// Calls of the exchange before it, which succeeded.
    pub before: usize,
}

struct OpenCall<'a> {
    program: &'a str,
    used: Option<u32>,
    event: Option<&'a str>,
}

/// The successful calls of `exchange` in `logs`, in the order in which they ended.
#[must_use]
pub fn exchange_calls<'a, L: AsRef<str>>(
    logs: &'a [L],
    exchange: &Pubkey,
) -> (Vec<ExchangeCall<'a>>, LogEnd) {
    let mut open: Vec<OpenCall<'a>> = Vec::new();
    let mut calls = Vec::new();
    for line in logs.iter().map(AsRef::as_ref) {
        match Line::parse(line) {
            Line::Truncated => return (calls, LogEnd::Truncated),
            Line::Other => {}
            Line::Data(data) => {
                if let Some(call) = open.last_mut() {
                    call.event = Some(data);
                }
            }
            Line::Invoke(program) => open.push(OpenCall {
                program,
                used: None,
                event: None,
            }),
            Line::Consumed(program, used) => match open.last_mut() {
                Some(call) if call.program == program => call.used = Some(used),
                _ => return (calls, LogEnd::Unbalanced),
            },
            Line::Ended { program, succeeded } => match open.pop() {
                Some(call) if call.program == program => {
                    let of_the_exchange = Pubkey::from_str(program).as_ref() == Ok(exchange);
                    if let Some(used) = call.used.filter(|_| succeeded && of_the_exchange) {
                        let event = call.event;
                        calls.push(ExchangeCall { used, event });
                    }
                }
                _ => return (calls, LogEnd::Unbalanced),
            },
        }
    }
    let end = if open.is_empty() {
        LogEnd::Complete
    } else {
        LogEnd::Unbalanced
    };
    (calls, end)
}

/// The call of `exchange` that ran out of compute units; `None` where none did, or where the logs do not show it.
#[must_use]
pub fn short_call<L: AsRef<str>>(logs: &[L], exchange: &Pubkey) -> Option<ShortCall> {
    let failed = format!("Program {exchange} failed: ");
    let consumed = format!("Program {exchange} consumed ");
    let at = logs
        .iter()
        .position(|line| line.as_ref().starts_with(&failed))?;
    let (before, _) = logs.split_at_checked(at)?;
    let (used, had) = before
        .last()?
        .as_ref()
        .strip_prefix(&consumed)?
        .strip_suffix(" compute units")?
        .split_once(" of ")?;
    let units = used.parse().ok().filter(|_| used == had)?;
    let (calls, _) = exchange_calls(before, exchange);
    Some(ShortCall {
        units,
        before: calls.len(),
    })
}

enum Line<'a> {
    Invoke(&'a str),
    Consumed(&'a str, u32),
    Ended { program: &'a str, succeeded: bool },
    Data(&'a str),
    Truncated,
    Other,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        if line == TRUNCATED {
            return Self::Truncated;
        }
        let Some(rest) = line.strip_prefix("Program ") else {
            return Self::Other;
        };
        if let Some(data) = rest.strip_prefix("data: ") {
            return Self::Data(data);
        }
        // A program named `log:` or `return:` does not exist: an address has no colon.
        let Some((program, what)) = rest.split_once(' ') else {
            return Self::Other;
        };
        if program.ends_with(':') {
            return Self::Other;
        }
        if what.starts_with("invoke [") {
            return Self::Invoke(program);
        }
        if what == "success" || what.starts_with("failed") {
            let succeeded = what == "success";
            return Self::Ended { program, succeeded };
        }
        let used = what
            .strip_prefix("consumed ")
            .and_then(|text| text.split_once(" of "))
            .and_then(|(used, _)| used.parse().ok());
        used.map_or(Self::Other, |used| Self::Consumed(program, used))
    }
}

#[cfg(test)]
mod tests;
