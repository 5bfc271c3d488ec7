"""Checks the result of a controller's rule before anything changes.

A rule is a pure function from a request and the latest image to a `Result`. After its records are
in the log, they must not fail to encode, to decode or to replay. `decided` therefore does all three
first, on the controller's latest image. No image is changed in place, so a replay that raises
leaves the controller as it was. The caller then adds the parts to the current batch of the metadata
log, or drops all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.quorum.controller.state.decision_steps import STEP_RECORDS
from quorate.quorum.controller.state.result import Effect, Result
from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.image_builder import ImageBuilder
from quorate.quorum.metadata.loader import MARKERS
from quorate.quorum.metadata.read_back import read_back
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.replay import apply, replay

MAX_BATCH_RECORDS = 1_000
"""Maximum number of records of a batch, because every node replays a batch in one step. An atomic
result is one batch, whatever its number of records. The records of one step of a decision
(`decision_steps.py`) are one batch, too."""
MAX_BATCH_BYTES = 4 << 20
"""Maximum size, without framing, of a batch that holds several parts. A single part may be
larger."""
MAX_RESULT_BYTES = 6 << 20
"""Maximum size of an atomic result, which must fit in one batch of the metadata log (8 MiB with its
framing)."""


class TooLarge(Exception):
    """An atomic result has more than MAX_RESULT_BYTES."""


# Neither class is frozen: one of each is made for every request, and a frozen one takes three times
# as long to make.
@dataclass(slots=True)
class Part:
    """Encoded records of one batch with their size, the image after them, and the delta that leads
    to it. `records` are those that `values` encode."""

    records: Sequence[MetadataRecord]
    values: list[bytes]
    size_bytes: int
    image: MetadataImage
    delta: ImageDelta


@dataclass(slots=True)
class Decision:
    """The checked result of a rule. `response` is encoded for the sender of the request."""

    parts: list[Part]
    response: object
    effects: Sequence[Effect]


def decided(result: Result, image: MetadataImage, first: EpochOffset, wall_ms: int) -> list[Part]:
    """Return the parts that carry out `result`: none if it has no records.

    An atomic result is one part. Any other result is split into parts of at most MAX_BATCH_RECORDS
    records and MAX_BATCH_BYTES. `first` is the epoch and the offset of the first record. `wall_ms`
    is the wall time of the records, in ms since 1970.

    Raise TooLarge if an atomic result exceeds its bound, and ReplayError if a record contradicts
    `image`. Raise EncodeError or UnreadableRecord if a record does not survive encoding and
    decoding."""
    if not result.records:
        return []
    values = read_back(result.records)
    if result.atomic or len(values) == 1:
        size_bytes = sum(map(len, values))
        if size_bytes > MAX_RESULT_BYTES:
            raise TooLarge
        return [_part(values, size_bytes, result.records, image, first, wall_ms)]
    parts, start = [], 0
    while start < len(values):
        end, size_bytes = _end_of_part(values, start)
        part = _part(
            values[start:end],
            size_bytes,
            result.records[start:end],
            image,
            EpochOffset(first.epoch, first.offset + start),
            wall_ms,
        )
        parts.append(part)
        image, start = part.image, end
    return parts


def _part(
    values: list[bytes],
    size_bytes: int,
    records: Sequence[MetadataRecord],
    image: MetadataImage,
    first: EpochOffset,
    wall_ms: int,
) -> Part:
    last = EpochOffset(first.epoch, first.offset + len(values) - 1)
    image, delta = replay(image, stable(records), last, wall_ms)
    return Part(records, values, size_bytes, image, delta)


def stable(records: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """Return the records without the markers of transactions, which are not replayed."""
    return [each for each in records if not isinstance(each, MARKERS)]


def part_in_steps(
    records: Sequence[MetadataRecord],
    image: MetadataImage,
    first: Callable[[], EpochOffset],
    wall_ms: int,
) -> IncrementalWork[Part]:
    """Return the part of an atomic result, with a pause after each STEP_RECORDS records.

    `first` returns the epoch and the offset that the first record would get now. Raft may append
    records of its own during a pause. Raise the errors of `decided`."""
    values: list[bytes] = []
    builder = ImageBuilder(image)
    for start in range(0, len(records), STEP_RECORDS):
        step = records[start : start + STEP_RECORDS]
        values += read_back(step)
        apply(builder, stable(step), first())
        yield
    size_bytes = sum(map(len, values))
    if size_bytes > MAX_RESULT_BYTES:
        raise TooLarge
    image, delta = builder.finish(first(), wall_ms)
    yield
    begin = first()
    last = EpochOffset(begin.epoch, begin.offset + len(values) - 1)
    return Part(records, values, size_bytes, image._replace(last=last), delta)


def _end_of_part(values: list[bytes], start: int) -> tuple[int, int]:
    """Return the end of the part of a result that begins at `start`, and the part's size in bytes.

    A part has at least one record."""
    end, size_bytes = start + 1, len(values[start])
    while end < len(values) and end - start < MAX_BATCH_RECORDS:
        if size_bytes + len(values[end]) > MAX_BATCH_BYTES:
            break
        size_bytes += len(values[end])
        end += 1
    return end, size_bytes
