"""Meeting: whether guard and mutant come to the same again, a few instructions behind the change.

Both are executed side by side on the inputs on which the two instructions differ. They have met where they stand at the same
place, and nothing that the guard does from there on depends on what still differs. What has not met is left to be judged.
"""

from __future__ import annotations

from collections.abc import Callable

import z3

from guard_proof.accounts import INPUT_START
from guard_proof.control import ControlFlow
from guard_proof.decode import FRAME_POINTER, MASK64, Instruction, Kind
from guard_proof.errors import NotUnderstood
from guard_proof.solver import Solver
from guard_proof.state import State
from guard_proof.values import Value, same, symbolic

from .bits import Bits, of
from .forwards import Forwards, cells
from .liveness import CLOCK

#: Instructions of both together on one way. What has not met by then seldom does.
MOST_STEPS = 160
#: Ways of one mutant that did not meet the guard; more of them are easier to judge from the change on, all at once.
MOST_APART = 6
#: Values that the solver compares at one place; where more differ, it is another state.
MOST_DIFFERENT = 6
#: Behind the change a difference is soon looked at, or kept; behind that it is asked only where ways come together.
SOON = 3

#: What is known of an address in the input.
INTO_INPUT = Bits(INPUT_START, 0xFFFF_FFFF << 32)

Code = list[Instruction | None]
#: Executes one instruction that is no system call, and gives back every state that may be next.
Step = Callable[[State, Instruction], list[State]]


class Meeting:
    def __init__(self, flow: ControlFlow, solver: Solver, forwards: Forwards, step: Step) -> None:
        self._flow = flow
        self._solver = solver
        self._forwards = forwards
        self._step = step

    def apart(self, state: State, guard: Code, mutant: Code) -> list[State]:
        """States of the mutant that have not met the guard, of all inputs of a state; none where it always does."""
        pending = [(state.copy(), state.copy(), 0)]
        left: list[State] = []
        while pending:
            one, other, steps = pending.pop()
            if steps and self._has_met(one, other, state.at, steps):
                continue
            goes = self._goes_first(one, other, guard)
            if steps >= MOST_STEPS or goes is None:
                left.append(other)
            else:
                try:
                    following = self._stepped(one, other, goes, guard, mutant)
                except NotUnderstood:
                    left.append(other)
                    continue
                if len(following) > 1 and (has_returned(guard, one) or has_returned(mutant, other)):
                    # Of the two one goes on alone, into any number of ways: the mutant is easier to judge before.
                    left.append(other)
                else:
                    pending += [(*pair, steps + 1) for pair in following]
            if len(left) + len(pending) > MOST_APART:
                return [state]
        return left

    def _goes_first(self, one: State, other: State, code: Code) -> tuple[bool, bool] | None:
        """Which of guard and mutant goes on: the one that is behind, so that the other waits where they may meet."""
        is_over = [is_end(code, each) for each in (one, other)]
        if is_over[0]:
            return None if is_over[1] else (False, True)
        if is_over[1]:
            return (True, False)
        places = [self._place(each) for each in (one, other)]
        return (places[0] <= places[1], places[1] <= places[0])

    def _place(self, state: State) -> tuple[tuple[int, ...], ...]:
        return (*[frame.place for frame in state.frames], self._flow.place(state.at, state.rounds))

    def _stepped(
        self, one: State, other: State, goes: tuple[bool, bool], guard: Code, mutant: Code
    ) -> list[tuple[State, State]]:
        pairs = [(one.copy(), other.copy())]
        for which, code in ((0, guard), (1, mutant)):
            if not goes[which]:
                continue
            following = []
            for pair in pairs:
                instruction = code[pair[which].at]
                if instruction is None:
                    raise NotUnderstood("the program runs out of its code")
                for each in self._step(pair[which], instruction):
                    waits = pair[1 - which].copy()
                    waits.conditions = list(each.conditions)
                    following.append((each, waits) if which == 0 else (waits, each))
            pairs = following
        return pairs

    def _has_met(self, one: State, other: State, changed: int, steps: int) -> bool:
        if one.kin() != other.kin():
            return False
        needed = self._needed(one)
        pairs = [(one.registers[each], other.registers[each]) for each in sorted(needed)]
        for frame, second in zip(one.frames, other.frames, strict=True):
            pairs += zip(frame.kept, second.kept, strict=True)
        pairs += [(first, second) for _, _, first, second in cells(one, other)]
        different = [pair for pair in pairs if not same(*pair)]
        if len(different) > MOST_DIFFERENT:
            return False
        if all(self._is_equal(one.conditions, *pair) for pair in different):
            return True
        if steps > SOON and one.at not in self._flow.joins:
            return False
        return self._forwards.forgets(one, other, changed, lambda *pair: self._difference(one.conditions, *pair))

    def _needed(self, state: State) -> set[int]:
        """Registers that are needed at a place, or behind the calls that are open there."""
        needed = {FRAME_POINTER, *self._flow.live[state.at]}
        for frame in state.frames:
            needed |= self._flow.live[frame.back]
        return needed

    def _is_equal(self, conditions: list[z3.BoolRef], one: Value, other: Value) -> bool:
        different = z3.simplify(symbolic(one) != symbolic(other))
        return z3.is_false(different) or not self._solver.is_possible([*conditions, different])

    def _difference(self, conditions: list[z3.BoolRef], one: Value, other: Value) -> Bits:
        """Bits that are known of two values, and those in which they may differ."""
        if same(one, other):
            return of(one)
        if isinstance(one, int) and isinstance(other, int):
            return Bits(one & other, MASK64 & ~(one ^ other), one ^ other)
        apart, differ = 0, z3.simplify(symbolic(one) ^ symbolic(other))
        for low in range(0, 64, 8):
            if not self._is_zero(conditions, differ, low, 8):
                apart |= sum(1 << bit for bit in range(low, low + 8) if not self._is_zero(conditions, differ, bit, 1))
        return INTO_INPUT.without(apart) if self._are_into_input(conditions, one, other) else Bits(apart=apart)

    def _are_into_input(self, conditions: list[z3.BoolRef], one: Value, other: Value) -> bool:
        """Whether two values are addresses in the input, which are never zero."""
        halves = [z3.Extract(63, 32, symbolic(each)) == INPUT_START >> 32 for each in (one, other)]
        return self._solver.is_certain(conditions, z3.And(*halves))

    def _is_zero(self, conditions: list[z3.BoolRef], value: z3.BitVecRef, low: int, width: int) -> bool:
        return self._solver.is_certain(conditions, z3.Extract(low + width - 1, low, value) == 0)


def is_end(code: Code, state: State) -> bool:
    """Whether a way ends here, or calls what is not followed."""
    instruction = instruction_at(code, state)
    if instruction is None or instruction.kind == Kind.SYSCALL and instruction.immediate != CLOCK:
        return True
    return has_returned(code, state)


def has_returned(code: Code, state: State) -> bool:
    """Whether nothing of the program is left but its return."""
    instruction = instruction_at(code, state)
    return instruction is not None and instruction.kind == Kind.EXIT and not state.frames


def instruction_at(code: Code, state: State) -> Instruction | None:
    return code[state.at] if 0 <= state.at < len(code) else None
