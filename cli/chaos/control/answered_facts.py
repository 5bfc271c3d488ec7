"""The metadata of a cluster as its brokers answer it: Metadata of the topic, and DescribeQuorum."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.timeline.cluster_views import differences, merged
from quorate.cli.chaos.timeline.timeline import Event
from quorate.cli.chaos.workload.brokers import FAILURES, Brokers
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.protocol.schemas.cluster import (
    DescribeQuorumRequest,
    QuorumPartition,
    QuorumPartitionState,
    QuorumTopic,
)
from quorate.quorum.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

ASK_S = 0.1
"""Time, in s, between two questions to a broker, and between two questions about the quorum."""
ANSWER_MS = 1000
"""Time, in ms, after which a question fails."""
FRESH_S = 1.5
"""Time, in s, for which the last answer of a broker counts."""


class AnsweredFacts:
    """The answers of all brokers, owned by the event loop of a run.

    Each broker is asked on a connection of its own, so a paused one does not delay the others.
    Bound: the last answer of each broker of the cluster, and of DescribeQuorum."""

    def __init__(
        self, make_brokers: Callable[[], Brokers], brokers: Sequence[int], now_ms: Callable[[], int]
    ) -> None:
        self._make_brokers = make_brokers
        self._brokers = list(brokers)
        self._now_ms = now_ms
        self._topic = ""
        self._answers: dict[int, tuple[float, MetadataResponse]] = {}
        self._quorum: QuorumPartitionState | None = None
        self._answered = asyncio.Event()
        """Set as soon as every broker has answered, and the active controller is known."""
        self._epoch = -1
        """The epoch of the last active controller that the states have."""

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Ask all brokers for the duration of the block, which begins after the first answers."""
        clients = [self._make_brokers() for _ in (*self._brokers, "quorum")]
        self._topic = clients[0].topic
        for client in clients:
            await client.refresh()
        tasks = [
            asyncio.create_task(self._ask_metadata(client, broker))
            for client, broker in zip(clients, self._brokers, strict=False)
        ]
        tasks.append(asyncio.create_task(self._ask_quorum(clients[-1])))
        try:
            await self._answered.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for client in clients:
                client.close()

    async def _ask_metadata(self, client: Brokers, broker: int) -> None:
        """Ask one broker for the metadata of the topic until cancelled."""
        topic = MetadataRequestTopic(name=self._topic)
        request = MetadataRequest(topics=(topic,), allow_auto_topic_creation=False)
        while True:
            try:
                answer = await client.call(broker, request, timeout_ms=ANSWER_MS)
            except FAILURES:
                self._answers.pop(broker, None)
                await client.refresh(last=broker)
            else:
                self._answers[broker] = time.monotonic(), answer
                self._look_if_complete()
            await asyncio.sleep(ASK_S)

    async def _ask_quorum(self, client: Brokers) -> None:
        """Ask one broker after the other for the state of the quorum until cancelled."""
        partition = QuorumPartition(partition_index=0)
        topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
        request = DescribeQuorumRequest(topics=(topic,))
        while True:
            for broker in client.shuffled():
                try:
                    answer = await client.call(broker, request, timeout_ms=ANSWER_MS)
                except FAILURES:
                    continue
                if not answer.error_code and not answer.topics[0].partitions[0].error_code:
                    self._take(answer.topics[0].partitions[0])
                    break
            await asyncio.sleep(ASK_S)

    def _take(self, state: QuorumPartitionState) -> None:
        """Keep the state of the quorum, unless it is older than the known one."""
        known = -1 if self._quorum is None else self._quorum.leader_epoch
        if state.leader_id >= 0 and state.leader_epoch >= known:
            self._quorum = state
            self._look_if_complete()

    def _look_if_complete(self) -> None:
        """Begin with the present controller as soon as all questions have had an answer."""
        if self._answered.is_set() or self._quorum is None:
            return
        if len(self._answers) == len(self._brokers):
            self._epoch = self._quorum.leader_epoch
            self._answered.set()

    def new_events(self, states: ClusterStates) -> Iterator[Event]:
        """Yield the differences between the states and the present answers."""
        if self._quorum is not None and self._quorum.leader_epoch > self._epoch:
            self._epoch = self._quorum.leader_epoch
            yield states.activate(self._now_ms(), self._quorum.leader_id, self._epoch)
        oldest_s = time.monotonic() - FRESH_S
        fresh = [answer for at_s, answer in self._answers.values() if at_s > oldest_s]
        view = merged(fresh, self._topic)
        if view is not None:
            yield from differences(states, view, self._brokers, self._now_ms())

    def replay(self, states: ClusterStates) -> None:
        """Return None, because nothing else than the answers during the run is known."""

    def log_end(self, node_id: int) -> int:
        """Return the end offset of a node's metadata log in the last answer of DescribeQuorum."""
        if self._quorum is None:
            return -1
        replicas = (*self._quorum.current_voters, *self._quorum.observers)
        ends = [each.log_end_offset for each in replicas if each.replica_id == node_id]
        return max(ends, default=-1)
