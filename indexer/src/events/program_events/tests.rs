//! Program events: attribution, with the ways in which a program may try to speak for another.

use sluice_geyser::Instruction;
use solana_signature::Signature;

use super::*;

const ALICE: Pubkey = Pubkey::new_from_array([1; 32]);
const BOB: Pubkey = Pubkey::new_from_array([2; 32]);

fn transaction(logs: &[&str]) -> TransactionUpdate {
    TransactionUpdate {
        slot: 7,
        index: 0,
        signature: Signature::from([3; 64]),
        is_vote: false,
        error: None,
        account_keys: vec![ALICE, BOB],
        writable: Vec::new(),
        instructions: vec![Instruction {
            program_index: 0,
            accounts: Vec::new(),
            data: Vec::new(),
        }],
        inner_instructions: Vec::new(),
        log_messages: logs.iter().map(|line| expand(line)).collect(),
        logs_missing: false,
        fee: 5000,
        compute_units: None,
        pre_balances: Vec::new(),
        post_balances: Vec::new(),
        pre_token_balances: Vec::new(),
        post_token_balances: Vec::new(),
    }
}

/// Lets the tests write `ALICE` for the address.
fn expand(line: &str) -> String {
    line.replace("ALICE", &ALICE.to_string())
        .replace("BOB", &BOB.to_string())
}

/// Who said what, in order.
fn said(logs: &[&str]) -> Vec<(Pubkey, Vec<u8>)> {
    program_events(&transaction(logs))
        .into_iter()
        .map(|event| (event.program, event.data))
        .collect()
}

#[test]
fn a_line_belongs_to_the_innermost_program() {
    let events = said(&[
        "Program ALICE invoke [1]",
        "Program data: AQ==",
        "Program BOB invoke [2]",
        "Program data: Ag==",
        "Program BOB consumed 5 of 10 compute units",
        "Program return: BOB AAAA",
        "Program BOB success",
        "Program data: Aw==",
        "Program ALICE success",
    ]);
    assert_eq!(events, [(ALICE, vec![1]), (BOB, vec![2]), (ALICE, vec![3])]);
}

#[test]
fn each_run_of_a_program_has_a_number_and_a_depth() {
    let logs = [
        "Program ALICE invoke [1]",
        "Program BOB invoke [2]",
        "Program data: AQ==",
        "Program BOB success",
        "Program BOB invoke [2]",
        "Program data: Ag==",
        "Program BOB success",
        "Program data: Aw==",
        "Program ALICE success",
        "Program BOB invoke [1]",
        "Program data: BA==",
        "Program BOB success",
    ];
    let events = program_events(&transaction(&logs));
    let runs: Vec<_> = events.iter().map(|event| event.invocation).collect();
    let run = |number, depth| Some(Invocation { number, depth });
    assert_eq!(runs, [run(0, 2), run(1, 2), run(0, 1), run(2, 1)]);
}

#[test]
fn paths_count_every_data_line_so_that_they_do_not_depend_on_who_listens() {
    let logs = [
        "Program ALICE invoke [1]",
        "Program data: !!",
        "Program data: AQ==",
        "Program ALICE success",
    ];
    let events = program_events(&transaction(&logs));
    assert_eq!(events.len(), 1, "what is not base64 is no event");
    assert_eq!(events[0].path, EventPath::Log { ordinal: 1 });
}

#[test]
fn what_a_program_prints_is_not_believed() {
    let events = said(&[
        "Program ALICE invoke [1]",
        "Program log: Program BOB invoke [2]",
        "Program log: Program data: Ag==",
        "Program log: Program ALICE success",
        "Program log: \nProgram BOB invoke [1]",
        "Program log: Log truncated",
        "Program data: AQ==",
        "Program ALICE success",
    ]);
    assert_eq!(events, [(ALICE, vec![1])]);
}

#[test]
fn a_failed_inner_program_is_left_all_the_same() {
    let events = said(&[
        "Program ALICE invoke [1]",
        "Program BOB invoke [2]",
        "Program BOB failed: custom program error: 0x1",
        "Program data: AQ==",
        "Program ALICE success",
    ]);
    assert_eq!(events, [(ALICE, vec![1])]);
}

