"""Slices as a compressed text, so that one plan serves all queries over the same state of the logs.

The driver makes a plan once and passes it to the data source as an option."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from quorate.quorum.analytics.log.damage import Damage
from quorate.quorum.analytics.log.first_pass import Undone
from quorate.quorum.analytics.log.segments import Committed, Origin, Slice, SnapshotId


def encoded(slices: Sequence[Slice]) -> str:
    """Return the slices as a text of about 20 bytes for each slice."""
    origins = list(dict.fromkeys((piece.origin, piece.committed) for piece in slices))
    places = {each: at for at, each in enumerate(origins)}
    content = {
        "origins": [
            [origin.cluster_id, origin.node_id, committed.end_offset, committed.rest_is_known]
            for origin, committed in origins
        ],
        "slices": [_row(piece, places[piece.origin, piece.committed]) for piece in slices],
    }
    return base64.b64encode(zlib.compress(json.dumps(content).encode())).decode()


def decoded(text: str) -> list[Slice]:
    """Return the slices in a text of `encoded`."""
    content = json.loads(zlib.decompress(base64.b64decode(text)))
    origins = [
        (Origin(cluster_id, node_id), Committed(end_offset, known))
        for cluster_id, node_id, end_offset, known in content["origins"]
    ]
    return [_slice(row, *origins[row[-1]]) for row in content["slices"]]


def _row(piece: Slice, place: int) -> list[Any]:
    snapshot = piece.snapshot
    return [
        piece.path,
        piece.start,
        piece.end,
        piece.size_bytes,
        piece.may_be_torn,
        None if snapshot is None else [snapshot.end_offset, snapshot.epoch],
        piece.first_offset,
        piece.end_offset,
        [[each.begin_offset, each.end_offset] for each in piece.undone],
        piece.only_named,
        piece.before,
        piece.newest_ms,
        [astuple(each) for each in piece.differences],
        place,
    ]


def _slice(row: list[Any], origin: Origin, committed: Committed) -> Slice:
    path, start, end, size, torn, snapshot, first, end_offset, undone, named, *more = row
    before, newest_ms, differences, _ = more
    return Slice(
        path,
        start,
        end,
        size,
        torn,
        None if snapshot is None else SnapshotId(*snapshot),
        first,
        end_offset,
        tuple(Undone(*each) for each in undone),
        named,
        origin,
        committed,
        before,
        newest_ms,
        tuple(Damage(*each) for each in differences),
    )
