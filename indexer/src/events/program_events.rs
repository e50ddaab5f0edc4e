//! Program events: what the programs of a transaction emitted, from its logs and instructions (pure).
//!
//! Programs emit events in two ways. In the logs, as `Program data: <base64>` lines; the line does not
//! name its program, so the lines about entering and leaving programs are followed like a stack. Or as
//! an instruction that the program sends to itself, whose data begins with a fixed tag.
//!
//! A program chooses the text after `Program log: ` freely, and may imitate any other line there; such
//! lines are therefore skipped whole. When the validator cut the logs, what came before is used. When
//! the lines contradict each other, attribution ends there: an event is rather left out than given to
//! the wrong program. Events of failed transactions are none, since the chain undid them.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use sluice_geyser::{InnerInstruction, TransactionUpdate};
use solana_pubkey::Pubkey;

/// First bytes of an instruction by which a program emits an event to itself.
const EVENT_INSTRUCTION_TAG: [u8; 8] = 0x1d9a_cb51_2ea5_45e4_u64.to_le_bytes();

/// The line in place of those that the validator cut off. What programs log has a prefix, so none can write it.
const TRUNCATED: &str = "Log truncated";

/// Depth of an instruction that the transaction itself makes.
const TOP_LEVEL: u32 = 1;

/// Something a program emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEvent {
    /// The program.
    pub program: Pubkey,
    /// Where in the transaction.
    pub path: EventPath,
    /// Discriminator and fields, without the tag of an event instruction.
    pub data: Vec<u8>,
    /// In which run of the program it was logged; `None` where an instruction is the event.
    pub invocation: Option<Invocation>,
}

/// A run of a program in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Which of that program's, from 0, in the order in which they began.
    pub number: usize,
    /// 1 where the transaction itself made it.
    pub depth: usize,
}

/// Where in a transaction an event was emitted; the same on every validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventPath {
    /// The n-th `Program data:` line, from 0, of whichever program.
    Log {
        /// Its number.
        ordinal: usize,
    },
    /// An inner instruction.
    Cpi {
        /// Index of the top-level instruction it ran under.
        outer: u8,
        /// Index among that one's inner instructions.
        inner: usize,
    },
}

impl fmt::Display for EventPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log { ordinal } => write!(f, "log/{ordinal}"),
            Self::Cpi { outer, inner } => write!(f, "cpi/{outer}/{inner}"),
        }
    }
}

/// Every event of a transaction: those of the logs in order, then those of event instructions.
#[must_use]
pub fn program_events(transaction: &TransactionUpdate) -> Vec<ProgramEvent> {
    if transaction.error.is_some() {
        return Vec::new();
    }
    let mut events = log_events(&transaction.log_messages);
    for (outer, inner) in &transaction.inner_instructions {
        events.extend(instruction_events(transaction, *outer, inner));
    }
    events
}

/// Whether the validator cut the logs of a transaction. What came later may still follow the cut where it was short
/// enough, so the mark is not always the last line.
#[must_use]
pub fn logs_truncated(transaction: &TransactionUpdate) -> bool {
    let mut lines = transaction.log_messages.iter();
    lines.any(|line| line == TRUNCATED)
}

/// Every program that a transaction invoked, at any depth, each once.
#[must_use]
pub fn invoked_programs(transaction: &TransactionUpdate) -> Vec<Pubkey> {
    let outer = transaction
        .instructions
        .iter()
        .map(|instruction| instruction.program_index);
    let inner = transaction
        .inner_instructions
        .iter()
        .flat_map(|(_, inner)| inner);
    let mut seen = HashSet::new();
    outer
        .chain(inner.map(|instruction| instruction.program_index))
        .filter_map(|index| transaction.account_keys.get(usize::from(index)).copied())
        .filter(|program| seen.insert(*program))
        .collect()
}

/// A line of the logs, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
enum LogLine<'a> {
    Enter { program: Pubkey, depth: usize },
    Leave { program: Pubkey },
    Data(&'a str),
    Truncated,
    Other,
}

