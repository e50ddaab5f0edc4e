"""Table: what became of each mutant, in a file that a later run goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .by_the_proof import (
    NEVER_EXECUTED, NEVER_READ, ONLY_A_CODE, PROVED, SAME_EFFECT, STORED_FOR_NOTHING, WITHOUT_CLOCK,
)  # fmt: skip
from .on_the_chain import UNSEEN_OUTCOME

#: What is found on the chain of a mutant that no case refutes.
SAME = "the same"
#: Why a mutant is the same as the guard for every input.
REASONS = (NEVER_EXECUTED, NEVER_READ, SAME_EFFECT, ONLY_A_CODE, WITHOUT_CLOCK, STORED_FOR_NOTHING, PROVED)
#: Columns of the file, between tabs.
COLUMNS = ("mutant", "result", "case", "on the chain", "broken", "the proof")


@dataclass
class Row:
    """One mutant."""

    mutant: str
    #: The case that shows a difference, what it is, and how many statements of the specification the executor finds broken.
    case: str = ""
    outcome: str = ""
    broken: str = ""
    #: What the proof says of the mutant; nothing where it was not asked.
    proof: str = ""

    @property
    def is_tried(self) -> bool:
        return bool(self.case)

    @property
    def result(self) -> str:
        """What the two findings come to."""
        if not self.is_tried:
            return "not tried"
        differs = self.outcome != SAME
        if self.proof in REASONS:
            return "CONTRADICTION" if differs else "equivalent"
        if self.outcome == UNSEEN_OUTCOME:
            return "hidden"
        if differs:
            return "stricter" if self.outcome == "refuses what is good" else "refuted"
        return "open" if self.proof else "not asked"


class Table:
    """All rows, in order, of one program."""

    def __init__(self, file: Path, program: str) -> None:
        self._file = file
        self._program = program
        self.rows: dict[str, Row] = {}
        if file.is_file():
            self._read(file.read_text().splitlines())

    def row(self, mutant: str) -> Row:
        return self.rows.setdefault(mutant, Row(mutant))

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for row in self.rows.values():
            counts[row.result] = counts.get(row.result, 0) + 1
        return dict(sorted(counts.items()))

    def write(self) -> None:
        lines = [f"# mutants of {self._program}", "\t".join(COLUMNS)]
        for row in self.rows.values():
            if row.is_tried:
                lines.append("\t".join((row.mutant, row.result, row.case, row.outcome, row.broken, row.proof)))
        partial = self._file.with_suffix(".part")
        partial.write_text("\n".join(lines) + "\n")
        partial.replace(self._file)

    def _read(self, lines: list[str]) -> None:
        """The rows of an earlier run on the same program; another one's are forgotten."""
        if not lines or lines[0] != f"# mutants of {self._program}":
            return
        for line in lines[2:]:
            mutant, _, case, outcome, broken, proof = line.split("\t")
            self.rows[mutant] = Row(mutant, case, outcome, broken, proof)
