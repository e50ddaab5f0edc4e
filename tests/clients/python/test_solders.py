"""Swap with `solders`: by the transaction that the API builds, in every version, and by its instruction."""

import base64
import json
import unittest

from solders.compute_budget import set_compute_unit_limit
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message, MessageV0, to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import Legacy, VersionedTransaction

import localnet

# What each swap pays for priority at most, lamports.
PRIORITY_FEE = 10_000


def swap_transaction(quote: dict, **more: object) -> dict:
    """The API's answer for a quote; `more` are fields of the body beside those of every swap here."""
    body = {"quote": quote, "userPublicKey": localnet.USER, "priorityFeeLamports": PRIORITY_FEE}
    return localnet.post("/v1/swap/transaction", {**body, **more})


def sign(transaction: VersionedTransaction, signers: tuple[Keypair, ...] = (localnet.WALLET,)) -> bytes:
    """The transaction with signatures in place of the empty ones, its message untouched."""
    message = transaction.message
    message_bytes = to_bytes_versioned(message)
    signed = VersionedTransaction.populate(message, [signer.sign_message(message_bytes) for signer in signers])
    if not all(signed.verify_with_results()):
        raise AssertionError("the signature does not verify")
    return bytes(signed)


def kept_rent(answer: dict) -> int:
    """Lamports of new accounts that stay with them."""
    return sum(rent["lamports"] for rent in answer["costs"]["rent"] if not rent["comesBack"])


def to_instruction(wire: dict, keys: list[dict]) -> Instruction:
    """The instruction from the API's JSON: addresses are strings there, and the data is a list of integers."""
    accounts = [
        AccountMeta(Pubkey.from_string(key["pubkey"]), is_signer=key["isSigner"], is_writable=key["isWritable"])
        for key in keys
    ]
    return Instruction(Pubkey.from_string(wire["programId"]), bytes(wire["data"]), accounts)


