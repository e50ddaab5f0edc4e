"""Chain: every scenario's accounts in one chain in memory, where any program can be tried as the guard."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass

from guard_proof.keys import EXCHANGE, GUARD
from solders.account import Account as ChainAccount
from solders.clock import Clock
from solders.compute_budget import set_compute_unit_limit
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction
from solders.transaction_metadata import TransactionMetadata

from . import obedient
from .scenario import BALANCE, Scenario

#: The most that a transaction may use.
MOST_UNITS = 1_400_000
SLOT = 438_881_024
LAMPORTS = 10**12
#: The loader under which a program's account has its code, and not the address of another account that has it.
OLDER_LOADER = Pubkey.from_string("BPFLoader2111111111111111111111111111111111")


@dataclass(frozen=True)
class Outcome:
    is_success: bool
    #: What the exchange logged of its calls and the guard of the swap, and the return data; nothing after a refusal.
    logged: tuple[bytes, ...] = ()
    returned: bytes = b""
    #: The refusal, in the runtime's words.
    error: str = ""
    #: What the guard used itself, compute units.
    units: int = 0

    def differs(self, other: Outcome) -> bool:
        return (self.is_success, self.logged, self.returned) != (other.is_success, other.logged, other.returned)


class Chain:
    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        self._user = Keypair.from_seed(bytes(range(32)))
        self._svm = LiteSVM().with_transaction_history(0).with_sigverify(False).with_blockhash_check(False)
        self._svm = self._svm.with_log_bytes_limit(None)
        self._svm.set_account(self._user.pubkey(), ChainAccount(LAMPORTS, b"", Pubkey.default(), False, 0))
        self._svm.set_clock(Clock(SLOT, 0, 500, 500, 1_800_000_000))
        self._svm.add_program(Pubkey(EXCHANGE), obedient.exchange())
        #: All others that are called are token programs.
        self._programs = {EXCHANGE}
        self._places = {GUARD}
        self._transactions: dict[str, Transaction] = {}
        for scenario in scenarios:
            self._add(scenario)

    def _add(self, scenario: Scenario) -> None:
        for account in scenario.accounts:
            if account.is_program and account.key not in self._programs:
                self._programs.add(account.key)
                self._svm.add_program(Pubkey(account.key), obedient.token_program())
            elif not account.is_program:
                made = ChainAccount(BALANCE, account.data, Pubkey(account.owner), False, 0)
                self._svm.set_account(Pubkey(account.key), made)
        self._places.add(scenario.program)
        metas = [AccountMeta(Pubkey(each.key), each.is_signer, each.is_writable) for each in scenario.accounts]
        calls = [set_compute_unit_limit(MOST_UNITS), Instruction(Pubkey(scenario.program), scenario.data, metas)]
        blockhash = self._svm.latest_blockhash()
        message = Message.new_with_blockhash(calls, self._user.pubkey(), blockhash)
        self._transactions[scenario.name] = Transaction.new_unsigned(message)

    def deploy(self, file: bytes) -> None:
        """Puts a file where the guard is; the runtime may refuse it, with an exception."""
        for place in self._places:
            self._svm.add_program(Pubkey(place), file)

    def take_over_programs(self, scenario: Scenario) -> None:
        """Says in a scenario what stands at the addresses of its programs, so that the input's addresses are the chain's."""
        for account in scenario.accounts:
            found = self._svm.get_account(Pubkey(account.key)) if account.is_program else None
            if found is not None:
                account.owner, account.lamports, account.data = bytes(found.owner), found.lamports, bytes(found.data)

    def logs(self, scenario: Scenario) -> list[str]:
        """What all programs logged, whether it succeeded or not."""
        return self._svm.simulate_transaction(self._transactions[scenario.name]).meta().logs()

    def run(self, scenario: Scenario) -> Outcome:
        if scenario.has_older_loader:
            code = obedient.exchange()
            assert len(code) % 8 == 0, "the account's length is to be one of whole words"
            self._svm.set_account(Pubkey(EXCHANGE), ChainAccount(LAMPORTS, code, OLDER_LOADER, True, 0))
        result = self._svm.simulate_transaction(self._transactions[scenario.name])
        if scenario.has_older_loader:
            self._svm.add_program(Pubkey(EXCHANGE), obedient.exchange())
        metadata = result.meta()
        if not isinstance(metadata, TransactionMetadata) or hasattr(result, "err"):
            return Outcome(False, error=str(result.err()))
        prefix = "Program data: "
        lines = [line for line in metadata.logs() if line.startswith(prefix)]
        logged = [b"".join(base64.b64decode(field) for field in line[len(prefix) :].split()) for line in lines]
        return Outcome(True, tuple(logged), bytes(metadata.return_data().data), "", own_units(metadata.logs(), scenario))


def own_units(logs: list[str], scenario: Scenario) -> int:
    """What the guard used by itself: all that it used, less what the programs that it called used."""
    total = called = 0
    for line in logs:
        words = line.split()
        if len(words) > 3 and words[0] == "Program" and words[2] == "consumed":
            if words[1] == str(Pubkey(scenario.program)):
                total = int(words[3])
            elif words[1] == str(Pubkey(EXCHANGE)):
                called += int(words[3])
    return total - called
