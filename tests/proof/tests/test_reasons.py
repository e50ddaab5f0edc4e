"""Reasons: a change is called the same as the guard only where nothing can depend on it."""

from __future__ import annotations

import unittest

from guard_proof import elf
from mutants.by_the_proof import ASKED_FOR_ZERO, NEVER_EXECUTED, ONLY_A_CODE, SAME_EFFECT, WITHOUT_EFFECT, Reasons
from mutants.mutations import mutations

from .assembly import EXIT, file_of, syscall

#: Seven into the result.
REFUSE = (0xB7, 0, 0, 7)
CALL_OVER_TWO = (0x85, 0x10, 0, 2)


def reasons_of(code: list[tuple[int, int, int, int]]) -> dict[str, str]:
    """Of every mutant of a small program."""
    file = file_of(code)
    program = elf.parse(file)
    every = mutations(program)
    reasons = Reasons(program, every, {each.name: elf.parse(each.file(file, program)) for each in every})
    reasons.run(lambda *_: None)
    return {each.name: reasons.of(each) for each in every}


class Reasoning(unittest.TestCase):
    def test_a_number_that_goes_only_where_nothing_looks_is_without_effect(self) -> None:
        found = reasons_of([(0xB7, 3, 0, 5), (0x7B, 0x3A, -8, 0), (0x79, 0xA4, -8, 0), (0x07, 4, 0, 1), REFUSE, EXIT])
        for name in ("constant at 0", "dropped store at 1", "constant at 3"):
            self.assertEqual(found[name], WITHOUT_EFFECT, name)
        self.assertEqual(found["constant at 4"], ONLY_A_CODE)

    def test_a_number_that_a_branch_looks_at_has_an_effect(self) -> None:
        code = [(0xB7, 3, 0, 5), (0x7B, 0x3A, -8, 0), (0x79, 0xA4, -8, 0), (0x07, 4, 0, 1), (0x15, 4, 1, 6), REFUSE, EXIT]
        found = reasons_of(code)
        for name in ("constant at 0", "dropped store at 1", "offset at 1", "offset at 2", "constant at 3", "constant at 4"):
            self.assertEqual(found[name], "", name)
        self.assertEqual(found["constant at 5"], NEVER_EXECUTED)

    def test_what_is_written_over_before_it_is_read_is_without_effect(self) -> None:
        first = [(0x7A, 10, -8, 5), (0x7A, 10, -8, 6)]
        self.assertEqual(reasons_of([*first, (0x79, 0xA0, -8, 0), EXIT])["constant at 0"], WITHOUT_EFFECT)
        half = [(0x7A, 10, -8, 5), (0x62, 10, -8, 6)]
        self.assertEqual(reasons_of([*half, (0x79, 0xA0, -8, 0), EXIT])["constant at 0"], "", "four bytes are left")

    def test_a_store_elsewhere_has_the_effect_of_what_it_writes_over(self) -> None:
        code = [(0x7A, 10, -16, 1), (0x7A, 10, -24, 2), (0x79, 0xA0, -16, 0), EXIT]
        self.assertEqual(reasons_of(code)["offset at 1"], "")
        self.assertEqual(reasons_of(code)["offset at 0"], "")
        self.assertEqual(reasons_of(code)["dropped store at 1"], WITHOUT_EFFECT)

    def test_a_function_s_own_registers_are_lost_and_its_callers_are_not(self) -> None:
        inner = [(0xB7, 6, 0, 1), (0xB7, 0, 0, 0), EXIT]
        found = reasons_of([(0xB7, 6, 0, 9), CALL_OVER_TWO, (0xBF, 0x60, 0, 0), EXIT, *inner])
        self.assertEqual(found["constant at 4"], WITHOUT_EFFECT)
        self.assertEqual(found["constant at 5"], WITHOUT_EFFECT)
        self.assertEqual(found["constant at 0"], "", "the result depends on it")
        found = reasons_of([(0xB7, 6, 0, 9), CALL_OVER_TWO, (0xBF, 0x60, 0, 0), EXIT, (0x15, 6, 1, 9), REFUSE, EXIT])
        self.assertEqual(found["constant at 0"], "", "the function looks at it")

    def test_a_call_that_is_dropped_has_an_effect(self) -> None:
        inner = [(0xB7, 0, 0, 7), EXIT]
        found = reasons_of([(0xB7, 0, 0, 0), (0x85, 0x10, 0, 1), EXIT, *inner])
        self.assertEqual(found["dropped call at 1"], "")

    def test_a_number_that_is_only_asked_for_zero_may_be_another_one(self) -> None:
        moved = [(0xB4, 3, 0, 1), (0x63, 0x3A, -8, 0), (0x61, 0xA4, -8, 0)]
        refuse = [REFUSE, EXIT, (0xB7, 0, 0, 8), EXIT]
        self.assertEqual(reasons_of([*moved, (0x15, 4, 2, 0), *refuse])["constant at 0"], ASKED_FOR_ZERO)
        self.assertEqual(reasons_of([*moved, (0x15, 4, 2, 2), *refuse])["constant at 0"], "")
        self.assertEqual(reasons_of([*moved, (0x07, 4, 0, -2), (0x15, 4, 2, 0), *refuse])["constant at 0"], "")
        self.assertEqual(reasons_of([(0xB4, 3, 0, 0), (0x15, 3, 2, 0), *refuse])["constant at 0"], "", "it was zero")

    def test_what_is_logged_has_an_effect(self) -> None:
        field = [(0x7A, 10, -8, 5), (0xBF, 0xA1, 0, 0), (0x07, 1, 0, -8), (0x7B, 0x1A, -24, 0), (0x7A, 10, -16, 8)]
        log = [(0xBF, 0xA1, 0, 0), (0x07, 1, 0, -24), (0xB7, 2, 0, 1), (0xB7, 3, 0, 1), syscall("sol_log_data"), REFUSE, EXIT]
        found = reasons_of([*field, *log])
        self.assertEqual(found["constant at 0"], "")
        self.assertEqual(found["dropped store at 4"], "")
        self.assertEqual(found["constant at 8"], WITHOUT_EFFECT, "the system call has two arguments")
        self.assertEqual(found["dropped syscall at 9"], "")

    def test_the_same_number_in_another_way_has_the_same_effect(self) -> None:
        found = reasons_of([(0xB7, 3, 0, 5), (0x25, 3, 1, 2), (0xB7, 0, 0, 1), EXIT])
        self.assertEqual(found["always taken at 1"], SAME_EFFECT)
        self.assertEqual(found["other strictness at 1"], SAME_EFFECT)
        self.assertEqual(found["constant at 1"], SAME_EFFECT)


if __name__ == "__main__":
    unittest.main()
