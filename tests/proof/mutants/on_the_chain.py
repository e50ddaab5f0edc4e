"""On the chain: finds a case in which a mutant differs from the guard, and what it breaks of the specification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from guard_proof import elf
from guard_proof.control import ControlFlow
from guard_proof.decode import decode
from guard_proof.errors import NotUnderstood
from trials.cases import cases
from trials.chain import SLOT, Chain, Outcome
from trials.executor import Trial
from trials.scenario import Scenario

#: Cases of which the executor is asked what they break, before it is given up: there the runtime refuses what the executor,
#: to which a call may change anything, lets pass.
MOST_ASKED = 3


@dataclass(frozen=True)
class Refutation:
    """A counter-example, as the chain shows it."""

    case: str
    #: What the guard and the mutant did.
    outcome: str
    #: Statements that the executor finds broken in the same case.
    broken: tuple[str, ...]


class Counterexamples:
    """Every case with what the proved guard does in it: what differs is against the specification.

    The proof shows both ways that the guard succeeds exactly where all requirements are met, and what it does then.
    """

    def __init__(self, guard: bytes) -> None:
        self._order = cases()
        self._chain = Chain(self._order)
        self._chain.deploy(guard)
        self._expected = {each.name: self._chain.run(each) for each in self._order}

    def find(self, file: bytes) -> Refutation | None:
        """Nothing where the mutant does the same in all cases."""
        try:
            self._chain.deploy(file)
        except Exception as reason:  # noqa: BLE001 - the runtime's verifier refuses some changes, in words of its own
            return Refutation("any", f"the runtime does not load it: {reason}", ())
        found: Refutation | None = None
        for number, (scenario, seen) in enumerate(self._different()):
            outcome = in_words(self._expected[scenario.name], seen)
            broken = broken_by(file, scenario)
            if broken:
                self._move_up(scenario)
                return Refutation(scenario.name, outcome, tuple(broken))
            found = found or Refutation(scenario.name, outcome, ())
            if number == MOST_ASKED:
                break
        return found

    def _different(self) -> Iterator[tuple[Scenario, Outcome]]:
        for scenario in list(self._order):
            seen = self._chain.run(scenario)
            if seen.differs(self._expected[scenario.name]):
                yield scenario, seen

    def _move_up(self, scenario: Scenario) -> None:
        """A case that refuted one mutant is tried early on the next."""
        if self._order.index(scenario) > 20:
            self._order.remove(scenario)
            self._order.insert(0, scenario)


def in_words(guard: Outcome, mutant: Outcome) -> str:
    if guard.is_success and mutant.is_success:
        return "succeeds with other deeds"
    return "refuses what is good" if guard.is_success else "accepts what is bad"


def broken_by(file: bytes, scenario: Scenario) -> list[str]:
    try:
        program = elf.parse(file)
        code = decode(program.code)
        return Trial(scenario, SLOT).run(program, code, ControlFlow(code, program.entry)).broken
    except NotUnderstood as reason:
        return [f"not understood: {reason}"]
