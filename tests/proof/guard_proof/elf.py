"""Program file: read-only data and code of an SBPF version 3 ELF file, as the chain's strict parser reads it."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

from .errors import NotUnderstood

#: Where the runtime maps the two parts.
RODATA_START = 0
CODE_START = 1 << 32

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
MACHINE_BPF = 247
VERSION_3 = 3
LOAD = 1
READABLE = 4
EXECUTABLE = 1
INSTRUCTION = 8


@dataclass(frozen=True)
class Program:
    """What the runtime loads of a program file."""

    rodata: bytes
    code: bytes
    #: Index of the first instruction that runs.
    entry: int
    #: SHA-256 of the file, but for zeros behind its last part: a cluster keeps programs with room to grow.
    sha256: str


def read(path: Path) -> Program:
    return parse(path.read_bytes())


def parse(file: bytes) -> Program:
    """The parts of a program file, which may be followed by zeros alone."""
    if len(file) < FILE_HEADER.size:
        raise NotUnderstood("the file is shorter than an ELF header")
    ident, _, machine, version, entry, table, _, flags, size, entry_size, count, *_ = FILE_HEADER.unpack_from(file)
    expected = (IDENT, MACHINE_BPF, 1, FILE_HEADER.size, FILE_HEADER.size, PROGRAM_HEADER.size)
    if (ident, machine, version, table, size, entry_size) != expected:
        raise NotUnderstood("the file is no 64-bit BPF ELF file with its program headers behind the header")
    if flags != VERSION_3:
        raise NotUnderstood(f"the file is of SBPF version {flags}; only version 3 is modelled")
    if count != 2:
        raise NotUnderstood(f"the file has {count} program headers; read-only data and code are expected")
    end = FILE_HEADER.size + count * PROGRAM_HEADER.size
    rodata, end = segment(file, 0, READABLE, RODATA_START, end)
    code, end = segment(file, 1, EXECUTABLE, CODE_START, end)
    if any(file[end:]):
        raise NotUnderstood("something but zeros stands behind the code")
    first, rest = divmod(entry - CODE_START, INSTRUCTION)
    if rest or not 0 <= first < len(code) // INSTRUCTION:
        raise NotUnderstood("the entry point is not in the code")
    return Program(rodata, code, first, hashlib.sha256(file[:end]).hexdigest())


def segment(file: bytes, index: int, flags: int, address: int, offset: int) -> tuple[bytes, int]:
    """A part that must stand at `offset` of the file, and where it ends."""
    position = FILE_HEADER.size + index * PROGRAM_HEADER.size
    if len(file) < position + PROGRAM_HEADER.size:
        raise NotUnderstood("the file ends within its program headers")
    header = PROGRAM_HEADER.unpack_from(file, position)
    kind, found_flags, found_offset, virtual, physical, file_size, memory_size, _ = header
    expected = (LOAD, flags, offset, address, address, memory_size)
    if (kind, found_flags, found_offset, virtual, physical, file_size) != expected:
        raise NotUnderstood(f"program header {index} is not what the chain's strict parser accepts")
    end = offset + file_size
    if file_size % INSTRUCTION or end > len(file):
        raise NotUnderstood(f"part {index} of the file is cut")
    return file[offset:end], end
