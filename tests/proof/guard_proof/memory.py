"""Memory: what an address stands for, and what is read and written there."""

from __future__ import annotations

from collections.abc import Callable

import z3

from . import stack
from .accounts import LENGTH, Accounts, InstructionData
from .errors import NotUnderstood
from .pointers import Pointers, split, terms_of
from .solver import Solver
from .state import State
from .values import Value, reduced, symbolic

#: More than a list of accounts has.
MOST_ADDRESSES = 64


class Memory:
    """The regions that a program can reach: its read-only data, the stack and the input."""

    def __init__(
        self, rodata: bytes, accounts: Accounts, data: InstructionData, solver: Solver, fresh: Callable[[], Value]
    ) -> None:
        self._rodata = rodata
        self._accounts = accounts
        self._data = data
        self._solver = solver
        self._fresh = fresh
        self.pointers = Pointers(accounts)

    def load(self, state: State, address: Value, size: int) -> Value:
        address = reduced(address)
        if isinstance(address, int):
            return self._load_known(state, address, size)
        address = self.pointers.settle(address, state.conditions)
        assert not isinstance(address, int)
        pointer = self.pointers.parse(address)
        if pointer:
            return self._load_account(state, *pointer, size)
        terms, offset = split(address)
        names = {term.get_id() for term in terms}
        if names == {self._data.start.get_id()}:
            return self._load_data(state, offset, size)
        if names == {self._data.start.get_id(), self._data.length.get_id()}:
            return self._data.load_program(offset, size)
        choices = [term for term in terms if z3.is_app_of(term, z3.Z3_OP_ITE)]
        if len(choices) == 1 and self.pointers.may_lead_to_input(choices[0], self._data.start):
            return self._load_either(state, address, choices[0], size)
        return self._load_one_of(state, address, size)

    def _load_either(self, state: State, address: z3.BitVecRef, choice: z3.BitVecRef, size: int) -> Value:
        """What stands at one of two addresses, of which one is the case."""
        condition, one, other = choice.children()
        values = []
        for branch, pointer in ((condition, one), (z3.simplify(z3.Not(condition)), other)):
            case = state.copy()
            case.conditions.append(branch)
            if self._solver.is_possible(case.conditions):
                values.append(symbolic(self.load(case, z3.substitute(address, (choice, pointer)), size)))
        return reduced(z3.If(condition, *values)) if len(values) == 2 else values[0]

    def store(self, state: State, address: Value, size: int, value: Value) -> None:
        """Writes to the stack. The guard has no business writing anywhere else."""
        address = reduced(address)
        if not isinstance(address, int):
            raise NotUnderstood(f"instruction {state.at} writes to an address that is not known")
        if address >> 32 != stack.START >> 32:
            raise NotUnderstood(f"instruction {state.at} writes to {address:#x}, which is not the stack")
        state.stack.store(address, size, value)

    def write_length(self, state: State, address: int, key: Value) -> None:
        """What the runtime does to a length that a program describes to it: the account's new one, or the old one is left."""
        old = symbolic(self.load(state, address, 8))
        pointer = None if isinstance(key, int) else self.pointers.parse(key)
        new = self._accounts.word(pointer[0], LENGTH, state.moment) if pointer else symbolic(self._fresh())
        is_written = z3.simplify(symbolic(self._fresh()) == 0)
        self.store(state, address, 8, reduced(z3.If(is_written, new, old)))

    def _load_known(self, state: State, address: int, size: int) -> Value:
        if address >> 32 == stack.START >> 32:
            return state.stack.load(address, size, self._fresh)
        if address + size <= len(self._rodata):
            return int.from_bytes(self._rodata[address : address + size], "little")
        raise NotUnderstood(f"instruction {state.at} reads {address:#x}, where nothing is modelled")

    def _load_account(self, state: State, base: z3.BitVecRef, offset: int, size: int) -> Value:
        number = self._accounts.number(base)
        if base.eq(self._accounts.slots[0]) and (offset, size) == (-8, 8):
            return self._accounts.count
        is_slot = base.eq(self._accounts.slots[number])
        if is_slot and number < self._accounts.positions and offset > 0:
            is_account = z3.simplify(self._accounts.marker(number) == 255)
            if any(is_account.eq(each) for each in state.conditions):
                base = self._accounts.accounts[number]
        return self._accounts.load(base, offset, size, state.moment)

    def _load_data(self, state: State, offset: int, size: int) -> Value:
        length = self._data.length
        if (offset, size) == (-8, 8):
            return length
        inside = z3.UGE(length, offset + size)
        if offset < 0 or not self._solver.is_certain(state.conditions, inside):
            raise NotUnderstood(f"instruction {state.at} reads past the instruction's data")
        return self._data.load(offset, size)

    def _load_one_of(self, state: State, address: z3.BitVecRef, size: int) -> Value:
        """An element of a list: the address is known once one byte of the input is."""
        index = self._index(state, address)
        values: list[tuple[int, Value]] = []
        conditions = list(state.conditions)
        while (example := self._solver.example(conditions)) is not None:
            if len(values) == MOST_ADDRESSES:
                raise NotUnderstood(f"instruction {state.at} uses more than {MOST_ADDRESSES} addresses")
            number = example.eval(index, model_completion=True).as_long()
            known = self._with(address, index, number)
            values.append((number, self._load_known(state, known, size)))
            conditions.append(z3.simplify(index != number))
        chosen = symbolic(values[-1][1])
        for number, value in values[:-1]:
            chosen = z3.If(index == number, symbolic(value), chosen)
        return self.pointers.settle(reduced(chosen), state.conditions)

    def _index(self, state: State, address: z3.BitVecRef) -> z3.BitVecRef:
        """The only part of the input that an address depends on: the first byte of a record."""
        parts = [each for each in terms_of(address) if z3.is_app_of(each, z3.Z3_OP_UNINTERPRETED)]
        number = self._accounts.number_of_word(parts[0]) if len(parts) == 1 else None
        if number is None or number >= self._accounts.positions:
            raise NotUnderstood(f"instruction {state.at} uses an address that depends on {len(parts)} things")
        return self._accounts.marker(number)

    def _with(self, address: z3.BitVecRef, index: z3.BitVecRef, number: int) -> int:
        word = index.arg(0)
        known = z3.Concat(z3.BitVec("rest of an index", word.size() - 8), z3.BitVecVal(number, 8))
        value = z3.simplify(z3.substitute(address, (word, known)))
        if not z3.is_bv_value(value):
            raise NotUnderstood("an address depends on more than the first byte of a record")
        return value.as_long()
