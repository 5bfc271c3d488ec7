"""The slices that the readers of a data source read, for any number of clusters and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from quorate.quorum.analytics.log.commits import with_commits
from quorate.quorum.analytics.log.damage import DIVERGENCE, Damage
from quorate.quorum.analytics.log.divergence import divergences
from quorate.quorum.analytics.log.first_pass import FOREVER, Pass
from quorate.quorum.analytics.log.forward import pieces
from quorate.quorum.analytics.log.places import NodeLog, logs_at
from quorate.quorum.analytics.log.plan_text import decoded
from quorate.quorum.analytics.log.segments import (
    SLICE_BYTES,
    Committed,
    Passes,
    Placed,
    Slice,
    StoredFile,
    history_slices,
    log_slices,
    passes_here,
    refuse_missing_base,
    segments_of,
    snapshot_slices,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The part of the logs that is read: the options of the data source."""

    locations: tuple[str, ...]
    include: str = ""
    """"base", "snapshots" or ""."""
    every_node: bool = False
    slice_bytes: int = SLICE_BYTES
    strict: bool = False
    plan: str = ""
    """The slices, if they were planned before (`plan_text.py`)."""
    first_offset: int = 0
    last_offset: int = FOREVER
    """The records that are needed. Segments that cannot matter to them are not read. The slices of
    other records may be missing, and are not left out if the slices were planned before."""


def planned(choice: Choice, *, passes_over: Passes = passes_here) -> list[Slice]:
    """Return the slices of all chosen logs. Block. `passes_over` is called once, for all segments.

    If one log stands for its cluster, the records that are certainly not committed are left out.
    Raise NoMetadataLog or BadOption for a location, and MissingBase if `strict`."""
    if choice.plan:
        return decoded(choice.plan)
    logs = with_commits(logs_at(choice.locations))
    differences = _differences(logs, choice)
    chosen = [log for log in logs if choice.every_node or log.is_chosen]
    placed = {
        log.directory: segments_of(log.directory, choice.first_offset, choice.last_offset)
        for log in chosen
    }
    segments = [each.segment for of_log in placed.values() for each in of_log]
    passes = dict(zip(segments, passes_over(segments, choice.slice_bytes), strict=True))
    slices: list[Slice] = []
    for log in chosen:
        found = _of_log(log, choice, placed[log.directory], passes)
        said = differences[log.directory]
        if not choice.every_node:
            found = list(_up_to(log.committed, found))
            cluster = log.origin.cluster_id
            said = [
                each
                for other in logs
                if other.origin.cluster_id == cluster
                for each in differences[other.directory]
            ]
        # The reader of the first slice reports them.
        slices += [replace(piece, differences=tuple(said)) for piece in found[:1]] + found[1:]
    return slices


def _differences(logs: Sequence[NodeLog], choice: Choice) -> dict[str, list[Damage]]:
    """Return the differences between nodes that the choice includes, by directory."""
    found = divergences(logs)
    return {
        log.directory: [
            each
            for each in found.get(log.directory, ())
            if each.kind == DIVERGENCE or choice.include == "base"
        ]
        for log in logs
    }


def _up_to(committed: Committed, slices: Iterable[Slice]) -> Iterator[Slice]:
    """Yield the slices without the records that are certainly not committed."""
    for piece in slices:
        if piece.snapshot is not None or not committed.rest_is_known:
            yield piece
        elif piece.first_offset < committed.end_offset:
            yield replace(piece, before=committed.end_offset)


def _of_log(
    log: NodeLog, choice: Choice, placed: Sequence[Placed], passes: Mapping[StoredFile, Pass]
) -> list[Slice]:
    def known(segments: Sequence[StoredFile], slice_bytes: int) -> list[Pass]:
        return [passes[each] for each in segments]

    if choice.include == "base":
        if choice.strict:
            refuse_missing_base(log.directory)
        slices = history_slices(
            log.directory, choice.slice_bytes, passes_over=known, segments=placed
        )
    else:
        slices = log_slices(log.directory, choice.slice_bytes, passes_over=known, segments=placed)
    if choice.include == "snapshots":
        slices += snapshot_slices(log.directory)
    return [
        replace(part, origin=log.origin, committed=log.committed)
        for piece in slices
        for part in (pieces(piece) if piece.snapshot and not piece.only_named else (piece,))
    ]
