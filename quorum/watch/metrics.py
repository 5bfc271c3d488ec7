"""GET /metrics, and the metrics that every node has about its copy of the metadata log.

The text is rendered a few samples at a time, and other tasks run in between. The text is reused
while it is fresh: for FRESH_MS, or for FRESH_FACTOR times the CPU time of its rendering if that is
longer. Any number of scrapers therefore costs a node at most a tenth of its CPU.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from quorate.quorum.ids import NO_NODE
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.raft.effects import Role
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.watch import metric_table as table
from quorate.quorum.watch.life_cycle import LifeCycle
from quorate.quorum.watch.measures import QuorumMeasures
from quorate.quorum.watch.node_view import NodeView

FRESH_MS = 500
"""The minimum time for which a rendered text is reused, in ms."""
FRESH_FACTOR = 9
"""The time for which a text is reused, as a multiple of the CPU time of its rendering."""
SAMPLES_AT_ONCE = 50
"""The number of samples of one family that are rendered without a pause."""
Collector = Callable[[], Iterator[Metric]]
"""Yields metric families. It is called for each rendering, on the event loop."""


class _One:
    """A registry with one metric family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


class Exposition:
    """The text of /metrics. It runs on the node's event loop, and one request renders at a time."""

    def __init__(
        self,
        node: NodeView,
        measures: QuorumMeasures,
        life_cycle: LifeCycle,
        collectors: Sequence[Collector],
    ) -> None:
        of_node = NodeMetrics(node, measures, life_cycle)
        process = ProcessCollector(registry=None)
        platform = PlatformCollector(registry=None)
        self._collectors = (of_node.collect, *collectors, process.collect, platform.collect)
        self._clock = node.clock
        self._lock = asyncio.Lock()
        self._text = b""
        self._fresh_until_ms: float | None = None

    async def response(self) -> HttpResponse:
        """Return the text, rendered again if it is no longer fresh."""
        async with self._lock:
            clock = self._clock
            if self._fresh_until_ms is None or clock.now_ms() >= self._fresh_until_ms:
                begun_ms = clock.cpu_ms()
                self._text = await self._made()
                fresh_ms = max(FRESH_MS, FRESH_FACTOR * (clock.cpu_ms() - begun_ms))
                self._fresh_until_ms = clock.now_ms() + fresh_ms
        return HttpResponse(self._text, CONTENT_TYPE_LATEST)

    async def _made(self) -> bytes:
        """Render all families, and let other tasks run after each piece."""
        parts = []
        for collect in self._collectors:
            for family in collect():
                for text in rendered(family):
                    parts.append(text)
                    await asyncio.sleep(0)
        return b"".join(parts)


def rendered(family: Metric) -> Iterator[bytes]:
    """Yield the text of a family in pieces. Only the first piece contains HELP and TYPE."""
    for start in range(0, max(1, len(family.samples)), SAMPLES_AT_ONCE):
        piece = Metric(family.name, family.documentation, family.type, family.unit)
        piece.samples = family.samples[start : start + SAMPLES_AT_ONCE]
        text = generate_latest(_One(piece))
        yield text if start == 0 else text.split(b"\n", 2)[2]


