"""Known and open numbers are computed alike."""

from __future__ import annotations

import random
import unittest

import z3

from guard_proof.decode import ARITHMETIC, COMPARISONS
from guard_proof.stack import START, Stack
from guard_proof.values import compare, compute, swap_bytes

EDGES = [0, 1, 7, 8, 31, 32, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1]


def numbers(seed: int) -> list[int]:
    source = random.Random(seed)
    return EDGES + [source.getrandbits(64) for _ in range(8)]


class Values(unittest.TestCase):
    one, other = z3.BitVecs("one other", 64)

    def with_known(self, expression: z3.ExprRef, one: int, other: int) -> z3.ExprRef:
        known = ((self.one, z3.BitVecVal(one, 64)), (self.other, z3.BitVecVal(other, 64)))
        return z3.simplify(z3.substitute(expression, *known))

    def test_arithmetic(self) -> None:
        for name in sorted(set(ARITHMETIC.values()) - {"div", "mod"}):
            for width in (32, 64):
                expression = compute(name, self.one, self.other, width)
                assert not isinstance(expression, int)
                for one in numbers(1):
                    for other in numbers(2):
                        expected = compute(name, one, other, width)
                        found = self.with_known(expression, one, other).as_long()
                        self.assertEqual(found, expected, f"{name}{width} {one:#x} {other:#x}")

    def test_comparisons(self) -> None:
        for name in COMPARISONS.values():
            for width in (32, 64):
                expression = compare(name, self.one, self.other, width)
                assert not isinstance(expression, bool)
                for one in numbers(3):
                    for other in numbers(4):
                        expected = compare(name, one, other, width)
                        found = z3.is_true(self.with_known(expression, one, other))
                        self.assertEqual(found, expected, f"{name}{width} {one:#x} {other:#x}")

    def test_byte_orders(self) -> None:
        for name in ("le", "be"):
            for width in (16, 32, 64):
                expression = swap_bytes(name, self.one, width)
                for one in numbers(5):
                    data = (one & (1 << width) - 1).to_bytes(width // 8, "little")
                    expected = int.from_bytes(data, "little" if name == "le" else "big")
                    self.assertEqual(swap_bytes(name, one, width), expected)
                    self.assertEqual(self.with_known(expression, one, 0).as_long(), expected)

    def test_a_stack_is_as_bytes_are(self) -> None:
        source = random.Random(6)
        for _ in range(300):
            stack, data = Stack(), bytearray(32)
            for _ in range(20):
                size = source.choice((1, 2, 4, 8))
                at = source.randrange(32 - size + 1)
                if source.random() < 0.6:
                    value = source.getrandbits(64)
                    stack.store(START + at, size, value)
                    data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
                else:
                    found = stack.load(START + at, size, lambda: 0)
                    self.assertEqual(found, int.from_bytes(data[at : at + size], "little"))


if __name__ == "__main__":
    unittest.main()
