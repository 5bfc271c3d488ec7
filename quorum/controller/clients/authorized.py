"""Decides a client's request under the permissions of the client.

The check and the rule read the same image in the same decision. No request of a client therefore
succeeds after the record that denies it, whichever controller is active.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorate.quorum.authorization.apis import FORWARDED_CHECKS
from quorate.quorum.authorization.check import Checked
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.controller.state.decision_steps import DecisionSteps, Outcome
from quorate.quorum.controller.state.result import Result
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES


def authorized(
    permits: Permits, request: Any, version: int, rule: Callable[[Any], Outcome]
) -> DecisionSteps:
    """Apply `rule` to the part of the request that the client may ask, and answer the rest."""
    checked = yield from FORWARDED_CHECKS[request.API_KEY](permits, request, version)
    refusal = refusal_of(request, checked)
    if refusal is not None:
        return Result(response=refusal)
    outcome = rule(checked.request)
    result = outcome if isinstance(outcome, Result) else (yield from outcome)
    if checked.amend is None:
        return result
    response = yield from amended(checked, result.response)
    return replace(result, response=response)


def amended(checked: Checked, response: Any) -> IncrementalWork[Any]:
    """Return the response of a rule with the answers about the rest of the request."""
    assert checked.amend is not None
    return (yield from checked.amend(response))


def refusal_of(request: Any, checked: Checked) -> object | None:
    """Return the response to a request that was refused as a whole, or None."""
    if checked.answer is not None:
        return checked.answer
    if checked.error is None:
        return None
    return ERROR_RESPONSES[request.API_KEY](request, checked.error, checked.error.message)
