//! List of mutants: places in the guard's source, each with what stands there instead.

/// The guard with one check removed or weakened.
pub struct Mutant {
    /// What is wrong with it.
    pub name: &'static str,
    /// Below `programs/swap-guard/src`.
    pub file: &'static str,
    /// Stands there once.
    pub from: &'static str,
    pub to: &'static str,
}

const fn mutant(
    file: &'static str,
    name: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant {
        name,
        file,
        from,
        to,
    }
}

const TERMS: &str = "instructions/terms.rs";
const MEASURE: &str = "measure.rs";
const ENTRYPOINT: &str = "entrypoint.rs";
const RUNTIME: &str = "runtime.rs";
const EVENTS: &str = "events.rs";
const ONE_HOP: &str = "instructions/swap.rs";
const TWO_HOPS: &str = "instructions/swap_two_hops.rs";

pub const MUTANTS: [Mutant; 74] = [
    mutant(
        TERMS,
        "an input of zero is let through",
        "ensure(self.maximum_spent != 0, SwapGuardError::ZeroAmountIn)?;",
        "",
    ),
    mutant(
        TERMS,
        "a minimum of zero is let through",
        "ensure(self.minimum_received != 0, SwapGuardError::ZeroMinimumOut)?;",
        "",
    ),
    mutant(
        TERMS,
        "a swap expires one slot early",
        "current_slot()? <= self.expiry_slot",
        "current_slot()? < self.expiry_slot",
    ),
    mutant(
        TERMS,
        "a swap expires one slot late",
        "current_slot()? <= self.expiry_slot",
        "current_slot()? <= self.expiry_slot.saturating_add(1)",
    ),
    mutant(
        TERMS,
        "no swap expires",
        "current_slot()? <= self.expiry_slot",
        "current_slot()? <= u64::MAX",
    ),
    mutant(
        TERMS,
        "a swap without an expiry is held to slot zero",
        "if self.expiry_slot == NO_EXPIRY {",
        "if self.expiry_slot == u64::MAX {",
    ),
    mutant(
        MEASURE,
        "any program may own a token account",
        "if is_token_2022 && !address_eq(program, &TOKEN_2022_ID) {",
        "if false {",
    ),
    mutant(
        MEASURE,
        "a mint passes for a token account",
        "if !is_token_account(data, is_token_2022) {",
        "if false {",
    ),
    mutant(
        MEASURE,
        "the kind of an extended account is not looked at",
        "data.get(ACCOUNT_TYPE_OFFSET) == Some(&ACCOUNT_TYPE_TOKEN_ACCOUNT)",
        "data.len() > ACCOUNT_TYPE_OFFSET",
    ),
    mutant(
        MEASURE,
        "an extended account passes for one of SPL Token",
        "is_token_2022 && data.get(",
        "data.get(",
    ),
    mutant(
        MEASURE,
        "the mint of an account is not looked at",
        "if !address_eq(&head.mint, expected.mint) {",
        "if false {",
    ),
    mutant(
        MEASURE,
        "the owner of an account is not looked at",
        "if !address_eq(&head.owner, expected.owner) {",
        "if false {",
    ),
    mutant(
        MEASURE,
        "anything that arrives is enough",
        ".filter(|received| *received >= minimum)",
        ".filter(|received| *received > 0 || minimum == 0)",
    ),
    mutant(
        MEASURE,
        "one unit less than the minimum is enough",
        ".filter(|received| *received >= minimum)",
        ".filter(|received| received.saturating_add(1) >= minimum)",
    ),
    mutant(
        MEASURE,
        "the minimum itself is not enough",
        ".filter(|received| *received >= minimum)",
        ".filter(|received| *received > minimum)",
    ),
    mutant(
        MEASURE,
        "an output that falls counts as a gain",
        "        .checked_sub(before)\n        .filter",
        "        .checked_sub(before)\n        .or(Some(before.wrapping_sub(after)))\n        .filter",
    ),
    mutant(
        MEASURE,
        "any input may be spent",
        "if spent > maximum {",
        "if false {",
    ),
    mutant(
        MEASURE,
        "one unit more than the maximum may be spent",
        "if spent > maximum {",
        "if spent > maximum.saturating_add(1) {",
    ),
    mutant(
        MEASURE,
        "the maximum itself may not be spent",
        "if spent > maximum {",
        "if spent >= maximum {",
    ),
    mutant(
        MEASURE,
        "a middle account that falls in the first hop counts as delivered nothing",
        "None => Err(SwapGuardError::MiddleOverspent.into()),",
        "None => Err(SwapGuardError::SlippageExceeded.into()),",
    ),
    mutant(
        MEASURE,
        "a first hop that delivers nothing is followed by a second",
        "Some(0) => Err(SwapGuardError::SlippageExceeded.into()),\n",
        "",
    ),
    mutant(
        MEASURE,
        "the middle account may end below its start",
        "if after < before {",
        "if false {",
    ),
    mutant(
        MEASURE,
        "the middle account may end one unit below its start",
        "if after < before {",
        "if after.saturating_add(1) < before {",
    ),
    mutant(
        ENTRYPOINT,
        "trailing data is ignored",
        "data.len() == form.data_len(),",
        "data.len() >= form.data_len(),",
    ),
    mutant(
        ENTRYPOINT,
        "the receiver of a form is ignored",
        "self.has_receiver\n            .then(",
        "(self.has_receiver && self.is_two_hops)\n            .then(",
    ),
    mutant(
        ENTRYPOINT,
        "the program's own address is not looked at",
        "address_eq(input.program_id(), &crate::ID),",
        "true,",
    ),
    mutant(
        ENTRYPOINT,
        "the expiry is read from the wrong place",
        "expiry_slot: number(24),",
        "expiry_slot: number(16),",
    ),
    mutant(
        ENTRYPOINT,
        "the two amounts are exchanged",
        "maximum_spent: number(8),\n            minimum_received: number(16),",
        "maximum_spent: number(16),\n            minimum_received: number(8),",
    ),
    mutant(
        ONE_HOP,
        "one hop needs no signature",
        "ensure(user.is_signer(), ProgramError::MissingRequiredSignature)?;",
        "",
    ),
    mutant(
        ONE_HOP,
        "one hop takes accounts that are not writable",
        "ensure(accounts.are_writable(&WRITTEN), ErrorCode::ConstraintMut)?;",
        "",
    ),
    mutant(
        ONE_HOP,
        "one hop does not ask for a writable observation",
        "    at::OUTPUT_VAULT,\n    at::OBSERVATION_STATE,",
        "    at::OUTPUT_VAULT,\n    at::OUTPUT_VAULT,",
    ),
    mutant(
        ONE_HOP,
        "one hop calls any program",
        "address_eq(accounts.at(at::EXCHANGE_PROGRAM).address(), &EXCHANGE_ID)",
        "true",
    ),
    mutant(
        ONE_HOP,
        "one hop takes an account twice",
        "accounts.repeated & unique == 0",
        "true",
    ),
    mutant(
        ONE_HOP,
        "one hop ignores the receiver",
        "execute(accounts, terms, receiver.unwrap_or(user.address()))",
        "{ let _ = receiver; execute(accounts, terms, user.address()) }",
    ),
    mutant(
        ONE_HOP,
        "one hop pays the account that it takes from",
        "!address_eq(input.address(), output.address())",
        "true",
    ),
    mutant(
        ONE_HOP,
        "one hop checks no amounts",
        "    terms.check_amounts()?;\n",
        "",
    ),
    mutant(
        ONE_HOP,
        "one hop does not expire",
        "    terms.check_expiry()?;\n",
        "",
    ),
    mutant(
        ONE_HOP,
        "one hop does not check the output account before",
        "let output_before = checked_balance(&output, &expected, &OUTPUT)?;",
        "let output_before = unchecked_balance(&output);",
    ),
    mutant(
        ONE_HOP,
        "one hop does not check the output account after",
        "let output_after = checked_balance(&output, &expected, &OUTPUT)?;",
        "let output_after = unchecked_balance(&output);",
    ),
    mutant(
        ONE_HOP,
        "an exact output is swapped as an exact input",
        "(SWAP_BASE_OUTPUT, terms.minimum_received)",
        "(SWAP_BASE_INPUT, 0)",
    ),
    mutant(
        ONE_HOP,
        "the exchange is asked for the minimum",
        "Exact::Input => (SWAP_BASE_INPUT, 0),",
        "Exact::Input => (SWAP_BASE_INPUT, terms.minimum_received),",
    ),
    mutant(
        ONE_HOP,
        "what was received is returned for an exact output",
        "Exact::Output => spent,",
        "Exact::Output => received,",
    ),
    mutant(
        ONE_HOP,
        "input and output accounts are exchanged in the call",
        "Listed::writable(accounts.at(at::INPUT)),\n        Listed::writable(accounts.at(at::OUTPUT)),",
        "Listed::writable(accounts.at(at::OUTPUT)),\n        Listed::writable(accounts.at(at::INPUT)),",
    ),
    mutant(
        TWO_HOPS,
        "two hops need no signature",
        "ensure(user.is_signer(), ProgramError::MissingRequiredSignature)?;",
        "",
    ),
    mutant(
        TWO_HOPS,
        "two hops take accounts that are not writable",
        "ensure(accounts.are_writable(&WRITTEN), ErrorCode::ConstraintMut)?;",
        "",
    ),
    mutant(
        TWO_HOPS,
        "two hops do not ask for a writable second observation",
        "    at::SECOND_OUTPUT_VAULT,\n    at::SECOND_OBSERVATION_STATE,",
        "    at::SECOND_OUTPUT_VAULT,\n    at::SECOND_OUTPUT_VAULT,",
    ),
    mutant(
        TWO_HOPS,
        "two hops call any program",
        "address_eq(accounts.at(at::EXCHANGE_PROGRAM).address(), &EXCHANGE_ID)",
        "true",
    ),
    mutant(
        TWO_HOPS,
        "two hops take an account twice",
        "accounts.repeated & unique == 0",
        "true",
    ),
    mutant(
        TWO_HOPS,
        "two hops ignore the receiver",
        "execute(accounts, terms, receiver.unwrap_or(user.address()))",
        "{ let _ = receiver; execute(accounts, terms, user.address()) }",
    ),
    mutant(
        TWO_HOPS,
        "the middle account may be the input account",
        "[(input, middle), (input, output), (middle, output)]",
        "[(input, output), (input, output), (middle, output)]",
    ),
    mutant(
        TWO_HOPS,
        "the output account may be the input account",
        "[(input, middle), (input, output), (middle, output)]",
        "[(input, middle), (input, middle), (middle, output)]",
    ),
    mutant(
        TWO_HOPS,
        "the output account may be the middle account",
        "[(input, middle), (input, output), (middle, output)]",
        "[(input, middle), (input, output), (input, output)]",
    ),
    mutant(
        TWO_HOPS,
        "both hops may go through one pool",
        "!address_eq(first_pool.address(), second_pool.address())",
        "{ let _ = (first_pool, second_pool); true }",
    ),
    mutant(
        TWO_HOPS,
        "two hops check no amounts",
        "    terms.check_amounts()?;\n",
        "",
    ),
    mutant(
        TWO_HOPS,
        "two hops do not expire",
        "    terms.check_expiry()?;\n",
        "",
    ),
    mutant(
        TWO_HOPS,
        "two hops do not check the middle account before",
        "let middle_before = checked_balance(&middle, &of_middle, &MIDDLE)?;",
        "let middle_before = unchecked_balance(&middle);",
    ),
    mutant(
        TWO_HOPS,
        "two hops do not check the middle account after",
        "let middle_after = checked_balance(&middle, &of_middle, &MIDDLE)?;",
        "let middle_after = unchecked_balance(&middle);",
    ),
    mutant(
        TWO_HOPS,
        "two hops do not check the output account before",
        "let output_before = checked_balance(&output, &of_output, &OUTPUT)?;",
        "let output_before = unchecked_balance(&output);",
    ),
    mutant(
        TWO_HOPS,
        "two hops do not check the output account after",
        "let output_after = checked_balance(&output, &of_output, &OUTPUT)?;",
        "let output_after = unchecked_balance(&output);",
    ),
    mutant(
        TWO_HOPS,
        "the middle account is the receiver's",
        "owner: user.address(),",
        "owner: receiver,",
    ),
    mutant(
        TWO_HOPS,
        "the second hop is offered all that the middle account holds",
        "call.data.amounts[0] = delivered.to_le_bytes();",
        "call.data.amounts[0] = unchecked_balance(&middle).wrapping_add(delivered.wrapping_sub(delivered)).to_le_bytes();",
    ),
    mutant(
        TWO_HOPS,
        "the second hop is offered what the first was",
        "call.data.amounts[0] = delivered.to_le_bytes();",
        "_ = delivered;",
    ),
    mutant(
        TWO_HOPS,
        "the middle balance is not compared with its start",
        "    middle_kept(middle_before, middle_after)?;\n",
        "    _ = (middle_after, middle_kept);\n",
    ),
    mutant(
        TWO_HOPS,
        "the second hop takes from the input account",
        "    input.replace(accounts.at(at::MIDDLE));\n",
        "    _ = input;\n",
    ),
    mutant(
        TWO_HOPS,
        "the second hop pays the middle account",
        "    output.replace(accounts.at(at::OUTPUT));\n",
        "    _ = output;\n",
    ),
    mutant(
        TWO_HOPS,
        "the second hop goes through the first configuration",
        "    amm_config.replace(accounts.at(at::SECOND_AMM_CONFIG));\n",
        "    _ = amm_config;\n",
    ),
    mutant(
        TWO_HOPS,
        "the event names the first pool",
        "let [_, second_pool] = pools;",
        "let [second_pool, _] = pools;",
    ),
    mutant(
        EVENTS,
        "the event exchanges what was spent and received",
        "bytes[72..80].copy_from_slice(&spent.to_le_bytes());\n    bytes[80..].copy_from_slice(&received.to_le_bytes());",
        "bytes[72..80].copy_from_slice(&received.to_le_bytes());\n    bytes[80..].copy_from_slice(&spent.to_le_bytes());",
    ),
    mutant(
        RUNTIME,
        "one account too few is walked over",
        "if count < N {",
        "if count.wrapping_add(1) < N {",
    ),
    mutant(
        RUNTIME,
        "a repetition is not marked",
        "self.repeated |= 1_u64.wrapping_shl(first.into()) | 1_u64 << at;",
        "_ = 1_u64.wrapping_shl(first.into());",
    ),
    mutant(
        RUNTIME,
        "a repetition marks its second position alone",
        "self.repeated |= 1_u64.wrapping_shl(first.into()) | 1_u64 << at;",
        "self.repeated |= 1_u64 << at;",
    ),
    mutant(
        RUNTIME,
        "data is taken to be a multiple of eight bytes long",
        "length.wrapping_add(REST + 7) & !7",
        "length.wrapping_add(REST)",
    ),
    mutant(
        RUNTIME,
        "any repetition passes for that of one token program",
        "if usize::from((*record).borrow_state) != earlier {",
        "if (*record).borrow_state == NOT_BORROWED {",
    ),
    mutant(
        RUNTIME,
        "a signature is asked for instead of a writable account",
        "const IS_WRITABLE: u32 = 1 << 8;",
        "const IS_WRITABLE: u32 = 1;",
    ),
];
