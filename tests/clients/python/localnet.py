"""Localnet that the tests run against, and the two interfaces that an integrator calls: REST and JSON-RPC.

Environment variables name it. It takes the standard library and `solders`, and nothing of ours."""

import base64
import json
import os
import pathlib
import time
import urllib.error
import urllib.parse
import urllib.request

from solders.keypair import Keypair
from solders.pubkey import Pubkey

# Deadline of one call, seconds; everything is on this machine.
TIMEOUT = 60

# How long a transaction may take until it is confirmed, seconds. A blockhash lives for about a minute.
CONFIRM_DEADLINE = 90

# How long the indexer may take until a new webhook's filter is in force on the stream, seconds.
FILTER_DEADLINE = 60

# How long the market may take to read a slot that the node has confirmed, seconds.
MARKET_DEADLINE = 60

# Pause between two looks at something that is expected to change, seconds.
POLL = 0.05

# Lamports that every transaction costs for its one signature.
BASE_FEE = 5_000


def _setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set; `cargo xtask clients` starts a localnet and sets it")
    return value


_API_URL = _setting("SLUICE_API_URL")
_INDEXER_URL = _setting("SLUICE_INDEXER_URL")
_RPC_URL = _setting("SLUICE_RPC_URL")

# The file that Solana's tools keep a key pair in: a JSON array of 64 bytes.
WALLET = Keypair.from_json(pathlib.Path(_setting("SLUICE_WALLET")).read_text(encoding="utf-8"))
USER = str(WALLET.pubkey())

# Wrapped SOL, three plain tokens, and LEVY: a Token-2022 mint that withholds a fee from every transfer.
SOL = _setting("SLUICE_MINT_SOL")
USDL = _setting("SLUICE_MINT_USDL")
ALFA = _setting("SLUICE_MINT_ALFA")
BETA = _setting("SLUICE_MINT_BETA")
LEVY = _setting("SLUICE_MINT_LEVY")

GUARD = Pubkey.from_string(_setting("SLUICE_GUARD"))

# Proxies of the environment are for the world outside: everything here is on this machine.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(method: str, url: str, body: object = None) -> object:
    """One request with a JSON body or none; returns the JSON of the answer, or None when it is empty."""
    request = urllib.request.Request(url, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with _HTTP.open(request, timeout=TIMEOUT) as response:
            text = response.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise RuntimeError(f"{method} {url} was refused: {refusal.code} {refusal.read().decode()}") from None
    return json.loads(text) if text else None


def post(path: str, body: object) -> dict:
    return call("POST", _API_URL + path, body)


def quote(input_mint: str, output_mint: str, amount: int) -> dict:
    """The quote for `amount` smallest units."""
    query = {"inputMint": input_mint, "outputMint": output_mint, "amount": amount, "slippageBps": 50}
    return call("GET", f"{_API_URL}/v1/quote?{urllib.parse.urlencode(query)}")["quote"]


def create_webhook(webhook: dict) -> dict:
    """Creates a webhook and waits until its filter is in force: what happens before is not promised to it."""
    before = _filter()["wantedRevision"]
    created = post("/api/webhooks", webhook)
    deadline = time.monotonic() + FILTER_DEADLINE
    while True:
        revisions = _filter()
        wanted = revisions["wantedRevision"]
        if wanted > before and revisions["inForceRevision"] == wanted:
            return created
        if time.monotonic() > deadline:
            raise TimeoutError("the new webhook's filter did not come into force in time")
        time.sleep(POLL)


def delete_webhook(webhook_id: str) -> None:
    call("DELETE", f"{_API_URL}/api/webhooks/{webhook_id}")


def _filter() -> dict:
    return call("GET", f"{_INDEXER_URL}/health/ready")["filter"]


def rpc(method: str, *params: object) -> object:
    answer = call("POST", _RPC_URL, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    if "error" in answer:
        raise RuntimeError(f"{method} failed: {json.dumps(answer['error'])}")
    return answer["result"]


def balance_of(mint: str, owner: str = USER) -> int:
    """Smallest units of a mint in all token accounts of a wallet, whichever token program owns the mint."""
    options = {"commitment": "confirmed", "encoding": "jsonParsed"}
    accounts = rpc("getTokenAccountsByOwner", owner, {"mint": mint}, options)["value"]
    amounts = (account["account"]["data"]["parsed"]["info"]["tokenAmount"]["amount"] for account in accounts)
    return sum(int(amount) for amount in amounts)


def lamports(owner: str = USER) -> int:
    return rpc("getBalance", owner, {"commitment": "confirmed"})["value"]


def latest_blockhash() -> dict:
    """`blockhash` and `lastValidBlockHeight`, as the API answers them too."""
    return rpc("getLatestBlockhash", {"commitment": "processed"})["value"]


def send_and_confirm(transaction: bytes, last_valid_block_height: int) -> tuple[str, int]:
    """Sends what is signed, waits until it is confirmed and quotes know of it; returns its signature and fee, lamports."""
    # Quotes are made at `processed`; preflight at an older commitment would look at an older pool.
    options = {"encoding": "base64", "preflightCommitment": "processed"}
    signature = rpc("sendTransaction", base64.b64encode(transaction).decode(), options)
    deadline = time.monotonic() + CONFIRM_DEADLINE
    while not _is_confirmed(signature):
        height = rpc("getBlockHeight", {"commitment": "confirmed"})
        if height > last_valid_block_height:
            raise TimeoutError(f"block height {height} is past {last_valid_block_height}: {signature} has expired")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{signature} was not confirmed within {CONFIRM_DEADLINE} s")
        time.sleep(POLL)
    options = {"commitment": "confirmed", "encoding": "json", "maxSupportedTransactionVersion": 1}
    landed = rpc("getTransaction", signature, options)
    _until_quoted_from(landed["slot"])
    return signature, landed["meta"]["fee"]


def _until_quoted_from(slot: int) -> None:
    """The node confirms a slot by itself, and a quote of the moment after may be of the slot before."""
    deadline = time.monotonic() + MARKET_DEADLINE
    while call("GET", f"{_API_URL}/health/ready")["slot"] < slot:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the market did not read slot {slot} within {MARKET_DEADLINE} s")
        time.sleep(POLL)


def _is_confirmed(signature: str) -> bool:
    status = rpc("getSignatureStatuses", [signature])["value"][0]
    if status is None:
        return False
    if status["err"] is not None:
        raise RuntimeError(f"{signature} failed on the chain: {status['err']}")
    return status["confirmationStatus"] in ("confirmed", "finalized")
