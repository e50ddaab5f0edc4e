"""Specification: what holds whenever one of the guard's instructions returns success.

Every statement is about all inputs: any accounts in any number and order, any of them repeated, with any keys, owners,
flags, lengths and contents; any data; and an exchange that may have changed every account in any way. `requirements` are
what the input and the exchange must have done, `deeds` what the guard itself did. The guard refuses an input only if a
requirement is not met.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import z3

from .accounts import DATA, KEY, LAMPORTS, OWNER
from .interface import Form, Hop
from .keys import EXCHANGE, GUARD, TOKEN, TOKEN_2022, discriminator
from .state import Call
from .values import symbolic
from .view import TokenAccount, View, amount, constant

Formula = z3.BoolRef


@dataclass(frozen=True)
class Statement:
    name: str
    formula: Formula
    #: After how many calls of the exchange it can be judged.
    moment: int = 0


def requirements(view: View) -> Iterator[Statement]:
    """What must be so for a success, judged by the input and by what the exchange did."""
    yield from of_the_data(view)
    yield from of_the_accounts(view)
    yield from of_token_accounts(view)
    yield from of_money(view)


def of_the_data(view: View) -> Iterator[Statement]:
    yield Statement("the data is this instruction's, and of its exact length", z3.And(
        view.discriminator == constant(view.form.discriminator),
        view.data_length == view.form.data_length,
    ))  # fmt: skip
    yield Statement("the program runs at its own address", view.program_address == constant(GUARD))
    yield Statement("the amounts are not zero", z3.And(view.maximum_spent != 0, view.minimum_received != 0))
    yield Statement("the swap has not expired", z3.Or(
        view.expiry_slot == 0, z3.ULE(view.current_slot, view.expiry_slot)
    ))  # fmt: skip


def of_the_accounts(view: View) -> Iterator[Statement]:
    form, account = view.form, view.account
    yield Statement("all accounts are there", z3.UGE(view.number_of_accounts, len(form.accounts)))
    yield Statement("the user signed", account("user").is_signer)
    yield Statement("the exchange is the pinned one", account("exchange program").key == constant(EXCHANGE))
    yield Statement("what the exchange writes is writable", z3.And(
        *[account(name).is_writable for name in form.accounts if name in form.written]
    ))  # fmt: skip
    yield Statement("token accounts and pools differ by address", z3.And(
        *different([account(name).key for name in form.token_accounts]),
        *different([account(name).key for name in form.pools]),
    ))  # fmt: skip
    yield Statement("vaults and observations, and the pool of one hop, stand in no other position", z3.And(*[
        account(name).home != account(other).home
        for name in form.accounts if is_unique(form, name)
        for other in form.accounts if other != name
    ]))  # fmt: skip


def is_unique(form: Form, name: str) -> bool:
    """Two pools, and token accounts, are compared by address instead, each kind among themselves."""
    return name in form.written and name not in form.token_accounts and (len(form.hops) == 1 or name not in form.pools)


def different(values: list[z3.BitVecRef]) -> list[Formula]:
    return [one != other for at, one in enumerate(values) for other in values[at + 1 :]]


def of_token_accounts(view: View) -> Iterator[Statement]:
    owners = {"output": view.receiver, "middle": view.account("user").key}
    for name in view.form.token_accounts:
        if name == "input":
            continue
        for moment, when in ((0, "before"), (view.end, "after")):
            state = view.account(name).token_account(moment)
            mint = view.account(f"{name} mint").key
            owner = "receiver" if name == "output" else "user"
            yield Statement(f"the {name} is a token account {when}", is_token_account(state), moment)
            yield Statement(f"the {name} is of its mint {when}", state.mint == mint, moment)
            yield Statement(f"the {name} is the {owner}'s {when}", state.owner == owners[name], moment)


def is_token_account(state: TokenAccount) -> Formula:
    """Of SPL Token or Token-2022, and neither a mint nor a multisig."""
    is_token_2022 = state.program == constant(TOKEN_2022)
    return z3.And(
        z3.Or(state.program == constant(TOKEN), is_token_2022),
        z3.Or(state.length == 165, z3.And(is_token_2022, z3.UGT(state.length, 165), state.kind == 2)),
    )


def of_money(view: View) -> Iterator[Statement]:
    end = view.end
    before, after = (view.account("output").token_account(moment).stored_amount for moment in (0, end))
    yield Statement("at least the minimum was received", z3.UGE(
        amount(after), amount(before) + amount(view.minimum_received)
    ), end)  # fmt: skip
    before, after = (view.account("input").token_account(moment).balance for moment in (0, end))
    yield Statement("at most the maximum was spent", z3.ULE(before, after + amount(view.maximum_spent)), end)
    if "middle" not in view.form.token_accounts:
        return
    middle = [view.account("middle").token_account(moment).balance for moment in range(end + 1)]
    yield Statement("the first hop delivered something to the middle", z3.UGT(middle[1], middle[0]), 1)
    yield Statement("the middle holds no less than before", z3.UGE(middle[end], middle[0]), end)


def deeds(view: View) -> Iterator[Statement]:
    """What the guard did on a success."""
    kinds = [type(deed).__name__ for deed in view.deeds]
    expected = ["Call"] * view.end + ["Logged", "Returned"]
    yield Statement("it called the exchange, logged, returned, and did nothing else", z3.BoolVal(kinds == expected))
    if kinds != expected:
        return
    for number, (call, hop) in enumerate(zip(view.calls, view.form.hops, strict=True)):
        which = "the call" if view.end == 1 else f"call {number + 1}"
        yield Statement(f"{which} goes to the exchange, signed by the user alone", is_to_the_exchange(call, hop))
        yield Statement(f"{which} lists the right accounts with the right flags", lists(view, call, hop))
        yield Statement(f"{which} describes every account as it is", describes(view, call, number))
        yield Statement(f"{which} asks for the signed amounts", asks(view, call, number))
    yield Statement("user, pool, spent and received were logged", logged(view))
    yield Statement("the amount that was not fixed is the return data", returned(view))


def is_to_the_exchange(call: Call, hop: Hop) -> Formula:
    return z3.BoolVal(call.program == EXCHANGE and call.seeds == 0 and len(call.listed) == len(hop.accounts))


def lists(view: View, call: Call, hop: Hop) -> Formula:
    facts: list[Formula] = []
    for name, (key, writable, signer) in zip(hop.accounts, call.listed, strict=False):
        facts.append(symbolic(key) == view.account(name).record + KEY)
        facts.append(symbolic(writable) == int(name in hop.written))
        facts.append(symbolic(signer) == int(name == "user"))
    return z3.And(*facts)


def describes(view: View, call: Call, moment: int) -> Formula:
    """The infos are of the guard's accounts in their order, but for the exchange's program.

    The length is the one from before the first call, or the one that the runtime wrote there after it.
    """
    names = [name for name in view.form.accounts if name != "exchange program"]
    if len(names) != len(call.infos):
        return z3.BoolVal(False)
    facts: list[Formula] = []
    for name, (key, lamports, length, data, owner) in zip(names, call.infos, strict=True):
        record = view.account(name).record
        facts += [symbolic(key) == record + KEY, symbolic(lamports) == record + LAMPORTS]
        facts += [symbolic(data) == record + DATA, symbolic(owner) == record + OWNER]
        facts.append(z3.Or(*[symbolic(length) == view.account(name).length(each) for each in range(moment + 1)]))
    return z3.And(*facts)


def asks(view: View, call: Call, number: int) -> Formula:
    """Of an exact input, no minimum is asked for: the guard compares what arrived."""
    if len(call.data) != 3:
        return z3.BoolVal(False)
    name, first, second = (symbolic(word) for word in call.data)
    if view.form.is_exact_out:
        return z3.And(
            name == constant(discriminator("global:swap_base_output")),
            first == view.maximum_spent,
            second == view.minimum_received,
        )
    offered = view.delivered if number else amount(view.maximum_spent)
    return z3.And(
        name == constant(discriminator("global:swap_base_input")), amount(first) == offered, second == 0
    )


def logged(view: View) -> Formula:
    fields = view.logs[0].fields
    if len(fields) != 1 or len(fields[0]) != 11:
        return z3.BoolVal(False)
    words = [symbolic(word) for word in fields[0]]
    user, pool = (z3.Concat(*reversed(words[at : at + 4])) for at in (1, 5))
    return z3.And(
        words[0] == constant(discriminator("event:Swapped")),
        user == view.account("user").key,
        pool == view.account(view.form.last_pool).key,
        amount(words[9]) == view.spent,
        amount(words[10]) == view.received,
    )


def returned(view: View) -> Formula:
    words = view.returns[0].words
    if len(words) != 1:
        return z3.BoolVal(False)
    return amount(words[0]) == (view.spent if view.form.is_exact_out else view.received)
