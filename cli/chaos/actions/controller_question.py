"""The questions to one controller, at its own listener. None needs a majority to be answered.

A controller that is not active answers NOT_CONTROLLER, and so does one that has resigned. An
isolated controller that still believes to be active keeps the client waiting, because it cannot
commit. Each call blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from quorate.cli.chaos.checks.observations import ANSWERED, CHANGE, NO_ANSWER, READ
from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.cli.client.errors import Refused
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from quorate.quorum.protocol.schemas.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from quorate.quorum.protocol.wire import Message

if TYPE_CHECKING:
    import ssl

R = TypeVar("R", bound=Message)
TIMEOUT_S = 2.0
CLIENT_ID = "quorate-chaos"
ANSWERS = {ErrorCode.NONE: True, ErrorCode.NOT_CONTROLLER: False}
RETENTION_MS = 604_799_999
"""The retention.ms that a change sets, which no other client of the run does."""


class Place(NamedTuple):
    """The listener of a controller. `tls` has the certificate that it demands, if it does."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    def answer(self, request: Message, response: type[R]) -> R | None:
        """Return the response, or None if the controller does not answer within TIMEOUT_S."""
        try:
            connection = Connection(
                self.host, self.port, timeout_s=TIMEOUT_S, client_id=CLIENT_ID, tls=self.tls
            )
            try:
                return connection.call(request, response, TIMEOUT_S)
            finally:
                connection.close()
        except (ConnectionLost, Refused):
            return None


def is_active(place: Place) -> bool | None:
    """Return True if the controller answers as the active one, and False if it answers that it is
    not.

    Return None if it does not answer, or with another error, such as that of an authorizer."""
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(QuorumPartition(partition_index=0),))
    answer = place.answer(DescribeQuorumRequest(topics=(topic,)), DescribeQuorumResponse)
    return None if answer is None else ANSWERS.get(ErrorCode.of(answer.error_code))


def answer_to(what: str, place: Place, topic: str) -> str:
    """Return the name of the error with which the controller answers a CHANGE or a READ.

    ANSWERED means that it has carried out the change, or has answered from its image. NO_ANSWER
    means that it did not answer within TIMEOUT_S."""
    code = ASK[what](place, topic)
    if code is None:
        return NO_ANSWER
    return ErrorCode.of(code).name if code else ANSWERED


def change(place: Place, topic: str) -> int | None:
    """Set retention.ms of the topic. Return the code of the error, or None without an answer."""
    changed = IncrementalAlterableConfig(
        name="retention.ms", config_operation=0, value=str(RETENTION_MS)
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(changed,)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    answer = place.answer(request, IncrementalAlterConfigsResponse)
    return None if answer is None else answer.responses[0].error_code


def read(place: Place, topic: str) -> int | None:
    """List the reassignments, which only the active controller answers, and only with the newest
    committed metadata. Return the code of the error, or None without an answer."""
    answer = place.answer(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
    return None if answer is None else answer.error_code


ASK = {CHANGE: change, READ: read}
