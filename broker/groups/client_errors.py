"""Maps the error of an append to the error that a group's client receives."""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode

CLIENT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error that a client receives, by the error of an append, as in Kafka. Errors that are not
listed are passed on."""


def client_error(error: ErrorCode) -> ErrorCode:
    """Return the error that a client receives if the coordinator could not append because of
    `error`."""
    return CLIENT_ERRORS.get(error, error)
