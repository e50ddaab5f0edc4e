"""System calls: those that the guard makes, and what each may do. Every other one is not understood."""

from __future__ import annotations

from collections.abc import Callable

import z3

from .errors import NotUnderstood
from .keys import CLOCK
from .memory import Memory
from .state import Aborted, Call, Logged, Returned, SlotRead, State, SysvarFailed
from .values import Value


def hash_of(name: str) -> int:
    """Murmur3 of a system call's name, by which instructions name it."""
    data, value = name.encode(), 0
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        value ^= scrambled(int.from_bytes(data[at : at + 4], "little"))
        value = (value << 13 | value >> 19) & 0xFFFFFFFF
        value = (value * 5 + 0xE6546B64) & 0xFFFFFFFF
    if data[whole:]:
        value ^= scrambled(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        value = (value ^ value >> shift) * factor & 0xFFFFFFFF
    return value


def scrambled(block: int) -> int:
    block = block * 0xCC9E2D51 & 0xFFFFFFFF
    return (block << 15 | block >> 17) * 0x1B873593 & 0xFFFFFFFF


#: Compute units that the runtime charges, from its table of costs: for a system call, for a sysvar and the copy of a few
#: bytes, and for a call of another program. Bytes that are handed to the runtime cost one unit for so many.
SYSCALL_UNITS = 100
SYSVAR_UNITS = 110
CALL_UNITS = 946
BYTES_PER_UNIT = 250
#: What an entry of a call's list of accounts, and of its infos, counts as, bytes.
LISTED_BYTES = 34
INFO_BYTES = 80

#: Bytes of an info, and where the length of the account's data stands in it.
INFO_SIZE = 56
INFO_LENGTH = 16

#: More would not be a call of the exchange.
LONGEST_LIST = 64


class Syscalls:
    def __init__(self, memory: Memory, slot: z3.BitVecRef, fresh: Callable[[], Value]) -> None:
        self._memory = memory
        self._slot = slot
        self._fresh = fresh
        self._served: dict[int, Callable[[State], list[State]]] = {
            hash_of("sol_get_sysvar"): self._get_sysvar,
            hash_of("sol_invoke_signed_c"): self._invoke,
            hash_of("sol_log_data"): self._log_data,
            hash_of("sol_set_return_data"): self._set_return_data,
            hash_of("abort"): self._abort,
        }

    def serve(self, state: State, name: int) -> list[State]:
        """The states after the call; none where it ends the transaction."""
        if name not in self._served:
            raise NotUnderstood(f"instruction {state.at} makes the unknown system call {name:#010x}")
        return self._served[name](state)

    def _abort(self, state: State) -> list[State]:
        state.events.append(Aborted())
        return [state]

    def _known(self, state: State, value: Value, what: str) -> int:
        if not isinstance(value, int):
            raise NotUnderstood(f"instruction {state.at} makes a system call with an unknown {what}")
        return value

    def _words(self, state: State, address: int, count: int) -> list[Value]:
        return [self._memory.load(state, address + 8 * each, 8) for each in range(count)]

    def _get_sysvar(self, state: State) -> list[State]:
        """The clock's first eight bytes, the slot; or an error, which changes nothing."""
        which, to, offset, length = (self._known(state, each, "argument") for each in state.registers[1:5])
        words = [self._known(state, each, "sysvar") for each in self._words(state, which, 4)]
        name = b"".join(word.to_bytes(8, "little") for word in words)
        if (name, offset, length) != (CLOCK, 0, 8):
            raise NotUnderstood(f"instruction {state.at} reads something else than the clock's slot")
        state.units += SYSVAR_UNITS
        failed = state.copy()
        failed.registers[0] = self._fresh()
        failed.conditions.append(failed.registers[0] != 0)
        failed.events.append(SysvarFailed())
        self._memory.store(state, to, 8, self._slot)
        state.registers[0] = 0
        state.events.append(SlotRead())
        return [state, failed]

    def _invoke(self, state: State) -> list[State]:
        """A call of another program. It ends the transaction, or returns zero with the accounts changed in any way.

        What the runtime charges for the data of the accounts, and what the other program uses, is not counted. The
        runtime writes the new length of an account that the call changed into the caller's info of it, and of an
        account that is listed twice into the first alone: each may be the old one or the new one.
        """
        call, infos, count, _, seeds = (self._known(state, each, "argument") for each in state.registers[1:6])
        words = [self._known(state, each, "part of a call") for each in self._words(state, call, 5)]
        program, listed, listed_count, data, data_length = words
        if max(count, listed_count) > LONGEST_LIST or data_length % 8 or data_length > 64:
            raise NotUnderstood(f"instruction {state.at} makes a call that is too large")
        state.units += CALL_UNITS + data_length // BYTES_PER_UNIT
        state.units += LISTED_BYTES * listed_count // BYTES_PER_UNIT + INFO_BYTES * count // BYTES_PER_UNIT
        address = [self._known(state, each, "program") for each in self._words(state, program, 4)]
        load = self._memory.load
        event = Call(
            program=b"".join(word.to_bytes(8, "little") for word in address),
            listed=tuple(
                (load(state, each, 8), load(state, each + 8, 1), load(state, each + 9, 1))
                for each in range(listed, listed + 16 * listed_count, 16)
            ),
            infos=tuple(
                tuple(self._words(state, each, 5)) for each in range(infos, infos + INFO_SIZE * count, INFO_SIZE)
            ),
            data=tuple(self._words(state, data, data_length // 8)),
            data_length=data_length,
            seeds=seeds,
        )
        state.events.append(event)
        for number, (key, *_) in enumerate(event.infos):
            self._memory.write_length(state, infos + INFO_SIZE * number + INFO_LENGTH, key)
        state.registers[0] = 0
        return [state]

    def _log_data(self, state: State) -> list[State]:
        fields, count = (self._known(state, each, "argument") for each in state.registers[1:3])
        if count > LONGEST_LIST:
            raise NotUnderstood(f"instruction {state.at} logs too many fields")
        state.units += SYSCALL_UNITS * (1 + count)
        logged = []
        for each in range(fields, fields + 16 * count, 16):
            start, length = (self._known(state, word, "field") for word in self._words(state, each, 2))
            if length % 8 or length > 1024:
                raise NotUnderstood(f"instruction {state.at} logs a field of {length} bytes")
            state.units += length
            logged.append(tuple(self._words(state, start, length // 8)))
        state.events.append(Logged(tuple(logged)))
        state.registers[0] = 0
        return [state]

    def _set_return_data(self, state: State) -> list[State]:
        start, length = (self._known(state, each, "argument") for each in state.registers[1:3])
        if length % 8 or length > 1024:
            raise NotUnderstood(f"instruction {state.at} returns {length} bytes")
        state.units += SYSCALL_UNITS + length // BYTES_PER_UNIT
        state.events.append(Returned(tuple(self._words(state, start, length // 8))))
        state.registers[0] = 0
        return [state]
