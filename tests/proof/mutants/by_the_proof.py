"""By the proof: why a mutant is the same as the guard, by executing the guard once more on every input at once.

Each reason holds for all inputs: the changed instruction is never executed, or the changed data never read; wherever it is
executed, its effect is the same, or it is wherever the clock could be read, which it always can; it changes the code of a
refusal alone; or nothing depends on what it writes.
"""

from __future__ import annotations

from collections.abc import Callable

import z3

from guard_proof import stack
from guard_proof.control import ControlFlow
from guard_proof.decode import Instruction, Kind, decode
from guard_proof.elf import Program
from guard_proof.errors import NotUnderstood
from guard_proof.interface import FORMS, TWO_HOPS
from guard_proof.machine import Machine, Services
from guard_proof.memory import Memory
from guard_proof.proof import Execution
from guard_proof.solver import Solver
from guard_proof.state import State, SysvarFailed
from guard_proof.syscalls import Syscalls
from guard_proof.values import Value

from . import liveness
from .codes import is_only_a_code, is_only_a_result
from .effects import address_of, difference, effect
from .liveness import Accesses, Code, Depends, Liveness, Node
from .mutations import Mutation

NEVER_EXECUTED = "no input executes it"
NEVER_READ = "nothing reads it"
SAME_EFFECT = "the same effect on every input"
ONLY_A_CODE = "another code of the same refusals"
WITHOUT_CLOCK = "another effect only where the runtime refuses the clock, which it never does"
WITHOUT_EFFECT = "nothing depends on what it writes"
DESCRIBES_AGAIN = "it describes an account that was described before, or the exchange, and the runtime reads neither"

ASKED_FOR_ZERO = "another number that is asked for nothing but whether it is zero"

#: Kinds of instructions that write one register, or the stack, and nothing else.
WRITING = (Kind.CONSTANT, Kind.LOAD, Kind.STORE, Kind.ARITHMETIC, Kind.SWAP_BYTES)


class NotingMemory(Memory):
    """Notes which bytes of the read-only data are read, and which of the stack are read and written, and where."""

    read: set[int]
    #: The same by the instructions that read.
    readers: dict[int, set[int]]
    accesses: Accesses

    def _load_known(self, state: State, address: int, size: int) -> Value:
        self.read.update(range(address, address + size))
        self.readers.setdefault(state.at, set()).update(range(address, address + size))
        self.accesses.note_read(state, address, size)
        return super()._load_known(state, address, size)

    def store(self, state: State, address: Value, size: int, value: Value) -> None:
        if isinstance(address, int):
            self.accesses.note_write(state, address, size)
        super().store(state, address, size, value)


class NotingSyscalls(Syscalls):
    """Notes where calls describe their accounts."""

    accesses: Accesses

    def _invoke(self, state: State) -> list[State]:
        _, infos, count = state.registers[1:4]
        if isinstance(infos, int) and isinstance(count, int):
            self.accesses.note_call(state, infos, count)
        return super()._invoke(state)


