"""Hand-written codecs of Produce and Fetch. They must be fast: every record passes through them.

The functions parse and build the same bytes as the declared schemas. Tests compare both. The result
is flat, with one tuple per partition instead of a tree. Record batches are never copied: they are
memoryviews of a request, and separate parts of a response.

Files in reading order: `primitives.py` has the wire types, `produce.py` both Produce messages, and
`fetch_request.py` and `fetch_response.py` the Fetch messages. Functions that end in `_steps` do the
same work in steps, for large requests.
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
