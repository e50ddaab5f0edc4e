"""Promises: what must hold for every answer of the API, whatever was asked.

A refusal is a problem document that a program can read, and a transaction spends no more than its request named. The
first is checked on the text, the second on the bytes that a wallet would sign, with `solders` and not with anything of
ours."""

import base64
import json
import os

from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

GUARD = Pubkey.from_string(os.environ["SLUICE_GUARD"])

_SYSTEM = Pubkey.from_string("11111111111111111111111111111111")
_COMPUTE_BUDGET = Pubkey.from_string("ComputeBudget111111111111111111111111111111")
_ASSOCIATED_TOKEN = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
_TOKEN_PROGRAMS = {
    Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"),
    Pubkey.from_string("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"),
}

# The instructions that a swap may contain, by the first bytes of their data.
_TRANSFER, _CREATE_WITH_SEED, _ADVANCE_NONCE = 2, 3, 4
_UNIT_LIMIT, _UNIT_PRICE, _LOADED_BYTES = 2, 3, 4
_CREATE, _CREATE_IDEMPOTENT = 0, 1
_CLOSE_ACCOUNT, _TRANSFER_CHECKED, _SYNC_NATIVE, _INITIALIZE_ACCOUNT, _UNWRAP_LAMPORTS = 9, 12, 17, 18, 45

# Lamports that every transaction costs for each of its signatures.
_BASE_FEE = 5_000

# Micro-lamports in a lamport.
_MICRO = 1_000_000

# Basis points in a whole.
_WHOLE = 10_000


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "little")


def check_refusal(status: int, content_type: str | None, body: bytes) -> None:
    """A refusal blames the request, and says how in the one shape of all refusals."""
    assert 400 <= status < 500, f"status {status}: {body!r}"
    assert content_type == "application/problem+json", f"{status} with {content_type}: {body!r}"
    problem = json.loads(body)
    assert problem["status"] == status, problem
    for field in ("code", "title", "detail"):
        assert isinstance(problem[field], str) and problem[field], f"{field} of {problem}"


class _Parties:
    """The wallets of a swap, as its request names them; who is not named is the user."""

    def __init__(self, request: dict) -> None:
        self.user: str = request["userPublicKey"]
        self.payer: str = request.get("feePayer") or self.user
        self.receiver: str = request.get("receiver") or self.user
        self.platform: str | None = request.get("feeWallet")
        self.signers = [self.payer] if self.payer == self.user else [self.payer, self.user]


class _Paid:
    """What the instructions of a transaction take from the user besides the swap."""

    def __init__(self) -> None:
        self.lamports: dict[str, int] = {}
        self.tokens = 0

    def checked_lamports(self, parties: _Parties, request: dict, answer: dict) -> int:
        """The platform gets its part, in one of both ways; all else that leaves as lamports is wrapped. Both together."""
        native = self.lamports.pop(parties.platform, 0) if parties.platform else 0
        assert native + self.tokens == _platform_fee(request, answer), f"{native} and {self.tokens}: {answer}"
        wrapped, most = sum(self.lamports.values()), answer["quote"]["amountIn"]
        assert wrapped == answer["costs"]["wrappedLamports"], f"wraps {wrapped}: {answer['costs']}"
        assert native + wrapped <= most, f"{native} and {wrapped} of {most}"
        if request.get("sourceTokenAccount"):
            assert native == wrapped == 0, "a named account pays as it is"
        return native + wrapped


def check_instruction(request: dict, answer: dict) -> None:
    """The bare instruction is the guard's, for the amounts that were asked for, signed by the user alone."""
    instruction = answer["instruction"]
    assert Pubkey.from_string(instruction["programId"]) == GUARD, instruction
    assert json.loads(instruction["accounts"]) == answer["keys"], answer
    _check_guarded(bytes(instruction["data"]), request, answer)
    signers = {key["pubkey"] for key in answer["keys"] if key["isSigner"]}
    assert signers == {request["userPublicKey"]}, signers