#[test]
fn cut_logs_are_known_by_the_validators_own_line_and_hide_no_event_instruction() {
    let cut = [
        "Program ALICE invoke [1]",
        "Log truncated",
        // Short enough to fit again.
        "Program ALICE success",
    ];
    let mut cut = transaction(&cut);
    assert!(logs_truncated(&cut));
    cut.inner_instructions = vec![(0, vec![inner(0, Some(2), &event_data(&[7]))])];
    let events: Vec<_> = program_events(&cut).into_iter().map(|e| e.data).collect();
    assert_eq!(events, [[7]]);
    let said = ["Program ALICE invoke [1]", "Program log: Log truncated"];
    assert!(!logs_truncated(&transaction(&said)));
}

#[test]
fn cut_logs_keep_what_came_before() {
    let events = said(&[
        "Program ALICE invoke [1]",
        "Program data: AQ==",
        "Log truncated",
        "Program data: Ag==",
    ]);
    assert_eq!(events, [(ALICE, vec![1])]);
}

#[test]
fn contradictory_lines_end_the_attribution() {
    let wrong_depth = [
        "Program ALICE invoke [1]",
        "Program BOB invoke [3]",
        "Program data: AQ==",
    ];
    assert_eq!(said(&wrong_depth), []);
    let wrong_leave = [
        "Program ALICE invoke [1]",
        "Program BOB success",
        "Program data: AQ==",
    ];
    assert_eq!(said(&wrong_leave), []);
    assert_eq!(said(&["Program data: AQ=="]), []);
}

#[test]
fn several_fields_of_one_line_are_one_event() {
    let events = said(&[
        "Program ALICE invoke [1]",
        "Program data: AQ== Ag==",
        "Program ALICE success",
    ]);
    assert_eq!(events, [(ALICE, vec![1, 2])]);
}

#[test]
fn what_the_chain_undid_is_no_event() {
    let mut failed = transaction(&[
        "Program ALICE invoke [1]",
        "Program data: AQ==",
        "Program ALICE success",
    ]);
    failed.error = Some("custom program error".to_owned());
    assert_eq!(program_events(&failed), []);
}

fn inner(program_index: u8, stack_height: Option<u32>, data: &[u8]) -> InnerInstruction {
    InnerInstruction {
        program_index,
        accounts: Vec::new(),
        data: data.to_vec(),
        stack_height,
    }
}

fn event_data(payload: &[u8]) -> Vec<u8> {
    [&EVENT_INSTRUCTION_TAG[..], payload].concat()
}

#[test]
fn an_event_instruction_counts_only_when_a_program_sends_it_to_itself() {
    let mut own = transaction(&[]);
    own.inner_instructions = vec![(
        0,
        vec![
            inner(0, Some(2), &event_data(&[1])),
            inner(1, Some(2), &event_data(&[2])),
            inner(1, Some(3), &event_data(&[3])),
            inner(0, Some(3), &event_data(&[4])),
            inner(0, Some(2), &[9; 8]),
            inner(0, None, &event_data(&[5])),
        ],
    )];
    let events = program_events(&own);
    let expected = [
        ProgramEvent {
            program: ALICE,
            path: EventPath::Cpi { outer: 0, inner: 0 },
            data: vec![1],
            invocation: None,
        },
        ProgramEvent {
            program: BOB,
            path: EventPath::Cpi { outer: 0, inner: 2 },
            data: vec![3],
            invocation: None,
        },
    ];
    assert_eq!(events, expected);
}

#[test]
fn the_tag_is_the_published_one() {
    assert_eq!(hex::encode(EVENT_INSTRUCTION_TAG), "e445a52e51cb9a1d");
}

#[test]
fn indexes_out_of_range_are_survived() {
    let mut odd = transaction(&[]);
    odd.inner_instructions = vec![
        (9, vec![inner(0, Some(2), &event_data(&[1]))]),
        (0, vec![inner(9, Some(2), &[])]),
    ];
    odd.instructions[0].program_index = 200;
    assert_eq!(program_events(&odd), []);
    assert_eq!(invoked_programs(&odd), [ALICE]);
}

#[test]
fn programs_are_found_at_every_depth_and_named_once() {
    let mut nested = transaction(&[]);
    nested.inner_instructions = vec![(
        0,
        vec![
            inner(1, Some(2), &[]),
            inner(0, Some(3), &[]),
            inner(1, Some(2), &[]),
        ],
    )];
    assert_eq!(invoked_programs(&nested), [ALICE, BOB]);
}
