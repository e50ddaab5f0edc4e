"""Solver: questions to z3 about conditions, whose only answers are yes and no."""

from __future__ import annotations

import z3

from .errors import Undecided

#: How much work one question may be, in the solver's own steps, so that a busy machine gives the same answers. The
#: largest of a proof takes a hundredth of it.
MOST_STEPS = 200_000_000


class Solver:
    """What holds of every input, and questions under further conditions.

    A condition is added once, behind a literal of its own, so that what the solver learns for one question serves the
    next.
    """

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        self._z3 = z3.Solver()
        self._z3.set("rlimit", most_steps)
        self._literals: dict[int, z3.BoolRef] = {}
        #: z3 gives the identifier of a formula that is gone to another one.
        self._kept: list[z3.BoolRef] = []
        self._answers: dict[frozenset[int], bool] = {}
        self.questions = 0

    def assume(self, formula: z3.BoolRef) -> None:
        """Adds what holds of every input."""
        self._z3.add(formula)

    def is_possible(self, conditions: list[z3.BoolRef]) -> bool:
        """Whether some input meets all conditions."""
        key = frozenset(condition.get_id() for condition in conditions)
        if key not in self._answers:
            self._answers[key] = self._ask(conditions) == z3.sat
        return self._answers[key]

    def is_certain(self, conditions: list[z3.BoolRef], claim: z3.BoolRef) -> bool:
        """Whether every input that meets the conditions meets the claim."""
        return not self.is_possible([*conditions, z3.simplify(z3.Not(claim))])

    def example(self, conditions: list[z3.BoolRef]) -> z3.ModelRef | None:
        """An input that meets all conditions, if there is one."""
        return self._z3.model() if self._ask(conditions) == z3.sat else None

    def _ask(self, conditions: list[z3.BoolRef]) -> z3.CheckSatResult:
        self.questions += 1
        answer = self._z3.check(*[self._literal(condition) for condition in conditions])
        if answer == z3.unknown:
            raise Undecided(f"the solver gave no answer: {self._z3.reason_unknown()}")
        return answer

    def _literal(self, condition: z3.BoolRef) -> z3.BoolRef:
        name = condition.get_id()
        if name not in self._literals:
            literal = z3.Bool(f"condition {len(self._literals)}")
            self._z3.add(z3.Implies(literal, condition))
            self._literals[name] = literal
            self._kept.append(condition)
        return self._literals[name]
