"""Trials: the executor and the chain do the same with the guard's bytes, and the specification agrees."""

from __future__ import annotations

import unittest

from guard_proof import elf
from guard_proof.control import ControlFlow
from guard_proof.decode import decode
from guard_proof.interface import FORMS
from guard_proof.state import Call, Logged, Returned
from guard_proof.values import symbolic
from trials.cases import cases
from trials.chain import SLOT, Chain
from trials.executor import Trial, Verdict, handed_on
from trials.scenario import Scenario

from .guard import GUARD, OTHER_BYTES, is_certified

#: Cases of each form that are tried, from all over. All there are take a minute: `python -m trials`.
OF_EACH_FORM = 25


def words(values: object) -> bytes:
    return b"".join(symbolic(word).as_long().to_bytes(8, "little") for word in values)  # type: ignore[attr-defined]


def deeds(verdict: Verdict) -> tuple[list[bytes], bytes]:
    """What was logged and returned in the end."""
    assert verdict.state is not None
    logged = [words(event.fields[0]) for event in verdict.state.events if isinstance(event, Logged)]
    (returned,) = [words(event.words) for event in verdict.state.events if isinstance(event, Returned)]
    return logged, returned


def some_of_each_form() -> list[Scenario]:
    chosen = []
    for form in FORMS:
        of_form = [each for each in cases() if each.form == form]
        chosen += of_form[:: max(1, len(of_form) // OF_EACH_FORM)]
    return chosen


@unittest.skipUnless(is_certified(), OTHER_BYTES)
class Trials(unittest.TestCase):
    def test_the_guard_does_the_same_in_the_executor_and_on_the_chain(self) -> None:
        file = GUARD.read_bytes()
        program = elf.parse(file)
        code = decode(program.code)
        flow = ControlFlow(code, program.entry)
        chosen = some_of_each_form()
        chain = Chain(chosen)
        chain.deploy(file)
        successes = {form.name: 0 for form in FORMS}
        for scenario in chosen:
            with self.subTest(scenario.name):
                found, wanted = Trial(scenario, SLOT).run(program, code, flow), chain.run(scenario)
                self.assertEqual(found.is_success, wanted.is_success, wanted.error)
                self.assertEqual(found.broken, [])
                if not found.is_success:
                    self.assertTrue(found.result is None or wanted.error.endswith(ending(found.result)), wanted.error)
                    continue
                successes[scenario.form.name] += 1
                logged, returned = deeds(found)
                self.assertEqual((logged, returned), ([wanted.logged[-1]], wanted.returned))
                self.assertEqual(found.units + handed_on(scenario), wanted.units)
                assert found.state is not None
                calls = [event for event in found.state.events if isinstance(event, Call)]
                for call, seen in zip(calls, wanted.logged, strict=False):
                    self.assertTrue(seen.endswith(words(call.data)))
        self.assertGreater(min(successes.values()), 3, successes)


def ending(result: int) -> str:
    """How the runtime shows a program's own error; those of the runtime's list have names."""
    return f"InstructionErrorCustom({result}))))" if result < 1 << 32 else ""


if __name__ == "__main__":
    unittest.main()
