"""Refusals: what the prover cannot understand or decide ends with an error and never with "proved"."""

from __future__ import annotations

import contextlib
import functools
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import z3

from guard_proof import __main__ as command
from guard_proof import certificate, elf
from guard_proof.decode import decode
from guard_proof.errors import NotUnderstood, Undecided
from guard_proof.interface import FORMS
from guard_proof.proof import prove
from guard_proof.solver import Solver

from .assembly import EXIT, constant, file_of, instruction, syscall

SUCCEED = [(0xB7, 0, 0, 0), EXIT]
ROOM = Path(__file__).parent.parent


class Files(unittest.TestCase):
    def test_a_cut_file_is_refused_wherever_it_is_cut(self) -> None:
        file = file_of(SUCCEED)
        elf.parse(file)
        for length in range(len(file)):
            with self.assertRaises(NotUnderstood, msg=f"cut at {length}"):
                elf.parse(file[:length])

    def test_zeros_behind_the_code_change_nothing_and_anything_else_is_refused(self) -> None:
        file = file_of(SUCCEED)
        self.assertEqual(elf.parse(file + bytes(1000)), elf.parse(file))
        with self.assertRaises(NotUnderstood):
            elf.parse(file + bytes(1000) + b"\1")

    def test_another_version_of_the_machine_is_refused(self) -> None:
        file = bytearray(file_of(SUCCEED))
        file[48] = 2
        with self.assertRaises(NotUnderstood):
            elf.parse(bytes(file))


class Instructions(unittest.TestCase):
    def test_every_operation_that_is_not_of_this_version_is_refused(self) -> None:
        known = set()
        for opcode in range(256):
            for registers in (0x00, 0x10):
                try:
                    behind = (0, 0, 0, 1) if opcode == 0x18 else EXIT
                    decode(instruction(opcode, registers, 0, 16) + instruction(*behind))
                    known.add(opcode)
                except NotUnderstood:
                    pass
        # The counts of the runtime's verifier: 12 moves, 1 constant, 2 byte orders, 50 of arithmetic, 22 + 23 jumps,
        # call, exit. A call of a register's address is left out, because the guard has none.
        self.assertEqual(len(known), 12 + 1 + 2 + 50 + 22 + 23 + 2)

    def test_a_jump_out_of_the_code_or_into_a_constant_is_refused(self) -> None:
        for offset in (-2, 5, 1):
            with self.assertRaises(NotUnderstood, msg=str(offset)):
                decode(instruction(0x05, 0, offset, 0) + b"".join(instruction(*each) for each in [*constant(0, 1), EXIT]))

    def test_the_frame_pointer_is_not_written(self) -> None:
        with self.assertRaises(NotUnderstood):
            decode(instruction(0x07, 10, 0, 64) + instruction(*EXIT))


class Executions(unittest.TestCase):
    def refused(self, code: list[tuple[int, int, int, int]], reason: str) -> None:
        with self.assertRaisesRegex(NotUnderstood, reason):
            prove(elf.parse(file_of(code)), FORMS[:1])

    def test_an_unknown_system_call(self) -> None:
        self.refused([syscall("sol_memcpy_"), *SUCCEED], "unknown system call")

    def test_a_write_to_the_accounts(self) -> None:
        self.refused([(0x7A, 1, 8, 0), *SUCCEED], "writes to an address")

    def test_a_write_to_read_only_data(self) -> None:
        self.refused([(0xB7, 3, 0, 0), (0x7A, 3, 0, 0), *SUCCEED], "is not the stack")

    def test_a_read_past_the_instruction_s_data(self) -> None:
        self.refused([(0x79, 0x20, 8, 0), *SUCCEED], "reads past the instruction's data")

    def test_a_loop_without_an_end(self) -> None:
        self.refused([(0x05, 0, -1, 0), EXIT], "more than 20000 instructions")

    def test_the_end_of_the_code(self) -> None:
        self.refused([(0xB7, 0, 0, 0)], "runs out of its code")

    def test_a_program_that_always_succeeds_is_refuted(self) -> None:
        findings, *_, others = prove(elf.parse(file_of(SUCCEED)))
        self.assertFalse(findings.holds)
        self.assertIn("at least the minimum was received", findings.refuted)
        self.assertIn("the user signed", findings.refuted)
        self.assertEqual(others.refuted, {"it never succeeds": 1})

    def test_a_program_that_may_abort_is_not_proved(self) -> None:
        branch = [(0x79, 0x23, -8, 0), (0x15, 3, 2, 5), (0xB7, 0, 0, 7), EXIT, syscall("abort"), EXIT]
        findings, *_, others = prove(elf.parse(file_of(branch)))
        self.assertNotIn("it never aborts", findings.refuted, "five bytes are the data of no instruction")
        self.assertEqual(others.refuted, {"it never aborts": 1})
        self.assertFalse(others.holds)

    def test_a_program_that_never_succeeds_is_refuted_and_refuses_without_a_reason(self) -> None:
        findings, *_, others = prove(elf.parse(file_of([(0xB7, 0, 0, 7), EXIT])))
        self.assertFalse(findings.holds)
        self.assertEqual(findings.unexplained, {"0x7": 1})
        self.assertIn("it never aborts", findings.proved)
        self.assertTrue(others.holds)


