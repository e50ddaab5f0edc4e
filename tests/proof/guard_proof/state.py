"""State: everything that tells one moment of an execution from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import z3

from . import stack as stacks
from .decode import FRAME_POINTER
from .stack import Stack
from .values import Value, reduced, same, symbolic


@dataclass(frozen=True)
class Frame:
    """What a call keeps for its return."""

    back: int
    kept: tuple[Value, ...]
    rounds: tuple[tuple[int, int], ...]
    place: tuple[int, ...]


@dataclass(frozen=True)
class SlotRead:
    """The clock's slot was read."""


@dataclass(frozen=True)
class Call:
    """Another program was called."""

    program: bytes
    #: Address of the account's key, whether it is handed on as writable, and as a signer.
    listed: tuple[tuple[Value, Value, Value], ...]
    #: Addresses of key, lamports, then the length, then addresses of data and owner.
    infos: tuple[tuple[Value, ...], ...]
    data: tuple[Value, ...]
    data_length: int
    seeds: int


@dataclass(frozen=True)
class Logged:
    """Data was logged: one list of eight-byte words for each field."""

    fields: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Returned:
    """Return data was set."""

    words: tuple[Value, ...]


@dataclass(frozen=True)
class SysvarFailed:
    """The runtime refused to give the clock, which it never does to a program that asks for the clock's own bytes."""


@dataclass(frozen=True)
class Aborted:
    """The program gave up, which ends the transaction without a code of its own."""


Event = SlotRead | Call | Logged | Returned | SysvarFailed | Aborted


@dataclass
class State:
    at: int
    registers: list[Value]
    stack: Stack
    frames: list[Frame] = field(default_factory=list)
    #: Rounds of the loops of the current function.
    rounds: dict[int, int] = field(default_factory=dict)
    #: What is known of the input, because of the branches taken.
    conditions: list[z3.BoolRef] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    #: How many instructions ran, the most where branches came together.
    instructions: int = 0
    #: What the runtime has charged for them and for system calls, compute units, the most where branches came together.
    units: int = 0
    #: How many ways lead here, through all branches that came together.
    ways: int = 1

    @property
    def moment(self) -> int:
        """How many calls to other programs were made."""
        return sum(isinstance(event, Call) for event in self.events)

    @property
    def is_aborted(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], Aborted)

    def copy(self) -> State:
        return State(
            self.at, list(self.registers), self.stack.copy(), list(self.frames), dict(self.rounds),
            list(self.conditions), list(self.events), self.instructions, self.units, self.ways,
        )  # fmt: skip

    def kin(self) -> tuple[object, ...]:
        """Equal for states that may be joined."""
        calls = tuple(id(event) for event in self.events if not isinstance(event, SlotRead))
        backs = tuple(frame.back for frame in self.frames)
        return self.at, backs, calls, tuple(sorted(self.rounds.items()))


def join(
    states: list[State], settle: Callable[[Value, list[z3.BoolRef]], Value], covers: Callable[..., bool],
    garbage: Callable[[], Value], live: frozenset[int],
) -> State:  # fmt: skip
    """One state for several of the same kin: each value becomes a choice by what tells the branches apart.

    `covers` says whether the branches' conditions together are all there is under the common ones.
    """
    common = 0
    while all(
        common < len(each.conditions) and each.conditions[common].eq(states[0].conditions[common]) for each in states
    ):
        common += 1
    apart = [z3.simplify(z3.And(*each.conditions[common:])) for each in states]
    conditions = states[0].conditions[:common]
    either = z3.simplify(z3.Or(*apart))
    if not covers(conditions, either):
        conditions = [*conditions, either]

    def choose(values: list[Value]) -> Value:
        if all(same(values[0], value) for value in values):
            return values[0]
        chosen = symbolic(values[-1])
        for condition, value in zip(reversed(apart[:-1]), reversed(values[:-1]), strict=True):
            chosen = z3.If(condition, symbolic(value), chosen)
        return settle(reduced(chosen), conditions)

    registers = [
        choose([each.registers[index] for each in states]) if index in live or index == FRAME_POINTER else garbage()
        for index in range(11)
    ]
    frames = [
        Frame(
            level[0].back, tuple(choose(list(kept)) for kept in zip(*[frame.kept for frame in level], strict=True)),
            level[0].rounds, level[0].place,
        )
        for level in zip(*[each.frames for each in states], strict=True)
    ]  # fmt: skip
    longest = max(states, key=lambda each: len(each.events))
    return State(
        states[0].at, registers, stacks.merge([each.stack for each in states], choose, garbage), frames,
        dict(states[0].rounds), conditions, list(longest.events),
        max(each.instructions for each in states), max(each.units for each in states),
        sum(each.ways for each in states),
    )  # fmt: skip
