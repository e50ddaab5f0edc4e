"""Scenario: one list of accounts and one instruction, with what the exchange does when it is called."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from guard_proof.accounts import DATA, KEY, LAMPORTS, LENGTH, OWNER
from guard_proof.interface import Form
from guard_proof.keys import EXCHANGE, GUARD, TOKEN, TOKEN_2022

from .obedient import ITSELF, POOL, Order, orders

SYSTEM = bytes(32)
#: Of every account that is made here.
BALANCE = 10**9
#: Owner of programs.
LOADER = b"loader"

#: A change of an account: a place in its record, and the eight bytes that are written there.
Write = tuple[int, int]
#: Which account, by name, is changed; how; and whether the exchange does it itself, and not the account's token program.
Change = tuple[str, list[Write], bool]


@dataclass
class Account:
    key: bytes
    owner: bytes = SYSTEM
    data: bytes = b""
    is_writable: bool = False
    is_signer: bool = False
    #: A program stands there; what its account holds is the chain's matter.
    is_program: bool = False
    lamports: int = BALANCE

    def copy(self) -> Account:
        return replace(self)


@dataclass
class Scenario:
    name: str
    form: Form
    #: By position; the same object twice is the same account in two positions.
    accounts: list[Account]
    data: bytes
    program: bytes = GUARD
    #: What the exchange does in each call.
    changes: list[list[Change]] = field(default_factory=list)
    #: The exchange's account has the code itself, in whole words, as the older loader keeps it.
    has_older_loader: bool = False

    def account(self, name: str) -> Account:
        return self.accounts[self.form.accounts.index(name)]

    def put(self, name: str, account: Account) -> None:
        self.accounts[self.form.accounts.index(name)] = account

    def give_orders(self) -> None:
        """Writes what the exchange is to do into the pools, and forgets changes that no program at hand may make."""
        for number, (hop, changes) in enumerate(zip(self.form.hops, self.changes, strict=False)):
            position = {name: at for at, name in enumerate(hop.accounts)}
            given: list[Order] = []
            made: list[Change] = []
            pool = self.account(hop.accounts[POOL])
            has_others = bool(pool.data)
            if pool.is_program:
                self.changes[number] = made
                continue
            for name, writes, by_exchange in changes:
                program = ITSELF if by_exchange else self._program_of(name, position)
                if program is not None:
                    given.append((program, position[name], writes))
                    made.append((name, writes, by_exchange))
            wanted = orders(given)
            if has_others and pool.data != wanted:
                self.changes[number] = []
                continue
            self.changes[number] = made
            pool.data = wanted

    def _program_of(self, name: str, position: dict[str, int]) -> int | None:
        """Position of the account of the program that owns an account, among those that the exchange is given."""
        owner = self.account(name).owner
        for each, at in position.items():
            account = self.account(each)
            if account.is_program and account.key == owner:
                return at
        return None


def address(*words: object) -> bytes:
    return hashlib.sha256(" ".join(map(str, words)).encode()).digest()


def token_account(mint: bytes, owner: bytes, amount: int, is_token_2022: bool = False) -> bytes:
    data = mint + owner + amount.to_bytes(8, "little") + bytes(36) + b"\1" + bytes(56)
    return data + b"\2\7\0\0\0" if is_token_2022 else data


def writes(old: bytes, new: bytes) -> list[Write]:
    """What makes the data of an account that had `old` be `new`, its length included, word by word."""
    made: list[Write] = []
    if len(old) != len(new):
        made.append((LENGTH, len(new)))
    for at in range(0, len(new), 8):
        at = min(at, max(len(new) - 8, 0))
        wanted = new[at : at + 8]
        if old[at : at + 8] != wanted:
            made.append((DATA + at, int.from_bytes(wanted.ljust(8, b"\0"), "little")))
    return made


def owner_writes(owner: bytes) -> list[Write]:
    return [(OWNER + at, int.from_bytes(owner[at : at + 8], "little")) for at in range(0, 32, 8)]


class Terms:
    """What a good swap of a form is made of; a case changes some of it."""

    def __init__(self, form: Form, name: str, is_token_2022: bool = False) -> None:
        self.form = form
        self.name = f"{form.name}: {name}"
        self.maximum_spent, self.minimum_received, self.expiry = 1_000_000, 900_000, 0
        self.spent, self.received, self.delivered, self.left = 1_000_000, 900_000, 500_000, 0
        self.balances = {"input": 5_000_000, "middle": 70, "output": 30}
        self.is_token_2022 = is_token_2022
        #: Tokens of the other program, by the names of their accounts, and addresses that are chosen.
        self.others: frozenset[str] = frozenset()
        self.keys: dict[str, bytes] = {}
        self.receiver = address(self.name, "receiver")

    def key(self, name: str) -> bytes:
        return self.keys.get(name) or address(self.name, name)

    def is_of_token_2022(self, name: str) -> bool:
        return self.is_token_2022 != (name in self.others)

    @property
    def owner_of_output(self) -> bytes:
        return self.receiver if self.form.has_receiver else self.key("user")

    def scenario(self) -> Scenario:
        form = self.form
        programs = {each: Account(each, LOADER, is_program=True) for each in (TOKEN, TOKEN_2022)}
        accounts: dict[str, Account] = {}
        for name in form.accounts:
            account = Account(self.key(name), is_writable=name in form.written)
            if name == "user":
                account.is_signer = True
            elif name == "exchange program":
                account = Account(EXCHANGE, LOADER, is_program=True)
            elif name.endswith("token program"):
                token = name.removesuffix(" token program")
                account = programs[TOKEN_2022 if self.is_of_token_2022(token) else TOKEN]
            elif name in form.pools or name.endswith("observation"):
                account.owner = EXCHANGE
            elif name in form.token_accounts:
                account.owner = TOKEN_2022 if self.is_of_token_2022(name) else TOKEN
                account.data = self.holding(name, self.balances[name])
            accounts[name] = account
        made = Scenario(self.name, form, list(accounts.values()), self.instruction())
        made.accounts = [accounts[name] for name in form.accounts]
        made.changes = self.changes()
        return made

    def holding(self, name: str, amount: int) -> bytes:
        owner = self.owner_of_output if name == "output" else self.key("user")
        return token_account(self.key(f"{name} mint"), owner, amount, self.is_of_token_2022(name))

    def instruction(self) -> bytes:
        numbers = (self.maximum_spent, self.minimum_received, self.expiry)
        data = self.form.discriminator + b"".join(each.to_bytes(8, "little") for each in numbers)
        return data + self.receiver if self.form.has_receiver else data

    def changes(self) -> list[list[Change]]:
        amounts = self.balances
        place = DATA + 64
        taken = ("input", [(place, amounts["input"] - self.spent)], False)
        paid = ("output", [(place, amounts["output"] + self.received)], False)
        if len(self.form.hops) == 1:
            return [[taken, paid]]
        return [
            [taken, ("middle", [(place, amounts["middle"] + self.delivered)], False)],
            [("middle", [(place, amounts["middle"] + self.left)], False), paid],
        ]


def records(scenario: Scenario) -> list[bytearray]:
    """Each account's record as the loader writes it, without the room to grow; `None` stands for a repetition."""
    made = []
    for account in scenario.accounts:
        record = bytearray(DATA)
        record[0], record[1], record[2], record[3] = 255, account.is_signer, account.is_writable, account.is_program
        record[KEY:OWNER], record[OWNER:LAMPORTS] = account.key, account.owner.ljust(32, b"\0")
        record[LAMPORTS:LENGTH] = account.lamports.to_bytes(8, "little")
        record[LENGTH:DATA] = len(account.data).to_bytes(8, "little")
        made.append(record + account.data)
    return made
