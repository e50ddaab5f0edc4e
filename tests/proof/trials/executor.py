"""Executor: runs a scenario in the prover's own machine, and judges it by the specification."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import z3

from guard_proof import specification, stack
from guard_proof.accounts import FIRST_SLOT, INPUT_START, KEY, LENGTH
from guard_proof.control import ControlFlow
from guard_proof.decode import Instruction
from guard_proof.elf import Program
from guard_proof.errors import NotUnderstood
from guard_proof.machine import Machine, Services
from guard_proof.solver import Solver
from guard_proof.stack import Stack
from guard_proof.state import State, SysvarFailed
from guard_proof.syscalls import BYTES_PER_UNIT, Syscalls, hash_of
from guard_proof.values import Value
from guard_proof.view import View

from .input import Input
from .scenario import Scenario


INVOKE = hash_of("sol_invoke_signed_c")


class Fault(Exception):
    """An access that the runtime does not allow, which ends the transaction."""


class KnownPointers:
    def settle(self, value: Value, conditions: list[z3.BoolRef]) -> Value:
        return value


class KnownMemory:
    """Read-only data, stack and input, of which every byte is known."""

    def __init__(self, rodata: bytes, given: Input) -> None:
        self.pointers = KnownPointers()
        self._rodata = rodata
        self._input = given

    def load(self, state: State, address: Value, size: int) -> Value:
        address = known(address)
        if address >> 32 == stack.START >> 32:
            try:
                return state.stack.load(address, size, lambda: 0)
            except NotUnderstood as reason:
                raise Fault(str(reason)) from reason
        if address >> 32 == INPUT_START >> 32:
            value = self._input.read(address, size, state.moment)
            if value is None:
                raise Fault(f"nothing is at {address:#x}")
            return value
        if address + size > len(self._rodata):
            raise Fault(f"nothing is at {address:#x}")
        return int.from_bytes(self._rodata[address : address + size], "little")

    def store(self, state: State, address: Value, size: int, value: Value) -> None:
        address = known(address)
        if address >> 32 != stack.START >> 32:
            raise Fault(f"a write to {address:#x}")
        try:
            state.stack.store(address, size, value)
        except NotUnderstood as reason:
            raise Fault(str(reason)) from reason

    def write_length(self, state: State, address: int, key: Value) -> None:
        """The runtime writes the length of an account that the call changed, where the caller described the old one."""
        place = known(key) - KEY + LENGTH
        old, new = (self._input.read(place, 8, moment) for moment in (state.moment - 1, state.moment))
        if new is not None and new != old:
            self.store(state, address, 8, new)


def known(value: Value) -> int:
    if not isinstance(value, int):
        raise AssertionError("a known input led to an open number")
    return value & (1 << 64) - 1


class NotingSyscalls(Syscalls):
    """Ends at calls that do not return."""

    def __init__(self, memory: KnownMemory, given: Input, slot: int, fresh: Callable[[], Value]) -> None:
        super().__init__(memory, slot, fresh)  # type: ignore[arg-type]
        self._input = given

    def serve(self, state: State, name: int) -> list[State]:
        if name == INVOKE and not self._input.has_return(state.moment):
            return []
        return super().serve(state, name)


class KnownAccounts:
    """What the specification asks of accounts."""

    def __init__(self, given: Input) -> None:
        self._input = given
        self.accounts = [z3.BitVecVal(each, 64) for each in given.addresses]
        self.homes = [z3.BitVecVal(each, 8) for each in given.homes]
        self.count = z3.BitVecVal(given.count, 64)

    def bytes(self, position: int, offset: int, size: int, moment: int) -> z3.BitVecRef:
        start = self._input.addresses[position] + offset
        words = [self._input.read(start + at, 8, moment) or 0 for at in range(0, size, 8)]
        parts = [z3.BitVecVal(word, 64) for word in words]
        return z3.Concat(*reversed(parts)) if len(parts) > 1 else parts[0]


class KnownData:
    def __init__(self, scenario: Scenario) -> None:
        self.length = z3.BitVecVal(len(scenario.data), 64)
        data = scenario.data.ljust(128, b"\0")
        self.words = [word(data, at) for at in range(0, 128, 8)]
        self.program = [word(scenario.program, at) for at in range(0, 32, 8)]


def word(data: bytes, at: int) -> z3.BitVecRef:
    return z3.BitVecVal(int.from_bytes(data[at : at + 8], "little"), 64)


@dataclass
class Verdict:
    """How a program ended, and what of the specification that breaks."""

    #: The program's result; nothing where it ended otherwise.
    result: int | None
    broken: list[str] = field(default_factory=list)
    units: int = 0
    #: What the program did, where it returned.
    state: State | None = None

    @property
    def is_success(self) -> bool:
        return self.result == 0


@dataclass
class Execution:
    #: States that returned, and that called `abort`.
    ends: list[State]
    aborted: list[State]
    #: Instructions that were executed.
    reached: set[int]


class Trial:
    """A scenario, ready to be executed by any program."""

    def __init__(self, scenario: Scenario, slot: int, given: Input | None = None) -> None:
        self.scenario = scenario
        self._slot = slot
        self._input = given or Input(scenario)

    def execute(self, program: Program, code: list[Instruction | None], flow: ControlFlow) -> Execution:
        """How the program ends, without a judgement."""
        memory = KnownMemory(program.rodata, self._input)
        numbers = itertools.count()
        fresh = lambda: z3.BitVec(f"anything {next(numbers)}", 64)  # noqa: E731
        syscalls = NotingSyscalls(memory, self._input, self._slot, fresh)  # type: ignore[arg-type]
        machine = Machine(code, flow, Services(memory, syscalls, Solver(), lambda: 0))  # type: ignore[arg-type]
        registers: list[Value] = [0] * 11
        registers[1], registers[2], registers[10] = FIRST_SLOT - 8, self._input.data, stack.START + stack.FRAME
        start = State(program.entry, registers, Stack())
        try:
            every = [
                state for state in machine.run(start)
                if not any(isinstance(event, SysvarFailed) for event in state.events)
            ]  # fmt: skip
        except (Fault, NotUnderstood, ZeroDivisionError):
            every = []
        ends, aborted = ([each for each in every if each.is_aborted == is_aborted] for is_aborted in (False, True))
        return Execution(ends, aborted, machine.reached)

    def run(self, program: Program, code: list[Instruction | None], flow: ControlFlow) -> Verdict:
        """Executes the program, and compares what it did with what the specification says of this very input."""
        ends = self.execute(program, code, flow).ends
        if not ends:
            return Verdict(None, self._broken_by_refusal(None))
        (state,) = ends
        result = known(state.registers[0])
        broken = self._broken_by_success(state) if result == 0 else self._broken_by_refusal(state)
        return Verdict(result, broken, state.units, state)

    def _view(self, state: State) -> View | None:
        if len(self.scenario.accounts) < len(self.scenario.form.accounts):
            return None
        slot = z3.BitVecVal(self._slot, 64)
        return View(self.scenario.form, KnownAccounts(self._input), KnownData(self.scenario), slot, state)  # type: ignore[arg-type]

    def _broken_by_success(self, state: State) -> list[str]:
        view = self._view(state)
        if view is None:
            return ["all accounts are there"]
        statements = [*specification.requirements(view), *specification.deeds(view)]
        return [each.name for each in statements if not holds(each.formula)]

    def _broken_by_refusal(self, state: State | None) -> list[str]:
        """A refusal of an input that meets all requirements, as far as the calls went; all of them, where it ended by itself."""
        empty = State(0, [0] * 11, Stack())
        view = self._view(state or empty)
        if view is None:
            return []
        moment = state.moment if state else view.end
        judged = [each for each in specification.requirements(view) if each.moment <= moment]
        return ["nothing that is good is refused"] if all(holds(each.formula) for each in judged) else []


def holds(formula: z3.BoolRef) -> bool:
    answer = z3.simplify(formula)
    if z3.is_true(answer) or z3.is_false(answer):
        return z3.is_true(answer)
    raise AssertionError(f"a known input leaves open: {answer}")


def handed_on(scenario: Scenario) -> int:
    """What the runtime charges for the data of the accounts that a success hands on, compute units."""
    given = Input(scenario)
    total = 0
    for moment, hop in enumerate(scenario.form.hops):
        positions = {scenario.form.accounts.index(name) for name in hop.accounts}
        for start in {given.addresses[each] for each in positions}:
            length = given.read(start + LENGTH, 8, moment)
            assert length is not None
            total += length // BYTES_PER_UNIT
    return total
