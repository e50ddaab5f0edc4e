"""Probe: a program file changed so that it shows all registers and its stack at one instruction, and ends there."""

from __future__ import annotations

import struct

from guard_proof import elf
from guard_proof.elf import Program
from tests.assembly import instruction, syscall

#: Where the probe writes, below all that the guard uses of a frame: the registers, and the list of what is logged.
REGISTERS, FIELDS = -4088, -3904
#: What is shown of the frame, bytes, in parts of the size that the executor logs.
PART = 1024
PARTS = 2
#: A way back to the caller with zero.
SUCCEED = instruction(0xB7, 0, 0, 0) + instruction(0x95, 0, 0, 0)


def showing(file: bytes, program: Program, at: int) -> bytes:
    """The file, which at instruction `at` logs registers and stack, and aborts."""
    jump = instruction(0x05, 0, len(program.code) // 8 - at - 1, 0)
    return with_code(file, program, replaced(program.code, at, jump) + trampoline())


def succeeding_after(file: bytes, program: Program, at: int) -> bytes:
    """The file, which returns zero after instruction `at`."""
    jump = instruction(0x05, 0, len(program.code) // 8 - at - 2, 0)
    return with_code(file, program, replaced(program.code, at + 1, jump) + SUCCEED)


def replaced(code: bytes, at: int, cell: bytes) -> bytes:
    return code[: 8 * at] + cell + code[8 * at + 8 :]


def trampoline() -> bytes:
    code = b"".join(instruction(0x7B, 10 | register << 4, REGISTERS + 8 * register, 0) for register in range(10))
    fields = [(REGISTERS, 80), *[(-PART * each, PART) for each in range(PARTS, 0, -1)]]
    for number, (start, length) in enumerate(fields):
        code += instruction(0xBF, 0xA1, 0, 0) + instruction(0x07, 1, 0, start)
        code += instruction(0x7B, 0x1A, FIELDS + 16 * number, 0)
        code += instruction(0x7A, 10, FIELDS + 16 * number + 8, length)
    code += instruction(0xBF, 0xA1, 0, 0) + instruction(0x07, 1, 0, FIELDS)
    code += instruction(0xB7, 2, 0, len(fields))
    return code + instruction(*syscall("sol_log_data")) + instruction(*syscall("abort"))


def with_code(file: bytes, program: Program, code: bytes) -> bytes:
    """The file with other code, of any length."""
    start = elf.FILE_HEADER.size + 2 * elf.PROGRAM_HEADER.size + len(program.rodata)
    made = bytearray(file[:start] + code)
    # The sizes in the file and in memory, of the second part.
    sizes = elf.FILE_HEADER.size + elf.PROGRAM_HEADER.size + 32
    struct.pack_into("<QQ", made, sizes, len(code), len(code))
    return bytes(made)