def check_transaction(request: dict, answer: dict) -> None:
    """User and fee payer alone sign. The user pays the amount of the quote, a platform's part of it included; the fee payer at
    most the priority fee named, and the rent stated."""
    message = VersionedTransaction.from_bytes(base64.b64decode(answer["transaction"], validate=True)).message
    keys, costs, parties = message.account_keys, answer["costs"], _Parties(request)
    signers = [str(key) for key in keys[: message.header.num_required_signatures]]
    assert signers == parties.signers and costs["feePayer"] == parties.payer, f"{signers}: {costs}"
    rent = {one["account"]: one for one in costs["rent"]}
    budget, paid, swaps, created, closed = {}, _Paid(), 0, [], []
    for number, instruction in enumerate(message.instructions):
        program, data = keys[instruction.program_id_index], bytes(instruction.data)
        accounts = [str(keys[index]) for index in instruction.accounts]
        if program == GUARD:
            swaps += 1
            _check_guarded(data, request, answer)
            assert accounts[5] == (request.get("sourceTokenAccount") or accounts[5]), accounts
        elif program == _COMPUTE_BUDGET:
            budget[data[0]] = _integer(data[1:])
        elif program == _SYSTEM and data[0] == _ADVANCE_NONCE:
            assert (number, accounts[0]) == (0, request.get("nonceAccount")), accounts
            assert accounts[2] in parties.signers, accounts
        elif program == _SYSTEM and data[0] == _TRANSFER:
            assert accounts[0] == parties.user, accounts
            paid.lamports[accounts[1]] = paid.lamports.get(accounts[1], 0) + _integer(data[4:])
        elif program in (_SYSTEM, _ASSOCIATED_TOKEN):
            created.append(accounts[1])
            assert accounts[0] == parties.payer and accounts[1] in rent, f"{accounts}: {costs}"
            _check_creation(program, data, rent[accounts[1]])
        else:
            assert program in _TOKEN_PROGRAMS, f"calls {program}"
            _check_token_instruction(data, accounts, parties, rent)
            paid.tokens += _integer(data[1:9]) if data[0] == _TRANSFER_CHECKED else 0
            closed += accounts[:1] if data[0] == _CLOSE_ACCOUNT else []
    assert swaps == 1, f"{swaps} swaps"
    lamports = paid.checked_lamports(parties, request, answer)
    assert sorted(created) == sorted(rent), f"{created}: {costs}"
    assert sorted(closed) == sorted(account for account in rent if rent[account]["rentTo"]), f"{closed}: {costs}"
    _check_budget(budget, isinstance(message, (Message, MessageV0)), request, answer)
    _check_required(lamports, parties, costs)
    _check_manifest(message, answer["instructions"])


def _check_token_instruction(data: bytes, accounts: list[str], parties: _Parties, rent: dict[str, dict]) -> None:
    """Tokens go to the platform alone, and what an account leaves to whom that is stated."""
    kind = data[0]
    if kind == _TRANSFER_CHECKED:
        _, mint, account, owner = accounts
        assert owner == parties.user and parties.platform, accounts
        derived = (_associated(parties.platform, mint, program) for program in _TOKEN_PROGRAMS)
        assert account in derived, f"{account} is not of {parties.platform}"
    elif kind == _CLOSE_ACCOUNT:
        account, to, owner = accounts
        assert (owner, to) == (parties.user, rent[account]["rentTo"]), f"{accounts}: {rent}"
        assert to in (parties.payer, parties.receiver, parties.user), accounts
    elif kind == _UNWRAP_LAMPORTS:
        assert accounts[1] in (parties.receiver, parties.user) and accounts[2] == parties.user, accounts
    else:
        assert kind in (_SYNC_NATIVE, _INITIALIZE_ACCOUNT), data


def _associated(wallet: str, mint: str, program: Pubkey) -> str:
    seeds = [bytes(Pubkey.from_string(wallet)), bytes(program), bytes(Pubkey.from_string(mint))]
    return str(Pubkey.find_program_address(seeds, _ASSOCIATED_TOKEN)[0])


def _platform_fee(request: dict, answer: dict) -> int:
    """What a platform gets: its part of all that the user pays, rounded down, as it is answered."""
    part = int(request.get("platformFeeBps") or 0)
    fee = answer["quote"]["amountIn"] * part // _WHOLE
    assert fee == (answer.get("platformFee") or 0), f"{fee}: {answer}"
    return fee


