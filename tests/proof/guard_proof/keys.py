"""Addresses and names that the chain and the guard's interface fix."""

from __future__ import annotations

import hashlib

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def address(text: str) -> bytes:
    """The 32 bytes of an address in base 58."""
    number = 0
    for letter in text:
        number = number * 58 + ALPHABET.index(letter)
    return number.to_bytes(32, "big")


def discriminator(name: str) -> bytes:
    """The first 8 bytes of an instruction's data or of an event, by its name in Anchor's scheme."""
    return hashlib.sha256(name.encode()).digest()[:8]


GUARD = address("SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b")
EXCHANGE = address("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C")
TOKEN = address("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
TOKEN_2022 = address("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
CLOCK = address("SysvarC1ock11111111111111111111111111111111")
