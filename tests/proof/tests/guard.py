"""Guard: the built program file, and whether it is the one of the committed certificate."""

from __future__ import annotations

import json
from pathlib import Path

from guard_proof import elf
from guard_proof.errors import NotUnderstood

ROOT = Path(__file__).parent.parent.parent.parent
GUARD = ROOT / "target/programs/swap_guard.so"
CERTIFIED: str = json.loads((ROOT / "proof.json").read_text())["program"]["sha256"]

#: Why tests of the guard's bytes are left out: the official toolchain makes other ones of the same source.
OTHER_BYTES = "the built guard is not the one of the certificate"


def is_certified() -> bool:
    try:
        return elf.read(GUARD).sha256 == CERTIFIED
    except (FileNotFoundError, NotUnderstood):
        return False
