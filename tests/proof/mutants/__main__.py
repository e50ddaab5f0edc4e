"""Command: changes the compiled guard in every small way, and says of each change whether it is noticed.

    python -m mutants --program swap_guard.so --table mutants.tsv --minutes 60

A mutant is refuted by a case in which it does something else on the chain than the guard, and equivalent where the proof holds
for it both ways. The table is written as it grows, and a later run goes on with it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from guard_proof import elf
from guard_proof.decode import Instruction
from guard_proof.elf import Program
from guard_proof.errors import NotUnderstood

from .by_the_proof import Reasons, decoded
from .from_the_change import prove_from_the_change
from .liveness import Accesses
from .mutations import Mutation, mutations
from .on_the_chain import Counterexamples, Refutation
from .table import SAME, Row, Table

#: Seconds between two lines of progress, and between two times that the table is written.
PAUSE = 10.0
#: Mutants that one execution of the guard serves; the table is written behind each.
BATCH = 100
#: Results that a complete table has.
SETTLED = ("equivalent", "refuted", "stricter")


def main() -> int:
    arguments = read_arguments()
    file = arguments.program.read_bytes()
    program = elf.parse(file)
    every = mutations(program)
    table = Table(arguments.table, program.sha256)
    run = Run(file, program, table, time.monotonic() + 60 * arguments.minutes)
    run.on_the_chain([each for each in every if not table.row(each.name).is_tried])
    same = [each for each in every if table.row(each.name).outcome == SAME]
    run.by_the_proof([each for each in same if not table.row(each.name).proof])
    table.write()
    counts = table.counts()
    print(f"{len(every)} mutants: " + ", ".join(f"{count} {result}" for result, count in counts.items()))
    print(f"the table took {table.seconds / 60:.0f} minutes of one core")
    for row in table.rows.values():
        if row.result not in SETTLED and row.result != "not tried":
            print(f"  {row.result}: {row.mutant}; {row.outcome}; {row.proof}")
    return 0 if set(counts) <= set(SETTLED) else 1


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the compiled guard")
    parser.add_argument("--table", type=Path, required=True, help="the file of results, which is gone on with")
    parser.add_argument("--minutes", type=float, default=60, help="when to stop, with the table as far as it is")
    return parser.parse_args()


class Run:
    def __init__(self, file: bytes, program: Program, table: Table, end: float) -> None:
        self._file = file
        self._program = program
        self._table = table
        self._end = end

    def on_the_chain(self, mutants: list[Mutation]) -> None:
        if not mutants:
            return
        counterexamples = Counterexamples(self._file)

        def try_one(mutant: Mutation) -> None:
            row = self._table.row(mutant.name)
            began = time.process_time()
            found = counterexamples.find(mutant.file(self._file, self._program))
            row.seconds = time.process_time() - began
            if found is None:
                row.case, row.outcome = "all", SAME
            else:
                self._note(row, found)

        self._each("on the chain", mutants, try_one)

    def _note(self, row: Row, found: Refutation) -> None:
        row.case, row.outcome = found.case, found.outcome
        row.broken = found.broken[0] if found.broken else ""
        if len(found.broken) > 1:
            row.broken += f" and {len(found.broken) - 1} more"

    def by_the_proof(self, mutants: list[Mutation]) -> None:
        """Asks why no case refutes a mutant; the quick reasons are found for all at once, by one execution."""
        if not mutants or time.monotonic() > self._end:
            return
        began = time.process_time()
        changed = {each.name: self._changed(each) for each in mutants}
        reasons = Reasons(self._program, mutants, {name: each for name, each in changed.items() if each})
        reasons.run(Watch("executing the guard", "instructions").show)
        left: list[tuple[Mutation, Instruction]] = []
        for mutant in mutants:
            row = self._table.row(mutant.name)
            row.proof = reasons.of(mutant)
            program = changed[mutant.name]
            code = decoded(program) if program else None
            instruction = code[mutant.at] if code and not mutant.is_data else None
            if not row.proof and instruction:
                left.append((mutant, instruction))
            elif not row.proof:
                row.proof = "not understood"
        self._table.seconds_for_all += time.process_time() - began
        self._table.write()
        # What is met late has not far to go.
        left.sort(key=lambda each: reasons.first_met(each[0]), reverse=True)
        for start in range(0, len(left), BATCH):
            self._from_the_change(left[start : start + BATCH], reasons.accesses)
        print(f"from the change on: {len(left)} mutants", flush=True)

    def _from_the_change(self, mutants: list[tuple[Mutation, Instruction]], accesses: Accesses) -> None:
        if time.monotonic() > self._end:
            print(f"from the change on: the time is up, {len(mutants)} mutants of this batch are left", flush=True)
            return
        began = time.process_time()
        changed: dict[int, dict[str, Instruction]] = {}
        for mutant, instruction in mutants:
            changed.setdefault(mutant.at, {})[mutant.name] = instruction
        watch = Watch("from the change on", "mutants")
        answers = prove_from_the_change(self._program, changed, accesses, watch.show)
        for name, answer in answers.items():
            row = self._table.row(name)
            row.proof = answer.text
            row.seconds = (row.seconds or 0) + answer.seconds
        self._table.seconds_for_all += time.process_time() - began
        self._table.write()

    def _changed(self, mutant: Mutation) -> Program | None:
        try:
            return elf.parse(mutant.file(self._file, self._program))
        except NotUnderstood:
            return None

    def _each(self, how: str, mutants: list[Mutation], try_one: Callable[[Mutation], None]) -> None:
        began = shown = time.monotonic()
        for number, mutant in enumerate(mutants, 1):
            now = time.monotonic()
            if now > self._end:
                print(f"{how}: the time is up, {len(mutants) - number + 1} mutants are left", flush=True)
                return
            try_one(mutant)
            if now - shown > PAUSE:
                shown = now
                self._table.write()
                left = (now - began) / number * (len(mutants) - number)
                print(f"{how}: {number} of {len(mutants)} mutants, about {left / 60:.0f} minutes left", flush=True)
        self._table.write()


class Watch:
    """Prints now and then how far one execution is."""

    def __init__(self, what: str, of_what: str) -> None:
        self._what = what
        self._of_what = of_what
        self._began = self._shown = time.monotonic()

    def show(self, done: int, of: int) -> None:
        now = time.monotonic()
        if done and now - self._shown > PAUSE:
            self._shown = now
            left = (now - self._began) / done * (of - done)
            print(f"{self._what}: {done} of {of} {self._of_what}, about {left:.0f} s left", flush=True)


if __name__ == "__main__":
    sys.exit(main())
