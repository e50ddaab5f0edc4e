"""Liveness: which registers and bytes of the stack anything that the guard does still depends on.

A value that only goes into other values on which nothing depends is not live. What is live is found backwards over the
guard's code, each function apart for each place that it is called from, with the addresses that the execution on open inputs
has found. Sets are numbers with a bit for each place.

What a call describes of its accounts, but for their keys, is looked at apart: the runtime does not read all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from guard_proof import stack
from guard_proof.decode import Instruction, Kind
from guard_proof.state import State
from guard_proof.syscalls import INFO_SIZE, hash_of

Code = list[Instruction | None]
#: An open call: the place that it returns to, and the rounds of the loops around it.
Open = tuple[int, tuple[tuple[int, int], ...]]
#: Where an execution stands: its open calls, and the instruction.
Node = tuple[tuple[Open, ...], int]

#: Registers that a call gives back as they were; while it is open they are kept apart, for each call that is open.
KEPT = range(6, 10)
FIRST_KEPT = 16
FIRST_BYTE = 64
ABORT, CLOCK = hash_of("abort"), hash_of("sol_get_sysvar")
#: Registers that the system calls look at. The list of seeds is looked at where it is not empty, which the proof excludes.
ARGUMENTS = {
    ABORT: (), CLOCK: (1, 2, 3, 4), hash_of("sol_log_data"): (1, 2),
    hash_of("sol_set_return_data"): (1, 2), hash_of("sol_invoke_signed_c"): (1, 2, 3, 5),
}  # fmt: skip


def node(state: State) -> Node:
    return tuple((frame.back, frame.rounds) for frame in state.frames), state.at


def register(number: int) -> int:
    return 1 << number


def bytes_at(address: int, size: int) -> int:
    """The part of so many bytes that is on the stack."""
    if address >> 32 != stack.START >> 32:
        return 0
    return ((1 << size) - 1) << FIRST_BYTE + address - stack.START


def kept(number: int, depth: int) -> int:
    return 1 << FIRST_KEPT + len(KEPT) * depth + number - KEPT[0]


@dataclass
class Accesses:
    """Bytes of the stack that instructions were seen to read and to write."""

    read: dict[Node, int] = field(default_factory=dict)
    written: dict[Node, set[int]] = field(default_factory=dict)
    #: Where functions were entered, by where they were called.
    entered: dict[Node, set[Node]] = field(default_factory=dict)
    #: Loads whose number reaches nothing but the code of a refusal.
    codes: set[int] = field(default_factory=set)
    #: Of calls of other programs: what is described of each account in turn, but for its key.
    described: dict[Node, list[int]] = field(default_factory=dict)

    def note_read(self, state: State, address: int, size: int) -> None:
        at = node(state)
        self.read[at] = self.read.get(at, 0) | bytes_at(address, size)

    def note_call(self, state: State, infos: int, count: int) -> None:
        starts = range(infos, infos + INFO_SIZE * count, INFO_SIZE)
        self.described[node(state)] = [bytes_at(start + 8, INFO_SIZE - 8) for start in starts]

    def note_write(self, state: State, address: int, size: int) -> None:
        self.written.setdefault(node(state), set()).add(bytes_at(address, size))


class Depends(Enum):
    """Which dependences count."""

    #: All but on descriptions of accounts.
    BUT_FOR_DESCRIPTIONS = 1
    #: All but on whether a number is zero, of numbers that are only moved.
    BUT_FOR_ZERO = 2
    #: All but of the codes of refusals on the place where they stand.
    BUT_FOR_CODES = 3


class Liveness:
    """What is live for one kind of dependences, or for the description of one account alone.

    A place that is live for several reasons is live for one of them, so that the sets of several are added up.
    """

    def __init__(self, code: Code, entry: int, accesses: Accesses, depends: Depends | int) -> None:
        self._code = code
        self._accesses = accesses
        self._depends = depends
        self._before: dict[Node, int] = {}
        self._nodes = self._find_nodes(((), entry))
        self._solve()

    def contexts(self, at: int) -> list[Node]:
        return [each for each in self._nodes if each[1] == at]

    def after(self, at: Node) -> int:
        """What is live behind an instruction."""
        live = 0
        for each in self._following(at):
            live |= self._before.get(each, 0)
        return live

    def _find_nodes(self, start: Node) -> list[Node]:
        found, pending = {start: None}, [start]
        while pending:
            for each in self._following(pending.pop()):
                if each not in found:
                    found[each] = None
                    pending.append(each)
        return list(found)

    def _following(self, at: Node) -> Iterable[Node]:
        backs, index = at
        instruction = self._code[index] if index < len(self._code) else None
        if instruction is None:
            return []
        match instruction.kind:
            case Kind.EXIT:
                return [(backs[:-1], backs[-1][0])] if backs else []
            case Kind.SYSCALL if instruction.immediate == ABORT:
                return []
            case Kind.JUMP:
                return [(backs, instruction.to)]
            case Kind.BRANCH:
                return [(backs, instruction.next), (backs, instruction.to)]
            case Kind.CALL:
                return self._accesses.entered.get(at, ())
        return [(backs, instruction.next)]

    def _solve(self) -> None:
        before: dict[Node, list[Node]] = {}
        for each in self._nodes:
            for following in self._following(each):
                before.setdefault(following, []).append(each)
        pending = dict.fromkeys(self._nodes)
        while pending:
            at, _ = pending.popitem()
            live = self._needed(at, self.after(at))
            if live != self._before.get(at, 0):
                self._before[at] = live
                pending.update(dict.fromkeys(before.get(at, [])))

    def _needed(self, at: Node, live: int) -> int:
        """What is live before an instruction, of what is live behind it."""
        backs, index = at
        instruction = self._code[index]
        if instruction is None:
            return 0
        target = register(instruction.target)
        source = 0 if instruction.source is None else register(instruction.source)
        read = self._accesses.read.get(at, 0)
        match instruction.kind:
            case Kind.CONSTANT:
                return live & ~target
            case Kind.LOAD if self._depends == Depends.BUT_FOR_CODES and index in self._accesses.codes:
                return live & ~target
            case Kind.LOAD:
                return live & ~target | self._always(source) | (source | read if live & target else 0)
            case Kind.STORE:
                return self._before_store(at, live, source | target) | self._always(target)
            case Kind.ARITHMETIC | Kind.SWAP_BYTES if self._depends == Depends.BUT_FOR_ZERO and instruction.operation != "mov":
                return live & ~target | target | source
            case Kind.ARITHMETIC | Kind.SWAP_BYTES:
                ends = instruction.operation in ("div", "mod") and isinstance(self._depends, Depends)
                if not (live & target or ends):
                    return live
                return live & ~target | source | (0 if instruction.operation == "mov" else target)
            case Kind.BRANCH if self._depends == Depends.BUT_FOR_ZERO and asks_for_zero(instruction):
                return live
            case Kind.BRANCH:
                return live | self._always(target | source)
            case Kind.SYSCALL:
                arguments = sum(register(each) for each in ARGUMENTS[instruction.immediate])
                read = self._always(arguments | read & ~self._read_of_descriptions(at)) | self._read_of_the_description(at)
                if instruction.immediate == CLOCK:
                    # It is always given to a program that asks for the clock's own bytes.
                    live = self._before_store(at, live, 0)
                return live & ~register(0) | read
            case Kind.CALL:
                return moved(live, [(kept(each, len(backs)), register(each)) for each in KEPT])
            case Kind.EXIT if backs:
                return moved(live, [(register(each), kept(each, len(backs) - 1)) for each in KEPT])
            case Kind.EXIT:
                return self._always(register(0))
        return live

    def _always(self, places: int) -> int:
        """Places on which something depends but descriptions."""
        return places if isinstance(self._depends, Depends) else 0

    def _read_of_descriptions(self, at: Node) -> int:
        """Nothing, where they count as well."""
        return sum(self._accesses.described.get(at, [])) if self._depends == Depends.BUT_FOR_DESCRIPTIONS else 0

    def _read_of_the_description(self, at: Node) -> int:
        described = self._accesses.described.get(at, [])
        if isinstance(self._depends, Depends) or self._depends >= len(described):
            return 0
        return described[self._depends] & self._accesses.read.get(at, 0)

    def _before_store(self, at: Node, live: int, source: int) -> int:
        places = self._accesses.written.get(at, set())
        touched = 0
        for each in places:
            touched |= each
        value = source if live & touched else 0
        return (live & ~touched if len(places) == 1 else live) | value


def asks_for_zero(instruction: Instruction) -> bool:
    return instruction.source is None and instruction.immediate == 0 and instruction.operation in ("eq", "ne")


def moved(live: int, pairs: list[tuple[int, int]]) -> int:
    """What is live before values moved from the second of each pair to the first."""
    gone = sum(to for to, _ in pairs)
    taken = sum(origin for to, origin in pairs if live & to)
    return live & ~gone | taken
