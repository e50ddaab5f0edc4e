"""Pointers: which account, and which place of it, an expression points to.

The walk over the accounts makes expressions of lengths and markers. Each is replaced by a slot or account and a distance,
where that is what it comes to in every case: the record of a position is of an account, or repeats any earlier one.
"""

from __future__ import annotations

import z3

from .accounts import IS_ACCOUNT, Accounts
from .solver import Solver
from .values import Value

#: What a pointer is to, of a position: its account, its record or the next one; and how far behind its start.
Target = tuple[str, int]


def split(value: z3.BitVecRef) -> tuple[list[z3.BitVecRef], int]:
    """The terms of a sum, and its constant."""
    terms, constant = [], 0
    for term in value.children() if z3.is_app_of(value, z3.Z3_OP_BADD) else [value]:
        if z3.is_bv_value(term):
            constant += term.as_signed_long()
        else:
            terms.append(term)
    return terms, constant


class Pointers:
    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._known: dict[int, tuple[z3.ExprRef, Value | None]] = {}

    def parse(self, value: z3.BitVecRef) -> tuple[z3.BitVecRef, int] | None:
        """Base and distance of a pointer in its final form."""
        terms, constant = split(value)
        if len(terms) == 1 and self._accounts.is_base(terms[0]):
            return terms[0], constant
        return None

    def looks_like_one(self, value: Value) -> bool:
        """Whether a value is a base with something added, or a choice among such."""
        if isinstance(value, int):
            return False
        if z3.is_app_of(value, z3.Z3_OP_ITE):
            _, one, other = value.children()
            return self.looks_like_one(one) and self.looks_like_one(other)
        terms, _ = split(value)
        return any(
            self._accounts.is_base(term) or z3.is_app_of(term, z3.Z3_OP_ITE) and self.looks_like_one(term)
            for term in terms
        )

    def may_lead_to_input(self, value: z3.BitVecRef, data: z3.BitVecRef) -> bool:
        """Whether something that is chosen from points into accounts or data."""
        if z3.is_app_of(value, z3.Z3_OP_ITE):
            _, one, other = value.children()
            return self.may_lead_to_input(one, data) or self.may_lead_to_input(other, data)
        terms, _ = split(value)
        return any(self._accounts.is_base(term) or term.eq(data) for term in terms)

    def settle(self, value: Value, conditions: list[z3.BoolRef]) -> Value:
        """The pointer in its final form, or the value as it was."""
        if isinstance(value, int) or self.parse(value) or not self.looks_like_one(value):
            return value
        name = value.get_id()
        if name not in self._known:
            self._known[name] = (value, self._search(value, []))
        found = self._known[name][1]
        if found is None and conditions:
            found = self._search(value, conditions)
        return value if found is None else found

    def _search(self, value: z3.BitVecRef, conditions: list[z3.BoolRef]) -> Value | None:
        """What the value is whatever the record of its last position says, as far as the conditions leave that open."""
        position = self._last_position(value)
        if position is None or position >= self._accounts.positions:
            return None
        about = [each for each in conditions if self._is_about(each, position)]
        common: list[Target] | None = None
        for marker in [IS_ACCOUNT, *range(position)]:
            known = self._accounts.case(position, marker)
            if any(z3.is_false(z3.simplify(z3.substitute(each, *known))) for each in about):
                continue
            found = self._targets(z3.simplify(z3.substitute(value, *known)), position, marker)
            common = found if common is None else [each for each in common if each in found]
            if not common:
                return None
        if not common:
            return None
        kind, distance = common[0]
        base = {
            "account": self._accounts.accounts[position],
            "next": self._accounts.slots[position + 1],
            "slot": self._accounts.slots[position],
        }[kind]
        return z3.simplify(base + distance)

    def _targets(self, value: z3.BitVecRef, position: int, marker: int) -> list[Target]:
        """What a pointer is to, where the record of the position begins with `marker`; the account first."""
        accounts = self._accounts
        slot = accounts.slots[position]
        account = slot if marker == IS_ACCOUNT else accounts.accounts[marker]
        targets: list[Target] = []
        for kind, base in (("account", account), ("next", accounts.following(position, marker)), ("slot", slot)):
            distance = known_difference(value, base)
            if distance is not None:
                targets.append((kind, distance))
        return targets

    def _is_about(self, condition: z3.BoolRef, position: int) -> bool:
        """Whether a condition is about the record of one position alone. Leaving out others takes nothing away."""
        found = False
        for term in terms_of(condition):
            if z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) and not z3.is_bv_value(term):
                if self._accounts.number_of_word(term) != position:
                    return False
                found = True
        return found

    def _last_position(self, value: z3.BitVecRef) -> int | None:
        """The last position that the value is made of."""
        numbers = set()
        for term in terms_of(value):
            if self._accounts.is_base(term):
                numbers.add(self._accounts.number(term))
            number = self._accounts.number_of_word(term)
            if number is not None:
                numbers.add(number)
        return max(numbers, default=None)


def terms_of(value: z3.ExprRef) -> list[z3.ExprRef]:
    """All terms in an expression, each once; of the content of an account, not what says which account it is."""
    seen: dict[int, z3.ExprRef] = {}
    pending = [value]
    while pending:
        term = pending.pop()
        if term.get_id() not in seen:
            seen[term.get_id()] = term
            if not (z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) and term.num_args()):
                pending += term.children()
    return list(seen.values())


def known_difference(one: z3.BitVecRef, other: z3.BitVecRef) -> int | None:
    """How far two addresses are apart, when that is always the same."""
    difference = z3.simplify(one - other)
    if z3.is_bv_value(difference):
        return difference.as_signed_long()
    if any(z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) and not term.num_args() for term in terms_of(difference)):
        return None
    # Lengths alone are left, rounded in another way: the solver compares the two roundings.
    solver = Solver()
    example = solver.example([])
    assert example is not None
    found = example.eval(difference, model_completion=True)
    return found.as_signed_long() if solver.is_certain([], difference == found) else None
