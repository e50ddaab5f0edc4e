"""Effects: what one instruction does in one state, as numbers, so that the same place of two programs can be compared."""

from __future__ import annotations

import z3

from guard_proof.decode import Instruction, Kind
from guard_proof.memory import Memory
from guard_proof.state import State
from guard_proof.values import Value, compare, compute, swap_bytes, symbolic

#: What is changed, where, into what, and where the program goes on.
Effect = tuple[Value, ...]


def effect(memory: Memory, state: State, instruction: Instruction) -> Effect | None:
    """Nothing of calls and of the end."""
    state = state.copy()
    registers, target, goes_on = state.registers, instruction.target, state.at + 1
    other: Value = instruction.immediate if instruction.source is None else registers[instruction.source]
    match instruction.kind:
        case Kind.JUMP:
            return (0, 0, 0, instruction.to)
        case Kind.BRANCH:
            taken = compare(instruction.operation, registers[target], other, instruction.width)
            if isinstance(taken, bool):
                return (0, 0, 0, instruction.to if taken else instruction.next)
            to = z3.If(taken, z3.BitVecVal(instruction.to, 64), z3.BitVecVal(instruction.next, 64))
            return (0, 0, 0, to)
        case Kind.CONSTANT:
            return (1, target, instruction.immediate, goes_on)
        case Kind.LOAD:
            return (1, target, memory.load(state, address_of(state, instruction), instruction.width), goes_on)
        case Kind.STORE:
            kept = compute("and", other, (1 << 8 * instruction.width) - 1, 64)
            return (1 + instruction.width, address_of(state, instruction), kept, goes_on)
        case Kind.ARITHMETIC:
            return (1, target, compute(instruction.operation, registers[target], other, instruction.width), goes_on)
        case Kind.SWAP_BYTES:
            return (1, target, swap_bytes(instruction.operation, registers[target], instruction.width), goes_on)
    return None


def address_of(state: State, instruction: Instruction) -> Value:
    """Where a load or a store goes."""
    register = instruction.target if instruction.kind == Kind.STORE else instruction.source
    assert register is not None
    return compute("add", state.registers[register], instruction.offset, 64)


def difference(one: Effect | None, other: Effect | None) -> z3.BoolRef:
    """When two effects differ."""
    if one is None or other is None or len(one) != len(other):
        return z3.BoolVal(True)
    return z3.simplify(z3.Or(*[symbolic(a) != symbolic(b) for a, b in zip(one, other, strict=True)]))
