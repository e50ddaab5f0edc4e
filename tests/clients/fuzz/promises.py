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
_TRANSFER, _CREATE_WITH_SEED = 2, 3
_UNIT_LIMIT, _UNIT_PRICE, _LOADED_BYTES = 2, 3, 4
_CREATE, _CREATE_IDEMPOTENT = 0, 1
_CLOSE_ACCOUNT, _SYNC_NATIVE, _INITIALIZE_ACCOUNT = 9, 17, 18

# Lamports that every transaction costs for its one signature.
_BASE_FEE = 5_000

# Micro-lamports in a lamport.
_MICRO = 1_000_000


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


def check_instruction(request: dict, answer: dict) -> None:
    """The bare instruction is the guard's, for the amounts that were asked for, signed by the user alone."""
    instruction = answer["instruction"]
    assert Pubkey.from_string(instruction["programId"]) == GUARD, instruction
    assert json.loads(instruction["accounts"]) == answer["keys"], answer
    _check_guarded(bytes(instruction["data"]), request, answer)
    signers = {key["pubkey"] for key in answer["keys"] if key["isSigner"]}
    assert signers == {request["userPublicKey"]}, signers


def check_transaction(request: dict, answer: dict) -> None:
    """The user alone signs and pays: the amount of the quote, at most the priority fee named, and the rent stated."""
    message = VersionedTransaction.from_bytes(base64.b64decode(answer["transaction"], validate=True)).message
    keys, costs = message.account_keys, answer["costs"]
    assert str(keys[0]) == request["userPublicKey"], keys
    assert message.header.num_required_signatures == 1, message
    rent = {one["account"]: one for one in costs["rent"]}
    budget, wrapped, swaps, created, closed = {}, 0, 0, [], []
    for instruction in message.instructions:
        program, data = keys[instruction.program_id_index], bytes(instruction.data)
        accounts = [str(keys[index]) for index in instruction.accounts]
        if program == GUARD:
            swaps += 1
            _check_guarded(data, request, answer)
        elif program == _COMPUTE_BUDGET:
            budget[data[0]] = _integer(data[1:])
        elif program == _SYSTEM and data[0] == _TRANSFER:
            wrapped += _integer(data[4:])
        elif program in (_SYSTEM, _ASSOCIATED_TOKEN):
            created.append(accounts[1])
            assert accounts[1] in rent, f"{accounts[1]}: {costs}"
            _check_creation(program, data, rent[accounts[1]])
        else:
            assert program in _TOKEN_PROGRAMS, f"calls {program}"
            assert data[0] in (_CLOSE_ACCOUNT, _SYNC_NATIVE, _INITIALIZE_ACCOUNT), data
            closed += accounts[:1] if data[0] == _CLOSE_ACCOUNT else []
    assert swaps == 1, f"{swaps} swaps"
    assert wrapped == costs["wrappedLamports"] <= int(request["quote"]["amountIn"]), f"wraps {wrapped}: {costs}"
    assert sorted(created) == sorted(rent), f"{created}: {costs}"
    assert sorted(closed) == sorted(account for account in rent if rent[account]["comesBack"]), f"{closed}: {costs}"
    _check_costs(budget, request, answer)
    _check_manifest(message, answer["instructions"])


def _check_creation(program: Pubkey, data: bytes, stated: dict) -> None:
    """The account is made as it is stated, and one that is closed at the end is none that could exist already."""
    if program == _ASSOCIATED_TOKEN:
        assert data[0] == (_CREATE if stated["comesBack"] else _CREATE_IDEMPOTENT), data
        return
    assert _integer(data[:4]) == _CREATE_WITH_SEED, f"neither a transfer nor a creation: {data!r}"
    # The lamports stand behind the kind, the base address, and the seed with its length.
    behind_seed = 4 + 32 + 8 + _integer(data[36:44])
    assert _integer(data[behind_seed : behind_seed + 8]) == stated["lamports"], stated


def _check_costs(budget: dict[int, int], request: dict, answer: dict) -> None:
    """The budget is what the answer says, its fee is below the caller's ceiling, and all of it is stated."""
    costs, limit, price = answer["costs"], budget.pop(_UNIT_LIMIT), budget.pop(_UNIT_PRICE, 0)
    loaded = budget.pop(_LOADED_BYTES, None)
    assert not budget, f"sets more of the budget: {budget}"
    assert loaded == answer["loadedAccountsDataSizeLimit"], answer
    assert (limit, price) == (answer["computeUnitLimit"], answer["computeUnitPriceMicroLamports"]), answer
    priority_fee = -(-limit * price // _MICRO)
    ceiling = int(request.get("priorityFeeLamports") or 0)
    assert priority_fee == costs["priorityFeeLamports"] <= ceiling, f"{priority_fee} of {ceiling}: {costs}"
    rent = sum(one["lamports"] for one in costs["rent"])
    assert costs["requiredLamports"] >= _BASE_FEE + priority_fee + rent + costs["wrappedLamports"], costs


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
    asked, answered = request["quote"], answer["quote"]
    amount_in, minimum_out, expiry_slot = (_integer(data[at : at + 8]) for at in (8, 16, 24))
    assert amount_in == int(asked["amountIn"]) == answered["amountIn"], (amount_in, asked, answered)
    assert 0 < minimum_out == answered["minimumOut"] <= answered["outAmount"], (minimum_out, answered)
    # A caller who asks for a refresh leaves the minimum to the service; everybody else's stands.
    if asked.get("minimumOut") is not None and request.get("refresh") is not True:
        assert minimum_out == int(asked["minimumOut"]), (minimum_out, asked)
    assert expiry_slot == (answer["expirySlot"] or 0), (expiry_slot, answer)
