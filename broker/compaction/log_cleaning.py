"""The order of the work of one cleaning: passes in another thread, replacements in the log's.

`clean_log` is a generator. It yields pieces for the thread of long work and gets the results back.
What it does itself, between two pieces, runs in the log's thread. The driver decides when the next
piece runs, so other work of both threads comes in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from quorate.broker.compaction.cleaning import Cleaning
from quorate.broker.compaction.grouping import grouped
from quorate.broker.compaction.segment_source import SourceSegment
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.segments.segment_swap import discard_cleaned
from quorate.quorum.seams import Disk

DiskWork = Callable[[], Any]
T = TypeVar("T")
CleaningWork = Generator[DiskWork, Any, T]


class UnforeseenRecords(LogError):
    """A pass failed for a reason that no check of the records foresees. The log stays as it is."""


class CleaningAborted(Exception):
    """The log was truncated, shortened or deleted, so that this cleaning is void."""


def source_of(segment: Segment) -> SourceSegment:
    """Return the file of a sealed segment. Call it in the log's thread."""
    return SourceSegment(segment.path, segment.base_offset, segment.next_offset, segment.size)


def clean_log(
    log: Log,
    cleaning: Cleaning,
    segments: list[Segment],
    preparation: IncrementalWork[None],
    aborted: Callable[[], bool],
    remove: Callable[[list[str]], None],
) -> CleaningWork[int]:
    """Clean `segments`, the sealed segments of `log` up to the first uncleanable offset.
    `preparation` has steps for the log's thread, which come first.

    Return the offset below which the log is clean now: all replacements up to it are durable.
    `remove` gets the paths of the replaced segments, which are renamed and may be removed. Raise
    CleaningAborted if `aborted` returns True or the log loses one of the segments. `.cleaned` files
    are removed then. Raise CorruptLog if a batch is damaged, UnforeseenRecords, or OSError."""
    generation = log.generation
    remaining = list(segments)

    def check() -> None:
        if aborted() or log.deleted or log.generation != generation:
            raise CleaningAborted

    try:
        for _ in preparation:
            yield _do_nothing
            check()
        yield from _in_steps(log.disk, cleaning.build_map(), check)
        end_offset = cleaning.end_offset
        touched = [each for each in segments if each.base_offset < end_offset]
        for group in grouped(touched, log.settings.segment_bytes):
            work = cleaning.write_group([source_of(each) for each in group])
            cleaned = yield from _in_steps(log.disk, work, check)
            remove((yield from _replace(log, group, cleaned)))
            del remaining[: len(group)]
            check()
    except (CleaningAborted, LogError, OSError) as error:
        yield lambda: discard_cleaned(log.disk, log.directory)
        check()  # a file that was truncated under the pass looks damaged, or is missing
        if isinstance(error, FileNotFoundError) and any(each.removed for each in remaining):
            raise CleaningAborted from None
        raise
    return end_offset


def _do_nothing() -> None:
    """Give the log's thread a pause between two steps."""


def _replace(log: Log, group: list[Segment], cleaned: Segment) -> CleaningWork[list[str]]:
    """Replace the segments of a group, and return their new paths. Raise CleaningAborted if the log
    has changed."""
    swap = log.begin_swap(group, cleaned)
    if swap is None:
        cleaned.discard()
        raise CleaningAborted
    yield swap.decide
    paths = log.complete_swap(swap)
    if paths is None:
        cleaned.discard()
        raise CleaningAborted
    yield swap.finish
    if log.swap is swap:
        log.settle_swap()
    return paths


def _in_steps(disk: Disk, steps: IncrementalWork[T], check: Callable[[], None]) -> CleaningWork[T]:
    """Run long work, with as many steps in each piece as the disk allows. Return its result."""
    ended: list[T] = []

    def some() -> bool:
        try:
            next(steps)
            while not disk.rest():
                next(steps)
        except StopIteration as end:
            ended.append(end.value)
        except (LogError, OSError):
            raise
        except Exception as error:  # records of clients must not stop the node
            raise UnforeseenRecords(f"a pass over the log failed: {error!r}") from error
        return not ended

    while (yield some):
        check()
    return ended[0]