class ComparingMachine(Machine):
    """Executes the guard, and compares the effect of changed instructions wherever they are met."""

    #: By instruction: the changed ones of the mutants.
    changed: dict[int, dict[str, Instruction]]
    #: Mutants that do something else in some state, and in some state in which the clock was not refused.
    differ: set[str]
    differ_with_clock: set[str]
    #: Mutants that do in some state what is not understood.
    strange: set[str]
    solver: Solver
    memory: Memory
    accesses: Accesses
    #: Where stores of mutants go, from each place of the execution.
    stored: dict[tuple[str, Node], int]
    #: What was known of the input wherever a changed instruction was met.
    met: dict[Node, list[list[z3.BoolRef]]]
    #: Where stores of the guard do more than to write zero where the runtime has put zero.
    changing: set[Node]

    def _compute(self, state: State, instruction: Instruction) -> None:
        self._compare(state, instruction)
        super()._compute(state, instruction)

    def _branch(self, state: State, instruction: Instruction) -> list[State]:
        self._compare(state, instruction)
        return super()._branch(state, instruction)

    def _call(self, state: State, instruction: Instruction) -> None:
        caller = liveness.node(state)
        super()._call(state, instruction)
        self.accesses.entered.setdefault(caller, set()).add(liveness.node(state))

    def _compare(self, state: State, instruction: Instruction) -> None:
        mutants = self.changed.get(state.at)
        if not mutants:
            return
        self.met.setdefault(liveness.node(state), []).append(list(state.conditions))
        if not self._clears_again(state, instruction):
            self.changing.add(liveness.node(state))
        has_clock = not any(isinstance(event, SysvarFailed) for event in state.events)
        for name, changed in mutants.items():
            self._note(state, changed, name)
            if name in (self.differ_with_clock if has_clock else self.differ):
                continue
            if not self._is_same(state, instruction, changed):
                self.differ.add(name)
                if has_clock:
                    self.differ_with_clock.add(name)

    def _note(self, state: State, changed: Instruction, name: str) -> None:
        """Where a mutant stores, and whether it does what is understood."""
        try:
            if changed.kind == Kind.LOAD:
                self.memory.load(state.copy(), address_of(state, changed), changed.width)
        except NotUnderstood:
            self.strange.add(name)
        if changed.kind == Kind.STORE:
            address = address_of(state, changed)
            place = liveness.bytes_at(address, changed.width) if isinstance(address, int) else 0
            key = name, liveness.node(state)
            self.stored[key] = self.stored.get(key, 0) | place
            if not place:
                self.strange.add(name)

    def _is_same(self, state: State, one: Instruction, other: Instruction) -> bool:
        if is_nothing(other, state.at) and self._clears_again(state, one):
            return True
        try:
            different = difference(effect(self.memory, state, one), effect(self.memory, state, other))
        except (NotUnderstood, ZeroDivisionError):
            return False
        return z3.is_false(different) or not self.solver.is_possible([*state.conditions, different])

    def _clears_again(self, state: State, instruction: Instruction) -> bool:
        """Whether it stores zero where nothing was stored and the runtime has put zero, which the proof leaves open."""
        if instruction.kind != Kind.STORE:
            return False
        other: Value = instruction.immediate if instruction.source is None else state.registers[instruction.source]
        address = address_of(state, instruction)
        is_zero = isinstance(other, int) and other & (1 << 8 * instruction.width) - 1 == 0
        if not is_zero or not isinstance(address, int) or address >> 32 != stack.START >> 32:
            return False
        cells = state.stack.cells
        near = [start for start in range(address - 7, address + instruction.width) if start in cells]
        return not any(start + cells[start][0] > address for start in near)


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
        memory.read, memory.readers, memory.accesses = set(), {}, Accesses()
        self._memory = memory
        self._given = given
        syscalls = NotingSyscalls(memory, given.slot, fresh)
        syscalls.accesses = memory.accesses
        services = Services(memory, syscalls, given.solver, fresh)
        self._machine = ComparingMachine(self._code, ControlFlow(self._code, program.entry), services)
        self._machine.solver, self._machine.memory, self._machine.stored = given.solver, memory_of(given), {}
        self._machine.changed, self._machine.met, self._machine.strange = {}, {}, set()
        self._machine.changing, self._machine.accesses = set(), memory.accesses
        self._machine.differ, self._machine.differ_with_clock = set(), set()
        for each in mutants:
            code = self._codes[each.name]
            instruction = code[each.at] if code and not each.is_data else None
            if instruction is not None:
                self._machine.changed.setdefault(each.at, {})[each.name] = instruction
            if not each.is_data and is_call(self._code[each.at]):
                # What a call does is not compared.
                self._machine.differ.add(each.name)
                self._machine.differ_with_clock.add(each.name)
        self._start = given.start

    def run(self, watch: Callable[[int, int], None]) -> None:
        instructions = sum(each is not None for each in self._code)
        for _ in self._machine.run(self._start, lambda: watch(len(self._machine.reached), instructions)):
            pass
        descriptions = [Depends.BUT_FOR_DESCRIPTIONS, *range(len(TWO_HOPS) - 1)]
        accesses = self._memory.accesses
        accesses.codes = {
            at for at, each in enumerate(self._code) if each and each.kind == Kind.LOAD and is_only_a_result(self._code, at)
        }  # fmt: skip
        self._live = {each: Liveness(self._code, self._program.entry, accesses, each) for each in descriptions}

    def of(self, mutant: Mutation) -> str:
        """The reason, or nothing."""
        if mutant.is_data:
            touched = set(range(8 * mutant.at, 8 * mutant.at + 8)) & self._memory.read
            if not touched:
                return NEVER_READ
            readers = [at for at, places in self._memory.readers.items() if places & touched]
            return ONLY_A_CODE if all(self._reads_a_code(at) for at in readers) else ""
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
        if (described := self._descriptions_affected(mutant, code)) is not None:
            return DESCRIBES_AGAIN if described else WITHOUT_EFFECT
        if self._is_only_asked_for_zero(mutant, code):
            return ASKED_FOR_ZERO
        if self._is_only_a_place_of_codes(mutant, code):
            return ONLY_A_CODE
        if mutant.name not in self._machine.strange and is_only_a_code(self._code, code, mutant.at):
            return ONLY_A_CODE
        return ""

    @property
    def accesses(self) -> Accesses:
        """Bytes of the stack that the guard was seen to read and to write."""
        return self._memory.accesses

    def first_met(self, mutant: Mutation) -> int:
        """When the execution came to a changed instruction."""
        return next((number for number, (_, at) in enumerate(self._machine.met) if at == mutant.at), 0)

    def _reads_a_code(self, at: int) -> bool:
        reader = self._code[at]
        return reader is not None and reader.kind == Kind.LOAD and is_only_a_result(self._code, at)

    def _descriptions_affected(self, mutant: Mutation, code: Code) -> bool | None:
        """Whether what differs is in descriptions that are not read; nothing where more may depend on it."""
        before, after = self._code[mutant.at], code[mutant.at]
        if before is None or after is None or before.kind not in WRITING or mutant.name in self._machine.strange:
            return None
        if not is_nothing(after, mutant.at) and (before.kind, before.target) != (after.kind, after.target):
            return None
        is_described = False
        for context in self._live[Depends.BUT_FOR_DESCRIPTIONS].contexts(mutant.at):
            written = self._written(mutant, before, context)
            for described, live in self._live.items():
                if described in (Depends.BUT_FOR_ZERO, Depends.BUT_FOR_CODES) or not written & live.after(context):
                    continue
                if isinstance(described, Depends) or not self._is_described_again(context, described):
                    return None
                is_described = True
        return is_described

    def _is_only_asked_for_zero(self, mutant: Mutation, code: Code) -> bool:
        """Whether a small number that is not zero becomes another one, which is moved and asked for zero, and no more."""
        numbers = [small_number(each) for each in (self._code[mutant.at], code[mutant.at])]
        before = self._code[mutant.at]
        return all(numbers) and before is not None and self._is_dead(before.target, mutant.at, Depends.BUT_FOR_ZERO)

    def _is_only_a_place_of_codes(self, mutant: Mutation, code: Code) -> bool:
        """Whether the address of a list of codes becomes another one that can be read, and nothing but codes is read there."""
        before, after = self._code[mutant.at], code[mutant.at]
        if before is None or after is None or before.kind != Kind.CONSTANT or after.kind != Kind.CONSTANT:
            return False
        loads = [self._code[at] for at in self._memory.accesses.codes]
        length = max(each.offset + each.width for each in loads if each)
        is_readable = after.immediate + length <= len(self._program.rodata)
        return is_readable and self._is_dead(before.target, mutant.at, Depends.BUT_FOR_CODES)

    def _is_dead(self, register: int, at: int, depends: Depends) -> bool:
        if depends not in self._live:
            self._live[depends] = Liveness(self._code, self._program.entry, self._memory.accesses, depends)
        live = self._live[depends]
        return not any(liveness.register(register) & live.after(context) for context in live.contexts(at))

    def _written(self, mutant: Mutation, before: Instruction, context: Node) -> int:
        """Places in which guard and mutant may differ behind the instruction."""
        if before.kind != Kind.STORE:
            return liveness.register(before.target)
        written = self._machine.stored.get((mutant.name, context), 0)
        if context in self._machine.changing:
            for each in self._memory.accesses.written.get(context, set()):
                written |= each
        return written

    def _is_described_again(self, context: Node, described: int) -> bool:
        """Whether the account of a description is one of an earlier position, wherever a context is met."""
        position = described + 1 if described else 0
        homes = self._given.accounts.homes
        again = z3.Or(*[homes[position] == each for each in homes[:position]])
        return all(self._given.solver.is_certain(each, again) for each in self._machine.met.get(context, []))


def small_number(instruction: Instruction | None) -> int:
    """A number of one byte that is written into a register; zero where it is none."""
    if instruction is None or (instruction.kind, instruction.operation, instruction.source) != (Kind.ARITHMETIC, "mov", None):
        return 0
    return instruction.immediate if instruction.immediate < 256 else 0


def is_call(instruction: Instruction | None) -> bool:
    return instruction is not None and instruction.kind in (Kind.CALL, Kind.SYSCALL)


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


