"""Values: numbers of 64 bits, known or symbolic, and the machine's arithmetic on them."""

from __future__ import annotations

import z3

from .decode import MASK32, MASK64
from .errors import NotUnderstood

#: A known number, or an expression of 64 bits.
Value = int | z3.BitVecRef


def symbolic(value: Value) -> z3.BitVecRef:
    return z3.BitVecVal(value, 64) if isinstance(value, int) else value


def reduced(value: Value) -> Value:
    """The same value in its simplest form: a number where it is known."""
    if isinstance(value, int):
        return value & MASK64
    value = z3.simplify(value)
    return value.as_long() if z3.is_bv_value(value) else value


def same(one: Value, other: Value) -> bool:
    """Whether two values are written alike."""
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int) and one == other
    return one.eq(other)


def part(value: Value, start: int, size: int) -> Value:
    """`size` bytes of a value from byte `start` on, as a value."""
    if isinstance(value, int):
        return value >> 8 * start & (1 << 8 * size) - 1
    if start == 0 and size == 8:
        return value
    bits = z3.Extract(8 * (start + size) - 1, 8 * start, value)
    return reduced(z3.ZeroExt(64 - 8 * size, bits))


def joined(pieces: list[tuple[Value, int]]) -> Value:
    """A value from pieces with their sizes in bytes, the lowest first."""
    if len(pieces) == 1:
        return pieces[0][0]
    if all(isinstance(value, int) for value, _ in pieces):
        whole = at = 0
        for value, size in pieces:
            whole |= value << 8 * at  # type: ignore[operator]
            at += size
        return whole
    bits = [z3.Extract(8 * size - 1, 0, symbolic(value)) for value, size in pieces]
    total = sum(size for _, size in pieces)
    whole_bits = z3.Concat(*reversed(bits))
    return reduced(z3.ZeroExt(64 - 8 * total, whole_bits) if total < 8 else whole_bits)


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


def compute(operation: str, one: Value, other: Value, width: int) -> Value:
    """What an arithmetic instruction writes. Sums, differences and products of 32 bits are extended with their sign."""
    if operation == "mov" and width == 64:
        return other
    if isinstance(one, int) and isinstance(other, int):
        return compute_known(operation, one, other, width)
    left, right = symbolic(one), symbolic(other)
    if width == 32:
        left, right = z3.Extract(31, 0, left), z3.Extract(31, 0, right)
    by = right & width - 1
    known = {
        "add": lambda: left + right, "sub": lambda: left - right, "mul": lambda: left * right,
        "or": lambda: left | right, "and": lambda: left & right, "xor": lambda: left ^ right,
        "lsh": lambda: left << by, "rsh": lambda: z3.LShR(left, by), "arsh": lambda: left >> by,
        "neg": lambda: -left, "mov": lambda: right,
    }  # fmt: skip
    if operation not in known:
        raise NotUnderstood(f"`{operation}` of a number that is not known")
    result = known[operation]()
    if width == 32:
        result = z3.SignExt(32, result) if operation in ("add", "sub", "mul") else z3.ZeroExt(32, result)
    return reduced(result)


def compute_known(operation: str, one: int, other: int, width: int) -> int:
    mask = MASK64 if width == 64 else MASK32
    one, other = one & mask, other & mask
    by = other & width - 1
    if operation in ("div", "mod") and other == 0:
        raise ZeroDivisionError
    known = {
        "add": lambda: one + other, "sub": lambda: one - other, "mul": lambda: one * other,
        "div": lambda: one // other, "mod": lambda: one % other, "or": lambda: one | other,
        "and": lambda: one & other, "xor": lambda: one ^ other, "lsh": lambda: one << by,
        "rsh": lambda: one >> by, "arsh": lambda: signed(one, width) >> by, "neg": lambda: -one,
        "mov": lambda: other,
    }  # fmt: skip
    result = known[operation]()
    if width == 32 and operation in ("add", "sub", "mul"):
        return signed(result, 32) & MASK64
    return result & mask


def swap_bytes(operation: str, value: Value, width: int) -> Value:
    """The value's low bits in the stated byte order."""
    size = width // 8
    if operation == "le":
        return part(value, 0, size)
    return joined([(part(value, byte, 1), 1) for byte in reversed(range(size))])


def compare(comparison: str, one: Value, other: Value, width: int) -> bool | z3.BoolRef:
    """Whether a branch is taken."""
    if isinstance(one, int) and isinstance(other, int):
        return compare_known(comparison, one, other, width)
    left, right = symbolic(one), symbolic(other)
    if width == 32:
        left, right = z3.Extract(31, 0, left), z3.Extract(31, 0, right)
    known = {
        "eq": lambda: left == right, "ne": lambda: left != right, "set": lambda: left & right != 0,
        "gt": lambda: z3.UGT(left, right), "ge": lambda: z3.UGE(left, right),
        "lt": lambda: z3.ULT(left, right), "le": lambda: z3.ULE(left, right),
        "sgt": lambda: left > right, "sge": lambda: left >= right,
        "slt": lambda: left < right, "sle": lambda: left <= right,
    }  # fmt: skip
    answer = z3.simplify(known[comparison]())
    return True if z3.is_true(answer) else False if z3.is_false(answer) else answer


def compare_known(comparison: str, one: int, other: int, width: int) -> bool:
    mask = MASK64 if width == 64 else MASK32
    one, other = one & mask, other & mask
    if comparison.startswith("s") and comparison != "set":
        one, other, comparison = signed(one, width), signed(other, width), comparison[1:]
    return {
        "eq": one == other, "ne": one != other, "set": comparison == "set" and one & other != 0,
        "gt": one > other, "ge": one >= other, "lt": one < other, "le": one <= other,
    }[comparison]  # fmt: skip
