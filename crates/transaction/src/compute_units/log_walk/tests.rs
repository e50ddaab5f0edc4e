//! Walk through logs: units of each exchange call, and logs that do not show them.

use super::*;

const EXCHANGE: &str = "CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C";
const ROUTER: &str = "JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4";
const TOKEN: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";

fn walk(logs: &[String]) -> (Vec<(u32, Option<&str>)>, LogEnd) {
    let exchange = EXCHANGE.parse().expect("an address");
    let (calls, end) = exchange_calls(logs, &exchange);
    (
        calls
            .into_iter()
            .map(|call| (call.used, call.event))
            .collect(),
        end,
    )
}

fn invoke(program: &str, depth: u32) -> String {
    format!("Program {program} invoke [{depth}]")
}

fn consumed(program: &str, used: u32) -> String {
    format!("Program {program} consumed {used} of 400000 compute units")
}

fn success(program: &str) -> String {
    format!("Program {program} success")
}

/// A call of the exchange at this depth, with its two transfers.
fn swap(depth: u32, used: u32, event: &str) -> Vec<String> {
    let transfer = |used| {
        vec![
            invoke(TOKEN, depth + 1),
            "Program log: Instruction: TransferChecked".to_owned(),
            consumed(TOKEN, used),
            success(TOKEN),
        ]
    };
    let mut logs = vec![
        invoke(EXCHANGE, depth),
        "Program log: Instruction: SwapBaseInput".to_owned(),
        format!("Program data: {event}"),
    ];
    logs.extend(transfer(6_238));
    logs.extend(transfer(2_840));
    logs.extend([consumed(EXCHANGE, used), success(EXCHANGE)]);
    logs
}

#[test]
fn nested_calls_are_found_with_their_own_units_and_events() {
    let mut logs = vec![invoke(ROUTER, 1)];
    logs.extend(swap(2, 39_493, "QMbN6CYIceKS"));
    logs.extend(swap(2, 38_887, "QMbN6CYIceKe"));
    logs.extend([consumed(ROUTER, 91_159), success(ROUTER)]);
    let calls = vec![
        (39_493, Some("QMbN6CYIceKS")),
        (38_887, Some("QMbN6CYIceKe")),
    ];
    assert_eq!(walk(&logs), (calls, LogEnd::Complete));
}

#[test]
fn a_call_counts_although_the_transaction_failed_later_and_a_failed_call_does_not() {
    let mut logs = vec![invoke(ROUTER, 1)];
    logs.extend(swap(2, 30_000, "QMbN"));
    logs.extend([
        invoke(EXCHANGE, 2),
        consumed(EXCHANGE, 9_000),
        format!("Program {EXCHANGE} failed: custom program error: 0x1775"),
        consumed(ROUTER, 50_000),
        format!("Program {ROUTER} failed: custom program error: 0x1775"),
    ]);
    assert_eq!(
        walk(&logs),
        (vec![(30_000, Some("QMbN"))], LogEnd::Complete)
    );
}

#[test]
fn what_a_program_prints_is_not_taken_for_the_runtimes() {
    let mut logs = vec![invoke(ROUTER, 1)];
    for line in [
        consumed(EXCHANGE, 1),
        success(EXCHANGE),
        invoke(EXCHANGE, 2),
    ] {
        logs.push(format!("Program log: {line}"));
        logs.push(format!("Program data: {line}"));
        logs.push(format!("Program return: {ROUTER} {line}"));
    }
    logs.extend([consumed(ROUTER, 5_000), success(ROUTER)]);
    assert_eq!(walk(&logs), (Vec::new(), LogEnd::Complete));
}

#[test]
fn nothing_is_read_behind_the_cut() {
    let mut logs = swap(1, 30_000, "QMbN");
    let mut second = swap(1, 31_000, "QMbN");
    second.truncate(4);
    logs.extend(second);
    logs.push("Log truncated".to_owned());
    logs.extend(swap(1, 1, "QMbN"));
    assert_eq!(
        walk(&logs),
        (vec![(30_000, Some("QMbN"))], LogEnd::Truncated)
    );
}

#[test]
fn builtin_programs_that_log_no_units_do_not_unbalance_the_walk() {
    let system = "11111111111111111111111111111111";
    let mut logs = vec![invoke(system, 1), success(system)];
    logs.extend(swap(1, 30_000, "QMbN"));
    assert_eq!(
        walk(&logs),
        (vec![(30_000, Some("QMbN"))], LogEnd::Complete)
    );
}

#[test]
fn a_line_without_its_partner_ends_the_walk() {
    let logs = [success(EXCHANGE)];
    assert_eq!(walk(&logs), (Vec::new(), LogEnd::Unbalanced));
    let logs = [invoke(ROUTER, 1), consumed(EXCHANGE, 7)];
    assert_eq!(walk(&logs), (Vec::new(), LogEnd::Unbalanced));
    let logs = [invoke(EXCHANGE, 1)];
    assert_eq!(walk(&logs), (Vec::new(), LogEnd::Unbalanced));
}

#[test]
fn a_swap_without_an_event_is_a_call_all_the_same() {
    let logs = [
        invoke(EXCHANGE, 1),
        consumed(EXCHANGE, 7),
        success(EXCHANGE),
    ];
    assert_eq!(walk(&logs), (vec![(7, None)], LogEnd::Complete));
}

#[test]
fn a_call_that_used_all_that_was_left_and_failed_ran_short() {
    let exchange = EXCHANGE.parse().expect("an address");
    let ending = |used: u32, had: u32, why: &str| {
        let mut logs = vec![invoke(ROUTER, 1)];
        logs.extend(swap(2, 39_493, "QMbN6CYIceKS"));
        logs.extend([
            invoke(EXCHANGE, 2),
            format!("Program {EXCHANGE} consumed {used} of {had} compute units"),
            format!("Program {EXCHANGE} failed: {why}"),
            format!("Program {ROUTER} consumed {had} of 400000 compute units"),
            format!("Program {ROUTER} failed: {why}"),
        ]);
        short_call(&logs, &exchange)
    };
    let short = ShortCall {
        units: 30_000,
        before: 1,
    };
    let why = "exceeded CUs meter at BPF instruction";
    assert_eq!(ending(30_000, 30_000, why), Some(short));
    assert_eq!(ending(29_999, 30_000, "custom program error: 0x1775"), None);
    assert_eq!(
        short_call(&swap(1, 400_000, "QMbN6CYIceKS"), &exchange),
        None
    );
}
