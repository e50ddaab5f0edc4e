"""Runtime: rules of the chain's runtime that the guard's own proof does without, and a mutant may depend on.

The stack is zero before a program starts, and so is a byte behind the data of an account. Behind the last record stand the data
and the program's address, of which some can be read as if it were data, and nothing more. A call with a flag that the
caller has not got ends the transaction. Of what a call describes, the runtime reads all keys, and then of each account
the first info alone that has its key, and none of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import z3

from guard_proof import specification
from guard_proof.accounts import DATA, INPUT_END, KEY, LAMPORTS, LENGTH, OWNER, SIGNER, WRITABLE, Accounts, InstructionData
from guard_proof.errors import NotUnderstood
from guard_proof.memory import Memory
from guard_proof.solver import Solver
from guard_proof.specification import Formula, Statement
from guard_proof.state import Call, State
from guard_proof.syscalls import Syscalls
from guard_proof.values import Value, part, symbolic
from guard_proof.view import View

#: The byte by which Token-2022 says what an account is, behind the base account.
KIND = 165
#: Calls of the exchange that a swap makes.
MOST_CALLS = 2
#: Bytes of the address that stands behind the data.
BEHIND_DATA = 32
#: Where the region of the read-only data ends.
FIRST_REGION_END = 1 << 32
#: Bytes of the clock.
CLOCK_LENGTH = 40


def assume_zeros_behind_data(solver: Solver, accounts: Accounts) -> None:
    for position in range(accounts.positions):
        base = accounts.accounts[position]
        for moment in range(MOST_CALLS + 1):
            length = accounts.word(base, LENGTH, moment)
            at = DATA + KIND
            word = accounts.word(base, at - at % 8, moment)
            byte = z3.Extract(at % 8 * 8 + 7, at % 8 * 8, word)
            solver.assume(z3.Implies(z3.ULE(length, KIND), byte == 0))


class RuntimeMemory(Memory):
    """Begins with a stack of zeros; what the guard itself never reads may, once it is allowed, be anything or a fault."""

    def __init__(
        self, rodata: bytes, accounts: Accounts, data: InstructionData, solver: Solver, fresh: Callable[[], Value]
    ) -> None:
        super().__init__(rodata, accounts, data, solver, lambda: 0)
        self._anything = fresh
        self.allows_anything = False
        #: So many records there are in any case.
        self.fewest_records = accounts.positions
        #: States in which something was read that the runtime may refuse to read.
        self.faults: list[State] = []

    def load(self, state: State, address: Value, size: int) -> Value:
        try:
            return super().load(state, address, size)
        except NotUnderstood:
            if not self.allows_anything:
                raise
            self.faults.append(state.copy())
            state.conditions.append(z3.simplify(self._may_be_mapped(symbolic(address))))
            return part(self._anything(), 0, size)

    def _may_be_mapped(self, address: z3.BitVecRef) -> z3.BoolRef:
        """Whether something may stand there: behind the read-only data, which is the first region, and the input nothing does."""
        return z3.And(z3.ULT(address, INPUT_END), z3.Or(z3.ULT(address, len(self._rodata)), z3.UGE(address, FIRST_REGION_END)))

    def _load_account(self, state: State, base: z3.BitVecRef, offset: int, size: int) -> Value:
        """Of a record that there may not be, its first word is what stands behind the last one, and the rest may not be there."""
        number = self._accounts.number(base)
        if number >= self.fewest_records and (number, offset) != (0, -8):
            least = number if 0 <= offset and offset + size <= 8 else number + 1
            is_there = z3.UGE(self._accounts.count, least)
            if not self._solver.is_certain(state.conditions, is_there):
                fault = state.copy()
                fault.conditions.append(z3.simplify(z3.Not(is_there)))
                self.faults.append(fault)
                state.conditions.append(is_there)
        return super()._load_account(state, base, offset, size)

    def write_length(self, state: State, address: int, key: Value) -> None:
        kept, self._fresh = self._fresh, self._anything
        super().write_length(state, address, key)
        self._fresh = kept

    def _load_data(self, state: State, offset: int, size: int) -> Value:
        if 0 <= offset and offset + size <= BEHIND_DATA:
            return self._data.load(offset, size)
        return super()._load_data(state, offset, size)

    def is_readable(self, address: Value, size: int) -> bool:
        """Of read-only data, where a known address is not on the stack."""
        return isinstance(address, int) and address + size <= len(self._rodata)


class RuntimeSyscalls(Syscalls):
    def _get_sysvar(self, state: State) -> list[State]:
        """More of the clock than its slot is anything."""
        length = state.registers[4]
        if isinstance(length, int) and 8 < length <= CLOCK_LENGTH:
            state.registers[4] = 8
            to = state.registers[2]
            after = super()._get_sysvar(state)
            assert isinstance(to, int)
            for at in range(8, length):
                self._memory.store(state, to + at, 1, part(self._fresh(), 0, 1))
            return after
        return super()._get_sysvar(state)

    def _invoke(self, state: State) -> list[State]:
        after = super()._invoke(state)
        for each in after:
            call = each.events[-1]
            assert isinstance(call, Call)
            for listed in call.listed:
                each.conditions += self._allowed(*listed)
            for key in [key for key, *_ in (*call.listed, *call.infos)]:
                each.conditions += self._mapped(key)
        return after

    def _mapped(self, key: Value) -> list[z3.BoolRef]:
        """That some memory may be where a key is read; of an account's own key it is known."""
        if not isinstance(key, int) and self._memory.pointers.parse(key):
            return []
        return [z3.simplify(z3.ULT(symbolic(key), INPUT_END))]

    def _allowed(self, key: Value, writable: Value, signer: Value) -> list[z3.BoolRef]:
        """That the caller has the flags with which it hands an account on."""
        pointer = None if isinstance(key, int) else self._memory.pointers.parse(key)
        if pointer is None or pointer[1] != KEY:
            return []
        flags = self._memory._accounts.word(pointer[0], 0, 0)
        pairs = ((writable, WRITABLE), (signer, SIGNER))
        return [
            z3.simplify(z3.Extract(8 * place + 7, 8 * place, flags) != 0)
            for value, place in pairs if isinstance(value, int) and value
        ]  # fmt: skip