class Decisions(unittest.TestCase):
    def test_a_question_that_is_too_hard_is_an_error(self) -> None:
        one, other = z3.BitVecs("one other", 64)
        product = z3.ZeroExt(64, one) * z3.ZeroExt(64, other) == 0x8000_0000_0000_0F11_0000_0001_DEAD_BEEF
        with self.assertRaises(Undecided):
            Solver(most_steps=10_000).is_possible([product, one > 1, other > 1])

    def test_a_proof_whose_solver_stops_early_is_an_error(self) -> None:
        branch = [(0x79, 0x20, -8, 0), (0x15, 0, 1, 5), (0xB7, 0, 0, 0), EXIT]
        with self.assertRaises(Undecided):
            prove(elf.parse(file_of(branch)), FORMS[:1], most_steps=1)


class Commands(unittest.TestCase):
    def run_on(self, file: bytes) -> tuple[int, bool, str]:
        with tempfile.TemporaryDirectory() as folder:
            program, written = Path(folder, "guard.so"), Path(folder, "proof.json")
            program.write_bytes(file)
            words = [sys.executable, "-B", "-m", "guard_proof", "--program", str(program)]
            run = subprocess.run(
                [*words, "--certificate", str(written)], cwd=ROOM, capture_output=True, text=True, check=False
            )
            return run.returncode, written.exists(), run.stderr

    def test_a_cut_file_fails_and_leaves_no_certificate(self) -> None:
        code, is_written, error = self.run_on(file_of(SUCCEED)[:-1])
        self.assertEqual((code, is_written), (1, False))
        self.assertIn("nothing is proved", error)

    def test_a_solver_that_stops_early_fails_and_leaves_no_certificate(self) -> None:
        branch = [(0x79, 0x20, -8, 0), (0x15, 0, 1, 5), (0xB7, 0, 0, 0), EXIT]
        with tempfile.TemporaryDirectory() as folder:
            program, written = Path(folder, "guard.so"), Path(folder, "proof.json")
            program.write_bytes(file_of(branch))
            words = ["guard_proof", "--program", str(program), "--certificate", str(written)]
            stops_early = functools.partial(prove, most_steps=1)
            error = io.StringIO()
            with (
                mock.patch.object(command, "prove", stops_early), mock.patch.object(sys, "argv", words),
                contextlib.redirect_stderr(error),
            ):  # fmt: skip
                self.assertEqual(command.main(), 1)
            self.assertFalse(written.exists())
            self.assertIn("nothing is proved: the solver gave no answer", error.getvalue())

    def test_a_refuted_program_fails(self) -> None:
        code, _, _ = self.run_on(file_of(SUCCEED))
        self.assertEqual(code, 1)

    def test_a_certificate_is_current_only_where_it_holds_for_the_very_bytes_by_this_prover(self) -> None:
        program = elf.parse(file_of(SUCCEED))
        longer = elf.parse(file_of([(0xB7, 0, 0, 0), *SUCCEED]))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "proof.json")
            self.assertFalse(certificate.is_current(file, program), "there is none")
            good = certificate.certificate(program, [], 0)
            certificate.write(file, good)
            self.assertTrue(certificate.is_current(file, program))
            self.assertFalse(certificate.is_current(file, longer))
            for changed in (good | {"holds": False}, good | {"prover": {"sha256": "0" * 64}}):
                certificate.write(file, changed)
                self.assertFalse(certificate.is_current(file, program))


if __name__ == "__main__":
    unittest.main()
