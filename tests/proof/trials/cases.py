"""Cases: for each form a good swap, good ones that are unusual, and every way to break one requirement alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from guard_proof.accounts import DATA
from guard_proof.interface import FORMS, Form
from guard_proof.keys import EXCHANGE, TOKEN, TOKEN_2022
from guard_proof.specification import is_unique

from .chain import SLOT
from .good import good_lists
from .scenario import LOADER, Account, Change, Scenario, Terms, address, owner_writes, writes

MOST = (1 << 64) - 1
#: Forms whose accounts are varied in every way; the others share their code and differ in data, amounts and receiver.
IN_FULL = ("swap", "swap_exact_out_to", "swap_two_hops_to")


def cases() -> list[Scenario]:
    made = [scenario for form in FORMS for scenario in of_form(form)]
    for scenario in made:
        scenario.give_orders()
    names = [scenario.name for scenario in made]
    assert len(set(names)) == len(names), "two scenarios of one name would share accounts"
    return made


def of_form(form: Form) -> Iterator[Scenario]:
    for is_token_2022 in (False, True):
        kind = " of Token-2022" if is_token_2022 else ""
        yield Terms(form, f"good{kind}", is_token_2022).scenario()
    for name, change in TERMS.items():
        yield changed(form, name, change)
    if len(form.hops) == 2:
        for name, change in MIDDLE_TERMS.items():
            yield changed(form, name, change)
        yield from middles_between(form)
    yield from lists_and_data(form)
    if form.name not in IN_FULL:
        return
    yield from flags(form)
    yield from repetitions(form)
    yield from addresses(form)
    yield from one_for_two(form)
    yield from good_lists(form)
    for name in form.token_accounts:
        if name == "input":
            yield from inputs(form)
        else:
            yield from token_accounts(form, name)


def changed(form: Form, name: str, change: Callable[[Terms], None], is_token_2022: bool = False) -> Scenario:
    terms = Terms(form, name, is_token_2022)
    change(terms)
    return terms.scenario()


def setting(**values: object) -> Callable[[Terms], None]:
    def change(terms: Terms) -> None:
        for name, value in values.items():
            setattr(terms, name, value)

    return change


def balance(name: str, amount: int) -> Callable[[Terms], None]:
    def change(terms: Terms) -> None:
        terms.balances[name] = amount

    return change


def all_of(*changes: Callable[[Terms], None]) -> Callable[[Terms], None]:
    def change(terms: Terms) -> None:
        for each in changes:
            each(terms)

    return change


TERMS: dict[str, Callable[[Terms], None]] = {
    "expires in this slot": setting(expiry=SLOT),
    "expires in the next slot": setting(expiry=SLOT + 1),
    "never expires": setting(expiry=MOST),
    "expired in the slot before": setting(expiry=SLOT - 1),
    "expired in the first slot": setting(expiry=1),
    "pays more": setting(received=900_001, spent=999_999),
    "pays much more": setting(received=1 << 40, spent=1),
    "pays one too little": setting(received=899_999),
    "pays nothing": setting(received=0),
    "takes from the output": setting(received=-10),
    "takes all from the output": all_of(setting(received=-(1 << 40)), balance("output", 1 << 40)),
    "takes nothing": setting(spent=0),
    "adds to the input": setting(spent=-1),
    "takes one too much": setting(spent=1_000_001),
    "takes all": setting(spent=5_000_000),
    "offers nothing": setting(maximum_spent=0, spent=0),
    "asks for nothing": setting(minimum_received=0),
    "asks for nothing and gets nothing": setting(minimum_received=0, received=0),
    "asks for one": setting(minimum_received=1, received=1),
    "offers one": setting(maximum_spent=1, spent=1),
    "offers all there is": setting(maximum_spent=MOST),
    "asks for all there is": setting(minimum_received=MOST),
    "large amounts": all_of(
        setting(maximum_spent=1 << 63, spent=1 << 63, minimum_received=1 << 63, received=1 << 63, delivered=1 << 40),
        balance("input", MOST), balance("output", (1 << 63) - 1),
    ),
    "amounts of many bytes": all_of(
        setting(
            maximum_spent=0x0123456789ABCDEF, spent=0x0123456789ABCDEF, minimum_received=0x0FEDCBA987654321,
            received=0x0FEDCBA987654322, delivered=0x0A0B0C0D0E0F0102, left=0x0000010203040506,
        ),
        balance("input", 0x7766554433221100), balance("output", 0x1122334455667788), balance("middle", 0x0000010203040505),
    ),
    "empty output": balance("output", 0),
    "asks for nearly all there is": all_of(
        setting(minimum_received=MOST - 79, received=MOST - 79), balance("output", 0),
    ),
}  # fmt: skip

MIDDLE_TERMS: dict[str, Callable[[Terms], None]] = {
    "delivers one": setting(delivered=1),
    "delivers nothing": setting(delivered=0),
    "takes from the middle": setting(delivered=-1),
    "leaves some in the middle": setting(left=3),
    "leaves one too little in the middle": setting(left=-1),
    "leaves nothing in the middle": setting(left=-70),
    "leaves all in the middle": setting(left=500_000),
    "empty middle": balance("middle", 0),
    "empty middle, delivers nothing": all_of(balance("middle", 0), setting(delivered=0)),
}


def middles_between(form: Form) -> Iterator[Scenario]:
    """The middle is cut by the first call and made whole again by the second: between them nothing but its amount counts."""
    for length, balance_before in ((0, 70), (64, 70), (68, 70), (71, 70), (72, 70), (73, 70), (0, 0), (71, 0)):
        terms = Terms(form, f"middle of {length} bytes between the calls, {balance_before} before")
        terms.balances["middle"] = balance_before
        made = terms.scenario()
        delivered = after_first_call(made, "middle")
        after = after_changes(made.account("middle").data, made, "middle")
        cut = delivered[:length]
        made.changes[0].append(("middle", writes(delivered, cut), False))
        made.changes[1] = [each for each in made.changes[1] if each[0] != "middle"]
        made.changes[1].append(("middle", writes(cut, after), False))
        yield made


def after_first_call(made: Scenario, name: str) -> bytes:
    image = bytearray(made.account(name).data)
    for _, given, _ in (each for each in made.changes[0] if each[0] == name):
        for place, value in given:
            image[place - DATA : place - DATA + 8] = value.to_bytes(8, "little")
    return bytes(image)


def flags(form: Form) -> Iterator[Scenario]:
    for position, name in enumerate(form.accounts):
        made = Terms(form, f"{name}, other writability").scenario()
        if made.accounts[position].is_program:
            continue
        made.accounts[position].is_writable ^= True
        yield made
        made = Terms(form, f"{name}, other signature").scenario()
        made.accounts[position].is_signer ^= True
        yield made
    made = Terms(form, "all sign and are writable").scenario()
    for account in made.accounts:
        if not account.is_program:
            account.is_writable = account.is_signer = True
    yield made


def repetitions(form: Form) -> Iterator[Scenario]:
    """Each account in the place of each that comes later, as writable as either was."""
    for position, name in enumerate(form.accounts):
        for other in range(position):
            made = Terms(form, f"{name} is {form.accounts[other]}").scenario()
            if made.accounts[position] is made.accounts[other]:
                continue
            kept, gone = made.accounts[other], made.accounts[position]
            if kept.is_program and gone.is_program:
                continue
            if gone.is_program or name in form.token_accounts and not kept.data:
                made.accounts[other] = gone
            else:
                made.accounts[position] = kept
            stays = made.accounts[position]
            if not stays.is_program:
                stays.is_writable = kept.is_writable or gone.is_writable
                stays.is_signer = kept.is_signer or gone.is_signer
            yield made
    for name in form.accounts:
        if not is_unique(form, name):
            continue
        # What is noted of one repetition is not forgotten at the next.
        made = Terms(form, f"{name} is the {form.accounts[3]}, and a mint behind it is the authority").scenario()
        kept = made.accounts[3]
        kept.is_writable = True
        made.put(name, kept)
        made.put("input mint", made.account("authority"))
        yield made
    made = Terms(form, "what may repeat is the user").scenario()
    for position, name in enumerate(form.accounts):
        if name not in form.written and not made.accounts[position].is_program and not name.endswith("mint"):
            made.accounts[position] = made.accounts[0]
    yield made
    if len(form.hops) == 2:
        made = Terms(form, "both pools are one").scenario()
        made.put("second pool", made.account("first pool"))
        yield made


def addresses(form: Form) -> Iterator[Scenario]:
    """Good ones: accounts whose addresses differ in one word alone, tokens of different programs, the exchange as user."""
    for names in (form.token_accounts, form.pools):
        for at, name in enumerate(names):
            for other in names[:at]:
                for word in range(4):
                    what = f"{name} and {other} differ in word {word}"
                    terms = Terms(form, what)
                    terms.keys = {other: terms.key(other), name: flipped(terms.key(other), 8 * word + 1)}
                    yield terms.scenario()
    for at, name in enumerate(form.token_accounts):
        for is_token_2022 in (False, True):
            terms = Terms(form, f"{name} of the other program, others of {is_token_2022}", is_token_2022)
            terms.others = frozenset([name])
            yield terms.scenario()
    for word in (0, 1, 72, 165):
        terms = Terms(form, f"mints begin with {word}")
        terms.keys = {name: word.to_bytes(8, "little") + terms.key(name)[8:] for name in form.accounts if name.endswith(" mint")}
        yield terms.scenario()
    terms = Terms(form, "the exchange is the user")
    terms.keys = {"user": EXCHANGE}
    made = terms.scenario()
    made.put("user", made.account("exchange program"))
    made.account("user").is_signer = True
    yield made
    for name in form.accounts:
        if name.endswith("token program"):
            made = Terms(form, f"{name} is the exchange").scenario()
            made.put(name, made.account("exchange program"))
            yield made


def one_for_two(form: Form) -> Iterator[Scenario]:
    """One account in two places that must differ, where nothing else is wrong: what was paid arrives, and nothing is lost."""
    for at, name in enumerate(form.token_accounts):
        for other in form.token_accounts[:at]:
            terms = Terms(form, f"{name} stands for {other} too")
            terms.receiver = terms.key("user")
            terms.keys = {f"{other} mint": terms.key(f"{name} mint")}
            made = terms.scenario()
            made.put(other, made.account(name))
            yield made
    if len(form.pools) == 2:
        made = Terms(form, "one pool stands for both").scenario()
        made.put("second pool", made.account("first pool"))
        paid = [(DATA + 64, 1 << 30)]
        made.changes = [[("middle", paid, False)], [("output", paid, False)]]
        yield made


def lists_and_data(form: Form) -> Iterator[Scenario]:
    for word in range(4):
        made = Terms(form, f"exchange of another word {word}").scenario()
        made.accounts.append(made.account("exchange program"))
        made.put("exchange program", Account(flipped(EXCHANGE, 8 * word + 1)))
        yield made
    made = Terms(form, "one account more").scenario()
    made.accounts.append(Account(address(made.name, "more")))
    yield made
    for count in (0, 1, 2, len(form.accounts) - 1):
        made = Terms(form, f"{count} accounts").scenario()
        del made.accounts[count:]
        made.changes = []
        yield made
    good = Terms(form, "good").instruction()
    for length in sorted({0, 7, 8, 16, 24, len(good) - 8, len(good) - 1, len(good) + 1, len(good) + 8}):
        made = Terms(form, f"{length} bytes of data").scenario()
        made.data = made.data[:length].ljust(length, b"\1")
        yield made
    for byte in range(8):
        made = Terms(form, f"other discriminator, byte {byte}").scenario()
        made.data = flipped(made.data, byte)
        yield made
    for word in range(4):
        made = Terms(form, f"at another address, word {word}").scenario()
        made.program = flipped(made.program, 8 * word + 1)
        yield made


def flipped(data: bytes, byte: int) -> bytes:
    return data[:byte] + bytes([data[byte] ^ 1]) + data[byte + 1 :]


def inputs(form: Form) -> Iterator[Scenario]:
    """An input that is no token account has nothing and can lose nothing: it is not judged."""
    for length in (0, 8, 64, 71, 72, 73, 80):
        for when in ("before", "after", "throughout"):
            made = Terms(form, f"input of {length} bytes {when}").scenario()
            account = made.account("input")
            cut = account.data[:length]
            if when != "after":
                account.data = cut
            change = {
                "before": writes(cut, made_full(account.data, made)), "after": writes(account.data, cut), "throughout": [],
            }[when]  # fmt: skip
            made.changes[0] = [each for each in made.changes[0] if each[0] != "input"]
            if change:
                made.changes[0].append(("input", change, False))
            yield made
    for length in (72, 73, 80):
        made = Terms(form, f"input of {length} bytes, of which some is taken").scenario()
        made.account("input").data = made.account("input").data[:length]
        yield made
    made = Terms(form, "input of another owner").scenario()
    made.account("input").data = flipped(made.account("input").data, 33)
    yield made


def made_full(data: bytes, scenario: Scenario) -> bytes:
    return data.ljust(165, b"\0")


def token_accounts(form: Form, name: str) -> Iterator[Scenario]:
    """An account that is not what it must be, before the call or after."""
    last = len(form.hops) - 1
    for is_token_2022 in (False, True):
        kind = " of Token-2022" if is_token_2022 else ""
        for what, change in shapes(is_token_2022).items():
            made = Terms(form, f"{name}{kind} {what} throughout", is_token_2022).scenario()
            account = made.account(name)
            account.data = change(account.data)
            made.changes = [[each for each in changes if fits(each, made, name, account)] for changes in made.changes]
            yield made
            yield only_before(form, name, f"{name}{kind} {what} before", change, is_token_2022)
            made = Terms(form, f"{name}{kind} {what} after", is_token_2022).scenario()
            account = made.account(name)
            before = after_changes(account.data, made, name)
            made.changes[last].append((name, writes(before, change(before)), False))
            yield made
    for word in range(4):
        for program, others in ((TOKEN, "SPL Token"), (TOKEN_2022, "Token-2022")):
            made = Terms(form, f"{name} of another program, {others} but for word {word}").scenario()
            account = made.account(name)
            account.owner = flipped(program, 8 * word + 1)
            made.put(f"{name} token program", Account(account.owner, LOADER, is_program=True))
            yield made
    for is_long in (False, True):
        yield taken_over(form, name, is_long)
    made = Terms(form, f"{name} of SPL Token is longer").scenario()
    made.account(name).data += b"\2\7\0\0\0"
    yield made
    made = Terms(form, f"{name} of Token-2022 has whole words of data", is_token_2022=True).scenario()
    account = made.account(name)
    account.data = account.data.ljust(176, b"\0")
    yield made


def only_before(
    form: Form, name: str, what: str, change: Callable[[bytes], bytes], is_token_2022: bool
) -> Scenario:
    """The exchange makes the account what it must be, and pays: nothing is wrong in the end."""
    made = Terms(form, what, is_token_2022).scenario()
    account = made.account(name)
    whole, before = account.data, change(account.data)
    first = next(at for at, changes in enumerate(made.changes) if any(each[0] == name for each in changes))
    paid = [each for each in made.changes[first] if each[0] == name]
    made.changes[first] = [each for each in made.changes[first] if each[0] != name]
    made.changes[first] += [(name, writes(before, whole), False), *paid]
    account.data = before
    return made


def taken_over(form: Form, name: str, is_long: bool) -> Scenario:
    """The account is emptied, given to the exchange, and filled again by it: all is well but its owner."""
    kind = "Token-2022" if is_long else "SPL Token"
    made = Terms(form, f"{name} of {kind} is the exchange's after", is_long).scenario()
    last = len(form.hops) - 1
    full = after_changes(made.account(name).data, made, name)
    made.changes[last].append((name, writes(full, bytes(len(full))) + owner_writes(EXCHANGE), False))
    made.changes[last].append((name, writes(bytes(len(full)), full), True))
    return made


def fits(change: Change, made: Scenario, name: str, account: Account) -> bool:
    return change[0] != name or all(place + 8 <= DATA + len(account.data) for place, _ in change[1])


def after_changes(data: bytes, made: Scenario, name: str) -> bytes:
    image = bytearray(data)
    for changes in made.changes:
        for each, given, _ in changes:
            if each == name:
                for place, value in given:
                    image[place - DATA : place - DATA + 8] = value.to_bytes(8, "little")
    return bytes(image)


def shapes(is_token_2022: bool) -> dict[str, Callable[[bytes], bytes]]:
    made: dict[str, Callable[[bytes], bytes]] = {}
    for word in range(4):
        made[f"of another mint in word {word}"] = lambda data, at=8 * word + 1: flipped(data, at)
        made[f"of another owner in word {word}"] = lambda data, at=32 + 8 * word + 1: flipped(data, at)
    lengths = (0, 72, 80, 82, 164, 165, 166, 171, 355)
    for length in lengths:
        made[f"of {length} bytes"] = lambda data, length=length: data[:length].ljust(length, b"\0")
    if is_token_2022:
        for kind in (0, 1, 3, 130):
            made[f"of kind {kind}"] = lambda data, kind=kind: data[:165] + bytes([kind]) + data[166:]
        made["of kind 2 and other bytes behind"] = lambda data: data[:166] + b"\xff" * (len(data) - 166)
    return made