def deeds(view: View, memory: RuntimeMemory) -> Iterator[Statement]:
    """The deeds of the specification, of what the runtime looks at."""
    for statement in specification.deeds(view):
        if not statement.name.endswith("describes every account as it is"):
            yield statement
            continue
        number = 1 if statement.name.startswith("call 2") else 0
        yield Statement(statement.name, describes_what_is_read(view, view.calls[number], number, memory))


def describes_what_is_read(view: View, call: Call, moment: int, memory: RuntimeMemory) -> Formula:
    names = [name for name in view.form.accounts if name != "exchange program"]
    if len(call.infos) < len(names):
        return z3.BoolVal(False)
    facts: list[Formula] = []
    for at, (name, (key, lamports, length, data, owner)) in enumerate(zip(names, call.infos, strict=False)):
        account = view.account(name)
        earlier = [*names[:at], "exchange program"]
        is_repeated = z3.Or(*[view.account(each).home == account.home for each in earlier])
        facts.append(symbolic(key) == account.record + KEY)
        facts += [
            z3.Or(is_repeated, fact)
            for fact in (
                symbolic(lamports) == account.record + LAMPORTS, symbolic(data) == account.record + DATA,
                symbolic(owner) == account.record + OWNER,
                z3.Or(*[symbolic(length) == account.length(each) for each in range(moment + 1)]),
            )
        ]  # fmt: skip
    facts += [z3.BoolVal(memory.is_readable(key, 32)) for key, *_ in call.infos[len(names) :]]
    return z3.And(*facts)
