"""Assembler: instructions with labels, for the two programs that a trial calls."""

from __future__ import annotations

from tests.assembly import constant, file_of, syscall

Cell = tuple[int, int, int, int]
#: A jump whose distance is not known yet: operation, registers, label, immediate.
Jump = tuple[int, int, str, int]

MOVE, ADD, SHIFT, AND = 0xB7, 0x07, 0x67, 0x57
MOVE_FROM, ADD_FROM = 0xBF, 0x0F
LOAD, LOAD_BYTE, STORE, STORE_HALF, STORE_BYTE, STORE_NUMBER = 0x79, 0x71, 0x7B, 0x6B, 0x73, 0x7A
GO, IF_EQUAL, IF_LESS, IF_OVER, IF_NOT_LESS, IF_NOT = 0x05, 0x15, 0xA5, 0x25, 0x3D, 0x55
IF_OTHER = 0x5D


class Assembler:
    def __init__(self) -> None:
        self._cells: list[Cell | Jump] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        self._labels[name] = len(self._cells)

    def op(self, operation: int, target: int, source: int = 0, offset: int = 0, immediate: int = 0) -> None:
        self._cells.append((operation, target | source << 4, offset, immediate))

    def jump(self, operation: int, label: str, target: int = 0, source: int = 0, immediate: int = 0) -> None:
        self._cells.append((operation, target | source << 4, label, immediate))

    def constant(self, register: int, value: int) -> None:
        self._cells += constant(register, value)

    def syscall(self, name: str) -> None:
        self._cells.append(syscall(name))

    def finish(self, result: int) -> None:
        self._cells += [(MOVE, 0, 0, result), (0x95, 0, 0, 0)]

    def file(self) -> bytes:
        cells: list[Cell] = []
        for at, (operation, registers, offset, immediate) in enumerate(self._cells):
            distance = self._labels[offset] - at - 1 if isinstance(offset, str) else offset
            cells.append((operation, registers, distance, immediate))
        return file_of(cells)
