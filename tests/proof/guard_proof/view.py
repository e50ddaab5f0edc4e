"""View: accounts, terms and deeds of one execution, in the words of the specification."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from .accounts import DATA, KEY, LENGTH, OWNER, SIGNER, WRITABLE, Accounts, InstructionData
from .interface import Form
from .state import Call, Event, Logged, Returned, SlotRead, State
from .values import symbolic


def amount(number: int | z3.BitVecRef) -> z3.BitVecRef:
    """A number of 64 bits with room for a sum of two."""
    return z3.ZeroExt(2, symbolic(number))


def constant(data: bytes) -> z3.BitVecRef:
    return z3.BitVecVal(int.from_bytes(data, "little"), 8 * len(data))


@dataclass(frozen=True)
class TokenAccount:
    """What the bytes of an account say at one moment, read as a token account."""

    program: z3.BitVecRef
    length: z3.BitVecRef
    mint: z3.BitVecRef
    owner: z3.BitVecRef
    stored_amount: z3.BitVecRef
    #: Token-2022 writes what an account is behind the base account, when there are extensions.
    kind: z3.BitVecRef

    @property
    def balance(self) -> z3.BitVecRef:
        """The amount; nothing where the account is too short to have one."""
        return z3.If(z3.ULT(self.length, 72), amount(0), amount(self.stored_amount))


class Account:
    """The account of one position."""

    def __init__(self, accounts: Accounts, position: int) -> None:
        self._accounts = accounts
        self._position = position
        #: Address of its record in the input.
        self.record = accounts.accounts[position]
        #: Which record that is: the same for two positions exactly when they hold the same account.
        self.home = accounts.homes[position]
        self.key = self._bytes(KEY, 32, 0)
        flags = self._bytes(0, 8, 0)
        self.is_signer = z3.Extract(8 * SIGNER + 7, 8 * SIGNER, flags) != 0
        self.is_writable = z3.Extract(8 * WRITABLE + 7, 8 * WRITABLE, flags) != 0

    def length(self, moment: int) -> z3.BitVecRef:
        return self._bytes(LENGTH, 8, moment)

    def token_account(self, moment: int) -> TokenAccount:
        behind = DATA + 165
        word = self._bytes(behind - behind % 8, 8, moment)
        return TokenAccount(
            program=self._bytes(OWNER, 32, moment),
            length=self.length(moment),
            mint=self._bytes(DATA, 32, moment),
            owner=self._bytes(DATA + 32, 32, moment),
            stored_amount=self._bytes(DATA + 64, 8, moment),
            kind=z3.Extract(8 * (behind % 8) + 7, 8 * (behind % 8), word),
        )

    def _bytes(self, offset: int, size: int, moment: int) -> z3.BitVecRef:
        return self._accounts.bytes(self._position, offset, size, moment)


class View:
    """One execution of one instruction. Moments count the calls of the exchange: 0 is before the first."""

    def __init__(self, form: Form, accounts: Accounts, data: InstructionData, slot: z3.BitVecRef, state: State) -> None:
        self.form = form
        self.state = state
        self._named = {name: Account(accounts, position) for position, name in enumerate(form.accounts)}
        self.number_of_accounts = accounts.count
        self.data_length = data.length
        self.discriminator = data.words[0]
        self.maximum_spent, self.minimum_received, self.expiry_slot = data.words[1:4]
        self.program_address = z3.Concat(*reversed(data.program))
        self._receiver = z3.Concat(*reversed(data.words[4:8]))
        self.current_slot = slot
        #: What was done, but for reading the clock.
        self.deeds: list[Event] = [event for event in state.events if not isinstance(event, SlotRead)]
        self.calls = [event for event in self.deeds if isinstance(event, Call)]
        self.logs = [event for event in self.deeds if isinstance(event, Logged)]
        self.returns = [event for event in self.deeds if isinstance(event, Returned)]
        self.end = len(form.hops)

    def account(self, name: str) -> Account:
        return self._named[name]

    @property
    def receiver(self) -> z3.BitVecRef:
        return self._receiver if self.form.has_receiver else self.account("user").key

    @property
    def received(self) -> z3.BitVecRef:
        output = self.account("output")
        return amount(output.token_account(self.end).stored_amount) - amount(output.token_account(0).stored_amount)

    @property
    def spent(self) -> z3.BitVecRef:
        """What left the input account: nothing where its balance grew."""
        account = self.account("input")
        before, after = account.token_account(0).balance, account.token_account(self.end).balance
        return z3.If(z3.UGT(before, after), before - after, amount(0))

    @property
    def delivered(self) -> z3.BitVecRef:
        """What the first of two hops paid into the middle account."""
        middle = self.account("middle")
        return middle.token_account(1).balance - middle.token_account(0).balance
