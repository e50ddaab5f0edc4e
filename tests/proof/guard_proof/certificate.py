"""Certificate: what was proved of which bytes, by what, under which assumptions, as JSON."""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

import z3

from .elf import Program
from .proof import Findings

#: What the proof takes for granted; `docs/proof.md` gives the reason for each.
ASSUMPTIONS = (
    "The loader lays the input out as documented for version 3: records of accounts and of repetitions, then the length of "
    "the data, the data, and the program's address; the first record is of an account, a repetition names an earlier position "
    "and is filled up with zeros, and flags are zero or one.",
    "The registers and the stack hold anything at the start, but for the addresses of the input, the data and the frame.",
    "A call ends the transaction or returns zero. It changes no stack but the lengths that it is handed of accounts, each of "
    "which may become the new one, no read-only data, no instruction data, and of an account neither its address nor its "
    "flags; owner, lamports, length and data may become anything.",
    "An access that the runtime does not allow ends the transaction.",
    "The runtime's clock can be read by the program that asks for its first eight bytes.",
    "Only its owner writes the data of an account, so that an account of a token program says the truth.",
    "z3 answers no only where there is no example.",
)


def prover() -> str:
    """SHA-256 of this package's sources and of its lock file."""
    room = Path(__file__).parent
    digest = hashlib.sha256()
    for file in [*sorted(room.glob("*.py")), room.parent / "requirements.txt"]:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def certificate(program: Program, findings: list[Findings], processor_seconds: float) -> dict[str, Any]:
    return {
        "holds": all(each.holds for each in findings),
        "program": {"sha256": program.sha256, "instructions": len(program.code) // 8},
        "prover": {"sha256": prover(), "z3": z3.get_version_string(), "python": platform.python_version()},
        "assumptions": list(ASSUMPTIONS),
        "findings": [entry(each) for each in findings],
        # Not those that passed: a busy machine would change them.
        "processor seconds": round(processor_seconds, 1),
    }


def entry(findings: Findings) -> dict[str, Any]:
    return {
        "of": findings.name,
        "proved": sorted(findings.proved.keys() - findings.refuted.keys()),
        "refuted": sorted(findings.refuted),
        "refusals": dict(sorted(findings.refusals.items())),
        "refusals without a reason": dict(sorted(findings.unexplained.items())),
        "successes": findings.successes,
        "ways": findings.ways,
        "most instructions of a success": findings.most_instructions,
        "most compute units of a success": findings.most_units,
    }


def write(file: Path, made: dict[str, Any]) -> None:
    file.write_text(json.dumps(made, indent=2) + "\n")


def is_current(file: Path, program: Program) -> bool:
    """Whether a certificate is of these bytes, by this prover, and says that everything holds."""
    if not file.is_file():
        return False
    read = json.loads(file.read_text())
    return (
        read.get("holds") is True
        and read.get("program", {}).get("sha256") == program.sha256
        and read.get("prover", {}).get("sha256") == prover()
    )
