"""Forwards: what is refused whatever the input, and which bits nothing depends on."""

from __future__ import annotations

import unittest

import z3

from guard_proof import elf, stack
from guard_proof.control import ControlFlow
from guard_proof.decode import COMPARISONS, decode
from guard_proof.stack import Stack
from guard_proof.state import State
from guard_proof.values import Value, compare_known, compute_known
from mutants.bits import Bits, compare, compute, exactly, of
from mutants.forwards import Forwards
from mutants.liveness import Accesses

from .assembly import EXIT, file_of, syscall

Cell = tuple[int, int, int, int]
#: A word of the input, and the mask of a repetition that is written on the stack, with one bit that is known.
ANY, KEEP, LOOK = (0x79, 0x13, 8, 0), (0x7B, 0x3A, -8, 0), (0x79, 0xA4, -8, 0)
REFUSE, ACCEPT = (0xB7, 0, 0, 7), (0xB7, 0, 0, 0)


def forwards(code: list[Cell]) -> tuple[Forwards, State]:
    program = elf.parse(file_of(code))
    decoded = decode(program.code)
    registers: list[Value] = [0] * 11
    registers[1], registers[10] = 4 << 32, stack.START + stack.FRAME
    return Forwards(decoded, ControlFlow(decoded, program.entry), program.rodata, Accesses()), State(
        program.entry, registers, Stack()
    )


def is_refused(code: list[Cell]) -> bool:
    made, state = forwards(code)
    return made.refuses(made._code, state)


def is_forgotten(code: list[Cell], apart: int, changed: int = -1) -> bool:
    """Whether nothing depends on bits of the third register."""
    made, state = forwards(code)
    other = state.copy()
    other.registers[3] = apart
    return made.forgets(state, other, changed, lambda one, two: of(one) if one == two else Bits(apart=apart))


class Refused(unittest.TestCase):
    def test_a_bit_that_is_set_is_found_whatever_else_is(self) -> None:
        mask = [ANY, (0x47, 3, 0, 16), KEEP, LOOK, (0x57, 4, 0, 0x90), (0x15, 4, 2, 0)]
        self.assertTrue(is_refused([*mask, REFUSE, EXIT, ACCEPT, EXIT]))
        other = [ANY, (0x47, 3, 0, 32), KEEP, LOOK, (0x57, 4, 0, 0x90), (0x15, 4, 2, 0)]
        self.assertFalse(is_refused([*other, REFUSE, EXIT, ACCEPT, EXIT]))

    def test_what_is_not_known_goes_both_ways(self) -> None:
        self.assertFalse(is_refused([ANY, (0x15, 3, 2, 0), REFUSE, EXIT, ACCEPT, EXIT]))
        self.assertTrue(is_refused([ANY, (0x15, 3, 2, 0), REFUSE, EXIT, (0xB7, 0, 0, 8), EXIT]))
        self.assertFalse(is_refused([ANY, (0xBF, 0x30, 0, 0), EXIT]), "the result may be zero")

    def test_refusals_that_end_at_one_place_are_told_apart(self) -> None:
        self.assertTrue(is_refused([ANY, (0xB7, 0, 0, 4), (0x15, 3, 1, 0), (0xB7, 0, 0, 8), EXIT]))

    def test_a_call_is_not_followed_and_an_abort_refuses(self) -> None:
        self.assertTrue(is_refused([syscall("abort"), EXIT]))
        self.assertFalse(is_refused([syscall("sol_log_data"), REFUSE, EXIT]))

    def test_a_loop_ends(self) -> None:
        self.assertTrue(is_refused([(0x07, 3, 0, 1), (0xA5, 3, -2, 9), REFUSE, EXIT]))


