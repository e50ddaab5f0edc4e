"""Recorded inputs: what the guard's own tests sent, executed once more in the executor and on the chain.

The tests write them where `SLUICE_RECORD_INPUTS` names a folder. Registers and stack are compared at some instructions of each
input, besides the result, what is logged and returned, and the compute units.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from guard_proof import elf
from guard_proof.accounts import FIRST_SLOT
from guard_proof.control import ControlFlow
from guard_proof.decode import Instruction as Decoded
from guard_proof.decode import Kind, decode
from guard_proof.elf import Program
from guard_proof.interface import FORMS, Form
from guard_proof.keys import GUARD
from guard_proof.state import Call, Logged, Returned, State
from guard_proof.values import symbolic
from solders.account import Account as ChainAccount
from solders.clock import Clock
from solders.compute_budget import set_compute_unit_limit
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction
from solders.transaction_metadata import TransactionMetadata

from . import probe
from .chain import LAMPORTS, MOST_UNITS
from .executor import INVOKE, Execution, Trial
from .input import Input
from .scenario import Account, Scenario, records

DATA_LINE = "Program data: "
#: Instructions of each input at which registers and stack are compared.
PROBES = 3


@dataclass
class Recorded:
    name: str
    slot: int
    data: bytes
    #: By position.
    accounts: list[Account]
    programs: dict[bytes, Path]

    @property
    def form(self) -> Form:
        """The instruction that the data asks for; any where it asks for none."""
        named = [form for form in FORMS if self.data[:8] == form.discriminator]
        return named[0] if named else FORMS[0]


def read(file: Path) -> Recorded:
    given = Recorded(file.name, 0, b"", [], {})
    flags: list[tuple[bytes, bool, bool]] = []
    held: dict[bytes, tuple[bytes, int, bool, bytes]] = {}
    for line in file.read_text().splitlines():
        word, *rest = line.split(" ")
        if word == "slot":
            given.slot = int(rest[0])
        elif word == "data":
            given.data = base64.b64decode(rest[0])
        elif word == "program":
            given.programs[bytes(Pubkey.from_string(rest[0]))] = file.parent / f"{rest[1]}.so"
        elif word == "meta":
            flags.append((bytes(Pubkey.from_string(rest[0])), "sign" in rest[1], "write" in rest[1]))
        else:
            key, owner, lamports, kind, data = rest
            content = (bytes(Pubkey.from_string(owner)), int(lamports), kind == "program", base64.b64decode(data))
            held[bytes(Pubkey.from_string(key))] = content
    made: dict[bytes, Account] = {}
    for key, (owner, lamports, is_program, data) in held.items():
        signs = any(signer for each, signer, _ in flags if each == key)
        writes = any(writable for each, _, writable in flags if each == key)
        made[key] = Account(key, owner, data, writes and key != GUARD, signs, is_program, lamports)
    given.accounts = [made[key] for key, _, _ in flags]
    return given


@dataclass
class Seen:
    """What the chain shows of one execution."""

    is_success: bool
    logged: list[list[bytes]]
    returned: bytes
    error: str
    #: All accounts after a success.
    accounts: dict[bytes, ChainAccount]


class RecordedChain:
    """A chain in memory with the accounts and programs of one recorded input."""

    def __init__(self, given: Recorded) -> None:
        self._given = given
        user = Keypair.from_seed(bytes(range(32)))
        self._svm = LiteSVM().with_transaction_history(0).with_sigverify(False).with_blockhash_check(False)
        self._svm = self._svm.with_log_bytes_limit(None)
        self._svm.set_account(user.pubkey(), ChainAccount(LAMPORTS, b"", Pubkey.default(), False, 0))
        self._svm.set_clock(Clock(given.slot, 0, 500, 500, 1_800_000_000))
        for key, file in given.programs.items():
            self._svm.add_program(Pubkey(key), file.read_bytes())
        for account in given.accounts:
            is_there = account.lamports or account.data
            if is_there and not account.is_program:
                made = ChainAccount(account.lamports, account.data, Pubkey(account.owner), False, 0)
                self._svm.set_account(Pubkey(account.key), made)
            elif account.is_program:
                self._take_over(account)
        metas = [AccountMeta(Pubkey(each.key), each.is_signer, each.is_writable) for each in given.accounts]
        calls = [set_compute_unit_limit(MOST_UNITS), Instruction(Pubkey(GUARD), given.data, metas)]
        blockhash = self._svm.latest_blockhash()
        self._transaction = Transaction.new_unsigned(Message.new_with_blockhash(calls, user.pubkey(), blockhash))

    def _take_over(self, account: Account) -> None:
        """What stands at a program's address here, which may be of another loader than where it was recorded."""
        found = self._svm.get_account(Pubkey(account.key))
        if found is not None:
            account.owner, account.lamports, account.data = bytes(found.owner), found.lamports, bytes(found.data)
            account.is_program = found.executable

    def run(self, guard: bytes) -> Seen:
        self._svm.add_program(Pubkey(GUARD), guard)
        result = self._svm.simulate_transaction(self._transaction)
        metadata = result.meta()
        is_success = isinstance(metadata, TransactionMetadata) and not hasattr(result, "err")
        logged = logged_by_the_guard(metadata.logs())
        accounts = {bytes(key): account for key, account in result.post_accounts()} if is_success else {}
        error = "" if is_success else str(result.err())
        return Seen(is_success, logged, bytes(metadata.return_data().data), error, accounts)


