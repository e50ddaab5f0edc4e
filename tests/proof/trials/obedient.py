"""Obedient programs: an exchange that follows the pool's data, a token program that writes what it is sent.

The exchange logs the accounts and the data that it was called with, so that a chain shows what the guard handed on. Its orders
are in the data of the pool, the fourth account: after a mark and their number, for each the position of a program, of
an account, and the writes: pairs of a place in the account's record and eight bytes. The token program has them as its
data, and writes them into its one account. An order for no program is carried out by the exchange itself.
"""

from __future__ import annotations

import struct

from guard_proof.accounts import DATA, KEY, LAMPORTS, LENGTH, OWNER, SIGNER

from .assembler import (
    ADD, ADD_FROM, AND, GO, IF_EQUAL, IF_LESS, IF_NOT, IF_NOT_LESS, IF_OTHER, IF_OVER, LOAD, LOAD_BYTE, MOVE, MOVE_FROM,
    SHIFT, STORE, STORE_BYTE, STORE_HALF, STORE_NUMBER, Assembler,
)  # fmt: skip

#: First bytes of a pool's data that has orders.
MARK = 0x5EED_0F_0DE5_C0DE
#: Stands for the exchange itself, where a program's position is expected.
ITSELF = 255
#: Position of the pool in the exchange's list.
POOL = 3

#: Bytes of a record that the exchange logs: flags, address, owner, lamports, length.
HEADER = DATA
#: Most accounts, and places on the stack: their records, the logged fields, and a call.
MOST = 60
TABLE, FIELDS, CALL, META, INFO = -512, -1536, -1600, -1632, -1696

#: One order: the positions of a program and of an account in the exchange's list, and what is written there.
Order = tuple[int, int, list[tuple[int, int]]]


def orders(given: list[Order]) -> bytes:
    """The data of a pool with these orders."""
    data = struct.pack("<QQ", MARK, len(given))
    for program, target, writes in given:
        data += struct.pack("<QQQ", program, target, 16 * len(writes))
        data += b"".join(struct.pack("<QQ", place, value) for place, value in writes)
    return data


def token_program() -> bytes:
    made = Assembler()
    made.op(LOAD, 3, 2, -8)
    made.op(ADD_FROM, 3, 2)
    made.op(MOVE_FROM, 4, 1)
    made.op(ADD, 4, immediate=8)
    made.label("next")
    made.jump(IF_NOT_LESS, "end", 2, 3)
    write_pair(made, pairs=2, record=4)
    made.jump(GO, "next")
    made.label("end")
    made.finish(0)
    return made.file()


def write_pair(made: Assembler, pairs: int, record: int) -> None:
    """One write of a list, and on to the next."""
    made.op(LOAD, 5, pairs, 0)
    made.op(LOAD, 0, pairs, 8)
    made.op(ADD_FROM, 5, record)
    made.op(STORE, 5, 0, 0)
    made.op(ADD, pairs, immediate=16)


def exchange() -> bytes:
    made = Assembler()
    made.op(MOVE_FROM, 6, 1)
    made.op(MOVE_FROM, 9, 2)
    made.op(LOAD, 8, 6, 0)
    made.jump(IF_OVER, "fail", 8, immediate=MOST)
    find_records(made)
    log(made)
    obey(made)
    made.label("end")
    made.finish(0)
    made.label("fail")
    made.finish(1)
    return made.file()


def find_records(made: Assembler) -> None:
    """The records of all positions, of repetitions those that they repeat."""
    made.op(MOVE_FROM, 7, 6)
    made.op(ADD, 7, immediate=8)
    made.op(MOVE, 3)
    made.op(MOVE_FROM, 4, 10)
    made.op(ADD, 4, immediate=TABLE)
    made.label("record")
    made.jump(IF_NOT_LESS, "found", 3, 8)
    made.op(LOAD_BYTE, 1, 7, 0)
    made.jump(IF_NOT, "repetition", 1, immediate=255)
    made.op(STORE, 4, 7, 0)
    made.op(LOAD, 1, 7, LENGTH)
    made.op(ADD, 1, immediate=DATA + 10_240 + 8 + 7)
    made.op(AND, 1, immediate=-8)
    made.op(ADD_FROM, 7, 1)
    made.jump(GO, "on")
    made.label("repetition")
    record_of(made, position=1, into=1)
    made.op(STORE, 4, 1, 0)
    made.op(ADD, 7, immediate=8)
    made.label("on")
    made.op(ADD, 4, immediate=8)
    made.op(ADD, 3, immediate=1)
    made.jump(GO, "record")
    made.label("found")


def record_of(made: Assembler, position: int, into: int) -> None:
    """The record of a position that a register holds; it is lost unless it is where the record goes."""
    made.op(SHIFT, position, immediate=3)
    made.op(ADD_FROM, position, 10)
    made.op(LOAD, into, position, TABLE)


