"""From the change on: whether a mutant does what the specification says wherever it differs from the guard.

The guard is executed once, on every input at once. Where it comes to the changed instruction of a mutant, a process of its own
goes on with the mutant, on those inputs alone on which the two instructions differ, and judges every end. All other inputs
do not tell the mutant from the guard, of which the proof speaks; nor do those on which the two soon come to the same again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass

import z3

from guard_proof import specification
from guard_proof.control import ControlFlow
from guard_proof.decode import Instruction, Kind, decode
from guard_proof.elf import Program
from guard_proof.errors import NotUnderstood, Undecided
from guard_proof.interface import FORMS
from guard_proof.machine import Machine, Services
from guard_proof.proof import NEVER_ABORTS, OTHER_DATA, Execution, Findings, judge, judge_other, judge_refusal
from guard_proof.state import State, SysvarFailed
from guard_proof.values import symbolic
from guard_proof.view import View

from . import runtime
from .effects import difference, effect
from .forwards import Forwards
from .liveness import Accesses, Code
from .meeting import Meeting
from .runtime import RuntimeMemory, RuntimeSyscalls

#: Every statement holds wherever the mutant differs, and no refusal is without a reason. An abort counts as a refusal.
PROVED = "proved from the change on"
#: Processor seconds for one state of one mutant: the whole proof of the guard takes seventy.
MOST_SECONDS = 200

#: Bytes of the flags of an account, which a program copies at once.
FLAGS_SIZE = 4
#: What ends a straight stretch of code.
FORKS = (Kind.BRANCH, Kind.CALL, Kind.SYSCALL, Kind.EXIT)


@dataclass
class Answer:
    """What the executions of one mutant came to; a mutant that is never met is the same."""

    text: str = PROVED
    seconds: float = 0.0


class ForkingMachine(Machine):
    changed: dict[int, dict[str, Instruction]]
    answers: dict[str, Answer]
    execution: Execution
    memory: RuntimeMemory
    forwards: Forwards
    watch: Callable[[], None]

    def _compute(self, state: State, instruction: Instruction) -> None:
        self._fork(state, instruction)
        super()._compute(state, instruction)

    def _branch(self, state: State, instruction: Instruction) -> list[State]:
        self._fork(state, instruction)
        return super()._branch(state, instruction)

    def _call(self, state: State, instruction: Instruction) -> None:
        self._fork(state, instruction)
        super()._call(state, instruction)

    def before_syscall(self, state: State) -> None:
        instruction = self._code[state.at]
        assert instruction is not None
        self._fork(state, instruction)

    def _fork(self, state: State, instruction: Instruction) -> None:
        for name, changed in self.changed.get(state.at, {}).items():
            answer = self.answers[name]
            if answer.text == PROVED:
                answer.text, seconds = in_a_process(lambda changed=changed: self._go_on(state, instruction, changed))
                answer.seconds += seconds
                self.watch()

    def _go_on(self, state: State, one: Instruction, other: Instruction) -> str:
        """Runs the mutant to its ends; in a process of its own, so that nothing has to be put back."""
        self.changed = {}
        self._waiting, self._groups = [], {}
        state = state.copy()
        if (condition := self._difference(state, one, other)) is not None:
            state.conditions.append(condition)
            if not self.execution.solver.is_possible(state.conditions):
                return PROVED
        mutant = [*self._code[: state.at], other, *self._code[state.at + 1 :]]
        self.memory.fewest_records = self._fewest_records(state)
        if not self._may_be_good(state) and self._refuses(mutant, state):
            return PROVED
        left = Meeting(self._flow, self.execution.solver, self.forwards, self._step).apart(state, self._code, mutant)
        if self.memory.faults:
            left, self.memory.faults = [state], []
        self._code = mutant
        self.memory.allows_anything = True
        answers = (self._run_to_the_ends(each) for each in left)
        return next((answer for answer in answers if answer != PROVED), PROVED)

    def _refuses(self, mutant: Code, state: State) -> bool:
        """Whether the mutant refuses all inputs of a state, maybe for the zeros of a repetition that it takes for flags."""
        if self.forwards.refuses(mutant, state):
            return True
        ahead = self._straight_on(mutant, state.copy())
        if self.memory.faults:
            self.memory.faults = []
            return False
        for address, (size, value) in list(ahead.stack.cells.items()):
            is_flags = size == FLAGS_SIZE and not isinstance(value, int)
            if is_flags and self.execution.solver.is_certain(ahead.conditions, symbolic(value) == 0):
                ahead.stack.store(address, size, 0)
        return self.forwards.refuses(mutant, ahead)

    def _straight_on(self, mutant: Code, state: State) -> State:
        """Up to the next branch or call, or what is not understood."""
        with contextlib.suppress(NotUnderstood):
            while (instruction := mutant[state.at]) and instruction.kind not in FORKS:
                (state,) = self._step(state, instruction)
        return state

    def _step(self, state: State, instruction: Instruction) -> list[State]:
        if instruction.kind == Kind.BRANCH:
            return self._branch(state, instruction)
        if instruction.kind == Kind.JUMP:
            self._go(state, instruction.to)
        elif instruction.kind == Kind.CALL:
            self._call(state, instruction)
        elif instruction.kind == Kind.EXIT:
            self._return(state)
        elif instruction.kind == Kind.SYSCALL:
            return self._read_clock(state, instruction)
        else:
            self._compute(state, instruction)
            state.at = instruction.next
        return [state]

    def _read_clock(self, state: State, instruction: Instruction) -> list[State]:
        """The clock is always given."""
        after = [each for each in self._services.syscalls.serve(state, instruction.immediate) if not has_failed(each)]
        for each in after:
            each.at = instruction.next
        return after

    def _run_to_the_ends(self, state: State) -> str:
        self.memory.fewest_records = self._fewest_records(state)
        may_be_refused = not self._may_be_good(state)
        if may_be_refused and self.forwards.refuses(self._code, state):
            return PROVED
        found = {form.name: Findings(form.name) for form in FORMS} | {OTHER_DATA: Findings(OTHER_DATA)}
        for end in itertools.chain(self.run(state), [None]):
            while self.memory.faults:
                fault = self.memory.faults.pop()
                if not may_be_refused:
                    self._judge_fault(found, fault)
            if end and not (may_be_refused and is_refused(end)):
                self._judge(found, end)
            if broken := broken_in(found):
                return f"refuted: {broken}"
        return PROVED

    def _fewest_records(self, state: State) -> int:
        counts = {0, *[len(form.accounts) for form in FORMS]}
        at_least = [z3.UGE(self.execution.accounts.count, each) for each in sorted(counts, reverse=True)]
        certain = (self.execution.solver.is_certain(state.conditions, each) for each in at_least)
        return next(count for count, holds in zip(sorted(counts, reverse=True), certain, strict=True) if holds)

    def _may_be_good(self, state: State) -> bool:
        """Whether some input meets all requirements that can be judged by now; else every refusal has its reason."""
        for form in FORMS:
            view = self.execution.view(form, state)
            judged = [each.formula for each in specification.requirements(view) if each.moment <= state.moment]
            if self.execution.solver.is_possible([*view.state.conditions, *[z3.simplify(each) for each in judged]]):
                return True
        return False

    def _difference(self, state: State, one: Instruction, other: Instruction) -> z3.BoolRef | None:
        try:
            found = difference(effect(self.memory, state, one), effect(self.memory, state, other))
        except (NotUnderstood, ZeroDivisionError):
            return None
        return None if z3.is_true(found) else found

    def _judge(self, found: dict[str, Findings], end: State) -> None:
        for form in FORMS:
            view = self.execution.view(form, end)
            judge(found[form.name], view, self.execution.solver, lambda view: runtime.deeds(view, self.memory))
        judge_other(found[OTHER_DATA], end, self.execution)

    def _judge_fault(self, found: dict[str, Findings], state: State) -> None:
        """The transaction may end here: no input that meets all requirements may come so far."""
        for form in FORMS:
            view: View = self.execution.view(form, state)
            judge_refusal(found[form.name], view, z3.BoolVal(True), self.execution.solver)


class AnnouncingSyscalls(RuntimeSyscalls):
    """Shows each state before its system call is served."""

    before: Callable[[State], None]

    def serve(self, state: State, name: int) -> list[State]:
        self.before(state)
        return super().serve(state, name)


def has_failed(state: State) -> bool:
    return any(isinstance(event, SysvarFailed) for event in state.events)


def is_refused(end: State) -> bool:
    return end.is_aborted or isinstance(end.registers[0], int) and end.registers[0] != 0


def broken_in(found: dict[str, Findings]) -> str:
    for name, each in found.items():
        for what in [*each.refuted, *each.unexplained]:
            if what != NEVER_ABORTS:
                return f"{name}: {what}"
    return ""


def prove_from_the_change(
    program: Program, changed: dict[int, dict[str, Instruction]], accesses: Accesses, watch: Callable[[int, int], None]
) -> dict[str, Answer]:
    """Of each mutant, by name, what the specification says of it.

    `changed` has its instruction, by its place; `accesses` are the guard's.
    """
    given = Execution(program, max(len(form.accounts) for form in FORMS))
    runtime.assume_zeros_behind_data(given.solver, given.accounts)
    fresh = given.machine._services.fresh
    memory = RuntimeMemory(program.rodata, given.accounts, given.data, given.solver, fresh)
    syscalls = AnnouncingSyscalls(memory, given.slot, fresh)
    services = Services(memory, syscalls, given.solver, fresh)
    code = decode(program.code)
    flow = ControlFlow(code, program.entry)
    machine = ForkingMachine(code, flow, services)
    machine.forwards = Forwards(code, flow, program.rodata, accesses)
    syscalls.before = machine.before_syscall
    machine.execution, machine.memory, machine.changed = given, memory, changed
    machine.answers = {name: Answer() for mutants in changed.values() for name in mutants}
    machine.watch = lambda: watch(sum(each.seconds > 0 for each in machine.answers.values()), len(machine.answers))
    for _ in machine.run(given.start):
        pass
    return machine.answers


def in_a_process(work: Callable[[], str]) -> tuple[str, float]:
    """What some work comes to, and the processor seconds that it took; its time is limited."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        try:
            answer = work()
        except NotUnderstood as reason:
            answer = f"not understood: {reason}"
        except Undecided:
            answer = "undecided"
        except BaseException as fault:  # noqa: BLE001 - nothing of a child may go on
            answer = f"failed: {fault!r}"
        os.write(writer, json.dumps(answer[:1000]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, _, used = os.wait4(child, 0)
    return json.loads(answer) if answer else f"undecided in {MOST_SECONDS} s", used.ru_utime + used.ru_stime