def logged_by_the_guard(logs: list[str]) -> list[list[bytes]]:
    lines = [line.removeprefix(DATA_LINE) for line in lines_of_the_guard(logs) if line.startswith(DATA_LINE)]
    return [[base64.b64decode(field) for field in line.split(" ")] for line in lines]


def lines_of_the_guard(logs: list[str]) -> Iterator[str]:
    """What the guard itself logged, and not a program that it called."""
    running: list[str] = []
    for line in logs:
        words = line.split()
        if len(words) > 2 and words[0] == "Program" and words[2] == "invoke":
            running.append(words[1])
        elif len(words) > 2 and words[0] == "Program" and words[2] in ("success", "failed:"):
            running.pop()
        elif running and running[-1] == str(Pubkey(GUARD)):
            yield line


class RecordedInput(Input):
    """The input of a recorded call. A call of the exchange that the chain did not let return has no input after it."""

    def __init__(self, scenario: Scenario, after: list[dict[bytes, ChainAccount]]) -> None:
        super().__init__(scenario)
        for accounts in after:
            image = bytearray(self.images[-1])
            for account, record, address in zip(scenario.accounts, records(scenario), self.addresses, strict=True):
                found = accounts.get(account.key)
                if found is None:
                    continue
                changed = Account(
                    account.key, bytes(found.owner), bytes(found.data), account.is_writable, account.is_signer,
                    account.is_program, found.lamports,
                )  # fmt: skip
                (made,) = records(Scenario("", scenario.form, [changed], b""))
                at = address - (FIRST_SLOT - 8)
                # What the account lost by getting shorter is zero.
                made = made.ljust(len(record), b"\0")
                image[at : at + len(made)] = made
            self.images.append(bytes(image))

    def has_return(self, call: int) -> bool:
        return call + 1 < len(self.images)


class Comparison:
    """Executes recorded inputs both ways."""

    def __init__(self, guard: bytes, seed: int) -> None:
        self._file = guard
        self._program = elf.parse(guard)
        self._code = decode(self._program.code)
        self._flow = ControlFlow(self._code, self._program.entry)
        self._random = random.Random(seed)
        self.successes = self.calls = self.probes = 0

    def compare(self, given: Recorded) -> list[str]:
        """What differs, in words."""
        chain = RecordedChain(given)
        seen = chain.run(self._file)
        scenario = Scenario(given.name, given.form, given.accounts, given.data)
        after = self._after_calls(chain)
        trial = Trial(scenario, given.slot, RecordedInput(scenario, after))
        execution = trial.execute(self._program, self._code, self._flow)
        faults = self._compare_ends(execution, seen)
        self.successes += seen.is_success
        self.calls += len(after)
        for at in self._probed(execution):
            faults += self._compare_at(at, trial, chain)
        return faults

    def _after_calls(self, chain: RecordedChain) -> list[dict[bytes, ChainAccount]]:
        """The accounts after each call of the exchange that returns, in the order of the calls in the code."""
        after: list[dict[bytes, ChainAccount]] = []
        calls = [at for at, each in enumerate(self._code) if each and (each.kind, each.immediate) == (Kind.SYSCALL, INVOKE)]
        for at in calls:
            seen = chain.run(probe.succeeding_after(self._file, self._program, at))
            # A success that was logged did not make this call.
            if seen.is_success and not seen.logged:
                after.append(seen.accounts)
        return after

    def _compare_ends(self, execution: Execution, seen: Seen) -> list[str]:
        results = [symbolic(state.registers[0]).as_long() for state in execution.ends]
        if not execution.ends or results[0] != 0:
            if seen.is_success:
                return [f"{results} in the executor, success on the chain"]
            if results and results[0] < 1 << 32 and f"Custom({results[0]})" not in seen.error:
                return [f"{results[0]} in the executor, {seen.error} on the chain"]
            return []
        if not seen.is_success:
            return [f"success in the executor, {seen.error} on the chain"]
        state = execution.ends[0]
        returned = [words(event.words) for event in state.events if isinstance(event, Returned)]
        faults = []
        if logs(state) != seen.logged:
            faults.append("other data is logged")
        if returned != [seen.returned]:
            faults.append("other data is returned")
        return faults

    def _probed(self, execution: Execution) -> list[int]:
        """Some of the instructions that were executed, but for those of two halves, which can not be replaced."""
        single = [at for at in sorted(execution.reached) if is_single(self._code[at])]
        return self._random.sample(single, min(PROBES, len(single)))

    def _compare_at(self, at: int, trial: Trial, chain: RecordedChain) -> list[str]:
        file = probe.showing(self._file, self._program, at)
        program = elf.parse(file)
        code = decode(program.code)
        execution = trial.execute(program, code, ControlFlow(code, program.entry))
        seen = chain.run(file)
        # What follows a refusal of the clock is executed, and never on a chain: such an instruction shows nothing, and the
        # program ends as it does without the probe.
        shown = execution.aborted or execution.ends
        found = logs(shown[0]) if shown else []
        self.probes += bool(seen.logged)
        return [f"registers or stack differ at instruction {at}"] if found != seen.logged else []


def is_single(instruction: Decoded | None) -> bool:
    return instruction is not None and instruction.kind != Kind.CONSTANT


def words(values: object) -> bytes:
    return b"".join(symbolic(word).as_long().to_bytes(8, "little") for word in values)  # type: ignore[attr-defined]


def logs(state: State) -> list[list[bytes]]:
    return [[words(field) for field in event.fields] for event in state.events if isinstance(event, Logged)]
