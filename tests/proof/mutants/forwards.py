"""Forwards: what follows from a state, whatever the input: that all is refused, or that a difference reaches nothing.

The code is followed both ways at every branch that is not known, with numbers of which some bits are known: the mask of
repeated positions, the stack's zeros, and what is written before it is looked at. That takes milliseconds, and the solver minutes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from guard_proof import stack
from guard_proof.accounts import INPUT_START
from guard_proof.control import ControlFlow
from guard_proof.decode import FRAME_POINTER, MASK64, Instruction, Kind
from guard_proof.state import State
from guard_proof.values import Value

from .bits import ANYTHING, Bits, compare, compute, exactly, of
from .liveness import ABORT, CLOCK, FIRST_BYTE, Accesses, Code

#: Stretches of code that are followed. The guard has some hundred, and each is met in some ways.
MOST_STRETCHES = 20_000
#: The input's; no address behind it is of anything.
LAST_REGION = INPUT_START >> 32
#: One byte of the stack: bits that are one, that are known, and that may differ. The runtime begins with zeros.
Byte = tuple[int, int, int]
ZERO: Byte = (0, 255, 0)
#: Rounds of the loops around a place.
Rounds = tuple[tuple[int, int], ...]
#: Where a way stands: the places that open calls go back to and the rounds there, the instruction, and its rounds.
Key = tuple[tuple[tuple[int, Rounds], ...], int, Rounds]
#: How far guard and mutant differ in a value of theirs.
Difference = Callable[[Value, Value], Bits]


class NotKnown(Exception):
    """Something is looked at of which too little is known."""


@dataclass
class Way:
    at: int
    registers: list[Bits]
    bytes: dict[int, Byte]
    #: Of open calls: the place behind, registers to be restored, and rounds.
    frames: list[tuple[int, tuple[Bits, ...], dict[int, int]]] = field(default_factory=list)
    rounds: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Way:
        return Way(self.at, list(self.registers), dict(self.bytes), list(self.frames), dict(self.rounds))

    @property
    def key(self) -> Key:
        calls = tuple((back, tuple(sorted(rounds.items()))) for back, _, rounds in self.frames)
        return calls, self.at, tuple(sorted(self.rounds.items()))

    @property
    def is_apart(self) -> bool:
        return any(each.apart for each in self.registers) or any(apart for *_, apart in self.bytes.values())

    def joined(self, other: Way) -> Way:
        made = self.copy()
        made.registers = [one.joined(two) for one, two in zip(self.registers, other.registers, strict=True)]
        made.frames = [
            (back, tuple(one.joined(two) for one, two in zip(kept, others, strict=True)), rounds)
            for (back, kept, rounds), (_, others, _) in zip(self.frames, other.frames, strict=True)
        ]
        for address in self.bytes.keys() | other.bytes.keys():
            one, two = (Bits(*each.bytes.get(address, ZERO)) for each in (self, other))
            both = one.joined(two)
            made.bytes[address] = (both.ones, both.known, both.apart)
        return made


def way_of(one: State, other: State, difference: Difference) -> Way:
    """What is known of two states at the same place, and in what they may differ."""
    made = Way(one.at, [difference(*pair) for pair in zip(one.registers, other.registers, strict=True)], {})
    made.rounds = dict(one.rounds)
    for frame, second in zip(one.frames, other.frames, strict=True):
        kept = tuple(difference(*pair) for pair in zip(frame.kept, second.kept, strict=True))
        made.frames.append((frame.back, kept, dict(frame.rounds)))
    for address, size, first, second in cells(one, other):
        store(made, address, size, difference(first, second))
    return made


def cells(one: State, other: State) -> Iterator[tuple[int, int, Value, Value]]:
    """What stands on the stacks of two states, by address and size, in each of them."""
    for address in one.stack.cells.keys() | other.stack.cells.keys():
        found = [each.stack.cells.get(address) for each in (one, other)]
        if found[0] and found[1] and found[0][0] == found[1][0]:
            yield address, found[0][0], found[0][1], found[1][1]
            continue
        for size in {cell[0] for cell in found if cell}:
            first, second = (each.stack.copy().load(address, size, lambda: 0) for each in (one, other))
            yield address, size, first, second


def store(way: Way, address: int, size: int, value: Bits) -> None:
    for at in range(size):
        low, shift = 255, 8 * at
        way.bytes[address + at] = value.ones >> shift & low, value.known >> shift & low, value.apart >> shift & low


class Forwards:
    def __init__(self, code: Code, flow: ControlFlow, rodata: bytes, accesses: Accesses) -> None:
        """`accesses` are the guard's: where an address is not known, of which bytes of the stack it may be."""
        self._code = code
        self._flow = flow
        self._rodata = rodata
        self._read: dict[int, int] = {}
        self._written: dict[int, int] = {}
        for (_, at), places in accesses.read.items():
            self._read[at] = self._read.get(at, 0) | places
        for (_, at), several in accesses.written.items():
            for places in several:
                self._written[at] = self._written.get(at, 0) | places

    def refuses(self, code: Code, state: State) -> bool:
        """Whether a program that may be a mutant refuses every input, or aborts, before it calls anything."""
        return self._follow(code, way_of(state, state, lambda one, _: of(one)), changed=None)

    def forgets(self, one: State, other: State, changed: int, difference: Difference) -> bool:
        """Whether nothing that the guard does depends on the difference of two states at the same place.

        Where the instruction that the mutant changes is met once more, no difference may be left: it could look at it.
        """
        return self._follow(self._code, way_of(one, other, difference), changed)

    def _follow(self, code: Code, start: Way, changed: int | None) -> bool:
        seen: dict[Key, Way] = {}
        waiting: list[tuple[tuple[int, ...], Key]] = []
        renewed: set[Key] = set()

        def push(way: Way) -> None:
            around = self._flow.loops.get(way.at, [])
            way.rounds = {head: count for head, count in way.rounds.items() if head in around}
            key = way.key
            joined = seen[key].joined(way) if key in seen else way
            if key in seen and (joined.registers, joined.bytes, joined.frames) == (
                seen[key].registers, seen[key].bytes, seen[key].frames
            ):
                return
            seen[key] = joined
            if key not in renewed:
                renewed.add(key)
                heapq.heappush(waiting, (self._flow.place(way.at, way.rounds), key))

        push(start)
        for _ in range(MOST_STRETCHES):
            if not waiting:
                return True
            _, key = heapq.heappop(waiting)
            renewed.discard(key)
            try:
                for following in self._advance(code, seen[key].copy(), changed):
                    # Each result by itself: of several refusals together no bit may be known.
                    if is_return(code, following):
                        self._end(following, changed is not None)
                    else:
                        push(following)
            except NotKnown:
                return False
        return False

    def _advance(self, code: Code, way: Way, changed: int | None) -> list[Way]:
        """Up to the next branch, call or place where ways come together; nothing where the program ends."""
        first = True
        while True:
            if way.at in self._flow.joins and not first:
                return [way]
            first = False
            instruction = code[way.at] if 0 <= way.at < len(code) else None
            if instruction is None:
                raise NotKnown
            if way.at == changed and way.is_apart:
                raise NotKnown
            match instruction.kind:
                case Kind.BRANCH:
                    return self._branch(way, instruction)
                case Kind.JUMP:
                    self._go(way, instruction.to)
                case Kind.CALL:
                    way.frames.append((instruction.next, tuple(way.registers[6:11]), dict(way.rounds)))
                    way.registers[FRAME_POINTER] = compute("add", way.registers[FRAME_POINTER], exactly(stack.FRAME), 64)
                    way.rounds, way.at = {}, instruction.to
                    return [way]
                case Kind.EXIT if way.frames:
                    way.at, kept, way.rounds = way.frames.pop()
                    way.registers[6:11] = list(kept)
                    return [way]
                case Kind.EXIT:
                    self._end(way, changed is not None)
                    return []
                case Kind.SYSCALL if instruction.immediate == ABORT:
                    return []
                case Kind.SYSCALL if changed is None:
                    raise NotKnown
                case Kind.SYSCALL:
                    self._serve(way, instruction)
                    way.at = instruction.next
                case _:
                    if not self._compute(way, instruction):
                        return []
                    way.at = instruction.next

    def _end(self, way: Way, is_guard: bool) -> None:
        """A refusal is a refusal, whatever its code; a guard's result that does not differ is its own."""
        result = way.registers[0]
        if not result.ones and (result.apart or not is_guard):
            raise NotKnown

    def _branch(self, way: Way, instruction: Instruction) -> list[Way]:
        one, other = way.registers[instruction.target], self._other(way, instruction)
        taken = compare(instruction.operation, one, other, instruction.width)
        if taken is None and (one.apart | other.apart) & (1 << instruction.width) - 1:
            raise NotKnown
        ways = []
        for is_taken, to in ((True, instruction.to), (False, instruction.next)):
            if taken in (None, is_taken):
                each = way.copy()
                self._go(each, to)
                ways.append(each)
        return ways

    def _go(self, way: Way, to: int) -> None:
        if to in self._flow.loops.get(way.at, []):
            way.rounds[to] = way.rounds.get(to, 0) + 1
        way.at = to

    def _other(self, way: Way, instruction: Instruction) -> Bits:
        return exactly(instruction.immediate) if instruction.source is None else way.registers[instruction.source]

    def _compute(self, way: Way, instruction: Instruction) -> bool:
        """Nothing where the runtime ends the transaction."""
        registers, target = way.registers, instruction.target
        other = self._other(way, instruction)
        offset = exactly(instruction.offset)
        match instruction.kind:
            case Kind.CONSTANT:
                registers[target] = exactly(instruction.immediate)
            case Kind.LOAD:
                loaded = self._load(way, compute("add", other, offset, 64), instruction.width)
                if loaded is None:
                    return False
                registers[target] = loaded
            case Kind.STORE:
                address = compute("add", registers[target], offset, 64).number
                if address is None or address >> 32 != stack.START >> 32:
                    raise NotKnown
                store(way, address, instruction.width, other)
            case Kind.ARITHMETIC if instruction.operation in ("div", "mod"):
                raise NotKnown
            case Kind.ARITHMETIC:
                registers[target] = compute(instruction.operation, registers[target], other, instruction.width)
            case _:
                registers[target] = Bits(apart=MASK64 if registers[target].apart else 0)
        return True

    def _load(self, way: Way, address: Bits, size: int) -> Bits | None:
        if address.apart:
            raise NotKnown
        at = address.number
        mask = (1 << 8 * size) - 1
        if at is None:
            is_apart = any(each[2] for each in self._of_the_stack(way, self._read.get(way.at, 0)))
            return Bits(apart=MASK64 if is_apart else 0).cut(mask)
        if at >> 32 == stack.START >> 32:
            made = [0, 0, 0]
            for each in range(size):
                for which, bits in enumerate(way.bytes.get(at + each, ZERO)):
                    made[which] |= bits << 8 * each
            return Bits(*made).cut(mask)
        if at + size <= len(self._rodata):
            return exactly(int.from_bytes(self._rodata[at : at + size], "little"))
        return None if at >> 32 > LAST_REGION else ANYTHING.cut(mask)

    def _of_the_stack(self, way: Way, places: int) -> list[Byte]:
        """The bytes that are in a set of places and differ from zero."""
        places >>= FIRST_BYTE
        return [each for address, each in way.bytes.items() if places >> address - stack.START & 1]

    def _serve(self, way: Way, instruction: Instruction) -> None:
        """A system call of the guard, which looks at its arguments and at what it was seen to read."""
        if any(each.apart for each in way.registers[1:6]):
            raise NotKnown
        if any(each[2] for each in self._of_the_stack(way, self._read.get(way.at, 0))):
            raise NotKnown
        if instruction.immediate == CLOCK and way.registers[4].number != 8:
            raise NotKnown
        places = self._written.get(way.at, 0) >> FIRST_BYTE
        for at in range(places.bit_length()):
            if places >> at & 1:
                way.bytes[stack.START + at] = (0, 0, way.bytes.get(stack.START + at, ZERO)[2])
        way.registers[0] = exactly(0)


def is_return(code: Code, way: Way) -> bool:
    instruction = code[way.at] if not way.frames and way.at < len(code) else None
    return instruction is not None and instruction.kind == Kind.EXIT
