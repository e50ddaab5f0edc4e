"""Stack: the bytes of the call frames, as the values that were stored there."""

from __future__ import annotations

from collections.abc import Callable

from .errors import NotUnderstood
from .values import Value, joined, part, same

START = 2 << 32
FRAME = 4096
MAX_FRAMES = 64

#: Gives a value for a byte that was never written.
Garbage = Callable[[], Value]


class Stack:
    """Cells of one to eight bytes, by address. They never overlap."""

    def __init__(self, cells: dict[int, tuple[int, Value]] | None = None) -> None:
        self.cells = cells or {}

    def copy(self) -> Stack:
        return Stack(dict(self.cells))

    def load(self, address: int, size: int, garbage: Garbage) -> Value:
        require_inside(address, size)
        cell = self.cells.get(address)
        if cell and cell[0] == size:
            return cell[1]
        pieces = [(self._byte(at, garbage), 1) for at in range(address, address + size)]
        return joined(pieces)

    def store(self, address: int, size: int, value: Value) -> None:
        require_inside(address, size)
        for start in range(address - 7, address + size):
            cell = self.cells.get(start)
            if cell and start + cell[0] > address and (start, cell[0]) != (address, size):
                self._split(start, address, address + size)
        self.cells[address] = (size, part(value, 0, size))

    def _byte(self, address: int, garbage: Garbage) -> Value:
        for start in range(address, address - 8, -1):
            cell = self.cells.get(start)
            if cell and start + cell[0] > address:
                return part(cell[1], address - start, 1)
        value = part(garbage(), 0, 1)
        self.cells[address] = (1, value)
        return value

    def _split(self, start: int, begin: int, end: int) -> None:
        """Replaces a cell by its bytes that are not between `begin` and `end`."""
        size, value = self.cells.pop(start)
        for byte in range(size):
            if not begin <= start + byte < end:
                self.cells[start + byte] = (1, part(value, byte, 1))


def require_inside(address: int, size: int) -> None:
    if not START <= address or address + size > START + MAX_FRAMES * FRAME:
        raise NotUnderstood(f"the stack has no {size} bytes at {address:#x}")


def merge(
    stacks: list[Stack], choose: Callable[[list[Value]], Value], garbage: Garbage
) -> Stack:
    """One stack for several of which one is the case; `choose` makes one value of theirs."""
    merged = Stack()
    for address in sorted({address for stack in stacks for address in stack.cells}):
        found = [stack.cells.get(address) for stack in stacks]
        sizes = {cell[0] if cell else 0 for cell in found}
        if len(sizes) == 1:
            values = [cell[1] for cell in found if cell]
            value = values[0] if all(same(values[0], each) for each in values) else choose(values)
            merged.cells[address] = (sizes.pop(), value)
        elif not covered(merged, address):
            size = max(sizes)
            merged.store(address, size, choose([stack.load(address, size, garbage) for stack in stacks]))
    return merged


def covered(stack: Stack, address: int) -> bool:
    """Whether a byte lies in a cell that begins before it."""
    return any(
        (cell := stack.cells.get(start)) and start + cell[0] > address for start in range(address - 7, address + 1)
    )
