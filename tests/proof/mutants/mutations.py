"""Mutations: every small change of the guard's code that is tried, one instruction or one word of data each."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from guard_proof.decode import COMPARISONS, Instruction, Kind, decode
from guard_proof.elf import FILE_HEADER, PROGRAM_HEADER, Program

CELL = struct.Struct("<BBhi")
#: Goes on with the next instruction.
NOTHING = (0x05, 0, 0, 0)
#: Comparisons that differ where both sides are equal, and those that are each other's opposite there.
LOOSER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt"}
OPPOSITE = {"eq": "ne", "ne": "eq"}
#: Codes of operations by their names.
CODES = {name: code for code, name in COMPARISONS.items()}
#: What the two flags of a listed account may be: writable in the low byte, signer in the high one.
FLAGS = (0x000, 0x001, 0x100, 0x101)
STORE_HALF_NUMBER = 0x6A
#: Distance of two mutations that are tried one after the other, in the order of the code.
STRIDE = 7

Cell = tuple[int, int, int, int]


@dataclass(frozen=True)
class Mutation:
    kind: str
    #: Index of the instruction, or of the eight bytes of read-only data.
    at: int
    #: The bytes that stand there instead.
    bytes: bytes
    #: Of read-only data instead of code.
    is_data: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind} at {'data ' if self.is_data else ''}{self.at}"

    def file(self, file: bytes, program: Program) -> bytes:
        """The program file with this change."""
        start = FILE_HEADER.size + 2 * PROGRAM_HEADER.size
        place = start + 8 * self.at + (0 if self.is_data else len(program.rodata))
        return file[:place] + self.bytes + file[place + len(self.bytes) :]


def mutations(program: Program) -> list[Mutation]:
    """All mutations. The branches come first, with as many others between them, from all over the code."""
    code = decode(program.code)
    cells = list(CELL.iter_unpack(program.code))
    first = [
        *branches(code, cells, "never taken"), *branches(code, cells, "always taken"), *strictness(code, cells),
        *flags(code, cells), *dropped(code, Kind.SYSCALL, Kind.CALL),
    ]  # fmt: skip
    others = [
        *opposites(code, cells), *constants(code, cells), *offsets(code, cells), *dropped(code, Kind.STORE), *data(program)
    ]
    turns = zip_longest(scattered(first), scattered(others))
    return [each for turn in turns for each in turn if each is not None]


def scattered(mutants: list[Mutation]) -> list[Mutation]:
    """In an order in which any first part is spread over the whole."""
    return [each for start in range(STRIDE) for each in mutants[start::STRIDE]]


def made(kind: str, at: int, cell: Cell) -> Mutation:
    return Mutation(kind, at, CELL.pack(*cell))


def each_of(code: list[Instruction | None], *kinds: Kind) -> Iterator[tuple[int, Instruction]]:
    for at, instruction in enumerate(code):
        if instruction and instruction.kind in kinds:
            yield at, instruction


def branches(code: list[Instruction | None], cells: list[Cell], kind: str) -> Iterator[Mutation]:
    for at, _ in each_of(code, Kind.BRANCH):
        yield made(kind, at, NOTHING if kind == "never taken" else (0x05, 0, cells[at][2], 0))


def strictness(code: list[Instruction | None], cells: list[Cell]) -> Iterator[Mutation]:
    yield from comparisons(code, cells, LOOSER, "other strictness")


def opposites(code: list[Instruction | None], cells: list[Cell]) -> Iterator[Mutation]:
    yield from comparisons(code, cells, OPPOSITE, "opposite")


def comparisons(
    code: list[Instruction | None], cells: list[Cell], others: dict[str, str], kind: str
) -> Iterator[Mutation]:
    for at, instruction in each_of(code, Kind.BRANCH):
        if instruction.operation in others:
            operation, registers, offset, immediate = cells[at]
            yield made(kind, at, (CODES[others[instruction.operation]] << 4 | operation & 15, registers, offset, immediate))


def constants(code: list[Instruction | None], cells: list[Cell]) -> Iterator[Mutation]:
    for at, instruction in each_of(code, Kind.CONSTANT, Kind.ARITHMETIC, Kind.BRANCH, Kind.STORE):
        if instruction.source is None and instruction.operation != "neg":
            operation, registers, offset, immediate = cells[at]
            is_mask = instruction.operation in ("and", "or")
            changed = immediate ^ 1 if is_mask or immediate == 0x7FFFFFFF else immediate + 1
            yield made("constant", at, (operation, registers, offset, changed))


def offsets(code: list[Instruction | None], cells: list[Cell]) -> Iterator[Mutation]:
    for at, instruction in each_of(code, Kind.LOAD, Kind.STORE):
        operation, registers, offset, immediate = cells[at]
        yield made("offset", at, (operation, registers, offset + instruction.width, immediate))


def flags(code: list[Instruction | None], cells: list[Cell]) -> Iterator[Mutation]:
    for at, instruction in each_of(code, Kind.STORE):
        if instruction.width == 2:
            _, registers, offset, _ = cells[at]
            for value in FLAGS:
                yield made(f"flags {value:#05x}", at, (STORE_HALF_NUMBER, registers & 15, offset, value))


def dropped(code: list[Instruction | None], *kinds: Kind) -> Iterator[Mutation]:
    for at, instruction in each_of(code, *kinds):
        yield made(f"dropped {instruction.kind.value}", at, NOTHING)


def data(program: Program) -> Iterator[Mutation]:
    for at in range(len(program.rodata) // 8):
        word = bytearray(program.rodata[8 * at : 8 * at + 8])
        word[0] ^= 1
        yield Mutation("data", at, bytes(word), is_data=True)
