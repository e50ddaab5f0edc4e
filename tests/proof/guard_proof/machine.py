"""Machine: executes a program on open inputs, every way that some input can take."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import z3

from .control import ControlFlow
from .decode import FRAME_POINTER, Instruction, Kind
from .errors import NotUnderstood
from .memory import Memory
from .solver import Solver
from .stack import FRAME, MAX_FRAMES
from .state import Frame, State, join
from .syscalls import Syscalls
from .values import Value, compare, compute, swap_bytes

#: Instructions on one way: the guard's longest has two thousand. More means a loop that is not understood.
MOST_INSTRUCTIONS = 20_000


@dataclass(frozen=True)
class Services:
    """What a machine works with."""

    memory: Memory
    syscalls: Syscalls
    solver: Solver
    fresh: Callable[[], Value]


class Machine:
    def __init__(self, code: list[Instruction | None], flow: ControlFlow, services: Services) -> None:
        self._code = code
        self._flow = flow
        self._services = services
        #: Instructions that some input reaches.
        self.reached: set[int] = set()
        self._waiting: list[tuple[tuple[tuple[int, ...], ...], int]] = []
        self._groups: dict[tuple[tuple[int, ...], ...], list[State]] = {}
        self._pushed = 0

    def run(self, start: State, step: Callable[[], None] = lambda: None) -> Iterator[State]:
        """Every state in which the program returns or aborts, and none in which the transaction ends by itself."""
        self._push(start)
        while self._waiting:
            step()
            place, _ = heapq.heappop(self._waiting)
            for state in self._joined(self._groups.pop(place)):
                for following in self._advance(state):
                    if following.at < 0:
                        yield following
                    else:
                        self._push(following)

    def _push(self, state: State) -> None:
        around = self._flow.loops.get(state.at, [])
        state.rounds = {head: count for head, count in state.rounds.items() if head in around}
        place = (*[frame.place for frame in state.frames], self._flow.place(state.at, state.rounds))
        if place not in self._groups:
            self._groups[place] = []
            self._pushed += 1
            heapq.heappush(self._waiting, (place, self._pushed))
        self._groups[place].append(state)

    def _joined(self, states: list[State]) -> list[State]:
        """States that came together as one, each kind by itself."""
        kins: dict[tuple[object, ...], list[State]] = {}
        for state in states:
            kins.setdefault(state.kin(), []).append(state)
        joined = []
        for kin in kins.values():
            if len(kin) == 1 or self._ends(kin[0]):
                joined += kin
                continue
            live = self._flow.live[kin[0].at]
            services = self._services
            joined.append(
                join(kin, services.memory.pointers.settle, services.solver.is_certain, services.fresh, live)
            )
        return joined

    def _ends(self, state: State) -> bool:
        """Whether the program returns next: every refusal by itself is easier to judge."""
        instruction = self._code[state.at]
        return not state.frames and instruction is not None and instruction.kind == Kind.EXIT

    def _advance(self, state: State) -> list[State]:
        """Runs a state up to where it branches, may meet others, or returns."""
        first = True
        while True:
            if state.at in self._flow.joins and not first:
                return [state]
            first = False
            if not 0 <= state.at < len(self._code) or (instruction := self._code[state.at]) is None:
                raise NotUnderstood("the program runs out of its code")
            self.reached.add(state.at)
            state.instructions += 1
            state.units += 1
            if state.instructions > MOST_INSTRUCTIONS:
                raise NotUnderstood(f"more than {MOST_INSTRUCTIONS} instructions on one way")
            match instruction.kind:
                case Kind.BRANCH:
                    return self._branch(state, instruction)
                case Kind.SYSCALL:
                    after = self._services.syscalls.serve(state, instruction.immediate)
                    for each in after:
                        each.at = -1 if each.is_aborted else instruction.next
                    if after != [state] or state.is_aborted:
                        return after
                case Kind.CALL:
                    self._call(state, instruction)
                    return [state]
                case Kind.EXIT if not state.frames:
                    state.at = -1
                    return [state]
                case Kind.EXIT:
                    self._return(state)
                    return [state]
                case Kind.JUMP:
                    self._go(state, instruction.to)
                case _:
                    self._compute(state, instruction)
                    state.at = instruction.next

    def _compute(self, state: State, instruction: Instruction) -> None:
        registers, memory = state.registers, self._services.memory
        target = instruction.target
        other = instruction.immediate if instruction.source is None else registers[instruction.source]
        match instruction.kind:
            case Kind.CONSTANT:
                registers[target] = instruction.immediate
            case Kind.LOAD:
                address = compute("add", other, instruction.offset, 64)
                registers[target] = memory.load(state, address, instruction.width)
            case Kind.STORE:
                address = compute("add", registers[target], instruction.offset, 64)
                memory.store(state, address, instruction.width, other)
            case Kind.ARITHMETIC:
                result = compute(instruction.operation, registers[target], other, instruction.width)
                registers[target] = memory.pointers.settle(result, state.conditions)
            case Kind.SWAP_BYTES:
                registers[target] = swap_bytes(instruction.operation, registers[target], instruction.width)

    def _branch(self, state: State, instruction: Instruction) -> list[State]:
        other = instruction.immediate if instruction.source is None else state.registers[instruction.source]
        taken = compare(instruction.operation, state.registers[instruction.target], other, instruction.width)
        if isinstance(taken, bool):
            self._go(state, instruction.to if taken else instruction.next)
            return [state]
        following = []
        for condition, to in ((taken, instruction.to), (z3.simplify(z3.Not(taken)), instruction.next)):
            if self._services.solver.is_possible([*state.conditions, condition]):
                branch = state.copy()
                branch.conditions.append(condition)
                self._go(branch, to)
                following.append(branch)
        return following

    def _go(self, state: State, to: int) -> None:
        if to in self._flow.loops.get(state.at, []):
            state.rounds[to] = state.rounds.get(to, 0) + 1
        state.at = to

    def _call(self, state: State, instruction: Instruction) -> None:
        if len(state.frames) + 1 == MAX_FRAMES:
            raise NotUnderstood("calls are nested too deeply")
        place = self._flow.place(state.at, state.rounds)
        kept = tuple(state.registers[6:11])
        state.frames.append(Frame(instruction.next, kept, tuple(state.rounds.items()), place))
        state.registers[FRAME_POINTER] = compute("add", state.registers[FRAME_POINTER], FRAME, 64)
        state.rounds = {}
        state.at = instruction.to

    def _return(self, state: State) -> None:
        frame = state.frames.pop()
        state.registers[6:11] = list(frame.kept)
        state.rounds = dict(frame.rounds)
        state.at = frame.back