def log(made: Assembler) -> None:
    made.op(MOVE, 3)
    made.op(MOVE_FROM, 4, 10)
    made.op(MOVE_FROM, 5, 10)
    made.op(ADD, 5, immediate=FIELDS)
    made.label("field")
    made.jump(IF_NOT_LESS, "fields", 3, 8)
    made.op(LOAD, 1, 4, TABLE)
    made.op(STORE, 5, 1, 0)
    made.op(STORE_NUMBER, 5, offset=8, immediate=HEADER)
    made.op(ADD, 4, immediate=8)
    made.op(ADD, 5, immediate=16)
    made.op(ADD, 3, immediate=1)
    made.jump(GO, "field")
    made.label("fields")
    made.op(STORE, 5, 9, 0)
    made.op(LOAD, 1, 9, -8)
    made.op(STORE, 5, 1, 8)
    made.op(MOVE_FROM, 1, 10)
    made.op(ADD, 1, immediate=FIELDS)
    made.op(MOVE_FROM, 2, 8)
    made.op(ADD, 2, immediate=1)
    made.syscall("sol_log_data")


def obey(made: Assembler) -> None:
    made.jump(IF_LESS, "end", 8, immediate=POOL + 1)
    made.op(LOAD, 7, 10, TABLE + 8 * POOL)
    made.op(LOAD, 1, 7, LENGTH)
    made.jump(IF_LESS, "end", 1, immediate=16)
    made.op(LOAD, 1, 7, DATA)
    made.constant(2, MARK)
    made.jump(IF_OTHER, "end", 1, 2)
    made.op(LOAD, 8, 7, DATA + 8)
    made.op(ADD, 7, immediate=DATA + 16)
    made.label("order")
    made.jump(IF_EQUAL, "end", 8)
    made.op(LOAD, 1, 7, 8)
    record_of(made, position=1, into=9)
    made.op(LOAD, 1, 7, 0)
    made.jump(IF_EQUAL, "itself", 1, immediate=ITSELF)
    call(made)
    made.jump(IF_NOT, "fail", 0)
    made.jump(GO, "done")
    made.label("itself")
    made.op(MOVE_FROM, 3, 7)
    made.op(ADD, 3, immediate=24)
    made.op(LOAD, 4, 7, 16)
    made.op(ADD_FROM, 4, 3)
    made.label("pair")
    made.jump(IF_NOT_LESS, "done", 3, 4)
    write_pair(made, pairs=3, record=9)
    made.jump(GO, "pair")
    made.label("done")
    made.op(LOAD, 1, 7, 16)
    made.op(ADD, 7, immediate=24)
    made.op(ADD_FROM, 7, 1)
    made.op(ADD, 8, immediate=-1)
    made.jump(GO, "order")


def call(made: Assembler) -> None:
    """Calls the program of position r1 with the account of record r9, and the writes of the order at r7."""
    record_of(made, position=1, into=5)
    made.op(ADD, 5, immediate=KEY)
    made.op(STORE, 10, 5, CALL)
    address_on_stack(made, META, at=CALL + 8)
    made.op(STORE_NUMBER, 10, offset=CALL + 16, immediate=1)
    made.op(MOVE_FROM, 5, 7)
    made.op(ADD, 5, immediate=24)
    made.op(STORE, 10, 5, CALL + 24)
    made.op(LOAD, 5, 7, 16)
    made.op(STORE, 10, 5, CALL + 32)
    for place, at in ((KEY, META), (KEY, INFO), (LAMPORTS, INFO + 8), (DATA, INFO + 24), (OWNER, INFO + 32)):
        made.op(MOVE_FROM, 5, 9)
        made.op(ADD, 5, immediate=place)
        made.op(STORE, 10, 5, at)
    made.op(MOVE, 5, immediate=1)
    made.op(STORE_HALF, 10, 5, META + 8)
    made.op(LOAD, 5, 9, LENGTH)
    made.op(STORE, 10, 5, INFO + 16)
    made.op(STORE_NUMBER, 10, offset=INFO + 40)
    for flag in range(3):
        made.op(LOAD_BYTE, 5, 9, SIGNER + flag)
        made.op(STORE_BYTE, 10, 5, INFO + 48 + flag)
    made.op(MOVE_FROM, 1, 10)
    made.op(ADD, 1, immediate=CALL)
    made.op(MOVE_FROM, 2, 10)
    made.op(ADD, 2, immediate=INFO)
    made.op(MOVE, 3, immediate=1)
    made.op(MOVE, 4)
    made.op(MOVE, 5)
    made.syscall("sol_invoke_signed_c")


def address_on_stack(made: Assembler, place: int, at: int) -> None:
    made.op(MOVE_FROM, 5, 10)
    made.op(ADD, 5, immediate=place)
    made.op(STORE, 10, 5, at)