def _check_creation(program: Pubkey, data: bytes, stated: dict) -> None:
    """The account is made as it is stated, and one that is closed at the end is none that could exist already."""
    if program == _ASSOCIATED_TOKEN:
        assert data[0] == (_CREATE if stated["comesBack"] else _CREATE_IDEMPOTENT), data
        return
    assert _integer(data[:4]) == _CREATE_WITH_SEED, f"neither a transfer nor a creation: {data!r}"
    # The lamports stand behind the kind, the base address, and the seed with its length.
    behind_seed = 4 + 32 + 8 + _integer(data[36:44])
    assert _integer(data[behind_seed : behind_seed + 8]) == stated["lamports"], stated


def _check_budget(budget: dict[int, int], has_budget: bool, request: dict, answer: dict) -> None:
    """The budget is what the answer says, and its fee below the caller's ceiling. Version 1 has it in the message."""
    costs, ceiling = answer["costs"], int(request.get("priorityFeeLamports") or 0)
    priority_fee = costs["priorityFeeLamports"]
    if has_budget:
        limit, price = budget.pop(_UNIT_LIMIT), budget.pop(_UNIT_PRICE, 0)
        assert budget.pop(_LOADED_BYTES, None) == answer["loadedAccountsDataSizeLimit"], answer
        assert (limit, price) == (answer["computeUnitLimit"], answer["computeUnitPriceMicroLamports"]), answer
        assert priority_fee == -(-limit * price // _MICRO), f"{limit} at {price}: {costs}"
    assert not budget, f"sets more of the budget: {budget}"
    assert priority_fee <= ceiling, f"{priority_fee} of {ceiling}"


def _check_required(lamports: int, parties: _Parties, costs: dict) -> None:
    """What either wallet must hold is stated: all that is taken from it."""
    assert costs["baseFeeLamports"] == _BASE_FEE * len(parties.signers), costs
    rent = sum(one["lamports"] for one in costs["rent"])
    of_payer, of_user = costs["baseFeeLamports"] + costs["priorityFeeLamports"] + rent, lamports
    if parties.payer == parties.user:
        of_payer, of_user = of_payer + lamports, 0
    assert costs["requiredLamports"] >= of_payer and costs["requiredOfUserLamports"] >= of_user, costs


def _check_manifest(message: Message | MessageV0, manifest: list[dict]) -> None:
    """What a wallet shows its user is what the user signs."""
    keys, header = message.account_keys, message.header
    signers = header.num_required_signatures
    writable = {
        *range(signers - header.num_readonly_signed_accounts),
        *range(signers, len(keys) - header.num_readonly_unsigned_accounts),
    }
    for instruction, shown in zip(message.instructions, manifest, strict=True):
        assert str(keys[instruction.program_id_index]) == shown["program"], shown
        for index, account in zip(instruction.accounts, shown["accounts"], strict=True):
            assert str(keys[index]) == account["pubkey"], shown
            # The message has one verdict for all instructions that name an account.
            assert account["isSigner"] <= (index < signers), shown
            assert account["isWritable"] <= (index in writable), shown


def _check_guarded(data: bytes, request: dict, answer: dict) -> None:
    """The guard gets what the platform's part leaves of the amount, and the receiver where the output is not unwrapped."""
    asked, answered, parties = request["quote"], answer["quote"], _Parties(request)
    first, second, expiry_slot = (_integer(data[at : at + 8]) for at in (8, 16, 24))
    assert first == answered["amountIn"] - _platform_fee(request, answer), (first, answered)
    assert 0 < second == answered["minimumOut"] <= answered["outAmount"], (second, answered)
    assert expiry_slot == (answer["expirySlot"] or 0), (expiry_slot, answer)
    is_kept = parties.receiver != parties.user and answer["solOutput"] in (None, "leftWrapped")
    receiver = bytes(Pubkey.from_string(parties.receiver)) if is_kept else b""
    assert data[32:] == receiver, (data, parties.receiver)
    # A caller who asks for a refresh leaves the other amount to the service; everybody else's stands.
    is_free = request.get("refresh") is True
    if request.get("swapMode") == "ExactOut":
        assert second == int(asked["outAmount"]) == answered["outAmount"], (second, asked)
        if asked.get("amountIn") is not None and not is_free:
            assert answered["amountIn"] == int(asked["amountIn"]), (answered, asked)
    else:
        assert answered["amountIn"] == int(asked["amountIn"]), (answered, asked)
        if asked.get("minimumOut") is not None and not is_free:
            assert second == int(asked["minimumOut"]), (second, asked)
