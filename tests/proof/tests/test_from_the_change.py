"""From the change on: a mutant is judged on the very inputs on which it differs, by the specification."""

from __future__ import annotations

import unittest

from guard_proof import elf
from guard_proof.decode import decode
from mutants.by_the_proof import Reasons
from mutants.from_the_change import PROVED, prove_from_the_change

from .assembly import EXIT, file_of, syscall

Cell = tuple[int, int, int, int]

#: Five bytes of data, which are the data of no instruction, have a refusal of their own, and so has anything else.
LENGTH, IS_FIVE, OTHER, FIVE = (0x79, 0x23, -8, 0), (0x15, 3, 2, 5), (0xB7, 0, 0, 7), (0xB7, 0, 0, 8)
PROGRAM = [LENGTH, IS_FIVE, OTHER, EXIT, FIVE, EXIT]
NOTHING = (0x05, 0, 0, 0)
#: An empty list of fields for the log.
LOG = [(0xBF, 0xA1, 0, 0), (0xB7, 2, 0, 0)]
#: Without the bit of 32, which is the length of an instruction's data.
MASK_AT, MASK_BUT_32 = 3, (0x57, 4, 0, 255 - 32)


def masked(limit: int, result: int) -> list[Cell]:
    """Of data of at most 64 bytes, the length is masked and compared with a limit, and forgotten."""
    length = [LENGTH, (0x25, 3, 5, 64), (0xBF, 0x34, 0, 0), (0x57, 4, 0, 255), (0x25, 4, 2, limit)]
    return [*length, (0xB7, 0, 0, result), EXIT, OTHER, EXIT]


class FromTheChange(unittest.TestCase):
    def answer(self, program: list[Cell], at: int, changed: Cell) -> str:
        other = list(program)
        other[at] = changed
        instruction = decode(elf.parse(file_of(other)).code)[at]
        assert instruction is not None
        file = elf.parse(file_of(program))
        reasons = Reasons(file, [], {})
        reasons.run(lambda *_: None)
        answers = prove_from_the_change(file, {at: {"it": instruction}}, reasons.accesses, lambda *_: None)
        return answers["it"].text

    def test_another_code_of_a_refusal_that_has_a_reason_is_proved(self) -> None:
        self.assertEqual(self.answer(PROGRAM, 4, (0xB7, 0, 0, 9)), PROVED)

    def test_a_success_where_none_may_be_is_found(self) -> None:
        self.assertEqual(self.answer(PROGRAM, 4, (0xB7, 0, 0, 0)), "refuted: any other data: it never succeeds")

    def test_a_refusal_without_a_reason_is_found(self) -> None:
        accepting = [LENGTH, IS_FIVE, (0xB7, 0, 0, 0), EXIT, FIVE, EXIT]
        self.assertEqual(self.answer(accepting, 2, (0xB7, 0, 0, 9)), "refuted: swap: 0x9")

    def test_only_the_inputs_are_judged_on_which_it_differs(self) -> None:
        """All that is not five bytes long is refused without a reason, and that is not the mutant's matter."""
        self.assertEqual(self.answer(PROGRAM, 1, (0x05, 0, 0, 0)), PROVED)
        self.assertEqual(self.answer(PROGRAM, 1, (0x15, 3, 2, 32)), "refuted: swap: 0x8")

    def test_a_call_that_is_dropped_is_judged(self) -> None:
        program = [(0xB7, 0, 0, 0), (0x85, 0x10, 0, 1), EXIT, OTHER, EXIT]
        broken = "refuted: swap: the data is this instruction's, and of its exact length"
        self.assertEqual(self.answer(program, 1, NOTHING), broken)
        logging = [*LOG, syscall("sol_log_data"), OTHER, EXIT]
        self.assertEqual(self.answer(logging, len(LOG), NOTHING), "refuted: swap: 0x7")

    def test_a_number_that_soon_comes_to_the_same_is_not_judged_again(self) -> None:
        """All is refused without a reason, or accepted, and that is not the mutant's matter."""
        for result in (0, 8):
            program = masked(limit=64, result=result)
            self.assertEqual(self.answer(program, MASK_AT, MASK_BUT_32), PROVED)

    def test_a_number_that_soon_makes_a_difference_is_judged(self) -> None:
        program = masked(limit=16, result=8)
        program[-2] = (0xB7, 0, 0, 0)
        self.assertEqual(self.answer(program, MASK_AT, MASK_BUT_32), "refuted: swap: 0x8")
        self.assertEqual(self.answer(masked(limit=16, result=0), MASK_AT, MASK_BUT_32)[:13], "refuted: swap")

    def test_where_one_has_returned_the_other_is_not_followed_into_its_ways(self) -> None:
        """Guard or mutant goes eight ways where the other refuses, and what the guard does is not the mutant's matter."""
        ways = [cell for bit in (256, 512, 1024) for cell in ((0x45, 3, 1, bit), (0xB7, 5, 0, bit))]

        def asked(mask: Cell, result: int) -> list[Cell]:
            number = [LENGTH, (0xBF, 0x34, 0, 0), mask, OTHER, (0x15, 4, len(ways) + 1, 64)]
            return [*number, *ways, (0xB7, 0, 0, result), EXIT]

        mask = (0x57, 4, 0, 255)
        self.assertEqual(self.answer(asked(mask, result=0), 2, MASK_BUT_32), PROVED)
        self.assertEqual(self.answer(asked(MASK_BUT_32, result=8), 2, mask), PROVED)
        self.assertEqual(self.answer(asked(MASK_BUT_32, result=0), 2, mask)[:8], "refuted:")

    def test_bits_that_are_left_on_the_stack_count_only_where_they_are_looked_at(self) -> None:
        """The bit of 32 is kept, and others of the number are asked for later; or the bit itself is."""
        kept = [LENGTH, (0xBF, 0x34, 0, 0), (0x57, 4, 0, 255), (0x7B, 0x4A, -8, 0), (0xB7, 4, 0, 0), (0x79, 0xA4, -8, 0)]
        end = [(0x15, 4, 2, 0), FIVE, EXIT, (0xB7, 0, 0, 0), EXIT]
        self.assertEqual(self.answer([*kept, (0x57, 4, 0, 31), *end], 2, MASK_BUT_32), PROVED)
        self.assertEqual(self.answer([*kept, (0x57, 4, 0, 63), *end], 2, MASK_BUT_32)[:13], "refuted: swap")

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