class Swap(unittest.TestCase):
    def check(
        self, answer: dict, version: object, signers: tuple[Keypair, ...] = (localnet.WALLET,)
    ) -> VersionedTransaction:
        """What a wallet checks before it signs, from the bytes and not from what stands beside them."""
        transaction_bytes = base64.b64decode(answer["transaction"], validate=True)
        self.assertEqual(len(transaction_bytes), answer["size"])
        transaction = VersionedTransaction.from_bytes(transaction_bytes)
        message = transaction.message
        self.assertEqual(transaction.version(), version)
        self.assertEqual(message.header.num_required_signatures, len(signers))
        self.assertEqual(message.account_keys[: len(signers)], [signer.pubkey() for signer in signers])
        self.assertEqual(str(message.recent_blockhash), answer["blockhash"])
        self.assertEqual(transaction.signatures, [Signature.default()] * len(signers))
        return transaction

    def check_received(self, quote: dict, gained: int) -> None:
        """The wallet gained what was quoted, and thereby what the guard enforced."""
        self.assertEqual(gained, quote["outAmount"])
        self.assertGreaterEqual(gained, quote["minimumOut"])
        self.assertGreater(quote["minimumOut"], 0)

    def test_a_version_0_transaction_pays_sol_for_a_token(self) -> None:
        quote = localnet.quote(localnet.SOL, localnet.USDL, 900_000_000)
        answer = swap_transaction(quote)
        self.assertEqual(answer["quote"], quote)
        transaction = self.check(answer, 0)
        before, lamports_before = localnet.balance_of(localnet.USDL), localnet.lamports()
        _, fee = localnet.send_and_confirm(sign(transaction), answer["lastValidBlockHeight"])
        self.check_received(quote, localnet.balance_of(localnet.USDL) - before)
        self.assertLessEqual(fee, localnet.BASE_FEE + PRIORITY_FEE)
        self.assertEqual(lamports_before - localnet.lamports(), quote["amountIn"] + fee)

    def test_a_legacy_transaction_pays_a_token_for_sol(self) -> None:
        quote = localnet.quote(localnet.USDL, localnet.SOL, 120_000_000)
        answer = swap_transaction(quote, asLegacyTransaction=True)
        transaction = self.check(answer, Legacy.Legacy)
        before = localnet.lamports()
        _, fee = localnet.send_and_confirm(sign(transaction), answer["lastValidBlockHeight"])
        self.check_received(quote, localnet.lamports() - before + fee)

    def test_a_sponsor_pays_for_a_user_without_sol_and_another_wallet_receives(self) -> None:
        for version in (0, 1):
            with self.subTest(version=version):
                user, receiver = Keypair(), Keypair()
                bought = localnet.quote(localnet.SOL, localnet.USDL, 250_000_000)
                gift = swap_transaction(bought, receiver=str(user.pubkey()), transactionVersion=version)
                before, own = localnet.lamports(), localnet.balance_of(localnet.USDL)
                signed = sign(self.check(gift, version))
                _, fee = localnet.send_and_confirm(signed, gift["lastValidBlockHeight"])
                self.assertEqual(before - localnet.lamports(), bought["amountIn"] + fee + kept_rent(gift))
                self.assertEqual(localnet.balance_of(localnet.USDL), own)
                self.check_received(bought, localnet.balance_of(localnet.USDL, str(user.pubkey())))

                sold = localnet.quote(localnet.USDL, localnet.SOL, bought["outAmount"])
                answer = swap_transaction(
                    sold,
                    userPublicKey=str(user.pubkey()),
                    feePayer=localnet.USER,
                    receiver=str(receiver.pubkey()),
                    transactionVersion=version,
                )
                signers = (localnet.WALLET, user)
                before = localnet.lamports()
                signed = sign(self.check(answer, version, signers), signers)
                _, fee = localnet.send_and_confirm(signed, answer["lastValidBlockHeight"])
                self.assertLessEqual(fee, 2 * localnet.BASE_FEE + PRIORITY_FEE)
                self.assertEqual(before - localnet.lamports(), fee + kept_rent(answer))
                self.check_received(sold, localnet.lamports(str(receiver.pubkey())))
                self.assertEqual(localnet.lamports(str(user.pubkey())), 0)
                self.assertEqual(localnet.balance_of(localnet.USDL, str(user.pubkey())), 0)

    def test_a_token_2022_token_is_sold_net_of_its_transfer_fee(self) -> None:
        bought = localnet.quote(localnet.USDL, localnet.LEVY, 35_000_000)
        answer = swap_transaction(bought)
        before = localnet.balance_of(localnet.LEVY)
        localnet.send_and_confirm(sign(self.check(answer, 0)), answer["lastValidBlockHeight"])
        self.check_received(bought, localnet.balance_of(localnet.LEVY) - before)

        sold = localnet.quote(localnet.LEVY, localnet.USDL, bought["outAmount"])
        answer = swap_transaction(sold)
        before = localnet.balance_of(localnet.USDL)
        localnet.send_and_confirm(sign(self.check(answer, 0)), answer["lastValidBlockHeight"])
        self.check_received(sold, localnet.balance_of(localnet.USDL) - before)

    def test_the_bare_instruction_runs_in_a_transaction_of_the_callers_own(self) -> None:
        # The token account that receives must exist when the bare instruction runs: this swap makes it.
        earlier = swap_transaction(localnet.quote(localnet.ALFA, localnet.BETA, 1_000_000_000))
        localnet.send_and_confirm(sign(self.check(earlier, 0)), earlier["lastValidBlockHeight"])

        for legacy in (False, True):
            with self.subTest(legacy=legacy):
                # Without a pool, the endpoint makes the quote.
                wish = {"inputMint": localnet.ALFA, "outputMint": localnet.BETA, "amountIn": 20_000_000_000}
                answer = localnet.post("/v1/swap/instruction", {"quote": wish, "userPublicKey": localnet.USER})
                wire = answer["instruction"]
                instruction = to_instruction(wire, json.loads(wire["accounts"]))
                self.assertEqual(instruction.program_id, localnet.GUARD)
                self.assertEqual(instruction, to_instruction(wire, answer["keys"]))
                before = localnet.balance_of(localnet.BETA)
                self.send_instruction(instruction, answer["computeUnitLimit"], legacy)
                self.check_received(answer["quote"], localnet.balance_of(localnet.BETA) - before)

    def send_instruction(self, instruction: Instruction, compute_unit_limit: int, legacy: bool) -> None:
        instructions = [set_compute_unit_limit(compute_unit_limit), instruction]
        latest = localnet.latest_blockhash()
        payer, blockhash = localnet.WALLET.pubkey(), Hash.from_string(latest["blockhash"])
        if legacy:
            message = Message.new_with_blockhash(instructions, payer, blockhash)
        else:
            message = MessageV0.try_compile(payer, instructions, [], blockhash)
        transaction = VersionedTransaction(message, [localnet.WALLET])
        localnet.send_and_confirm(bytes(transaction), latest["lastValidBlockHeight"])


if __name__ == "__main__":
    unittest.main()
