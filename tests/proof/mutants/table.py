"""Table: what became of each mutant, in a file that a later run goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .by_the_proof import (
    ASKED_FOR_ZERO, DESCRIBES_AGAIN, NEVER_EXECUTED, NEVER_READ, ONLY_A_CODE, SAME_EFFECT, WITHOUT_CLOCK, WITHOUT_EFFECT,
)  # fmt: skip
from .from_the_change import PROVED

#: What is found on the chain of a mutant that no case refutes.
SAME = "the same"
#: Why a mutant is the same as the guard for every input.
REASONS = (
    NEVER_EXECUTED, NEVER_READ, SAME_EFFECT, ONLY_A_CODE, WITHOUT_CLOCK, WITHOUT_EFFECT, DESCRIBES_AGAIN,
    ASKED_FOR_ZERO, PROVED,
)  # fmt: skip
#: Columns of the file, between tabs.
COLUMNS = ("mutant", "result", "case", "on the chain", "broken", "the proof", "seconds")
#: What the first lines begin with: the program's hash, and what executions took that serve all mutants at once.
OF, FOR_ALL = "# mutants of ", "# seconds of one core for all at once: "


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
    #: Of one core.
    seconds: float | None = None

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
        if differs:
            return "stricter" if self.outcome == "refuses what is good" else "refuted"
        return "open" if self.proof else "not asked"


class Table:
    """All rows, in order, of one program."""

    def __init__(self, file: Path, program: str) -> None:
        self._file = file
        self._program = program
        self.rows: dict[str, Row] = {}
        #: Of one core, for what serves all mutants at once.
        self.seconds_for_all = 0.0
        if file.is_file():
            self._read(file.read_text().splitlines())

    def row(self, mutant: str) -> Row:
        return self.rows.setdefault(mutant, Row(mutant))

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for row in self.rows.values():
            counts[row.result] = counts.get(row.result, 0) + 1
        return dict(sorted(counts.items()))

    @property
    def seconds(self) -> float:
        """What the whole table took, of one core."""
        return self.seconds_for_all + sum(row.seconds or 0 for row in self.rows.values())

    def write(self) -> None:
        lines = [OF + self._program, f"{FOR_ALL}{self.seconds_for_all:.1f}", "\t".join(COLUMNS)]
        for row in self.rows.values():
            if row.is_tried:
                words = (row.mutant, row.result, row.case, row.outcome, row.broken, row.proof)
                seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
                words = (*words, seconds)
                lines.append("\t".join(words))
        partial = self._file.with_suffix(".part")
        partial.write_text("\n".join(lines) + "\n")
        partial.replace(self._file)

    def _read(self, lines: list[str]) -> None:
        """The rows of an earlier run on the same program; another one's are forgotten."""
        if not lines or lines[0] != OF + self._program:
            return
        self.seconds_for_all = float(lines[1].removeprefix(FOR_ALL))
        for line in lines[3:]:
            mutant, _, case, outcome, broken, proof, seconds = line.split("\t")
            self.rows[mutant] = Row(mutant, case, outcome, broken, proof, float(seconds) if seconds else None)
