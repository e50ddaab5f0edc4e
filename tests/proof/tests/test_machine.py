"""The executor and the chain's own machine do the same, on random programs, and for every system call."""

from __future__ import annotations

import unittest

from guard_proof import elf
from guard_proof.keys import CLOCK
from guard_proof.proof import Execution
from guard_proof.state import Returned, SlotRead

from .assembly import EXIT, file_of, syscall
from .chain import SLOT, Chain
from .compare import compare

#: A hundred times as many by `python -m tests.compare`.
CASES = 2_000


class Machine(unittest.TestCase):
    def test_random_programs(self) -> None:
        self.assertGreaterEqual(compare(CASES, seed=7), CASES)

    def test_reading_the_clock_and_returning_it(self) -> None:
        code = [
            (0xB7, 1, 0, 0), (0xBF, 0xA2, 0, 0), (0x07, 2, 0, -8), (0xB7, 3, 0, 0), (0xB7, 4, 0, 8),
            syscall("sol_get_sysvar"), (0x55, 0x00, 4, 0), (0xBF, 0xA1, 0, 0), (0x07, 1, 0, -8), (0xB7, 2, 0, 8),
            syscall("sol_set_return_data"), EXIT,
        ]  # fmt: skip
        file = file_of(code, rodata=CLOCK)
        self.assertEqual(Chain().run(file).returned, SLOT.to_bytes(8, "little"))
        execution = Execution(elf.parse(file), 1)
        states = [state for state in execution.machine.run(execution.start) if SlotRead() in state.events]
        self.assertEqual(len(states), 1)
        (returned,) = [event for event in states[0].events if isinstance(event, Returned)]
        self.assertTrue(execution.slot.eq(returned.words[0]))

    def test_the_chain_s_stack_is_zero_at_the_start(self) -> None:
        """The guard's proof does without; what is said of its mutants does not."""
        field = [(0xBF, 0xA1, 0, 0), (0x07, 1, 0, -4096), (0x7B, 0x1A, -24, 0), (0x7A, 10, -16, 4064)]
        log = [(0xBF, 0xA1, 0, 0), (0x07, 1, 0, -24), (0xB7, 2, 0, 1), syscall("sol_log_data"), (0xB7, 0, 0, 0), EXIT]
        self.assertEqual(Chain().run(file_of([*field, *log])).logged, [bytes(4064)])

    def test_abort_ends_the_transaction(self) -> None:
        file = file_of([syscall("abort"), (0xB7, 0, 0, 0), EXIT])
        self.assertFalse(Chain().run(file).is_success)
        execution = Execution(elf.parse(file), 1)
        (end,) = execution.machine.run(execution.start)
        self.assertTrue(end.is_aborted)


if __name__ == "__main__":
    unittest.main()
