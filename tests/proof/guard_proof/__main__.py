"""Command: proves a program file, or says whether a certificate is of it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import certificate, elf
from .errors import NotUnderstood, Undecided
from .interface import FORMS
from .proof import Findings, Progress, prove

#: The certificate is of other bytes, or of another prover.
NOT_CURRENT = 3

#: Seconds between two lines of progress.
PAUSE = 10.0
#: What a proof of the guard asks the solver, by which the time that is left is guessed; the questions take alike long.
USUAL_QUESTIONS = 2_850


def main() -> int:
    arguments = read_arguments()
    began = time.monotonic()
    try:
        program = elf.read(arguments.program)
        if arguments.check:
            return 0 if certificate.is_current(arguments.certificate, program) else NOT_CURRENT
        forms = [form for form in FORMS if not arguments.only or form.name in arguments.only]
        findings = prove(program, forms, watch=Watch(began).show)
    except (NotUnderstood, Undecided) as reason:
        print(f"nothing is proved: {reason}", file=sys.stderr)
        return 1
    for each in findings:
        report(each)
    made = certificate.certificate(program, findings, time.process_time())
    if len(forms) == len(FORMS):
        certificate.write(arguments.certificate, made)
    print(
        f"{'proved' if made['holds'] else 'NOT proved'}: {program.sha256} "
        f"in {time.monotonic() - began:.0f} s, {made['processor seconds']} s of one core"
    )
    return 0 if made["holds"] else 1


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="guard_proof", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the compiled guard")
    parser.add_argument("--certificate", type=Path, required=True, help="the JSON file to write or to check")
    parser.add_argument("--only", action="append", choices=[form.name for form in FORMS], help="and write nothing")
    parser.add_argument("--check", action="store_true", help="only say whether the certificate is current")
    return parser.parse_args()


class Watch:
    """Prints now and then how far a proof is."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._shown = began

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < PAUSE or not progress.questions:
            return
        self._shown = now
        elapsed = now - self._began
        left = elapsed / progress.questions * max(USUAL_QUESTIONS - progress.questions, 0)
        print(
            f"{elapsed:.0f} s: {progress.reached} of {progress.instructions} instructions, "
            f"{progress.returns} returns judged, {progress.questions} questions; about {left:.0f} s left",
            flush=True,
        )


def report(findings: Findings) -> None:
    print(
        f"{findings.name}: {len(findings.proved.keys() - findings.refuted.keys())} statements proved, "
        f"{findings.successes} successes, {sum(findings.refusals.values())} refusals with a reason, {findings.ways} ways, "
        f"{findings.most_instructions} instructions and {findings.most_units} compute units at most"
    )
    for name, count in findings.refuted.items():
        print(f"  REFUTED: {name}, {count} times")
    for code, count in findings.unexplained.items():
        print(f"  REFUSED WITHOUT A REASON: {code}, {count} times")


if __name__ == "__main__":
    sys.exit(main())
