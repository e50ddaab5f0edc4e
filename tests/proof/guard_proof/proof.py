"""Proof: executes a program on every input, and compares each return with the specification."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import z3

from . import specification, stack
from .accounts import Accounts, InstructionData
from .control import ControlFlow
from .decode import decode
from .elf import Program
from .interface import FORMS, Form
from .machine import Machine, Services
from .memory import Memory
from .solver import MOST_STEPS, Solver
from .specification import Statement
from .stack import Stack
from .state import State, SysvarFailed
from .syscalls import Syscalls
from .values import Value, symbolic
from .view import View, constant

#: What findings are about that are of no instruction.
OTHER_DATA = "any other data"
#: What is shown beside the specification: an abort is a defect, even where a refusal would be right.
NEVER_ABORTS = "it never aborts"


#: Statements about what a program did.
Deeds = Callable[[View], Iterable[Statement]]


@dataclass
class Findings:
    """What was found out about one instruction, or about all data that is none of the six."""

    name: str
    #: Statements that hold in every success, with how many successes they were shown for.
    proved: dict[str, int] = field(default_factory=dict)
    #: Statements that some input breaks.
    refuted: dict[str, int] = field(default_factory=dict)
    #: Codes of refusals for which no input meets all requirements, with how many returns have them.
    refusals: dict[str, int] = field(default_factory=dict)
    #: Refusals of an input that meets all requirements.
    unexplained: dict[str, int] = field(default_factory=dict)
    successes: int = 0
    ways: int = 0
    #: The most instructions of a success, and the most compute units that they and system calls cost.
    most_instructions: int = 0
    most_units: int = 0

    @property
    def holds(self) -> bool:
        return not self.refuted and not self.unexplained


class Execution:
    """A program, ready to run on every input."""

    def __init__(self, program: Program, positions: int, most_steps: int = MOST_STEPS) -> None:
        code = decode(program.code)
        numbers = itertools.count()
        fresh: Callable[[], Value] = lambda: z3.BitVec(f"anything {next(numbers)}", 64)  # noqa: E731
        self.solver = Solver(most_steps)
        self.data = InstructionData(self.solver)
        self.accounts = Accounts(self.solver, positions, self.data)
        self.slot = z3.BitVec("current slot", 64)
        memory = Memory(program.rodata, self.accounts, self.data, self.solver, fresh)
        services = Services(memory, Syscalls(memory, self.slot, fresh), self.solver, fresh)
        self.machine = Machine(code, ControlFlow(code, program.entry), services)
        registers = [fresh() for _ in range(11)]
        registers[1] = z3.simplify(self.accounts.slots[0] - 8)
        registers[2] = self.data.start
        registers[10] = stack.START + stack.FRAME
        self.start = State(program.entry, registers, Stack())

    def view(self, form: Form, state: State) -> View:
        """An end of an execution, where the data asks for one instruction."""
        judged = state.copy()
        judged.conditions.append(z3.simplify(self.data.words[0] == constant(form.discriminator)))
        judged.conditions.append(z3.simplify(z3.UGE(self.data.length, 8)))
        return View(form, self.accounts, self.data, self.slot, judged)


@dataclass(frozen=True)
class Progress:
    """How far a proof is."""

    #: Instructions that were executed, of all that there are.
    reached: int
    instructions: int
    returns: int
    questions: int


def prove(
    program: Program,
    forms: Sequence[Form] = FORMS,
    most_steps: int = MOST_STEPS,
    watch: Callable[[Progress], None] = lambda _: None,
) -> list[Findings]:
    """What holds of the instructions, and of data that is of none; of other data only when all six are asked for.

    All are executed at once, so that the walk over the accounts, which they share, is executed once.
    """
    execution = Execution(program, max(len(form.accounts) for form in FORMS), most_steps)
    if len(forms) < len(FORMS):
        first = execution.data.words[0]
        execution.solver.assume(z3.Or(*[first == constant(form.discriminator) for form in forms]))
    findings = [Findings(form.name) for form in forms]
    others = Findings(OTHER_DATA)
    returns = 0

    def step() -> None:
        reached = len(execution.machine.reached)
        watch(Progress(reached, len(program.code) // 8, returns, execution.solver.questions))

    for state in execution.machine.run(execution.start, step):
        returns += 1
        for found, form in zip(findings, forms, strict=True):
            step()
            judge(found, execution.view(form, state), execution.solver)
        judge_other(others, state, execution)
    for found in findings:
        if not found.successes:
            found.refuted["some input succeeds"] = 1
    for found in [*findings, others]:
        if NEVER_ABORTS not in found.refuted:
            found.proved[NEVER_ABORTS] = returns
    return [*findings, others] if len(forms) == len(FORMS) else findings


def judge(findings: Findings, view: View, solver: Solver, deeds: Deeds = specification.deeds) -> None:
    """What the end of one execution says of an instruction."""
    state = view.state
    if not solver.is_possible(state.conditions):
        return
    findings.ways += state.ways
    if state.is_aborted:
        note(findings.refuted, NEVER_ABORTS)
    is_success = z3.BoolVal(False) if state.is_aborted else z3.simplify(symbolic(state.registers[0]) == 0)
    if not state.is_aborted and solver.is_possible([*state.conditions, is_success]):
        findings.successes += 1
        findings.most_instructions = max(findings.most_instructions, state.instructions)
        findings.most_units = max(findings.most_units, state.units)
        statements = [*specification.requirements(view), *deeds(view)]
        judge_success(findings, statements, [*state.conditions, is_success], solver)
    if not any(isinstance(event, SysvarFailed) for event in state.events):
        judge_refusal(findings, view, z3.simplify(z3.Not(is_success)), solver)


def judge_other(findings: Findings, state: State, execution: Execution) -> None:
    """That data which begins with none of the six discriminators, or is too short for one, never succeeds."""
    first, length = execution.data.words[0], execution.data.length
    none = z3.And(*[first != constant(form.discriminator) for form in FORMS])
    conditions = [*state.conditions, z3.simplify(z3.Or(none, z3.ULT(length, 8)))]
    if not execution.solver.is_possible(conditions):
        return
    findings.ways += state.ways
    if state.is_aborted:
        note(findings.refuted, NEVER_ABORTS)
        return
    claim = "it never succeeds"
    if execution.solver.is_possible([*conditions, z3.simplify(symbolic(state.registers[0]) == 0)]):
        note(findings.refuted, claim)
    else:
        note(findings.proved, claim)
        note(findings.refusals, code_of(state))


def note(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def code_of(state: State) -> str:
    if state.is_aborted:
        return "abort"
    code = state.registers[0]
    return f"{code:#x}" if isinstance(code, int) else "one of several"


def judge_success(
    findings: Findings, statements: list[Statement], conditions: list[z3.BoolRef], solver: Solver
) -> None:
    for statement in statements:
        holds = all(solver.is_certain(conditions, fact) for fact in facts(statement))
        note(findings.proved if holds else findings.refuted, statement.name)


def facts(statement: Statement) -> list[z3.BoolRef]:
    """A statement in parts, which are easier to show one by one."""
    formula = statement.formula
    parts = formula.children() if z3.is_and(formula) else [formula]
    return [z3.simplify(each) for each in parts]


def judge_refusal(findings: Findings, view: View, is_refusal: z3.BoolRef, solver: Solver) -> None:
    """That no input which is refused meets all requirements, as far as they can be judged by then."""
    state = view.state
    if not solver.is_possible([*state.conditions, is_refusal]):
        return
    judged = [each for each in specification.requirements(view) if each.moment <= state.moment]
    met = [z3.simplify(each.formula) for each in judged]
    is_unexplained = solver.is_possible([*state.conditions, is_refusal, *met])
    note(findings.unexplained if is_unexplained else findings.refusals, code_of(state))
