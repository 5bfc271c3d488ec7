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
from quorate.quorum.rpc.budget import Budget
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.watch.families import counter, counters, gauge, gauges
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

BUDGET_GAUGES: tuple[tuple[str, str, Callable[[Budget], float]], ...] = (
    ("used_bytes", "Bytes that connections hold, above 16 KiB each.", lambda b: b.used_bytes),
    ("limit_bytes", "Bytes that all connections together may hold.", lambda b: b.limit_bytes),
    ("holding_connections", "Connections that hold more than 16 KiB.", len),
)

# Kafka's names of the roles.
STATES = {Role.RESIGNED: "resigned", Role.FOLLOWER: "follower"}


class _One:
    """A registry with one metric family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


class Exposition:
    """The text of /metrics. It runs on the node's event loop, and one request renders at a time."""

    def __init__(
        self, node: NodeView, measures: QuorumMeasures, collectors: Sequence[Collector]
    ) -> None:
        of_node = NodeMetrics(node, measures)
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

    def __init__(self, node: NodeView, measures: QuorumMeasures) -> None:
        self._node = node
        self._measures = measures

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield from self._raft()
        yield from self._latencies()
        yield from self._loader()
        yield from self._refused()
        yield from self._shares()

    def _shares(self) -> Iterator[Metric]:
        """Yield the CPU time and memory that the node's peers use."""
        work, memory = self._node.resources.scheduler, self._node.resources.memory
        budgets = (
            ("request", memory.requests),
            ("response", memory.responses),
            ("node", memory.nodes),
        )
        kind = ("kind",)
        for name, help_, value in BUDGET_GAUGES:
            samples = [((each,), value(budget)) for each, budget in budgets]
            yield gauges(f"quorate_memory_{name}", help_, kind, samples)
        closed = [((each,), budget.evicted) for each, budget in budgets]
        help_ = "Connections closed because the budget was used up, or held for too long."
        yield counters("quorate_memory_closed_connections_total", help_, kind, closed)
        yield counter("quorate_work_cpu_ms_total", "CPU of sliced requests, ms.", work.cpu_ms)
        yield counter("quorate_work_slices_total", "Slices of sliced requests.", work.slices)
        yield counter("quorate_work_cut_off_total", "Requests cut off, by CPU.", work.cut_off)
        yield gauge("quorate_work_waiting", "Connections whose sliced work waits.", len(work))

    def _raft(self) -> Iterator[Metric]:
        """Yield the state of the node in the metadata quorum."""
        node, raft = self._node, self._node.raft
        observer = raft.role in (Role.FOLLOWER, Role.UNATTACHED) and not node.config.is_controller
        state = "observer" if observer else raft.role.value
        unknown = sum(
            not node.is_connected(voter.voter_id) and voter.voter_id != node.me.id
            for voter in node.voters
        )
        yield gauges(
            "kafka_server_raftmetrics_current_state",
            "The role in the metadata quorum; the value is always 1.",
            ("current_state",),
            [((state,), 1)],
        )
        values = (
            ("current_leader", "Id of the quorum's leader, -1: not known.", raft.leader_id),
            ("current_vote", "Whom this node voted for in this epoch, -1: nobody.", raft.voted_id),
            ("current_epoch", "Epoch of the metadata quorum.", raft.epoch),
            ("high_watermark", "Records below it are committed.", raft.high_watermark),
            ("log_end_offset", "Where the next record goes.", node.log.end_offset),
            ("log_end_epoch", "Epoch of the last record.", node.log.last_epoch),
            ("number_unknown_voter_connections", "Voters without a connection.", unknown),
        )
        for name, help_, value in values:
            yield gauge(f"kafka_server_raftmetrics_{name}", help_, value)

    def _latencies(self) -> Iterator[Metric]:
        """Yield the rates and latencies of appends, commits and elections."""
        now_ms = self._node.clock.now_ms()
        measures = self._measures
        commits, elections = measures.commits, measures.elections
        fetched = self._node.log.end_offset - measures.appended
        busy = measures.busy_rate.of(time.thread_time(), now_ms)
        values = (
            (
                "append_records_rate",
                "Records appended per second as the leader.",
                measures.append_rate.of(measures.appended, now_ms),
            ),
            (
                "fetch_records_rate",
                "Records fetched per second from the leader.",
                max(0.0, measures.fetch_rate.of(fetched, now_ms)),
            ),
            ("commit_latency_avg", "From append to commit, ms.", commits.average_ms(now_ms)),
            ("commit_latency_max", "From append to commit, ms.", commits.max_ms(now_ms)),
            ("election_latency_avg", "Without a leader, ms.", elections.average_ms(now_ms)),
            ("election_latency_max", "Without a leader, ms.", elections.max_ms(now_ms)),
            (
                "poll_idle_ratio_avg",
                "Share of time in which the node's loop did not compute.",
                min(1.0, max(0.0, 1 - busy)),
            ),
        )
        for name, help_, value in values:
            yield gauge(f"kafka_server_raftmetrics_{name}", help_, value)

    def _refused(self) -> Iterator[Metric]:
        """Yield the counts of failed and refused requests of other nodes."""
        yield counters(
            "quorate_node_requests_failed_total",
            "Requests of other nodes that failed by an exception that no handler expected.",
            ("message",),
            (((name,), count) for name, count in self._node.failed_requests.items()),
        )
        yield counter(
            "quorate_raft_claims_refused_total",
            "Claims of other nodes that contradict this node's log or election.",
            self._node.raft.refused_claims,
        )

    def _loader(self) -> Iterator[Metric]:
        """Yield the state of the metadata image and of its snapshots."""
        node, image = self._node, self._node.image
        help_ = "Committed metadata records that this node has not replayed."
        unreplayed = max(0, node.raft.high_watermark - node.replayed_offset)
        yield gauge("quorate_metadata_unreplayed_records", help_, unreplayed)
        snapshots = node.snapshots
        latest, wall_ms = snapshots.latest, node.clock.wall_ms()
        size_bytes, age_ms = 0.0, math.nan
        if latest is not None:
            size_bytes = snapshots.size_of(latest)
            age_ms = wall_ms - snapshots.timestamp_of(latest)
        values = (
            (
                "metadataloader_currentmetadataversion",
                "The finalized metadata.version.",
                image.features.get(METADATA_VERSION, 0),
            ),
            (
                "metadataloader_currentcontrollerid",
                "The active controller as this node knows it, -1: none.",
                node.raft.leader_id,
            ),
            (
                "metadataloader_handleloadsnapshotcount",
                "Snapshots that were loaded since the node started.",
                self._measures.snapshots_loaded,
            ),
            ("snapshotemitter_latestsnapshotgeneratedbytes", "Size of the latest.", size_bytes),
            (
                "snapshotemitter_latestsnapshotgeneratedagems",
                "Age of the last record in the latest snapshot; NaN: there is none.",
                age_ms,
            ),
        )
        for name, help_, value in values:
            yield gauge(f"kafka_server_{name}", help_, value)


def lag_ms(image_timestamp_ms: int, wall_ms: int) -> int:
    """Return the age of the last applied record in ms (Kafka's LastAppliedRecordLagMs), or -1 if no
    record was applied. `image_timestamp_ms` is the record's timestamp, negative without a record.
    The age is 0 if the timestamp is in the future."""
    return max(0, wall_ms - image_timestamp_ms) if image_timestamp_ms >= 0 else NO_NODE
