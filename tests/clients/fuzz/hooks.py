"""Hooks: checks of our own that schemathesis makes on every answer, beside its own."""

import pathlib
import sys

import schemathesis

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import promises


@schemathesis.check
def refusal_is_a_problem(ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case) -> None:
    # Whether an answer may be a 5xx is `not_a_server_error`'s to say.
    if 400 <= response.status_code < 500:
        content_type = response.headers.get("content-type", [None])[0]
        promises.check_refusal(response.status_code, content_type, response.content)


@schemathesis.check
def swap_spends_what_was_asked(ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case) -> None:
    if response.status_code != 200:
        return
    if case.path == "/v1/swap/transaction":
        promises.check_transaction(case.body, response.json())
    elif case.path == "/v1/swap/instruction":
        promises.check_instruction(case.body, response.json())
