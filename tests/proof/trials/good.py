"""Good lists that look strange: every account has data, programs stand in other places, mints are other accounts as well.

The runtime does not look at how the guard describes a program, and hardly at how it describes an account without data: here
every account is one that it looks at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from guard_proof.interface import Form

from .scenario import Account, Scenario, Terms, address

#: Bytes of data of an account in a position: with and without a rest behind the last eight.
LENGTHS = {"whole words of data": (48, 16), "data of odd lengths": (13, 19)}
#: Where the token program stands when others stand in its places; the exchange is handed this account too.
SPARE_PLACE = "authority"


def good_lists(form: Form) -> Iterator[Scenario]:
    for is_token_2022 in (False, True):
        for what in LENGTHS:
            kind = "Token-2022" if is_token_2022 else "SPL Token"
            yield with_data(Terms(form, f"all accounts of {kind} have {what}", is_token_2022).scenario(), what)
    made = Terms(form, "the exchange is of the older loader").scenario()
    made.has_older_loader = True
    yield made
    for what in LENGTHS:
        yield from without_token_programs(form, what)
        yield from mints_in_two_places(form, what)


def with_data(made: Scenario, what: str) -> Scenario:
    """Gives data to every account that has none; the pools have their orders."""
    first, step = LENGTHS[what]
    for position, account in enumerate(made.accounts):
        name = made.form.accounts[position]
        if not account.is_program and not account.data and name not in made.form.pools:
            length = first + step * position
            account.data = (hashlib.sha256(account.key).digest() * (length // 32 + 1))[:length]
    return made


def without_token_programs(form: Form, what: str) -> Iterator[Scenario]:
    """Accounts that are no programs where token programs are expected: the guard leaves that to the exchange."""
    places = [name for name in form.accounts if name.endswith("token program")]
    for name in places:
        made = Terms(form, f"{name} is no program, {what}").scenario()
        made.put(name, Account(address(made.name, "plain")))
        yield with_data(made, what)
    made = Terms(form, f"one account stands for all token programs, {what}").scenario()
    program, plain = made.account(places[0]), Account(address(made.name, "plain"))
    made.put(SPARE_PLACE, program)
    for name in places:
        made.put(name, plain)
    yield with_data(made, what)
    made = Terms(form, f"other accounts stand for all token programs, {what}").scenario()
    made.put(SPARE_PLACE, program)
    for name in places:
        made.put(name, Account(address(made.name, name)))
    yield with_data(made, what)
    for name in places:
        for other in form.accounts[: form.accounts.index(name)]:
            made = Terms(form, f"{name} is {other}, {what}").scenario()
            if other in form.written or other == SPARE_PLACE or made.account(other).is_program:
                continue
            made.put(SPARE_PLACE, program)
            made.put(name, made.account(other))
            yield with_data(made, what)


def mints_in_two_places(form: Form, what: str) -> Iterator[Scenario]:
    """A mint that is an earlier account too, and the mint of the token account all the same."""
    for name in form.accounts:
        if not name.endswith(" mint"):
            continue
        for other in form.accounts[: form.accounts.index(name)]:
            terms = Terms(form, f"{name} is {other}, {what}")
            if other in form.written:
                continue
            terms.keys = {name: terms.scenario().account(other).key}
            made = terms.scenario()
            made.put(name, made.account(other))
            yield with_data(made, what)
