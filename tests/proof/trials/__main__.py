"""Command: runs a program on every case, in the executor and on the chain, and judges it by the specification.

    python -m trials --program swap_guard.so
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from guard_proof import elf
from guard_proof.control import ControlFlow
from guard_proof.decode import decode

from .cases import cases
from .chain import SLOT, Chain
from .executor import Trial

#: Seconds between two lines of progress.
PAUSE = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="trials", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the compiled guard")
    file = parser.parse_args().program.read_bytes()
    program = elf.parse(file)
    code = decode(program.code)
    flow = ControlFlow(code, program.entry)
    scenarios = cases()
    chain = Chain(scenarios)
    chain.deploy(file)
    began = shown = time.monotonic()
    faults = 0
    for number, scenario in enumerate(scenarios, 1):
        found, seen = Trial(scenario, SLOT).run(program, code, flow), chain.run(scenario)
        if found.is_success != seen.is_success or found.broken:
            faults += 1
            print(f"{scenario.name}: {found.result} in the executor, {seen.error or 'success'} on the chain; {found.broken}")
        now = time.monotonic()
        if now - shown > PAUSE:
            shown = now
            left = (now - began) / number * (len(scenarios) - number)
            print(f"{number} of {len(scenarios)} cases, about {left:.0f} s left", flush=True)
    print(f"{len(scenarios)} cases, {faults} with a fault, {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
