"""Writes the events of the active controller's decisions to its log, when they are committed.

An event that is not committed has not happened: a leader that lost its majority may have decided
it, and the next leader truncates it. The lines therefore wait for the high watermark. All of them
have the level INFO, and end with the offsets of their decision. The lines about ISRs are limited
(`LogLimit`), because a follower that flaps would repeat them all the time."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.cluster_events import cluster_events
from quorate.quorum.metadata.event_texts import ClusterEvent
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.seams import Clock

MAX_WAITING = 1_000
"""Maximum number of events that wait for their commit. Later ones are counted and left out."""

logger = logging.getLogger("quorate.cluster")


class WaitingEvent(NamedTuple):
    """An event with the offsets of the first and the last record of its decision."""

    first_offset: int
    last_offset: int
    event: ClusterEvent


class ClusterEventLog:
    """The events of one active controller that wait for their commit. Owned by the event loop."""

    def __init__(self, clock: Clock) -> None:
        """`clock` measures the interval between two lines of the same kind that is limited."""
        self._limit = LogLimit(clock)
        self._waiting: deque[WaitingEvent] = deque()
        self._left_out = 0

    def activated(self, epoch: int, offset: int) -> None:
        """Write that this node is the active controller. `offset` is that of its image."""
        logger.info(
            "this node is the active controller of epoch %d at offset %d",
            epoch,
            offset,
            extra={"event": "controller-activated"},
        )

    def deactivated(self, epoch: int, refused: int) -> None:
        """Write that this node is deposed and refuses a number of requests. Drop the events that
        are not committed."""
        logger.info(
            "this node is no longer the active controller of epoch %d. It refuses %d requests that "
            "waited, which their senders repeat on the next active controller",
            epoch,
            refused,
            extra={"event": "controller-deactivated"},
        )
        self._waiting.clear()
        self._left_out = 0

    def decided(
        self,
        first_offset: int,
        records: Sequence[MetadataRecord],
        before: MetadataImage,
        after: MetadataImage,
    ) -> None:
        """Keep the events of a decision until its last record is committed. `before` and `after`
        are the images without and with its records."""
        for event in cluster_events(records, before, after):
            if len(self._waiting) >= MAX_WAITING:
                self._left_out += 1
            else:
                self._waiting.append(WaitingEvent(first_offset, after.last.offset, event))

    def committed(self, high_watermark: int) -> None:
        """Write the events below the high watermark."""
        while self._waiting and self._waiting[0].last_offset < high_watermark:
            first, last, event = self._waiting.popleft()
            left_out = self._limit.passes(event.limited) if event.limited else ""
            if left_out is None:
                continue
            at = f"offset {last}" if first == last else f"offsets {first} to {last}"
            logger.info("%s (%s)%s", event.text, at, left_out, extra={"event": event.kind})
        if self._left_out and not self._waiting:
            logger.info("%d more events were not logged, because too many waited", self._left_out)
            self._left_out = 0
