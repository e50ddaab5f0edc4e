"""Assembly: small program files for tests."""

from __future__ import annotations

import struct

from guard_proof import elf
from guard_proof.syscalls import hash_of

EXIT = (0x95, 0, 0, 0)


def instruction(opcode: int, registers: int, offset: int, immediate: int) -> bytes:
    return struct.pack("<BBhi", opcode, registers, offset, immediate)


def constant(register: int, value: int) -> list[tuple[int, int, int, int]]:
    """A number of 64 bits into a register."""
    low, high = (struct.unpack("<i", struct.pack("<I", half))[0] for half in (value & 0xFFFFFFFF, value >> 32))
    return [(0x18, register, 0, low), (0, 0, 0, high)]


def syscall(name: str) -> tuple[int, int, int, int]:
    return (0x85, 0, 0, struct.unpack("<i", struct.pack("<I", hash_of(name)))[0])


def file_of(code: list[tuple[int, int, int, int]], rodata: bytes = bytes(8)) -> bytes:
    """A program file as the linker writes it."""
    body = b"".join(instruction(*each) for each in code)
    start = elf.FILE_HEADER.size + 2 * elf.PROGRAM_HEADER.size
    header = elf.FILE_HEADER.pack(
        elf.IDENT, 3, elf.MACHINE_BPF, 1, elf.CODE_START, elf.FILE_HEADER.size, 0, elf.VERSION_3,
        elf.FILE_HEADER.size, elf.PROGRAM_HEADER.size, 2, 0, 0, 0,
    )  # fmt: skip
    parts = ((elf.READABLE, 0, rodata, start), (elf.EXECUTABLE, elf.CODE_START, body, start + len(rodata)))
    table = b"".join(
        elf.PROGRAM_HEADER.pack(elf.LOAD, flags, offset, at, at, len(part), len(part), 0)
        for flags, at, part, offset in parts
    )
    return header + table + rodata + body
