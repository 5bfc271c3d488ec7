"""Handles DescribeUserScramCredentials (API key 50): the mechanisms and iterations of users.

The response never contains a salt or a key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.quorum.clipped import clipped
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN = "Attempt to describe a user credential that does not exist: "


@dataclass(frozen=True, slots=True)
class DescribeScramHandler:
    """Handles DescribeUserScramCredentials on the event loop of a node."""

    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> IncrementalWork[None]:
        """Respond with the credentials of the named users, or of all users if none is named.

        A user without credentials gets RESOURCE_NOT_FOUND, and a user that is named twice
        DUPLICATE_RESOURCE."""
        credentials = self.image().scram_credentials
        pace = Pace()
        infos: dict[str, list[CredentialInfo]] = {}
        for name, mechanism in sorted(credentials):
            if pace.is_time():
                yield
            info = CredentialInfo(
                mechanism=mechanism, iterations=credentials[name, mechanism].iterations
            )
            infos.setdefault(name, []).append(info)
        times = Counter(each.name for each in request.users or ()) or Counter(infos.keys())
        results = []
        for name, count in times.items():
            if pace.is_time():
                yield
            results.append(result_of(name, count, infos.get(name, ())))
        context.count_elements(2 * len(results))
        yield
        response = DescribeUserScramCredentialsResponse(results=tuple(results))
        yield from context.respond_steps(response)


def result_of(
    name: str, count: int, infos: Sequence[CredentialInfo]
) -> DescribeUserScramCredentialsResult:
    """Return the result of a user that the request names `count` times."""
    if count > 1 or not infos:
        twice = count > 1
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE if twice else ErrorCode.RESOURCE_NOT_FOUND,
            error_message=(TWICE if twice else UNKNOWN) + clipped(name),
        )
    return DescribeUserScramCredentialsResult(user=name, credential_infos=tuple(infos))
