"""Produce and Fetch by hand, for the paths where every record passes.

The same bytes as the declared schemas give (the tests compare them), but flat: one tuple per
partition instead of a tree, and record batches are never copied: they are memoryviews of the
request on the way in, and parts of their own on the way out.
"""

from quorate.quorum.protocol.hot.fetch_request import (
    REPLICA_FETCH_VERSION,
    FetchPartition,
    FetchRequest,
    build_fetch_request,
    parse_fetch_request,
    parse_fetch_steps,
)
from quorate.quorum.protocol.hot.fetch_response import (
    FetchPartitionResult,
    FetchResponse,
    build_fetch_response,
    build_fetch_steps,
    parse_fetch_response,
)
from quorate.quorum.protocol.hot.primitives import NodeEndpoint
from quorate.quorum.protocol.hot.produce import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    RecordError,
    build_produce_response,
    build_produce_steps,
    parse_produce_request,
    parse_produce_steps,
)

__all__ = [
    "REPLICA_FETCH_VERSION",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchPartitionResult",
    "NodeEndpoint",
    "ProducePartition",
    "ProduceRequest",
    "ProducePartitionResult",
    "RecordError",
    "build_fetch_request",
    "build_fetch_response",
    "build_fetch_steps",
    "build_produce_response",
    "build_produce_steps",
    "parse_fetch_request",
    "parse_fetch_response",
    "parse_fetch_steps",
    "parse_produce_request",
    "parse_produce_steps",
]
