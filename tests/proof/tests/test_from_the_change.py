"""From the change on: a mutant is judged on the very inputs on which it differs, by the specification."""

from __future__ import annotations

import unittest

from guard_proof import elf
from guard_proof.decode import decode
from mutants.from_the_change import PROVED, prove_from_the_change

from .assembly import EXIT, file_of, syscall

Cell = tuple[int, int, int, int]

#: Five bytes of data, which are the data of no instruction, have a refusal of their own, and so has anything else.
LENGTH, IS_FIVE, OTHER, FIVE = (0x79, 0x23, -8, 0), (0x15, 3, 2, 5), (0xB7, 0, 0, 7), (0xB7, 0, 0, 8)
PROGRAM = [LENGTH, IS_FIVE, OTHER, EXIT, FIVE, EXIT]


class FromTheChange(unittest.TestCase):
    def answer(self, program: list[Cell], at: int, changed: Cell) -> str:
        other = list(program)
        other[at] = changed
        instruction = decode(elf.parse(file_of(other)).code)[at]
        assert instruction is not None
        answers = prove_from_the_change(elf.parse(file_of(program)), {at: {"it": instruction}}, lambda *_: None)
        return answers["it"].text

    def test_another_code_of_a_refusal_that_has_a_reason_is_proved(self) -> None:
        self.assertEqual(self.answer(PROGRAM, 4, (0xB7, 0, 0, 9)), PROVED)

    def test_a_success_where_none_may_be_is_found(self) -> None:
        self.assertEqual(self.answer(PROGRAM, 4, (0xB7, 0, 0, 0)), "refuted: any other data: it never succeeds")

    def test_a_refusal_without_a_reason_is_found(self) -> None:
        self.assertEqual(self.answer(PROGRAM, 2, (0xB7, 0, 0, 9)), "refuted: swap: 0x9")

    def test_only_the_inputs_are_judged_on_which_it_differs(self) -> None:
        """All that is not five bytes long is refused without a reason, and that is not the mutant's matter."""
        self.assertEqual(self.answer(PROGRAM, 1, (0x05, 0, 0, 0)), PROVED)
        self.assertEqual(self.answer(PROGRAM, 1, (0x15, 3, 2, 32)), "refuted: swap: 0x8")

    def test_an_abort_counts_as_a_refusal(self) -> None:
        program = [LENGTH, IS_FIVE, OTHER, EXIT, (0x15, 3, 2, 6), FIVE, EXIT, syscall("abort")]
        self.assertEqual(self.answer(program, 4, (0x15, 3, 2, 5)), PROVED)

    def test_what_it_may_not_read_may_be_anything(self) -> None:
        """Behind five bytes of data and the program's address nothing is known to stand."""
        self.assertEqual(self.answer(PROGRAM, 4, (0x79, 0x20, 4096, 0)), "refuted: any other data: it never succeeds")

    def test_a_write_to_what_is_not_the_stack_is_not_understood(self) -> None:
        self.assertRegex(self.answer(PROGRAM, 4, (0x7A, 2, 0, 0)), "not understood: instruction 4 writes")


if __name__ == "__main__":
    unittest.main()