class Forgotten(unittest.TestCase):
    def test_bits_that_a_mask_leaves_out_are_forgotten(self) -> None:
        asked = [KEEP, LOOK, (0x57, 4, 0, 0x90), (0x15, 4, 2, 0), REFUSE, EXIT, ACCEPT, EXIT]
        self.assertTrue(is_forgotten(asked, 0x20))
        self.assertFalse(is_forgotten(asked, 0x10))

    def test_a_result_an_address_and_a_carry_are_not(self) -> None:
        self.assertFalse(is_forgotten([(0xBF, 0x30, 0, 0), EXIT], 1))
        self.assertFalse(is_forgotten([(0x0F, 0x31, 0, 0), (0x79, 0x14, 0, 0), ACCEPT, EXIT], 8))
        added = [(0x07, 3, 0, 1), (0x57, 3, 0, 0x90), (0x15, 3, 2, 0), REFUSE, EXIT, ACCEPT, EXIT]
        self.assertFalse(is_forgotten(added, 1), "it may carry into the bits that are asked for")
        self.assertTrue(is_forgotten(added, 0x100))

    def test_a_difference_that_the_changed_instruction_may_look_at_again_is_not(self) -> None:
        kept = [ACCEPT, (0x07, 4, 0, 1), (0xA5, 4, -2, 3), EXIT]
        self.assertTrue(is_forgotten(kept, 1))
        self.assertFalse(is_forgotten(kept, 1, changed=1))

    def test_what_a_refusal_returns_may_differ(self) -> None:
        self.assertTrue(is_forgotten([(0xBF, 0x30, 0, 0), (0x47, 0, 0, 1), EXIT], 16))


class Numbers(unittest.TestCase):
    def test_what_is_known_of_a_result_is_so_for_every_number(self) -> None:
        numbers = [0, 1, 5, 0xF0, 0x8000_0000, 0xFFFF_FFFF, 1 << 63, (1 << 64) - 1, 0x1234_5678_9ABC_DEF0]
        for open_bits in (0, 0xFF, 1 << 40, (1 << 64) - 1):
            for one in numbers:
                for other in numbers:
                    left = Bits(one & ~open_bits, (1 << 64) - 1 & ~open_bits, open_bits & 0x0F)
                    for width in (32, 64):
                        self.agree(left, one, other, width)

    def test_bits_of_a_formula_are_those_that_every_input_has(self) -> None:
        one, low, flag = z3.BitVec("one", 64), z3.BitVec("low", 8), z3.Bool("flag")
        self.assertEqual(of(one | 0x10), Bits(0x10, 0x10))
        self.assertEqual(of(one & 0xF0), Bits(0, (1 << 64) - 1 & ~0xF0))
        self.assertEqual(of(z3.Concat(z3.BitVecVal(5, 56), low)), Bits(0x500, (1 << 64) - 256))
        self.assertEqual(of(z3.If(flag, z3.BitVecVal(6, 64), z3.BitVecVal(4, 64))), Bits(4, (1 << 64) - 3))
        self.assertEqual(of(z3.ZeroExt(56, z3.Extract(11, 4, one | 0x7F0))).ones, 0)
        self.assertEqual(of(z3.Concat(z3.BitVecVal(0, 56), z3.Extract(11, 4, one | 0x7F0))).ones, 0x7F)

    def agree(self, left: Bits, one: int, other: int, width: int) -> None:
        twin = one ^ left.apart
        for name in ("add", "sub", "mul", "or", "and", "xor", "lsh", "rsh", "arsh", "mov"):
            found = compute(name, left, exactly(other), width)
            numbers = [compute_known(name, each, other, width) for each in (one, twin)]
            self.assertEqual([each & found.known for each in numbers], [found.ones] * 2, name)
            self.assertEqual((numbers[0] ^ numbers[1]) & ~found.apart, 0, name)
            self.assertEqual(found.known & found.apart, 0, name)
        for name in COMPARISONS.values():
            taken = compare(name, left, exactly(other), width)
            if taken is not None:
                self.assertEqual([compare_known(name, each, other, width) for each in (one, twin)], [taken] * 2, name)


if __name__ == "__main__":
    unittest.main()
