"""The command `quorate server FILE` without the checks of input that REMOVED lists.

Only the benchmarks `cost_of_checks` and `checks_alone` use it. A message that the checks would
refuse can stop such a node.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from quorate.cli.main import main
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import MetadataRecord


class Removed(NamedTuple):
    """One check: the object that holds it, the name of its function there, and the function that
    takes its place."""

    holder: str
    name: str
    replacement: Callable[..., Any]


def nothing(*_: Any) -> None:
    """Do nothing, instead of a function that raises an exception for bad input."""


def first(value: Any, *_: Any) -> Any:
    """Return the first argument, instead of a function that returns it changed or guarded."""
    return value


def second(_: Any, value: Any) -> Any:
    """Return the argument of a method."""
    return value


def always(*_: Any) -> bool:
    """Return True, instead of a function that judges a claim."""
    return True


def encoded(records: Sequence[MetadataRecord]) -> list[bytes]:
    """Return the encoded records without decoding them again."""
    return [encode_record(record) for record in records]


def header_of_client_batch(data: Any, *_: Any, **__: Any) -> Any:
    """Return the header of a client's batch, with a check of the checksum only."""
    from quorate.quorum.log.batches.batch import checksum_is_valid, read_header

    header = read_header(data)
    assert checksum_is_valid(data, 0, header)
    return header


RPC = "quorate.quorum.rpc"
RAFT = "quorate.quorum.raft"
NODE = "quorate.quorum.node"
READER = "quorate.quorum.protocol.reader_compiler:ReaderEmitter"
REMOVED = (
    # messages between nodes: types and bounds of all fields, the size of the queue to a peer, the
    # sender, the exceptions of a handler, the memory of links, the epochs that a node claims
    Removed(f"{RPC}.row_codec", "_violated", lambda *_: "False"),
    Removed(f"{RPC}.channel:Channel", "_refusal", lambda _: ""),
    Removed(f"{RPC}.frame_link:FrameLink", "_report", nothing),
    Removed(f"{NODE}.peers.node_requests", "check_speaker", nothing),
    Removed(f"{NODE}.node_core", "affordable", first),
    Removed(f"{NODE}.peers.node_requests:NodeRequests", "guarded", second),
    Removed(f"{RAFT}.transitions", "is_credible", always),
    # fetched metadata records are decoded before the append
    Removed(f"{RAFT}.follower", "check_records", lambda *_: (None, ())),
    # requests of clients: bounds of fields and of the number of elements
    Removed(READER, "limit", nothing),
    Removed(READER, "count", nothing),
    # decisions of the controller: sizes of configs, and records that decode to themselves
    Removed("quorate.quorum.controller.configs.alter_configs", "check_keys", nothing),
    Removed("quorate.quorum.controller.configs.alter_configs", "check_sizes", nothing),
    Removed(f"{NODE}.controller.controller_decision", "read_back", encoded),
    # the budgets of memory and of requests in flight of a client's connection
    Removed(f"{RPC}.kafka.connection:Connection", "report_memory", nothing),
    Removed(f"{RPC}.kafka.connection:Connection", "update_reading", nothing),
    # batches of producers: fields of the header, timestamps, the frame and the payload
    Removed("quorate.broker.partition.partition", "validate_client_batch", header_of_client_batch),
)
"""The checks that a node can run without, if all of its input is good. The incremental handling of
requests is a part of the structure and stays."""


def holder_of(path: str) -> Any:
    """Return the module, or the class after a colon in `path`."""
    module, _, name = path.partition(":")
    holder = importlib.import_module(module)
    return getattr(holder, name) if name else holder


def remove_checks() -> None:
    """Replace all functions of REMOVED. Raise AttributeError if one does not exist.

    The readers of messages are compiled when `row_codec`'s user is imported, so the order counts.
    """
    for removed in REMOVED:
        holder = holder_of(removed.holder)
        getattr(holder, removed.name)
        setattr(holder, removed.name, removed.replacement)


if __name__ == "__main__":
    remove_checks()
    main(["server", sys.argv[1]])
