"""Mutants: many and of every kind, a planted one is noticed, and the committed table is complete."""

from __future__ import annotations

import unittest
from pathlib import Path

from guard_proof import elf
from guard_proof.decode import Kind, decode
from guard_proof.syscalls import hash_of
from mutants.by_the_proof import NEVER_EXECUTED
from mutants.codes import is_only_a_code
from mutants.from_the_change import PROVED
from mutants.mutations import mutations
from mutants.on_the_chain import broken_by
from mutants.table import SAME, Row, Table
from trials.cases import cases

from .assembly import EXIT, constant, file_of
from .guard import CERTIFIED, GUARD, OTHER_BYTES, is_certified

ROOM = Path(__file__).parent.parent
TABLE = ROOM / "mutants.tsv"
#: What the committed table has at least.
FEWEST = 500


@unittest.skipUnless(is_certified(), OTHER_BYTES)
class Mutations(unittest.TestCase):
    def test_every_branch_goes_both_ways_and_every_order_changes_its_strictness(self) -> None:
        file = GUARD.read_bytes()
        program = elf.parse(file)
        every = mutations(program)
        names = {each.name for each in every}
        self.assertEqual(len(names), len(every))
        self.assertGreater(len(every), 4 * FEWEST)
        for at, instruction in enumerate(decode(program.code)):
            if instruction and instruction.kind == Kind.BRANCH:
                self.assertLessEqual({f"never taken at {at}", f"always taken at {at}"}, names)
                other = "opposite" if instruction.operation in ("eq", "ne") else "other strictness"
                self.assertIn(f"{other} at {at}", names)

    def test_a_mutant_differs_from_the_guard_in_one_instruction_or_one_word(self) -> None:
        file = GUARD.read_bytes()
        program = elf.parse(file)
        for each in mutations(program)[::17]:
            changed = each.file(file, program)
            self.assertEqual(len(changed), len(file))
            differing = {at // 8 for at in range(len(file)) if file[at] != changed[at]}
            self.assertLessEqual(len(differing), 1, each.name)


@unittest.skipUnless(is_certified(), OTHER_BYTES)
class Findings(unittest.TestCase):
    def test_a_minimum_that_is_not_asked_for_is_found_broken(self) -> None:
        file = GUARD.read_bytes()
        program = elf.parse(file)
        scenario = next(each for each in cases() if each.name == "swap: pays one too little")
        self.assertEqual(broken_by(file, scenario), [])
        broken = [broken_by(each.file(file, program), scenario) for each in comparisons_after_the_call(file)]
        self.assertIn(["at least the minimum was received"], broken)

    def test_what_a_row_comes_to(self) -> None:
        self.assertEqual(Row("a").result, "not tried")
        self.assertEqual(Row("a", "all", SAME).result, "not asked")
        self.assertEqual(Row("a", "all", SAME, "", NEVER_EXECUTED).result, "equivalent")
        self.assertEqual(Row("a", "all", SAME, "", "undecided").result, "open")
        self.assertEqual(Row("a", "swap: good", "accepts what is bad", "x").result, "refuted")
        self.assertEqual(Row("a", "swap: good", "refuses what is good", "x").result, "stricter")
        self.assertEqual(Row("a", "swap: good", "refuses what is good", "x", PROVED).result, "CONTRADICTION")


def comparisons_after_the_call(file: bytes) -> list:  # type: ignore[type-arg]
    program = elf.parse(file)
    code = decode(program.code)
    calls = [at for at, each in enumerate(code) if each and each.kind == Kind.SYSCALL]
    return [
        each for each in mutations(program)
        if each.kind == "never taken" and any(call < each.at < call + 40 for call in calls)
    ]  # fmt: skip


class Codes(unittest.TestCase):
    def changed(self, cells: list[tuple[int, int, int, int]], at: int, cell: tuple[int, int, int, int]) -> bool:
        other = list(cells)
        other[at] = cell
        one, two = (decode(elf.parse(file_of(each)).code) for each in (cells, other))
        return is_only_a_code(one, two, at)

    def test_a_number_that_becomes_the_result_is_only_a_code(self) -> None:
        self.assertTrue(self.changed([(0xB7, 0, 0, 7), EXIT], 0, (0xB7, 0, 0, 8)))

    def test_a_number_that_becomes_zero_or_is_looked_at_is_more(self) -> None:
        self.assertFalse(self.changed([(0xB7, 0, 0, 7), EXIT], 0, (0xB7, 0, 0, 0)))
        asked = [(0xB7, 0, 0, 7), (0x15, 0, 1, 8), (0xB7, 0, 0, 0), EXIT]
        self.assertFalse(self.changed(asked, 0, (0xB7, 0, 0, 8)))
        stored = [(0xB7, 0, 0, 7), (0x7B, 0x0A, -8, 0), EXIT]
        self.assertFalse(self.changed(stored, 0, (0xB7, 0, 0, 8)))
        added = [(0xB7, 0, 0, 7), (0x07, 0, 0, -8), EXIT]
        self.assertFalse(self.changed(added, 0, (0xB7, 0, 0, 8)))

    def test_low_bits_that_are_zero_are_not_taken_for_a_code(self) -> None:
        asked = [*constant(0, 1 << 32), (0x16, 0, 1, 0), (0xB7, 0, 0, 0), EXIT]
        self.assertFalse(self.changed(asked, 0, (0x18, 0, 0, 1)))


@unittest.skipUnless(is_certified(), OTHER_BYTES)
class CommittedTable(unittest.TestCase):
    def test_it_is_of_the_certificate_s_guard_and_every_mutant_is_settled(self) -> None:
        table = Table(TABLE, CERTIFIED)
        self.assertEqual(set(table.rows), {each.name for each in mutations(elf.parse(GUARD.read_bytes()))})
        counts = table.counts()
        self.assertGreater(sum(counts.values()), FEWEST, counts)
        self.assertEqual(set(counts), {"refuted", "stricter", "equivalent"}, counts)

    def test_no_input_ends_in_an_abort(self) -> None:
        """An abort is no return, so that the converse does not speak of it."""
        program = elf.parse(GUARD.read_bytes())
        rows = Table(TABLE, program.sha256).rows
        aborts = [
            at for at, each in enumerate(decode(program.code))
            if each and (each.kind, each.immediate) == (Kind.SYSCALL, hash_of("abort"))
        ]  # fmt: skip
        self.assertGreater(len(aborts), 0)
        for at in aborts:
            self.assertEqual(rows[f"dropped syscall at {at}"].proof, NEVER_EXECUTED)


if __name__ == "__main__":
    unittest.main()
