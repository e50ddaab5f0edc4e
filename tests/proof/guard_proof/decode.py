"""Instructions: the operation and operands of each eight bytes of code, every operation of SBPF version 3."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from .errors import NotUnderstood

MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1
FRAME_POINTER = 10


class Kind(Enum):
    CONSTANT = "constant"
    LOAD = "load"
    STORE = "store"
    ARITHMETIC = "arithmetic"
    SWAP_BYTES = "swap bytes"
    JUMP = "jump"
    BRANCH = "branch"
    CALL = "call"
    SYSCALL = "syscall"
    EXIT = "exit"


#: Names of the arithmetic operations, by their four bits.
ARITHMETIC = {
    0x0: "add", 0x1: "sub", 0x2: "mul", 0x3: "div", 0x4: "or", 0x5: "and", 0x6: "lsh",
    0x7: "rsh", 0x8: "neg", 0x9: "mod", 0xA: "xor", 0xB: "mov", 0xC: "arsh",
}  # fmt: skip
#: Names of the comparisons, by their four bits.
COMPARISONS = {
    0x1: "eq", 0x2: "gt", 0x3: "ge", 0x4: "set", 0x5: "ne", 0x6: "sgt", 0x7: "sge",
    0xA: "lt", 0xB: "le", 0xC: "slt", 0xD: "sle",
}  # fmt: skip
#: Bytes that a load or store moves, by two bits.
SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}


@dataclass(frozen=True)
class Instruction:
    kind: Kind
    operation: str = ""
    #: Register that is written or compared, and the other operand's, which is `None` for an immediate.
    target: int = 0
    source: int | None = None
    immediate: int = 0
    #: Of a load or store: added to the address.
    offset: int = 0
    #: Of a load or store: bytes moved. Of arithmetic, comparisons and byte swaps: the operands' bits.
    width: int = 64
    #: Of a jump, branch or call: index of the instruction that it goes to.
    to: int = 0
    #: Index of the instruction behind.
    next: int = 0


def decode(code: bytes) -> list[Instruction | None]:
    """All instructions; the second half of one that takes sixteen bytes is `None`."""
    cells = list(struct.iter_unpack("<BBhi", code))
    decoded: list[Instruction | None] = []
    while len(decoded) < len(cells):
        index = len(decoded)
        if cells[index][0] == 0x18:
            decoded += [constant(cells, index), None]
        else:
            decoded.append(single(index, *cells[index]))
    for index, instruction in enumerate(decoded):
        if instruction and instruction.kind in (Kind.JUMP, Kind.BRANCH, Kind.CALL):
            if not 0 <= instruction.to < len(decoded) or decoded[instruction.to] is None:
                raise NotUnderstood(f"instruction {index} goes out of the code")
    return decoded


def constant(cells: list[tuple[int, int, int, int]], index: int) -> Instruction:
    if index + 1 >= len(cells) or cells[index + 1][:3] != (0, 0, 0):
        raise NotUnderstood(f"instruction {index} lacks its second half")
    _, registers, _, low = cells[index]
    target = writable(index, registers & 15)
    value = (low & MASK32) | (cells[index + 1][3] & MASK32) << 32
    return Instruction(Kind.CONSTANT, target=target, immediate=value, next=index + 2)


def single(index: int, opcode: int, registers: int, offset: int, immediate: int) -> Instruction:
    target, source = registers & 15, registers >> 4
    if target > FRAME_POINTER or source > FRAME_POINTER:
        raise NotUnderstood(f"instruction {index} names an unknown register")
    group, operation = opcode & 7, opcode >> 4
    if group in (1, 2, 3) and opcode & 0xE0 == 0x60:
        return moved(index, opcode, target, source, offset, immediate)
    if group in (4, 7):
        return computed(index, opcode, writable(index, target), source, immediate)
    other = source if opcode & 8 else None
    if group in (5, 6) and operation in COMPARISONS:
        width = 64 if group == 5 else 32
        return Instruction(
            Kind.BRANCH, COMPARISONS[operation], target, other, immediate & MASK64,
            width=width, to=index + 1 + offset, next=index + 1,
        )  # fmt: skip
    if opcode == 0x05:
        return Instruction(Kind.JUMP, to=index + 1 + offset, next=index + 1)
    if opcode == 0x85 and source == 0:
        return Instruction(Kind.SYSCALL, immediate=immediate & MASK32, next=index + 1)
    if opcode == 0x85 and source == 1:
        return Instruction(Kind.CALL, to=index + 1 + immediate, next=index + 1)
    if opcode == 0x95:
        return Instruction(Kind.EXIT, next=index + 1)
    raise NotUnderstood(f"instruction {index} has the unknown operation {opcode:#04x}")


def moved(index: int, opcode: int, target: int, source: int, offset: int, immediate: int) -> Instruction:
    size = SIZES[opcode & 0x18]
    if opcode & 7 == 1:
        return Instruction(
            Kind.LOAD, target=writable(index, target), source=source, offset=offset, width=size, next=index + 1
        )
    other = source if opcode & 7 == 3 else None
    return Instruction(Kind.STORE, "", target, other, immediate & MASK64, offset, size, next=index + 1)


def computed(index: int, opcode: int, target: int, source: int, immediate: int) -> Instruction:
    width = 64 if opcode & 7 == 7 else 32
    operation = opcode >> 4
    if operation == 0xD and width == 32 and immediate in (16, 32, 64):
        return Instruction(
            Kind.SWAP_BYTES, "be" if opcode & 8 else "le", target, width=immediate, next=index + 1
        )
    if operation not in ARITHMETIC or opcode in (0x8C, 0x8F):
        raise NotUnderstood(f"instruction {index} has the unknown operation {opcode:#04x}")
    name = ARITHMETIC[operation]
    other = source if opcode & 8 else None
    if other is None and name in ("div", "mod") and immediate == 0:
        raise NotUnderstood(f"instruction {index} divides by zero")
    return Instruction(
        Kind.ARITHMETIC, name, target, other, immediate & MASK64, width=width, next=index + 1
    )


def writable(index: int, register: int) -> int:
    if register >= FRAME_POINTER:
        raise NotUnderstood(f"instruction {index} writes the frame pointer or an unknown register")
    return register
