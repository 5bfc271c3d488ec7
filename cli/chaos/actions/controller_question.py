"""The question to one controller if it is the active one. It needs no majority to be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.cli.client.errors import Refused
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)

if TYPE_CHECKING:
    import ssl

TIMEOUT_S = 2.0
CLIENT_ID = "quorate-chaos"
ANSWERS = {ErrorCode.NONE: True, ErrorCode.NOT_CONTROLLER: False}


def is_active(host: str, port: int, tls: ssl.SSLContext | None = None) -> bool | None:
    """Return True if the controller at the address answers as the active one, and False if it
    answers that it is not.

    `tls` has the certificate that controllers demand, if they do. Return None if the controller
    does not answer within TIMEOUT_S, or with another error, such as that of an authorizer. The call
    blocks."""
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(QuorumPartition(partition_index=0),))
    try:
        connection = Connection(host, port, timeout_s=TIMEOUT_S, client_id=CLIENT_ID, tls=tls)
        try:
            request = DescribeQuorumRequest(topics=(topic,))
            answer = connection.call(request, DescribeQuorumResponse, TIMEOUT_S)
        finally:
            connection.close()
    except (ConnectionLost, Refused):
        return None
    return ANSWERS.get(ErrorCode.of(answer.error_code))
