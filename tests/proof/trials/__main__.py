"""Command: runs a program in the executor and on the chain, on every case or on recorded inputs.

    python -m trials --program swap_guard.so
    python -m trials --program swap_guard.so --recorded FOLDER
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from guard_proof import elf
from guard_proof.control import ControlFlow
from guard_proof.decode import decode

from .cases import cases
from .chain import SLOT, Chain
from .executor import Trial
from .recorded import Comparison, read

#: Seconds between two lines of progress.
PAUSE = 10.0

Each = TypeVar("Each")


def main() -> int:
    parser = argparse.ArgumentParser(prog="trials", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the compiled guard")
    parser.add_argument("--recorded", type=Path, help="the folder of recorded inputs")
    parser.add_argument("--most", type=int, help="of the recorded inputs, so many from all over")
    arguments = parser.parse_args()
    file = arguments.program.read_bytes()
    return on_recorded(file, arguments.recorded, arguments.most) if arguments.recorded else on_cases(file)


def on_cases(file: bytes) -> int:
    program = elf.parse(file)
    code = decode(program.code)
    flow = ControlFlow(code, program.entry)
    scenarios = cases()
    chain = Chain(scenarios)
    chain.deploy(file)
    faults = 0
    for scenario in watched(scenarios):
        found, seen = Trial(scenario, SLOT).run(program, code, flow), chain.run(scenario)
        if found.is_success != seen.is_success or found.broken:
            faults += 1
            print(f"{scenario.name}: {found.result} in the executor, {seen.error or 'success'} on the chain; {found.broken}")
    print(f"{len(scenarios)} cases, {faults} with a fault")
    return 1 if faults else 0


def on_recorded(file: bytes, folder: Path, most: int | None) -> int:
    """Fails where nothing was recorded, or nothing that succeeds."""
    comparison = Comparison(file, seed=1)
    files = sorted(folder.glob("*.input"))
    if most and len(files) > most:
        files = random.Random(1).sample(files, most)
    faults = 0
    for each in watched(files):
        for fault in comparison.compare(read(each)):
            faults += 1
            print(f"{each.name}: {fault}")
    print(
        f"{len(files)} recorded inputs, of which {comparison.successes} succeed, with {comparison.calls} calls of the exchange; "
        f"registers and stack compared at {comparison.probes} instructions; {faults} faults"
    )
    return 1 if faults or not comparison.successes else 0


def watched(every: list[Each]) -> Iterator[Each]:
    """All of a list, with a line of progress now and then."""
    began = shown = time.monotonic()
    for number, each in enumerate(every):
        now = time.monotonic()
        if number and now - shown > PAUSE:
            shown = now
            left = (now - began) / number * (len(every) - number)
            print(f"{number} of {len(every)}, about {left:.0f} s left", flush=True)
        yield each


if __name__ == "__main__":
    sys.exit(main())
