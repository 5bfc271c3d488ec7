"""Handles DescribeUserScramCredentials (API key 50).

No node stores SCRAM credentials, because there is no SASL. A request for all users gets none, and a
named user gets Kafka's error for a user without credentials. kafka-configs asks for them whenever
it describes a user's quotas.
"""

from __future__ import annotations

from collections import Counter

from quorate.quorum.clipped import clipped
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext


def describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> IncrementalWork[None]:
    """Respond with RESOURCE_NOT_FOUND for each named user, or with DUPLICATE_RESOURCE for one that
    is named twice."""
    times = Counter(each.name for each in request.users or ())
    pace, results = Pace(), []
    for name, count in times.items():
        if pace.is_time():
            yield
        results.append(result_of(name, count))
    response = DescribeUserScramCredentialsResponse(results=tuple(results))
    yield from context.respond_steps(response)


def result_of(name: str, count: int) -> DescribeUserScramCredentialsResult:
    """Return the error of a user that the request names `count` times."""
    if count > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        text = "Cannot describe SCRAM credentials for the same user twice in a single request: "
    else:
        error = ErrorCode.RESOURCE_NOT_FOUND
        text = "Attempt to describe a user credential that does not exist: "
    return DescribeUserScramCredentialsResult(
        user=name, error_code=error, error_message=text + clipped(name)
    )
