"""Input: the accounts and the instruction's data as the loader lays them out, with every content open.

A slot is the record of one position: of an account when it begins with 255, else of a repetition of an earlier one. The
account of a position is the slot that its record stands for. Contents are functions from the address of a slot to the
eight bytes at one place in it, so that the same account has the same content in whatever position it is met.
"""

from __future__ import annotations

import z3

from .errors import NotUnderstood
from .solver import Solver
from .values import Value, part, joined, reduced, symbolic

#: Where the loader maps the input, which starts with the number of accounts.
INPUT_START = 4 << 32
FIRST_SLOT = INPUT_START + 8
#: A region of the runtime's address space ends where the next one begins.
INPUT_END = 5 << 32

#: What the first byte of a slot says when it is of an account.
IS_ACCOUNT = 255
#: Places within the record of an account.
SIGNER, WRITABLE, KEY, OWNER, LAMPORTS, LENGTH, DATA = 1, 2, 0x08, 0x28, 0x48, 0x50, 0x58
#: Behind the data: room to grow by, padding, and the rent epoch.
SPARE = 10_240
RENT_EPOCH = 8
REPETITION = 8

#: The first bytes of a record, flags and address: what a call to another program never changes.
CONSTANT_BYTES = OWNER


class Accounts:
    """The slots of an instruction, as many as the longest list of accounts that the program walks over.

    Which slot a position's account is, is a small number; contents are functions of it. Addresses are kept apart: what
    they have to do with lengths and markers is asked only where a pointer is made.
    """

    def __init__(self, solver: Solver, positions: int, data: InstructionData) -> None:
        self.positions = positions
        self._functions: dict[tuple[int, int], z3.FuncDeclRef] = {}
        #: Addresses of the slots, and of the accounts' slots. The first record repeats none.
        self.slots = [z3.BitVec(f"slot {each}", 64) for each in range(positions + 1)]
        self.accounts = [self.slots[0], *[z3.BitVec(f"account {each}", 64) for each in range(1, positions)]]
        #: Which slot the account of a position is in.
        self.homes = [z3.BitVec(f"home {each}", 8) for each in range(positions)]
        self.bases = {each.get_id(): each for each in [*self.slots, *self.accounts]}
        self._numbers = {each.get_id(): number for number, each in enumerate(self.slots)}
        self._numbers |= {each.get_id(): number for number, each in enumerate(self.accounts)}
        self._numbers |= {each.get_id(): number for number, each in enumerate(self.homes)}
        self._homes = {each.get_id(): home for each, home in zip(self.accounts, self.homes, strict=True)}
        self._homes |= {each.get_id(): z3.BitVecVal(number, 8) for number, each in enumerate(self.slots)}
        self.count = z3.BitVec("number of accounts", 64)
        for position in range(positions):
            for fact in self._record(position, data):
                solver.assume(fact)
            account = self.accounts[position]
            solver.assume(z3.And(z3.UGE(account, FIRST_SLOT), z3.ULT(account, INPUT_END)))

    def _record(self, position: int, data: InstructionData) -> list[z3.BoolRef]:
        """A record is of an account, with flags that are zero or one, or repeats an earlier one.

        A repetition is filled up with zeros. Behind the last record stands the length of the data.
        """
        marker = self.marker(position)
        word = self.word(self.slots[position], 0, 0)
        exists = z3.UGT(self.count, position)
        home = z3.BitVecVal(position, 8)
        for earlier in reversed(range(position)):
            home = z3.If(marker == earlier, self.homes[earlier], home)
        is_account = marker == IS_ACCOUNT
        return [
            self.homes[position] == z3.If(is_account, z3.BitVecVal(position, 8), home),
            z3.Implies(exists, z3.Or(is_account, z3.And(z3.ULT(marker, position), z3.ULT(word, IS_ACCOUNT)))),
            z3.Implies(
                z3.And(exists, is_account), z3.And(*[self._is_flag(position, place) for place in (SIGNER, WRITABLE)])
            ),
            z3.Implies(self.count == position, word == data.length),
        ]

    def _is_flag(self, position: int, place: int) -> z3.BoolRef:
        """The loader writes one for yes and zero for no."""
        word = self.word(self.slots[position], 0, 0)
        return z3.ULE(z3.Extract(8 * place + 7, 8 * place, word), 1)

    def case(self, position: int, marker: int) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
        """What is what, where the record of a position begins with `marker`."""
        word = self.word(self.slots[position], 0, 0)
        rest = z3.BitVec(f"rest of record {position}", 56)
        is_account = marker == IS_ACCOUNT
        home = z3.BitVecVal(position, 8) if is_account else self.homes[marker]
        account = self.slots[position] if is_account else self.accounts[marker]
        return [
            (word, z3.Concat(rest, z3.BitVecVal(marker, 8))),
            (self.homes[position], home),
            (self.accounts[position], account),
        ]

    def following(self, position: int, marker: int) -> z3.BitVecRef:
        """Where the loader puts the next record, behind one that begins with `marker`.

        The rent epoch comes after the padding to eight bytes, and is itself eight bytes long: it may as well be padded.
        """
        slot = self.slots[position]
        if marker != IS_ACCOUNT:
            return slot + REPETITION
        return slot + (self.word(slot, LENGTH, 0) + (DATA + SPARE + RENT_EPOCH + 7) & ~7)

    def marker(self, position: int) -> z3.BitVecRef:
        return z3.Extract(7, 0, self.word(self.slots[position], 0, 0))

    def is_base(self, value: z3.ExprRef) -> bool:
        return value.get_id() in self.bases

    def number_of_word(self, term: z3.ExprRef) -> int | None:
        """Of a content of a slot: the position."""
        if z3.is_app(term) and term.num_args() == 1 and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            home = term.arg(0)
            return home.as_long() if z3.is_bv_value(home) else self._numbers.get(home.get_id())
        return None

    def number(self, base: z3.BitVecRef) -> int:
        return self._numbers[base.get_id()]

    def word(self, base: z3.BitVecRef, offset: int, moment: int) -> z3.BitVecRef:
        """The eight bytes at a place of a record, after so many calls to other programs."""
        key = (offset, moment if offset >= CONSTANT_BYTES else 0)
        if key not in self._functions:
            name = f"bytes {offset:#x} after {key[1]}"
            self._functions[key] = z3.Function(name, z3.BitVecSort(8), z3.BitVecSort(64))
        return self._functions[key](self._homes[base.get_id()])

    def load(self, base: z3.BitVecRef, offset: int, size: int, moment: int) -> Value:
        if offset < 0:
            raise NotUnderstood("the program reads before the record of an account")
        pieces, at = [], offset
        while at < offset + size:
            within = at % 8
            taken = min(8 - within, offset + size - at)
            pieces.append((part(reduced(self.word(base, at - within, moment)), within, taken), taken))
            at += taken
        return joined(pieces)

    def bytes(self, position: int, offset: int, size: int, moment: int) -> z3.BitVecRef:
        """Any number of bytes of the account of a position, for the specification."""
        words = [self.word(self.accounts[position], offset + at, moment) for at in range(0, size, 8)]
        return z3.Concat(*reversed(words)) if len(words) > 1 else words[0]


class InstructionData:
    """The data, its length before it, and the program's address behind it."""

    #: More words than the longest instruction has.
    WORDS = 16

    def __init__(self, solver: Solver) -> None:
        self.start = z3.BitVec("start of the data", 64)
        solver.assume(z3.And(z3.UGE(self.start, FIRST_SLOT), z3.ULT(self.start, INPUT_END - 8 * self.WORDS)))
        self.length = z3.BitVec("length of the data", 64)
        self.words = [z3.BitVec(f"data {8 * each}", 64) for each in range(self.WORDS)]
        self.program = [z3.BitVec(f"program address {8 * each}", 64) for each in range(4)]

    def load_program(self, offset: int, size: int) -> Value:
        if not (0 <= offset and offset // 8 == (offset + size - 1) // 8 and offset + size <= 32):
            raise NotUnderstood("the program reads past its address in the input")
        return part(self.program[offset // 8], offset % 8, size)

    def load(self, offset: int, size: int) -> Value:
        if not (0 <= offset and offset // 8 == (offset + size - 1) // 8 < self.WORDS):
            raise NotUnderstood("the program reads far past the data")
        return part(self.words[offset // 8], offset % 8, size)
