"""Control flow: in which order instructions are visited, so that branches that come together again meet.

Nothing here is relied upon: another order would take longer, and prove the same.
"""

from __future__ import annotations

from functools import cached_property

from .decode import Instruction, Kind

#: Where a state stands within one function: positions of the loops around it and their rounds, then its own.
Place = tuple[int, ...]


class ControlFlow:
    """Order and loops of all functions, and which registers each instruction still needs."""

    def __init__(self, code: list[Instruction | None], entry: int) -> None:
        self._code = code
        self._position: dict[int, int] = {}
        #: Loops around an instruction, by the instruction at which each begins, the outermost first.
        self.loops: dict[int, list[int]] = {}
        self._arrivals: dict[int, int] = {}
        calls = {each.to for each in code if each and each.kind == Kind.CALL}
        for function in sorted({entry, *calls}):
            self._order(function)
        self.joins = {index for index, count in self._arrivals.items() if count > 1}

    def place(self, index: int, rounds: dict[int, int]) -> Place:
        around = self.loops.get(index, [])
        place = [number for head in around for number in (self._position[head], rounds.get(head, 0))]
        return (*place, self._position[index])

    def _next(self, index: int) -> list[int]:
        instruction = self._code[index]
        if instruction is None or instruction.kind == Kind.EXIT:
            return []
        if instruction.kind == Kind.JUMP:
            return [instruction.to]
        if instruction.kind == Kind.BRANCH:
            return [instruction.next, instruction.to]
        return [instruction.next] if instruction.next < len(self._code) else []

    def _order(self, function: int) -> None:
        """Positions in reverse post-order, and the loops that edges back to an open instruction close."""
        done: list[int] = []
        opened, closed = {function}, set()
        back: list[tuple[int, int]] = []
        path = [(function, iter(self._next(function)))]
        while path:
            index, successors = path[-1]
            following = next(successors, None)
            if following is None:
                path.pop()
                closed.add(index)
                done.append(index)
                continue
            self._arrivals[following] = self._arrivals.get(following, 0) + 1
            if following in opened and following not in closed:
                back.append((index, following))
            if following not in opened:
                opened.add(following)
                path.append((following, iter(self._next(following))))
        for position, index in enumerate(reversed(done)):
            self._position[index] = position
        self._note_loops(done, back)

    def _note_loops(self, members: list[int], back: list[tuple[int, int]]) -> None:
        before: dict[int, list[int]] = {}
        for index in members:
            for following in self._next(index):
                before.setdefault(following, []).append(index)
        heads = sorted({head for _, head in back}, key=lambda head: self._position[head])
        for head in heads:
            body, pending = {head}, [tail for tail, to in back if to == head]
            while pending:
                index = pending.pop()
                if index not in body:
                    body.add(index)
                    pending += before.get(index, [])
            for index in body:
                self.loops.setdefault(index, []).append(head)

    @cached_property
    def live(self) -> list[frozenset[int]]:
        """Registers whose values matter before each instruction."""
        live: list[frozenset[int]] = [frozenset()] * len(self._code)
        changed = True
        while changed:
            changed = False
            for index in reversed(range(len(self._code))):
                instruction = self._code[index]
                if instruction is None:
                    continue
                after = frozenset().union(*[live[each] for each in self._next(index)])
                needed = needs(instruction) | (after - writes(instruction))
                if needed != live[index]:
                    live[index] = needed
                    changed = True
        return live


def needs(instruction: Instruction) -> frozenset[int]:
    """Registers that an instruction reads. A callee may read all arguments, and gives back what its caller kept."""
    other = frozenset() if instruction.source is None else frozenset([instruction.source])
    match instruction.kind:
        case Kind.LOAD:
            return other
        case Kind.STORE | Kind.BRANCH:
            return other | {instruction.target}
        case Kind.ARITHMETIC if instruction.operation == "mov":
            return other
        case Kind.ARITHMETIC | Kind.SWAP_BYTES:
            return other | {instruction.target}
        case Kind.SYSCALL:
            return frozenset(range(1, 6))
        case Kind.CALL:
            return frozenset(range(11))
        case Kind.EXIT:
            return frozenset([0])
    return frozenset()


def writes(instruction: Instruction) -> frozenset[int]:
    match instruction.kind:
        case Kind.CONSTANT | Kind.LOAD | Kind.ARITHMETIC | Kind.SWAP_BYTES:
            return frozenset([instruction.target])
        case Kind.SYSCALL:
            return frozenset([0])
    return frozenset()
