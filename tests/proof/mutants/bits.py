"""Bits: a number of which some bits are known, and some may differ between guard and mutant."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from guard_proof.decode import MASK64
from guard_proof.values import Value, compare_known, compute_known

#: How deep into a formula is looked for bits that are known.
DEEPEST = 8


@dataclass(frozen=True)
class Bits:
    #: Bits that are known to be one, bits that are known, and bits that may differ. What differs is not known.
    ones: int = 0
    known: int = 0
    apart: int = 0

    @property
    def number(self) -> int | None:
        return self.ones if self.known == MASK64 else None

    @property
    def zeros(self) -> int:
        return self.known & ~self.ones

    def cut(self, mask: int) -> Bits:
        """With zeros outside of a mask."""
        return Bits(self.ones & mask, self.known & mask | MASK64 & ~mask, self.apart & mask)

    def without(self, apart: int) -> Bits:
        """With bits that may differ, of those that are not known."""
        return Bits(self.ones, self.known, apart & ~self.known)

    def joined(self, other: Bits) -> Bits:
        """What is known of one that is either."""
        known = self.known & other.known & ~(self.ones ^ other.ones)
        return Bits(self.ones & known, known, self.apart | other.apart)


ANYTHING = Bits()


def exactly(number: int) -> Bits:
    return Bits(number & MASK64, MASK64)


def compute(operation: str, one: Bits, other: Bits, width: int) -> Bits:
    """What an arithmetic instruction makes of two numbers."""
    numbers = one.number, other.number
    if operation == "mov":
        return other.cut((1 << width) - 1)
    if numbers[0] is not None and numbers[1] is not None:
        return exactly(compute_known(operation, numbers[0], numbers[1], width))
    mask = (1 << width) - 1
    if operation in ("and", "or", "xor"):
        return bitwise(operation, one.cut(mask), other.cut(mask))
    if operation == "lsh" and numbers[1] is not None and width == 64:
        by = numbers[1] & 63
        return Bits(one.ones << by & MASK64, one.known << by & MASK64 | (1 << by) - 1, one.apart << by & MASK64)
    apart = one.apart | other.apart
    if operation in ("add", "sub") and width == 64 and apart:
        # A carry goes up from the lowest bit that differs.
        return Bits(apart=MASK64 & -(apart & -apart))
    return Bits(apart=MASK64 if apart else 0)


def bitwise(operation: str, one: Bits, other: Bits) -> Bits:
    if operation == "and":
        ones, zeros = one.ones & other.ones, one.zeros | other.zeros
    elif operation == "or":
        ones, zeros = one.ones | other.ones, one.zeros & other.zeros
    else:
        ones = one.ones & other.zeros | one.zeros & other.ones
        zeros = one.ones & other.ones | one.zeros & other.zeros
    return Bits(ones, ones | zeros, (one.apart | other.apart) & ~(ones | zeros))


def compare(comparison: str, one: Bits, other: Bits, width: int) -> bool | None:
    """Whether a branch is taken, by guard and mutant alike; nothing where it is not known."""
    mask = (1 << width) - 1
    one, other = one.cut(mask), other.cut(mask)
    if one.number is not None and other.number is not None:
        return compare_known(comparison, one.number, other.number, width)
    if comparison in ("eq", "ne") and (one.ones & other.zeros or one.zeros & other.ones):
        return comparison == "ne"
    if comparison == "set" and one.ones & other.ones:
        return True
    return None


def of(value: Value) -> Bits:
    return exactly(value) if isinstance(value, int) else of_formula(value, DEEPEST)


def of_formula(formula: z3.ExprRef, depth: int) -> Bits:
    """Bits that are the same whatever the input, as far as the formula shows it."""
    if z3.is_bv_value(formula):
        return exactly(formula.as_long())
    if not depth or not z3.is_app(formula):
        return ANYTHING
    if z3.is_app_of(formula, z3.Z3_OP_ITE):
        one, other = (of_formula(each, depth - 1) for each in formula.children()[1:])
        return one.joined(other)
    if z3.is_app_of(formula, z3.Z3_OP_BOR) or z3.is_app_of(formula, z3.Z3_OP_BAND):
        operation = "or" if z3.is_app_of(formula, z3.Z3_OP_BOR) else "and"
        first, *others = (of_formula(each, depth - 1) for each in formula.children())
        for each in others:
            first = bitwise(operation, first, each)
        return first
    if z3.is_app_of(formula, z3.Z3_OP_CONCAT) and formula.size() <= 64:
        ones = known = 0
        for each in formula.children():
            found = of_formula(each, depth - 1).cut((1 << each.size()) - 1)
            ones, known = ones << each.size() | found.ones, known << each.size() | found.known & (1 << each.size()) - 1
        return Bits(ones, known).cut((1 << formula.size()) - 1)
    if z3.is_app_of(formula, z3.Z3_OP_EXTRACT) and formula.arg(0).size() <= 64:
        high, low = formula.params()
        found = of_formula(formula.arg(0), depth - 1)
        return Bits(found.ones >> low, found.known >> low).cut((1 << high - low + 1) - 1)
    return ANYTHING
