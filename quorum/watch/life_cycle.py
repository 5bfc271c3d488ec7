"""GET /v1/stages and GET /v1/recent-changes: the life of a change, answered from memory.

/v1/stages gives the offsets of the metadata log that each stage of this node has reached, and the
times at which it did:

    from=OFFSET    only marks above this offset; default: all that are kept

- `appended`: the end of this node's copy of the log
- `committed`: the high watermark that this node knows
- `replayed`: the end of its metadata image
- `acted`: a broker has acted on all records below it (`broker/replication/metadata_applier.py`)

Each role adds a part: a broker its ISR proposals without an answer, a controller its queue, and the
offsets that brokers reported in their last heartbeat.

/v1/recent-changes gives changes of leaders, ISRs and replicas as JSON lines. Only the controller
that decided a change has it, and only the newest MAX_CHANGES of them. A new active controller
starts without any. GET /v1/changes has all of them, from the log:

    from=OFFSET    the first offset; default: the oldest that is kept
    limit=N        maximum number of lines, 1 to MAX_LINES; default: DEFAULT_LINES

All times are in ms since 1970, from the monotonic clock of this node and its present wall time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from quorate.quorum.histogram import US_PER_MS, Histogram
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.watch.changes import JSON_LINES, NEXT_OFFSET, number
from quorate.quorum.watch.http_dispatch import BadQuery, Query, json_response
from quorate.quorum.watch.node_view import NodeView
from quorate.quorum.watch.recent_changes import MAX_CHANGES, RecentChanges, is_reported
from quorate.quorum.watch.stage_marks import StageMarks

MAX_OFFSET = 2**63 - 1
MAX_LINES = MAX_CHANGES
DEFAULT_LINES = 1_000
LINES_PER_SLICE = 100
"""Lines that are made without a pause."""
FIELDS = ("isr", "replicas", "adding_replicas", "removing_replicas")
"""The fields of a PartitionChangeRecord that a line shows if they are set."""

Part = Callable[[], dict[str, Any]]
"""Returns the values that a role of the node adds to /v1/stages."""


class LifeCycle:
    """The stages of one node, and the changes that it decided. The node's event loop owns it."""

    def __init__(self, node: NodeView) -> None:
        self.committed, self.replayed, self.acted = StageMarks(), StageMarks(), StageMarks()
        self.recent = RecentChanges()
        self.parts: dict[str, Part] = {}
        """The parts of the roles by name. A role adds its part when it is created."""
        self.replay_times, self.acting_times = Histogram(), Histogram()
        """The time from the commit of the newest replayed record to its replay, and to the moment
        at which this broker has acted on it."""
        self._node = node

    def on_committed(self, high_watermark: int) -> None:
        """Note that the high watermark has risen."""
        self.committed.reach(high_watermark, self._node.clock.now_ms())

    def on_image(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Note that the node has replayed records."""
        self._reached(self.replayed, self.replay_times, self._node.replayed_offset)

    def on_acted(self, end_offset: int) -> None:
        """Note that this broker has acted on all records below `end_offset`."""
        self._reached(self.acted, self.acting_times, end_offset)

    def _reached(self, stage: StageMarks, times: Histogram, end_offset: int) -> None:
        """Mark that a stage has reached `end_offset`, and count the time since the commit."""
        now_ms = self._node.clock.now_ms()
        if end_offset > stage.end_offset:
            committed_ms = self.committed.time_of(end_offset - 1)
            if committed_ms is not None:
                times.observe((now_ms - committed_ms) * US_PER_MS)
        stage.reach(end_offset, now_ms)

    async def stages(self, query: Query) -> HttpResponse:
        """Return the offsets and the marks of each stage, and the parts of the roles."""
        check_names(query, ("from",))
        start = number(query, "from", 0, MAX_OFFSET)
        node = self._node
        wall_ms = node.clock.wall_ms()
        began_ms = wall_ms - node.clock.now_ms()
        offsets = {
            "appended": node.log.end_offset,
            "committed": node.raft.high_watermark,
            "replayed": node.replayed_offset,
        }
        marks = {"committed": self.committed, "replayed": self.replayed}
        if node.config.is_broker:
            offsets["acted"] = self.acted.end_offset
            marks["acted"] = self.acted
        return json_response(
            {
                "node_id": node.me.id,
                "roles": list(node.config.roles),
                "time_ms": wall_ms,
                "offsets": offsets,
                "marks": {
                    name: [(end, began_ms + at_ms) for end, at_ms in each.since(start)]
                    for name, each in marks.items()
                },
                **{name: part() for name, part in self.parts.items()},
            }
        )

    async def recent_changes(self, query: Query) -> HttpResponse:
        """Return the kept changes, at most `limit`, and the offset at which to continue."""
        check_names(query, ("from", "limit"))
        start = number(query, "from", 0, MAX_OFFSET)
        limit = number(query, "limit", 1, MAX_LINES, DEFAULT_LINES)
        lines: list[str] = []
        next_offset = max(start, self._node.raft.high_watermark)
        for offset, line in self._lines(start):
            if len(lines) == limit:
                next_offset = offset
                break
            lines.append(line)
            next_offset = max(next_offset, offset + 1)
            if len(lines) % LINES_PER_SLICE == 0:
                await asyncio.sleep(0)
        body = "".join(lines).encode()
        return HttpResponse(body, JSON_LINES, headers=((NEXT_OFFSET, str(next_offset)),))

    def _lines(self, start: int) -> Iterator[tuple[int, str]]:
        """Yield (offset, line) for each kept change at `start` or above."""
        clock = self._node.clock
        began_ms = clock.wall_ms() - clock.now_ms()
        for entry in self.recent.since(start):
            for offset, record in enumerate(entry.records, entry.first_offset):
                if offset < start or not is_reported(record):
                    continue
                assert isinstance(record, PartitionChangeRecord)
                committed_ms = self.committed.time_of(offset)
                line = {
                    "offset": offset,
                    **self._described(record),
                    "requested_ms": began_ms + entry.requested_ms,
                    "appended_ms": began_ms + entry.appended_ms,
                    "committed_ms": None if committed_ms is None else began_ms + committed_ms,
                }
                yield offset, json.dumps(line) + "\n"

    def _described(self, record: PartitionChangeRecord) -> dict[str, Any]:
        """Return the partition, the changed fields, the cause, and the present replicas."""
        image = self._node.image
        topic = image.topics.get(record.topic_id)
        present = image.partition(record.topic_id, record.partition_id)
        changed: dict[str, Any] = {
            name: value for name in FIELDS if (value := getattr(record, name)) is not None
        }
        if record.leader != NO_LEADER_CHANGE:
            changed["leader"] = record.leader
        return {
            "topic": None if topic is None else topic.name,
            "topic_id": uuid_to_text(record.topic_id),
            "partition": record.partition_id,
            "change": changed,
            "cause": record.cause or None,
            "hosts": [] if present is None else present.replicas,
        }


def check_names(query: Query, known: tuple[str, ...]) -> None:
    """Raise BadQuery if the query has a parameter that is not in `known`."""
    unknown = sorted(set(query) - set(known))
    if unknown:
        raise BadQuery(f"no parameter {unknown[0]!r}; there are {', '.join(known)}")
