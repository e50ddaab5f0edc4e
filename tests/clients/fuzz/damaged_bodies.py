"""Damaged bodies: good requests for a swap, damaged in every way that Hypothesis thinks of.

The answer is a refusal that blames the request, or a transaction that spends no more than it was asked to. The damage
starts from a quote of the running service, so that it reaches the code behind the first check of shapes."""

import copy
import json
import os
import unittest

import hypothesis
import requests
from hypothesis import strategies as st
from solders.keypair import Keypair

import promises

API_URL = os.environ["SLUICE_API_URL"]
MINTS = [os.environ[f"SLUICE_MINT_{symbol}"] for symbol in ("SOL", "USDL", "ALFA", "BETA", "LEVY")]
with open(os.environ["SLUICE_WALLET"], encoding="utf-8") as wallet:
    USER = str(Keypair.from_json(wallet.read()).pubkey())

# Damaged requests for each kind of swap; each takes about a millisecond on both sides.
EXAMPLES = 500

# Deadline of one call, seconds.
TIMEOUT = 60

# Longest body that the endpoints read, bytes.
BODY_LIMIT = 16 * 1024

SESSION = requests.Session()
# Proxies of the environment are for the world outside.
SESSION.trust_env = False


def good_request(input_mint: str, output_mint: str, amount: int) -> dict:
    query = {"inputMint": input_mint, "outputMint": output_mint, "amount": amount}
    answer = SESSION.get(f"{API_URL}/v1/quote", params=query, timeout=TIMEOUT)
    answer.raise_for_status()
    return {
        "quote": answer.json()["quote"],
        "userPublicKey": USER,
        "wrapAndUnwrapSol": True,
        "priorityFeeLamports": 10_000,
        "asLegacyTransaction": False,
        "expirySlot": 0,
        "refresh": False,
        "checkBalance": False,
    }


# Values near the edges of what is right, and far beyond them.
INTEGERS = st.sampled_from([0, 1, -1, 2**31, 2**53, 2**63, 2**64 - 1, 2**64, 2**128]) | st.integers()
TEXTS = st.sampled_from([*MINTS, USER, str(promises.GUARD), "", "0", "-1", "1e3", "1" * 44]) | st.text(max_size=60)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


# Names of the endpoints' fields that a good request need not have, and names of none.
NAMES = st.sampled_from(["destinationTokenAccount", "slippageBps", "amount"]) | st.text(max_size=20)


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The path of every field of a request, nested ones included."""
    if not isinstance(value, dict):
        return []
    found = [(*path, name) for name in value]
    return found + [deeper for name in value for deeper in places(value[name], (*path, name))]


@st.composite
def damaged(draw: st.DrawFn, request: dict) -> dict:
    """The request with some of its fields dropped, replaced or joined by others."""
    request = copy.deepcopy(request)
    for _ in range(draw(st.integers(0, 3))):
        *above, name = draw(st.sampled_from(places(request) or [("quote",)]))
        parent = request
        for step in above:
            parent = parent[step]
        match draw(st.sampled_from(["drop", "replace", "add"])):
            case "drop":
                parent.pop(name, None)
            case "replace":
                parent[name] = draw(VALUES)
            case "add":
                parent[draw(NAMES)] = draw(VALUES)
    return request


@st.composite
def damaged_bytes(draw: st.DrawFn, request: dict) -> bytes:
    """The request's text with a piece of it cut out or put in."""
    text = json.dumps(request).encode()
    start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    # Mostly a small wound: what is left is almost right.
    end = min(end, start + draw(st.sampled_from([0, 1, 2, len(text)])))
    inserted = draw(st.binary(max_size=8) | st.sampled_from([b" " * BODY_LIMIT, b"[" * 4000, b'"', b"}", b"null"]))
    return text[:start] + inserted + text[end:]


class DamagedBodies(unittest.TestCase):
    def setUp(self) -> None:
        # Requests that were taken although, or because, the damage did not matter.
        self.accepted = 0

    def send(self, path: str, body: bytes, content_type: str | None = "application/json") -> requests.Response:
        headers = {"Content-Type": content_type} if content_type is not None else {}
        answer = SESSION.post(API_URL + path, data=body, headers=headers, timeout=TIMEOUT)
        if answer.status_code != 200:
            promises.check_refusal(answer.status_code, answer.headers.get("Content-Type"), answer.content)
        return answer

    def check(self, path: str, body: bytes) -> None:
        answer = self.send(path, body)
        if answer.status_code == 200:
            self.accepted += 1
            # What the service took for a request must be one to others as well.
            request = json.loads(body)
            check = promises.check_transaction if path.endswith("transaction") else promises.check_instruction
            check(request, answer.json())

    def fuzz(self, path: str, request: dict) -> None:
        settings = hypothesis.settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)

        @settings
        @hypothesis.given(damaged(request))
        def fields(request: dict) -> None:
            # Python writes NaN and Infinity, which are not JSON, as they are: damage like any other.
            self.check(path, json.dumps(request).encode())

        @settings
        @hypothesis.given(damaged_bytes(request))
        def text(body: bytes) -> None:
            self.check(path, body)

        for damage in (fields, text):
            self.accepted = 0
            damage()
            # Else a service that refuses everything would pass, and so would damage that nothing survives.
            self.assertGreater(self.accepted, EXAMPLES // 20)
            self.assertLess(self.accepted, EXAMPLES)

    def test_swap_transaction(self) -> None:
        self.fuzz("/v1/swap/transaction", good_request(MINTS[0], MINTS[1], 1_000_000_000))
        self.fuzz("/v1/swap/transaction", good_request(MINTS[1], MINTS[0], 1_000_000))
        self.fuzz("/v1/swap/transaction", good_request(MINTS[4], MINTS[1], 1_000_000))

    def test_swap_instruction(self) -> None:
        self.fuzz("/v1/swap/instruction", good_request(MINTS[2], MINTS[3], 1_000_000_000))

    def test_another_content_type_is_refused(self) -> None:
        body = json.dumps(good_request(MINTS[0], MINTS[1], 1_000_000)).encode()
        for path in ("/v1/swap/transaction", "/v1/swap/instruction"):
            for content_type in (None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
                with self.subTest(path=path, content_type=content_type):
                    self.assertEqual(self.send(path, body, content_type).status_code, 415)

    def test_a_long_body_is_refused(self) -> None:
        request = good_request(MINTS[0], MINTS[1], 1_000_000)
        body = json.dumps(request).encode() + b" " * BODY_LIMIT
        for path in ("/v1/swap/transaction", "/v1/swap/instruction"):
            self.assertEqual(self.send(path, body).status_code, 413)


if __name__ == "__main__":
    unittest.main()
