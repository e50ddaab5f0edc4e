"""Command: compares the executor with the chain's machine, on random programs.

    python -m tests.compare --cases 100000 --seed 1

A case is one sequence of instructions with what it leaves in all registers and in the stack.
"""

from __future__ import annotations

import argparse
import time

from guard_proof import elf
from guard_proof.proof import Execution
from guard_proof.state import Logged

from .chain import Chain
from .programs import Author

#: In one program: deploying one costs as much as executing thousands of instructions.
SEQUENCES = 100


def executed(file: bytes) -> tuple[list[bytes], int]:
    """What the executor logs of a program without input, and its result."""
    execution = Execution(elf.parse(file), 1)
    (state,) = execution.machine.run(execution.start)
    logs = [event.fields[0] for event in state.events if isinstance(event, Logged)]
    result = state.registers[0]
    assert isinstance(result, int)
    return [b"".join(number(word).to_bytes(8, "little") for word in words) for words in logs], result


def number(word: object) -> int:
    assert isinstance(word, int), "a number became a formula"
    return word


def compare(cases: int, seed: int) -> int:
    """Compares at least so many cases, and returns how many they were."""
    chain, author, compared = Chain(), Author(seed), 0
    while compared < cases:
        file = author.program(SEQUENCES)
        expected = chain.run(file)
        if not expected.is_success:
            raise AssertionError(f"the chain ended program {compared // SEQUENCES}: {expected.error}")
        logged, result = executed(file)
        if result != 0 or len(logged) != len(expected.logged):
            raise AssertionError(f"program {compared // SEQUENCES} ended in another way")
        for at, (found, wanted) in enumerate(zip(logged, expected.logged, strict=True)):
            if found != wanted:
                raise AssertionError(f"case {compared + at}: {found.hex()} in the executor, {wanted.hex()} on the chain")
        compared += len(logged)
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.monotonic()
    compared = compare(arguments.cases, arguments.seed)
    print(f"{compared} cases are the same in the executor and on the chain, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
