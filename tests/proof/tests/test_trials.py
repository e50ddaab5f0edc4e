"""Trials: the executor and the chain do the same with the guard's bytes, and the specification agrees."""

from __future__ import annotations

import unittest

from guard_proof import elf
from guard_proof.control import ControlFlow
from guard_proof.decode import Kind, decode
from guard_proof.interface import FORMS
from guard_proof.state import Call, Logged, Returned
from guard_proof.syscalls import hash_of
from guard_proof.values import symbolic
from trials import probe
from trials.cases import cases
from trials.chain import SLOT, Chain
from trials.executor import Trial, Verdict, handed_on
from trials.recorded import logged_by_the_guard, logs
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


@unittest.skipUnless(is_certified(), OTHER_BYTES)
class Calls(unittest.TestCase):
    def test_the_stack_behind_a_call_that_changes_lengths_is_the_chain_s(self) -> None:
        """The runtime writes the new length of an account into what the guard described."""
        file = GUARD.read_bytes()
        program = elf.parse(file)
        calls = [
            at for at, each in enumerate(decode(program.code))
            if each and (each.kind, each.immediate) == (Kind.SYSCALL, hash_of("sol_invoke_signed_c"))
        ]  # fmt: skip
        self.assertEqual(len(calls), 3)
        names = {
            "swap: output of Token-2022 of 355 bytes after": 1,
            "swap_two_hops_to: middle of 72 bytes between the calls, 70 before": 2,
            "swap_two_hops_to: output token program is no program, data of odd lengths": 2,
        }
        chosen = [each for each in cases() if each.name in names]
        chain = Chain(chosen)
        for scenario in chosen:
            chain.take_over_programs(scenario)
            compared = 0
            for at in calls:
                changed = probe.showing(file, program, at + 1)
                chain.deploy(changed)
                parsed = elf.parse(changed)
                code = decode(parsed.code)
                found = Trial(scenario, SLOT).execute(parsed, code, ControlFlow(code, parsed.entry)).aborted
                if not found:
                    # The other calls are not of this instruction.
                    continue
                seen = logged_by_the_guard(chain.logs(scenario))
                with self.subTest(f"{scenario.name} behind {at}"):
                    self.assertEqual([shown for each in found for shown in logs(each)], seen)
                compared += 1
            self.assertEqual(compared, names[scenario.name])


def ending(result: int) -> str:
    """How the runtime shows a program's own error; those of the runtime's list have names."""
    return f"InstructionErrorCustom({result}))))" if result < 1 << 32 else ""


if __name__ == "__main__":
    unittest.main()
