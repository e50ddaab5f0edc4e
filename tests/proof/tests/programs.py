"""Random programs: sequences of every instruction, each followed by a log of all registers and some stack."""

from __future__ import annotations

import random

from guard_proof.decode import ARITHMETIC, COMPARISONS, SIZES

from .assembly import EXIT, constant, file_of, syscall

Cell = tuple[int, int, int, int]

#: Below the frame pointer: header of the logged field, registers, and bytes that random instructions use.
HEADER, REGISTERS, SCRATCH = -1040, -1024, -944
SCRATCH_LEN = 64
LOGGED_LEN = SCRATCH - REGISTERS + SCRATCH_LEN
FRAME_POINTER = 10
#: Stands for a call of the function at the end.
CALL: Cell = (0x85, 0x10, 0, 0)
EDGES = (0, 1, 2, 7, 31, 32, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)


class Author:
    """Writes programs. The same seed writes the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def program(self, sequences: int) -> bytes:
        cells: list[Cell] = []
        for register in range(10):
            cells += constant(register, self._number())
        for at in range(SCRATCH, SCRATCH + SCRATCH_LEN, 8):
            cells.append((0x7B, FRAME_POINTER | self._register() << 4, at, 0))
        for _ in range(sequences):
            cells += self._sequence() + self._log()
        cells += [(0xB7, 0, 0, 0), EXIT]
        for at, cell in enumerate(cells):
            if cell == CALL:
                cells[at] = (0x85, 0x10, 0, len(cells) - at - 1)
        return file_of(cells + self._function())

    def _sequence(self) -> list[Cell]:
        """A few instructions, of which a branch goes over the next one or two."""
        pieces = [self._instruction() for _ in range(self._random.randint(3, 6))]
        if self._random.random() < 0.1:
            pieces.insert(self._random.randrange(len(pieces)), [CALL])
        cells: list[Cell] = []
        for at, piece in enumerate(pieces):
            opcode, registers, _, immediate = piece[0]
            if opcode & 7 in (5, 6) and piece != [CALL]:
                over = pieces[at + 1 : at + 1 + self._random.randint(0, 2)]
                piece = [(opcode, registers, sum(len(each) for each in over), immediate)]
            cells += piece
        return cells

    def _number(self) -> int:
        return self._random.choice(EDGES) if self._random.random() < 0.5 else self._random.getrandbits(64)

    def _immediate(self) -> int:
        value = self._number() & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value

    def _register(self) -> int:
        return self._random.randrange(10)

    def _instruction(self) -> list[Cell]:
        kind = self._random.random()
        if kind < 0.5:
            return self._arithmetic()
        if kind < 0.7:
            return [self._move()]
        if kind < 0.9:
            return [self._branch()]
        if kind < 0.95:
            return [(self._random.choice((0xD4, 0xDC)), self._register(), 0, self._random.choice((16, 32, 64)))]
        return constant(self._register(), self._number())

    def _arithmetic(self) -> list[Cell]:
        operation = self._random.choice(list(ARITHMETIC))
        group = self._random.choice((0x04, 0x07))
        name, target, source = ARITHMETIC[operation], self._register(), self._register()
        is_division = name in ("div", "mod")
        if name != "neg" and self._random.random() < 0.5:
            # A division by zero ends the transaction.
            odd = [(0x47, source, 0, 1)] if is_division else []
            return [*odd, (operation << 4 | 0x08 | group, target | source << 4, 0, 0)]
        immediate = self._immediate()
        if name in ("lsh", "rsh", "arsh"):
            immediate %= 32 if group == 0x04 else 64
        return [(operation << 4 | group, target, 0, immediate or 3 if is_division else immediate)]

    def _move(self) -> Cell:
        code = self._random.choice(list(SIZES))
        at = SCRATCH + self._random.randrange(SCRATCH_LEN - SIZES[code] + 1)
        group = self._random.choice((1, 2, 3))
        register = self._register()
        if group == 1:
            return (0x60 | code | 1, register | FRAME_POINTER << 4, at, 0)
        return (0x60 | code | group, FRAME_POINTER | register << 4, at, self._immediate())

    def _branch(self) -> Cell:
        operation, group = self._random.choice(list(COMPARISONS)), self._random.choice((5, 6))
        if self._random.random() < 0.5:
            return (operation << 4 | 0x08 | group, self._register() | self._register() << 4, 0, 0)
        return (operation << 4 | group, self._register(), 0, self._immediate())

    def _log(self) -> list[Cell]:
        cells = [(0x7B, FRAME_POINTER | register << 4, REGISTERS + 8 * register, 0) for register in range(10)]
        cells += [(0xBF, 0xA1, 0, 0), (0x07, 1, 0, REGISTERS), (0x7B, 0x1A, HEADER, 0)]
        cells += [(0x7A, FRAME_POINTER, HEADER + 8, LOGGED_LEN), (0xBF, 0xA1, 0, 0), (0x07, 1, 0, HEADER)]
        cells += [(0xB7, 2, 0, 1), syscall("sol_log_data")]
        for register in (1, 2):
            cells += constant(register, self._number())
        return cells

    def _function(self) -> list[Cell]:
        """Changes all registers and a stack of its own; the caller must find those that a callee keeps."""
        cells: list[Cell] = [(0x7B, FRAME_POINTER | 0x60, -8, 0)]
        for register in range(10):
            cells.append((0x07, register, 0, self._immediate()))
        return [*cells, (0x79, 0x00 | FRAME_POINTER << 4, -8, 0), EXIT]
