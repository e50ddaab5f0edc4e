"""Deliveries of a webhook, checked by PyPI's `standardwebhooks`, the scheme's official library for Python."""

import base64
import dataclasses
import http.server
import json
import threading
import time
import unittest
from collections.abc import Callable

from solders.message import to_bytes_versioned
from solders.transaction import VersionedTransaction
from standardwebhooks import Webhook, WebhookVerificationError

import localnet

# How long after the swap's confirmation a delivery may arrive, seconds; it usually has arrived before.
DELIVERY_DEADLINE = 60

# The secret of a webhook that is not ours.
FOREIGN_SECRET = "whsec_" + base64.b64encode(b"the secret of another webhook").decode()


@dataclasses.dataclass(frozen=True)
class Delivery:
    """The raw body, on which alone a signature can be checked, and the headers."""

    body: bytes
    headers: dict[str, str]


class Receiver(http.server.ThreadingHTTPServer):
    """A receiver on a free port of this machine that accepts and keeps everything."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.deliveries: list[Delivery] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def wait_for(self, what: str, is_it: Callable[[dict], bool]) -> Delivery:
        deadline = time.monotonic() + DELIVERY_DEADLINE
        while True:
            arrived = list(self.deliveries)
            found = next((one for one in arrived if is_it(json.loads(one.body))), None)
            if found:
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} among {len(arrived)} deliveries")
            time.sleep(localnet.POLL)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.deliveries.append(Delivery(body, dict(self.headers)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing: what arrived is looked at by the test."""


class Signatures(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = Receiver()
        self.addCleanup(self.receiver.server_close)
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()
        self.addCleanup(self.receiver.shutdown)
        created = localnet.create_webhook({
            "url": self.receiver.url,
            "events": ["accountChange", "transaction", "programEvent"],
            "filters": {"accounts": [localnet.USER], "programs": [str(localnet.GUARD)]},
        })
        self.addCleanup(localnet.delete_webhook, created["webhook"]["id"])
        self.secret = created["secret"]

    def swap(self) -> tuple[str, int]:
        """Swaps once; returns the signature of the transaction and what was received."""
        quote = localnet.quote(localnet.SOL, localnet.USDL, 100_000_000)
        answer = localnet.post("/v1/swap/transaction", {"quote": quote, "userPublicKey": localnet.USER})
        message = VersionedTransaction.from_bytes(base64.b64decode(answer["transaction"])).message
        signature = localnet.WALLET.sign_message(to_bytes_versioned(message))
        signed = VersionedTransaction.populate(message, [signature])
        sent, _ = localnet.send_and_confirm(bytes(signed), answer["lastValidBlockHeight"])
        return sent, quote["outAmount"]

    def deliveries_of(self, signature: str) -> dict[str, Delivery]:
        def about_the_swap(kind: str) -> Callable[[dict], bool]:
            return lambda body: body["type"] == kind and body["data"].get("signature") == signature

        def change_of_the_wallet(body: dict) -> bool:
            return body["type"] == "accountChange" and body["data"]["pubkey"] == localnet.USER

        return {
            "transaction": self.receiver.wait_for("transaction", about_the_swap("transaction")),
            "programEvent": self.receiver.wait_for("programEvent", about_the_swap("programEvent")),
            "accountChange": self.receiver.wait_for("accountChange", change_of_the_wallet),
        }

    def test_every_kind_of_delivery_verifies_and_nothing_else_does(self) -> None:
        signature, received = self.swap()
        verifier = Webhook(self.secret)
        for kind, delivery in self.deliveries_of(signature).items():
            with self.subTest(kind=kind):
                headers = {name.lower(): value for name, value in delivery.headers.items()}
                verified = verifier.verify(delivery.body, headers)
                self.assertEqual(verified["type"], kind)
                if kind == "programEvent":
                    self.assertEqual(verified["data"]["fields"]["received"], received)

                tampered = delivery.body[:-2] + bytes([delivery.body[-2] ^ 1]) + delivery.body[-1:]
                later = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}
                renamed = {**headers, "webhook-id": headers["webhook-id"] + "x"}
                for refuser, body, with_headers in (
                    (verifier, tampered, headers),
                    (verifier, delivery.body, later),
                    (verifier, delivery.body, renamed),
                    (Webhook(FOREIGN_SECRET), delivery.body, headers),
                ):
                    with self.assertRaises(WebhookVerificationError):
                        refuser.verify(body, with_headers)


if __name__ == "__main__":
    unittest.main()
