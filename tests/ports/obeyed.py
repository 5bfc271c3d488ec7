"""The requests that a cluster must obey though they end the test: an administrator has the right.

Only such requests are left out of the frames that many tests send to one cluster. A cluster of its
own gets them (`test_fuzz.py`). A frame that cannot be decoded, or that names a broker or topic that
the test does not need, is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.varint import DecodeError
from tests.ports.requests import READ

REGISTERED = range(1, 10)
"""The ids of all brokers of the clusters that are fuzzed."""
INTERNAL = b"__"
CHANGING = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
    }
)
"""A request of one of these may change an internal topic."""


def _unregisters(request: Any, frame: bytes) -> bool:
    return request.broker_id in REGISTERED


OBEYED: dict[int, Callable[[Any, bytes], bool]] = {
    ApiKey.UNREGISTER_BROKER: _unregisters,
    ApiKey.DELETE_TOPICS: lambda request, frame: READ.encode() in frame,
}


def request_of(frame: bytes) -> Any:
    """Return the request that a node decodes, or None if it cannot."""
    try:
        key, version, _ = headers.read_fixed(frame)
        api = APIS.get(key)
        if api is None or not api.min_version <= version <= api.max_version:
            return None
        _, position = headers.read_client_id(frame, api.request_header_version(version))
        return decode(api.request, version, frame, position)
    except DecodeError:
        return None


def is_obeyed(frame: bytes) -> bool:
    """Return True if a cluster must do what the request says though it ends the test."""
    key = int.from_bytes(frame[:2], "big")
    if key in CHANGING and INTERNAL in frame:
        return True
    ends = OBEYED.get(key)
    if ends is None:
        return False
    request = request_of(frame)
    return request is not None and ends(request, frame)