fn parse_line(line: &str) -> LogLine<'_> {
    if line == TRUNCATED {
        return LogLine::Truncated;
    }
    let Some(rest) = line.strip_prefix("Program ") else {
        return LogLine::Other;
    };
    if rest.starts_with("log: ") {
        return LogLine::Other;
    }
    if let Some(data) = rest.strip_prefix("data: ") {
        return LogLine::Data(data);
    }
    let Some((program, what)) = rest.split_once(' ') else {
        return LogLine::Other;
    };
    let Ok(program) = program.parse() else {
        return LogLine::Other;
    };
    if what == "success" || what.starts_with("failed: ") {
        return LogLine::Leave { program };
    }
    let depth = what
        .strip_prefix("invoke [")
        .and_then(|rest| rest.strip_suffix(']'));
    match depth.and_then(|depth| depth.parse().ok()) {
        Some(depth) => LogLine::Enter { program, depth },
        None => LogLine::Other,
    }
}

fn log_events(lines: &[String]) -> Vec<ProgramEvent> {
    let mut events = Vec::new();
    let mut stack: Vec<(Pubkey, Invocation)> = Vec::new();
    let mut invocations: HashMap<Pubkey, usize> = HashMap::new();
    let mut ordinal: usize = 0;
    for line in lines {
        match parse_line(line) {
            LogLine::Enter { program, depth } => {
                let count = invocations.entry(program).or_default();
                let number = *count;
                *count = count.saturating_add(1);
                stack.push((program, Invocation { number, depth }));
                if stack.len() != depth {
                    break;
                }
            }
            LogLine::Leave { program } => {
                if stack.pop().map(|(left, _)| left) != Some(program) {
                    break;
                }
            }
            LogLine::Data(data) => {
                let Some((program, invocation)) = stack.last() else {
                    break;
                };
                if let Some(data) = decode_fields(data) {
                    events.push(ProgramEvent {
                        program: *program,
                        path: EventPath::Log { ordinal },
                        data,
                        invocation: Some(*invocation),
                    });
                }
                ordinal = ordinal.saturating_add(1);
            }
            LogLine::Truncated => break,
            LogLine::Other => {}
        }
    }
    events
}

/// A `Program data:` line holds one base64 field per slice that the program logged; an event is one
/// slice, and several are taken as one run of bytes.
fn decode_fields(text: &str) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for field in text.split(' ') {
        STANDARD.decode_vec(field, &mut data).ok()?;
    }
    Some(data)
}

fn instruction_events(
    transaction: &TransactionUpdate,
    outer: u8,
    inner: &[InnerInstruction],
) -> Vec<ProgramEvent> {
    let Some(top) = transaction.instructions.get(usize::from(outer)) else {
        return Vec::new();
    };
    let mut events = Vec::new();
    for (index, instruction) in inner.iter().enumerate() {
        let Some(data) = instruction.data.strip_prefix(&EVENT_INSTRUCTION_TAG) else {
            continue;
        };
        // Only the program itself speaks for itself: anyone may send it an instruction that looks so.
        if caller(top.program_index, inner, index) != Some(instruction.program_index) {
            continue;
        }
        if let Some(program) = transaction
            .account_keys
            .get(usize::from(instruction.program_index))
        {
            let path = EventPath::Cpi {
                outer,
                inner: index,
            };
            events.push(ProgramEvent {
                program: *program,
                path,
                data: data.to_vec(),
                invocation: None,
            });
        }
    }
    events
}

/// Index of the program that made an inner instruction: that of the nearest earlier instruction one
/// level up. `None` when the validator did not record the depth.
fn caller(top: u8, inner: &[InnerInstruction], index: usize) -> Option<u8> {
    let above = inner.get(index)?.stack_height?.checked_sub(1)?;
    if above == TOP_LEVEL {
        return Some(top);
    }
    let earlier = inner.get(..index)?;
    let parent = earlier
        .iter()
        .rev()
        .find(|instruction| instruction.stack_height == Some(above))?;
    Some(parent.program_index)
}

#[cfg(test)]
mod tests;
