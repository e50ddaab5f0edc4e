"""Interface: the guard's six instructions, their accounts by name, and the lists that the exchange is given."""

from __future__ import annotations

from dataclasses import dataclass

from .keys import discriminator

ONE_HOP = (
    "user", "exchange program", "authority", "configuration", "pool", "input", "output", "input vault",
    "output vault", "input token program", "output token program", "input mint", "output mint", "observation",
)  # fmt: skip

TWO_HOPS = (
    "user", "exchange program", "authority", "first configuration", "first pool", "input", "middle", "output",
    "first input vault", "first output vault", "first observation", "second configuration", "second pool",
    "second input vault", "second output vault", "second observation", "input token program",
    "middle token program", "output token program", "input mint", "middle mint", "output mint",
)  # fmt: skip


@dataclass(frozen=True)
class Hop:
    """One swap: what the guard's accounts are to the exchange, in the exchange's order."""

    accounts: tuple[str, ...]
    #: Those that it may change.
    written: frozenset[str]


def hop(configuration: str, pool: str, given: str, taken: str, vaults: str, observation: str) -> Hop:
    """`given` and `taken` name the token accounts, and with them their programs and mints."""
    accounts = (
        "user", "authority", configuration, pool, given, taken, f"{vaults}input vault", f"{vaults}output vault",
        f"{given} token program", f"{taken} token program", f"{given} mint", f"{taken} mint", observation,
    )  # fmt: skip
    return Hop(accounts, frozenset([pool, given, taken, f"{vaults}input vault", f"{vaults}output vault", observation]))


SINGLE = (hop("configuration", "pool", "input", "output", "", "observation"),)
DOUBLE = (
    hop("first configuration", "first pool", "input", "middle", "first ", "first observation"),
    hop("second configuration", "second pool", "middle", "output", "second ", "second observation"),
)


@dataclass(frozen=True)
class Form:
    """One of the six instructions."""

    name: str
    accounts: tuple[str, ...]
    hops: tuple[Hop, ...]
    #: Whether the amount that the exchange meets exactly is what arrives, not what is offered.
    is_exact_out: bool = False
    #: Whether the data names a receiver, behind the three numbers.
    has_receiver: bool = False

    @property
    def discriminator(self) -> bytes:
        return discriminator(f"global:{self.name}")

    @property
    def data_length(self) -> int:
        return 64 if self.has_receiver else 32

    @property
    def token_accounts(self) -> tuple[str, ...]:
        return ("input", "output") if len(self.hops) == 1 else ("input", "middle", "output")

    @property
    def last_pool(self) -> str:
        """The pool that pays the output."""
        return "pool" if len(self.hops) == 1 else "second pool"

    @property
    def pools(self) -> tuple[str, ...]:
        return ("pool",) if len(self.hops) == 1 else ("first pool", "second pool")

    @property
    def written(self) -> frozenset[str]:
        return frozenset().union(*[each.written for each in self.hops])


FORMS = (
    Form("swap", ONE_HOP, SINGLE),
    Form("swap_to", ONE_HOP, SINGLE, has_receiver=True),
    Form("swap_exact_out", ONE_HOP, SINGLE, is_exact_out=True),
    Form("swap_exact_out_to", ONE_HOP, SINGLE, is_exact_out=True, has_receiver=True),
    Form("swap_two_hops", TWO_HOPS, DOUBLE),
    Form("swap_two_hops_to", TWO_HOPS, DOUBLE, has_receiver=True),
)
