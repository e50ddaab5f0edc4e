"""Chain: runs a program file in the runtime's own machine, in memory, and gives what it logged and returned."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from solders.account import Account
from solders.clock import Clock
from solders.compute_budget import set_compute_unit_limit
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction
from solders.transaction_metadata import TransactionMetadata

#: The most that a transaction may use.
MOST_UNITS = 1_400_000
SLOT = 438_881_024
LAMPORTS = 10**12


@dataclass(frozen=True)
class Outcome:
    #: The program's own error, or nothing.
    is_success: bool
    logged: list[bytes]
    returned: bytes
    error: str


class Chain:
    """A chain in memory, whose clock stands at a known slot."""

    def __init__(self) -> None:
        self._user = Keypair.from_seed(bytes(range(32)))
        self._svm = LiteSVM().with_transaction_history(0).with_sigverify(False).with_blockhash_check(False)
        self._svm = self._svm.with_log_bytes_limit(None)
        self._svm.set_account(self._user.pubkey(), Account(LAMPORTS, b"", Pubkey.default(), False, 0))
        self._svm.set_clock(Clock(SLOT, 0, 500, 500, 1_800_000_000))

    def run(self, file: bytes) -> Outcome:
        """Deploys a file at an address of its own and calls it without accounts or data."""
        program = Keypair().pubkey()
        self._svm.add_program(program, file)
        calls = [set_compute_unit_limit(MOST_UNITS), Instruction(program, b"", [])]
        blockhash = self._svm.latest_blockhash()
        message = Message.new_with_blockhash(calls, self._user.pubkey(), blockhash)
        result = self._svm.simulate_transaction(Transaction([self._user], message, blockhash))
        metadata = result.meta()
        is_success = isinstance(metadata, TransactionMetadata) and not hasattr(result, "err")
        prefix = "Program data: "
        lines = [line[len(prefix) :] for line in metadata.logs() if line.startswith(prefix)]
        return Outcome(
            is_success, [base64.b64decode(line) for line in lines], bytes(metadata.return_data().data),
            "" if is_success else str(result.err()),
        )  # fmt: skip
