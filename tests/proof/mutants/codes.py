"""Codes: whether a change reaches nothing but the code with which the program refuses.

A refusal is any number but zero, and the specification does not say which: the change must give another number that is not
zero, and go from register to register to the program's result, with nothing asked of it on the way but whether it is zero.
"""

from __future__ import annotations

from guard_proof.decode import Instruction, Kind

Code = list[Instruction | None]
#: A place of the code, and the registers that hold the changed number there.
Point = tuple[int, frozenset[int]]
RESULT = 0
#: Registers that a function does not restore.
GIVEN_BACK = frozenset(range(6))


def is_only_a_code(code: Code, changed: Code, at: int) -> bool:
    before, after = code[at], changed[at]
    if before is None or after is None or not (makes_no_zero(before) and makes_no_zero(after)):
        return False
    if (before.kind, before.operation, before.target) != (after.kind, after.operation, after.target):
        return False
    seen: set[Point] = set()
    pending: list[Point] = [(before.next, frozenset([before.target]))]
    while pending:
        point = pending.pop()
        if point in seen or not point[1]:
            continue
        seen.add(point)
        following = after_point(code, *point)
        if following is None:
            return False
        pending += following
    return True


def makes_no_zero(instruction: Instruction) -> bool:
    """Whether the result is a number but zero, whatever the registers hold, in all that is compared of it."""
    low = instruction.immediate & 0xFFFFFFFF
    if instruction.kind == Kind.CONSTANT:
        return instruction.immediate != 0
    is_number = instruction.kind == Kind.ARITHMETIC and instruction.source is None
    return is_number and instruction.operation in ("mov", "or") and low != 0


def after_point(code: Code, at: int, held: frozenset[int]) -> list[Point] | None:
    """Where the changed number is next; nothing where more is made of it than a result."""
    instruction = code[at]
    if instruction is None:
        return None
    used = {instruction.target, instruction.source} & held
    match instruction.kind:
        case Kind.EXIT:
            # Of a function, the caller asks whether it is zero; of the program, it is the result.
            return callers(code, at, held)
        case Kind.JUMP:
            return [(instruction.to, held)]
        case Kind.BRANCH:
            asks_for_zero = (
                instruction.source is None and instruction.immediate == 0
                and instruction.operation in ("eq", "ne") and instruction.width == 64
            )  # fmt: skip
            if instruction.source in held or instruction.target in held and not asks_for_zero:
                return None
            ways = {instruction.next, instruction.to}
            if instruction.target in held:
                ways = {instruction.to if instruction.operation == "ne" else instruction.next}
            return [(way, held) for way in ways]
        case Kind.ARITHMETIC if instruction.operation == "mov" and instruction.source in held and instruction.width == 64:
            return [(instruction.next, held | {instruction.target})]
        case Kind.ARITHMETIC if instruction.operation == "mov":
            return None if instruction.source in held else [(instruction.next, held - {instruction.target})]
        case Kind.CONSTANT:
            return [(instruction.next, held - {instruction.target})]
        case Kind.LOAD:
            return None if instruction.source in held else [(instruction.next, held - {instruction.target})]
        case Kind.SYSCALL:
            return None if held & frozenset(range(1, 6)) else [(instruction.next, held - {RESULT})]
        case Kind.CALL:
            # A function of the guard gets its arguments, and writes its result.
            return None if held - {RESULT} else [(instruction.to, held)]
    return None if used else [(instruction.next, held)]


def callers(code: Code, at: int, held: frozenset[int]) -> list[Point]:
    """Behind every call whose function may end here: all calls of the code, which is more than there are."""
    held &= GIVEN_BACK
    if not held:
        return []
    return [(each.next, held) for each in code if each and each.kind == Kind.CALL and may_reach(code, each.to, at)]


def may_reach(code: Code, start: int, end: int) -> bool:
    seen, pending = set(), [start]
    while pending:
        at = pending.pop()
        if at == end:
            return True
        instruction = code[at] if at < len(code) else None
        if at in seen or instruction is None or instruction.kind == Kind.EXIT:
            continue
        seen.add(at)
        pending += [instruction.to] if instruction.kind == Kind.JUMP else [instruction.next]
        if instruction.kind == Kind.BRANCH:
            pending.append(instruction.to)
    return False
