"""Codes: whether a change reaches nothing but the code with which the program refuses.

A refusal is any number but zero, and the specification does not say which: the change must give another number that is not
zero, and go from register to register to the program's result, with nothing asked of it on the way but whether it is zero.
A number that may be zero must be made another one before anything is asked of it, or it is the result.
"""

from __future__ import annotations

from guard_proof.decode import Instruction, Kind

Code = list[Instruction | None]
#: A place of the code, the registers that hold the changed number there, and whether it is surely not zero.
Point = tuple[int, frozenset[int], bool]
RESULT = 0
#: Registers that a function does not restore.
GIVEN_BACK = frozenset(range(6))


def is_only_a_code(code: Code, changed: Code, at: int) -> bool:
    before, after = code[at], changed[at]
    if before is None or after is None:
        return False
    if (before.kind, before.operation, before.target) != (after.kind, after.operation, after.target):
        return False
    if before.kind == Kind.LOAD:
        return is_only_a_result(code, at)
    return makes_no_zero(before) and makes_no_zero(after) and is_only_a_result(code, at, is_no_zero=True)


def is_only_a_result(code: Code, at: int, is_no_zero: bool = False) -> bool:
    """Whether what an instruction writes into its register reaches nothing but the code of a refusal."""
    before = code[at]
    if before is None:
        return False
    seen: set[Point] = set()
    pending: list[Point] = [(before.next, frozenset([before.target]), is_no_zero)]
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


def after_point(code: Code, at: int, held: frozenset[int], is_no_zero: bool) -> list[Point] | None:
    """Where the changed number is next; nothing where more is made of it than a result."""
    instruction = code[at]
    if instruction is None:
        return None
    used = {instruction.target, instruction.source} & held
    match instruction.kind:
        case Kind.EXIT:
            # Of a function, the caller asks whether it is zero; of the program, it is the result.
            return callers(code, at, held, is_no_zero) if is_no_zero or RESULT not in held else None
        case Kind.JUMP:
            return [(instruction.to, held, is_no_zero)]
        case Kind.BRANCH:
            asks_for_zero = (
                instruction.source is None and instruction.immediate == 0
                and instruction.operation in ("eq", "ne") and instruction.width == 64
            )  # fmt: skip
            if instruction.source in held or instruction.target in held and not asks_for_zero:
                return None
            ways = {instruction.next, instruction.to}
            if instruction.target in held:
                if not is_no_zero:
                    return None
                ways = {instruction.to if instruction.operation == "ne" else instruction.next}
            return [(way, held, is_no_zero) for way in ways]
        case Kind.ARITHMETIC if instruction.operation == "or" and instruction.source is None and makes_no_zero(instruction):
            return [(instruction.next, held, is_no_zero or held == frozenset([instruction.target]))]
        case Kind.ARITHMETIC if instruction.operation == "mov" and instruction.source in held and instruction.width == 64:
            return [(instruction.next, held | {instruction.target}, is_no_zero)]
        case Kind.ARITHMETIC if instruction.operation == "mov":
            return None if instruction.source in held else [(instruction.next, held - {instruction.target}, is_no_zero)]
        case Kind.CONSTANT:
            return [(instruction.next, held - {instruction.target}, is_no_zero)]
        case Kind.LOAD:
            return None if instruction.source in held else [(instruction.next, held - {instruction.target}, is_no_zero)]
        case Kind.SYSCALL:
            return None if held & frozenset(range(1, 6)) else [(instruction.next, held - {RESULT}, is_no_zero)]
        case Kind.CALL:
            # A function of the guard gets its arguments, and writes its result.
            return None if held - {RESULT} else [(instruction.to, held, is_no_zero)]
    return None if used else [(instruction.next, held, is_no_zero)]


def callers(code: Code, at: int, held: frozenset[int], is_no_zero: bool) -> list[Point]:
    """Behind every call whose function may end here: all calls of the code, which is more than there are."""
    held &= GIVEN_BACK
    if not held:
        return []
    calls = [each for each in code if each and each.kind == Kind.CALL and may_reach(code, each.to, at)]
    return [(each.next, held, is_no_zero) for each in calls]


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