class NodeMetrics:
    """The metrics of every node: Raft, the metadata image, refused requests, CPU and memory."""

    def __init__(self, node: NodeView, measures: QuorumMeasures, life_cycle: LifeCycle) -> None:
        self._node = node
        self._measures = measures
        self._life_cycle = life_cycle

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield from self._raft()
        yield from self._latencies()
        yield from self._image()
        yield from self._refused()
        yield from self._shares()

    def _shares(self) -> Iterator[Metric]:
        """Yield the CPU time and memory that the node's peers use."""
        work, memory = self._node.resources.scheduler, self._node.resources.memory
        budgets = (
            (("request",), memory.requests),
            (("response",), memory.responses),
            (("node",), memory.nodes),
        )
        yield table.MEMORY_USED.each((kind, budget.used_bytes) for kind, budget in budgets)
        yield table.MEMORY_LIMIT.each((kind, budget.limit_bytes) for kind, budget in budgets)
        yield table.MEMORY_HOLDERS.each((kind, len(budget)) for kind, budget in budgets)
        yield table.MEMORY_CLOSED.each((kind, budget.evicted) for kind, budget in budgets)
        yield table.WORK_CPU.of(work.cpu_ms / 1000)
        yield table.WORK_SLICES.of(work.slices)
        yield table.WORK_CUT_OFF.of(work.cut_off)
        yield table.WORK_WAITING.of(len(work))

    def _raft(self) -> Iterator[Metric]:
        """Yield the state of the node in the metadata quorum."""
        node, raft = self._node, self._node.raft
        observer = raft.role in (Role.FOLLOWER, Role.UNATTACHED) and not node.config.is_controller
        state = "observer" if observer else raft.role.value
        unknown = sum(
            not node.is_connected(voter.voter_id) and voter.voter_id != node.me.id
            for voter in node.voters
        )
        yield table.CURRENT_STATE.each([((state,), 1)])
        yield table.CURRENT_LEADER.of(raft.leader_id)
        yield table.CURRENT_VOTE.of(raft.voted_id)
        yield table.CURRENT_EPOCH.of(raft.epoch)
        yield table.HIGH_WATERMARK.of(raft.high_watermark)
        yield table.LOG_END_OFFSET.of(node.log.end_offset)
        yield table.LOG_END_EPOCH.of(node.log.last_epoch)
        yield table.UNKNOWN_VOTER_CONNECTIONS.of(unknown)

    def _latencies(self) -> Iterator[Metric]:
        """Yield the rates and latencies of appends, commits and elections."""
        now_ms = self._node.clock.now_ms()
        measures = self._measures
        commits, elections = measures.commits, measures.elections
        fetched = self._node.log.end_offset - measures.appended
        busy = measures.busy_rate.of(time.thread_time(), now_ms)
        append_rate = measures.append_rate.of(measures.appended, now_ms)
        yield table.APPEND_RECORDS_RATE.of(append_rate)
        yield table.FETCH_RECORDS_RATE.of(max(0.0, measures.fetch_rate.of(fetched, now_ms)))
        yield table.COMMIT_LATENCY_AVG.of(commits.average_ms(now_ms))
        yield table.COMMIT_LATENCY_MAX.of(commits.max_ms(now_ms))
        yield table.ELECTION_LATENCY_AVG.of(elections.average_ms(now_ms))
        yield table.ELECTION_LATENCY_MAX.of(elections.max_ms(now_ms))
        ends = measures.election_ends.items()
        yield table.ELECTIONS.each(((role,), count) for role, count in ends)
        yield table.ELECTION_TIME.of(measures.election_times)
        yield table.METADATA_FLUSH_TIME.of(self._node.log.flush_times)
        yield table.LOOP_LAG.of(measures.loop_lag.times)
        yield table.POLL_IDLE_RATIO_AVG.of(min(1.0, max(0.0, 1 - busy)))

    def _refused(self) -> Iterator[Metric]:
        """Yield the counts of failed and refused requests of other nodes."""
        refused = self._node.resources.refusals.items()
        yield table.REQUESTS_REFUSED.each(((name,), count) for name, count in refused)
        failed = self._node.failed_requests.items()
        yield table.NODE_REQUESTS_FAILED.each(((name,), count) for name, count in failed)
        links = self._node.link_counts.refused.items()
        yield table.NODE_LINKS_REFUSED.each(((direction,), count) for direction, count in links)
        displaced = self._node.link_counts.displaced.items()
        yield table.NODE_LINKS_DISPLACED.each(((link,), count) for link, count in displaced)
        yield table.CLAIMS_REFUSED.of(self._node.raft.refused_claims)

    def _image(self) -> Iterator[Metric]:
        """Yield the state of the metadata image and of its snapshots."""
        node, image = self._node, self._node.image
        unreplayed = max(0, node.raft.high_watermark - node.replayed_offset)
        yield table.UNREPLAYED_RECORDS.of(unreplayed)
        yield table.REPLAY_LAG.of(self._life_cycle.replay_times)
        snapshots = node.snapshots
        latest, wall_ms = snapshots.latest, node.clock.wall_ms()
        size_bytes, age_ms = 0.0, math.nan
        if latest is not None:
            size_bytes = snapshots.size_of(latest)
            age_ms = wall_ms - snapshots.timestamp_of(latest)
        yield table.METADATA_VERSION.of(image.features.get(METADATA_VERSION, 0))
        yield table.CONTROLLER_ID.of(node.raft.leader_id)
        yield table.SNAPSHOTS_LOADED.of(self._measures.snapshots_loaded)
        yield table.SNAPSHOT_BYTES.of(size_bytes)
        yield table.SNAPSHOT_AGE.of(age_ms)


def lag_ms(image_timestamp_ms: int, wall_ms: int) -> int:
    """Return the age of the last applied record in ms (Kafka's LastAppliedRecordLagMs), or -1 if no
    record was applied. `image_timestamp_ms` is the record's timestamp, negative without a record.
    The age is 0 if the timestamp is in the future."""
    return max(0, wall_ms - image_timestamp_ms) if image_timestamp_ms >= 0 else NO_NODE
