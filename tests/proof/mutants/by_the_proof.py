"""By the proof: why a mutant is the same as the guard, by executing the guard once more on every input at once.

Each reason holds for all inputs: the changed instruction is never executed, or the changed data never read; wherever it is
executed, its effect is the same, or it is wherever the clock could be read, which it always can; it changes the code of a
refusal alone; what it stores is never read; or the whole proof, both ways, holds for the mutant as well.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable

import z3

from guard_proof import stack
from guard_proof.control import ControlFlow
from guard_proof.decode import Instruction, Kind, decode
from guard_proof.elf import Program
from guard_proof.errors import NotUnderstood, Undecided
from guard_proof.interface import FORMS
from guard_proof.machine import Machine, Services
from guard_proof.memory import Memory
from guard_proof.proof import Execution, prove
from guard_proof.solver import Solver
from guard_proof.state import State, SysvarFailed
from guard_proof.syscalls import Syscalls
from guard_proof.values import Value, compare, compute, swap_bytes, symbolic

from .codes import is_only_a_code
from .mutations import Mutation

NEVER_EXECUTED = "no input executes it"
NEVER_READ = "nothing reads it"
SAME_EFFECT = "the same effect on every input"
ONLY_A_CODE = "another code of the same refusals"
WITHOUT_CLOCK = "another effect only where the runtime refuses the clock, which it never does"
STORED_FOR_NOTHING = "nothing reads what it stores"

#: Every statement holds, and no refusal is without a reason. That no input ends in an abort is not part of it: the chain
#: shows that no case does.
PROVED = "proved"
#: Processor seconds for the proof of one mutant: the guard's own takes about sixty.
MOST_SECONDS = 200

#: Where an effect that ends the transaction would be written.
Effect = tuple[Value, ...]


class NotingMemory(Memory):
    """Notes which bytes of the read-only data and of the stack are read."""

    def note_in(self, read: set[int]) -> None:
        self._read = read

    def _load_known(self, state: State, address: int, size: int) -> Value:
        self._read.update(range(address, address + size))
        return super()._load_known(state, address, size)


class ComparingMachine(Machine):
    """Executes the guard, and compares the effect of changed instructions wherever they are met."""

    #: By instruction: the changed ones of the mutants.
    changed: dict[int, dict[str, Instruction]]
    #: Mutants that do something else in some state, and in some state in which the clock was not refused.
    differ: set[str]
    differ_with_clock: set[str]
    solver: Solver
    memory: Memory
    #: Where stores go, by instruction, and by mutant.
    stored: dict[int | str, set[int]]

    def _compute(self, state: State, instruction: Instruction) -> None:
        self._compare(state, instruction)
        super()._compute(state, instruction)

    def _branch(self, state: State, instruction: Instruction) -> list[State]:
        self._compare(state, instruction)
        return super()._branch(state, instruction)

    def _compare(self, state: State, instruction: Instruction) -> None:
        mutants = self.changed.get(state.at)
        if not mutants:
            return
        has_clock = not any(isinstance(event, SysvarFailed) for event in state.events)
        for name, changed in mutants.items():
            self._note_store(state, instruction, state.at)
            self._note_store(state, changed, name)
            if name in (self.differ_with_clock if has_clock else self.differ):
                continue
            if not self._is_same(state, instruction, changed):
                self.differ.add(name)
                if has_clock:
                    self.differ_with_clock.add(name)

    def _is_same(self, state: State, one: Instruction, other: Instruction) -> bool:
        if is_nothing(other, state.at) and self._clears_again(state, one):
            return True
        try:
            first, second = self._effect(state, one), self._effect(state, other)
        except (NotUnderstood, ZeroDivisionError):
            return False
        if first is None or second is None or len(first) != len(second):
            return False
        different = z3.simplify(z3.Or(*[symbolic(a) != symbolic(b) for a, b in zip(first, second, strict=True)]))
        if z3.is_false(different):
            return True
        return not self.solver.is_possible([*state.conditions, different])

    def _effect(self, state: State, instruction: Instruction) -> Effect | None:
        """What an instruction does, as numbers: what is changed, into what, and where it goes on."""
        state = state.copy()
        registers, target, goes_on = state.registers, instruction.target, state.at + 1
        other: Value = instruction.immediate if instruction.source is None else registers[instruction.source]
        match instruction.kind:
            case Kind.JUMP:
                return (0, 0, 0, instruction.to)
            case Kind.BRANCH:
                taken = compare(instruction.operation, registers[target], other, instruction.width)
                if isinstance(taken, bool):
                    return (0, 0, 0, instruction.to if taken else instruction.next)
                to = z3.If(taken, z3.BitVecVal(instruction.to, 64), z3.BitVecVal(instruction.next, 64))
                return (0, 0, 0, to)
            case Kind.CONSTANT:
                return (1, target, instruction.immediate, goes_on)
            case Kind.LOAD:
                address = compute("add", other, instruction.offset, 64)
                return (1, target, self.memory.load(state, address, instruction.width), goes_on)
            case Kind.STORE:
                address = compute("add", registers[target], instruction.offset, 64)
                kept = compute("and", other, (1 << 8 * instruction.width) - 1, 64)
                return (1 + instruction.width, address, kept, goes_on)
            case Kind.ARITHMETIC:
                return (1, target, compute(instruction.operation, registers[target], other, instruction.width), goes_on)
            case Kind.SWAP_BYTES:
                return (1, target, swap_bytes(instruction.operation, registers[target], instruction.width), goes_on)
        return None

    def _clears_again(self, state: State, instruction: Instruction) -> bool:
        """Whether it stores zero where nothing was stored and the runtime has put zero, which the proof leaves open."""
        if instruction.kind != Kind.STORE:
            return False
        other: Value = instruction.immediate if instruction.source is None else state.registers[instruction.source]
        address = compute("add", state.registers[instruction.target], instruction.offset, 64)
        is_zero = isinstance(other, int) and other & (1 << 8 * instruction.width) - 1 == 0
        if not is_zero or not isinstance(address, int) or address >> 32 != stack.START >> 32:
            return False
        cells = state.stack.cells
        near = [start for start in range(address - 7, address + instruction.width) if start in cells]
        return not any(start + cells[start][0] > address for start in near)

    def _note_store(self, state: State, instruction: Instruction, name: int | str) -> None:
        """Where a store goes; to everything, where that is not known."""
        if instruction.kind != Kind.STORE:
            return
        address = compute("add", state.registers[instruction.target], instruction.offset, 64)
        if isinstance(address, int):
            self.stored.setdefault(name, set()).update(range(address, address + instruction.width))
        else:
            self.stored.setdefault(name, set()).add(-1)


class Reasons:
    """Executes the guard once, and knows of each mutant why it is the same, if it is."""

    def __init__(self, program: Program, mutants: list[Mutation], changed: dict[str, Program]) -> None:
        """`changed` has the programs of those mutants whose file is understood."""
        self._program = program
        self._code = decode(program.code)
        self._codes = {each.name: decoded(changed[each.name]) if each.name in changed else None for each in mutants}
        given = Execution(program, max(len(form.accounts) for form in FORMS))
        fresh = given.machine._services.fresh
        memory = NotingMemory(program.rodata, given.accounts, given.data, given.solver, fresh)
        self._read: set[int] = set()
        memory.note_in(self._read)
        services = Services(memory, Syscalls(memory, given.slot, fresh), given.solver, fresh)
        self._machine = ComparingMachine(self._code, ControlFlow(self._code, program.entry), services)
        self._machine.solver, self._machine.memory, self._machine.stored = given.solver, memory_of(given), {}
        self._machine.changed, self._machine.differ, self._machine.differ_with_clock = {}, set(), set()
        for each in mutants:
            code = self._codes[each.name]
            instruction = code[each.at] if code and not each.is_data else None
            if instruction is not None:
                self._machine.changed.setdefault(each.at, {})[each.name] = instruction
        self._start = given.start

    def run(self, watch: Callable[[int, int], None]) -> None:
        instructions = sum(each is not None for each in self._code)
        for _ in self._machine.run(self._start, lambda: watch(len(self._machine.reached), instructions)):
            pass

    def of(self, mutant: Mutation) -> str:
        """The reason, or nothing."""
        if mutant.is_data:
            touched = set(range(8 * mutant.at, 8 * mutant.at + 8)) & self._read
            return "" if touched else NEVER_READ
        if mutant.at not in self._machine.reached:
            return NEVER_EXECUTED
        if mutant.name in self._machine.changed.get(mutant.at, {}):
            if mutant.name not in self._machine.differ:
                return SAME_EFFECT
            if mutant.name not in self._machine.differ_with_clock:
                return WITHOUT_CLOCK
        code = self._codes[mutant.name]
        if code is None:
            return ""
        if is_only_a_code(self._code, code, mutant.at):
            return ONLY_A_CODE
        return STORED_FOR_NOTHING if self._is_stored_for_nothing(mutant) else ""

    def _is_stored_for_nothing(self, mutant: Mutation) -> bool:
        """Whether neither what the guard stores there is ever read, nor what the mutant stores instead."""
        before = self._code[mutant.at]
        if before is None or before.kind != Kind.STORE:
            return False
        places = self._machine.stored.get(mutant.at, {-1}) | self._machine.stored.get(mutant.name, set())
        return all(place >> 32 == stack.START >> 32 for place in places) and not places & self._read


def is_nothing(instruction: Instruction, at: int) -> bool:
    return instruction.kind == Kind.JUMP and instruction.to == at + 1


def memory_of(given: Execution) -> Memory:
    """A memory that notes nothing: what is only compared is not read."""
    return given.machine._services.memory


def decoded(program: Program) -> list[Instruction | None] | None:
    try:
        return decode(program.code)
    except NotUnderstood:
        return None


def prove_whole(program: Program) -> str:
    """What the proof says of a mutant, in a process of its own, whose time is limited."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        try:
            answer = answer_of(program)
        except BaseException as fault:  # noqa: BLE001 - nothing of a child may go on
            answer = f"failed: {fault!r}"
        os.write(writer, json.dumps(answer[:1000]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else f"undecided in {MOST_SECONDS} s"


def answer_of(program: Program) -> str:
    try:
        findings = prove(program)
    except NotUnderstood as reason:
        return f"not understood: {reason}"
    except Undecided:
        return "undecided"
    broken = [f"{each.name}: {name}" for each in findings for name in [*each.refuted, *each.unexplained]]
    return f"refuted: {broken[0]}" if broken else PROVED
