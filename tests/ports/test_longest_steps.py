"""No request keeps the event loop of a node busy for long in one step, at the bounds of its arrays.

A step is one callback of the event loop. The server runs one step of a handler in each of them
here. The CPU time of a step varies with the machine, so the limit is several times what was
measured, and a case fails only if it fails each of TRIES times.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorate.broker.partition.key_check import KEYS_CHECKED
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.node.controller import envelopes
from quorate.quorum.protocol.apis import APIS, Api, ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.field_bounds import (
    GROUPS,
    KEYS,
    PARTITIONS,
    PRODUCED_PARTITIONS,
    RESOURCES,
    TOPICS,
    Bound,
)
from quorate.quorum.protocol.layout import Field
from quorate.quorum.protocol.schemas import fetch, group_offsets, metadata, produce, topics
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.request_scheduler import SchedulerLimits
from tests.attacks.crowds import FILLS
from tests.attacks.raw import array, head_of
from tests.attacks.shapes import places, with_place
from tests.fuzz.target import IncrementalWork
from tests.ports import test_large_requests as large
from tests.ports.node import BROKER_PORT, PortCluster, Raw, running
from tests.ports.requests import READ, TIMEOUT_MS, create

LIMIT_MS = 50
"""The longest steps measured are 5 to 15 ms, a third of them to free what is answered."""
QUARTER_LIMIT_MS = 15
"""For a quarter of the elements. A handler that decides on all of them in one step takes longer."""
RULED_LIMIT_MS = 100
"""The active controller prepares most decisions in steps, and encodes the response in one: up to 35
ms were measured."""
TRIES = 3
NO_LIMIT_MS = 1e9
HELD = 4000
"""Partitions for which a group has committed offsets."""
SIZE_BYTES = 12_000_000
FEWEST = 10_000
"""Smaller bounds need no test."""
ELEMENTS_AROUND = 10
"""Elements of the arrays that hold the full one, or stand beside it."""
LIMITS = {ApiKey.PRODUCE: PRODUCED_PARTITIONS.limit}
"""Bounds that a parser written by hand has in place of those of the schema."""


class Watched:
    """A node whose steps are measured."""

    def __init__(self, node: PortCluster) -> None:
        self.node = node
        node.prepared()
        (broker,) = node.cluster.brokers
        assert broker.process is not None and broker.process.broker is not None
        work = broker.process.broker.client_ports[0].resources.scheduler
        work.limits = SchedulerLimits(steps_per_slice=1, request_cpu_ms=NO_LIMIT_MS)
        self._steps = IncrementalWork(node.loop)

    def longest_ms(self, send: Callable[[Raw], None]) -> float:
        """Return the CPU time of the longest step from the arrival of a request to its answer."""
        raw = self.node.connect(BROKER_PORT)
        gc.collect()
        gc.disable()
        try:
            send(raw)
            self._steps.longest_s = 0.0
            self.node.until(lambda: raw.frames or raw.closed)
            self.node.run(0.1)
        finally:
            gc.enable()
        assert not raw.closed, "the request is within the bounds"
        raw.link.abort()
        return self._steps.longest_s * 1000

    def check(self, send: Callable[[Raw], None], limit_ms: float) -> None:
        tries: list[float] = []
        for _ in range(TRIES):
            tries.append(self.longest_ms(send))
            if tries[-1] <= limit_ms:
                return
        raise AssertionError(f"the longest step took {min(tries):.0f} ms, not {limit_ms:.0f}")


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with pytest.MonkeyPatch.context() as patched, running() as node:
        patched.setattr(envelopes, "STEPS_PER_SLICE", 1)  # the clock stands still in a step
        yield Watched(node)


def waiting(count: int) -> Message:
    """Return a fetch of a partition without records, named many times, that waits."""
    one = fetch.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1)
    topic = fetch.FetchTopic(topic=READ, partitions=(one,) * count)
    return fetch.FetchRequest(max_wait_ms=50, min_bytes=1, topics=(topic,))


def by_name(count: int) -> Message:
    wanted = tuple(metadata.MetadataRequestTopic(name=each) for each in large.names(count))
    return metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=True)


BOUNDS = [
    (large.metadata_of, TOPICS, 9),
    (by_name, TOPICS, 9),
    (large.coordinators, KEYS, 4),
    (large.described_groups, GROUPS, 5),
    (large.deleted_groups, GROUPS, 2),
    (large.listed_offsets, PARTITIONS, 7),
    (large.epoch_ends, PARTITIONS, 4),
    (large.committed, PARTITIONS, 8),
    (large.fetched_offsets, PARTITIONS, 8),
    (large.fetched_offsets_of_one_group, PARTITIONS, 7),
    (large.deleted_offsets, PARTITIONS, 0),
    (large.deleted_records, PARTITIONS, 2),
    (large.described_configs, RESOURCES, 4),
    (large.described_directories, PARTITIONS, 4),
    (large.producers, PARTITIONS, 0),
    (large.described_topics, TOPICS, 0),
    (large.fetched, PARTITIONS, 11),
    (waiting, PARTITIONS, 11),
    (large.produced, PRODUCED_PARTITIONS, 9),
    (large.produced_in_a_transaction, PRODUCED_PARTITIONS, 9),
]


def of_each_bound(test: Callable[..., None]) -> Any:
    names = ("request_", "bound", "version")
    return pytest.mark.parametrize(names, BOUNDS, ids=[build.__name__ for build, _, _ in BOUNDS])(
        test
    )


@of_each_bound
def test_no_step_is_long_at_a_quarter_of_the_bound(
    watched: Watched, request_: Callable[[int], Message], bound: Bound, version: int
) -> None:
    request = request_(bound.limit // 4)
    watched.check(lambda raw: watched.node.send(raw, request, version, 7), QUARTER_LIMIT_MS)


@pytest.mark.long
@of_each_bound
def test_no_step_is_long(
    watched: Watched, request_: Callable[[int], Message], bound: Bound, version: int
) -> None:
    request = request_(bound.limit)
    watched.check(lambda raw: watched.node.send(raw, request, version, 7), LIMIT_MS)


def test_long_batches_of_a_compacted_topic_are_checked_in_steps(watched: Watched) -> None:
    """The keys of every record are read. A batch of 65,536 empty records has some 100 bytes, so
    4 KB of batches in one step kept the broker busy for 400 ms."""
    node = watched.node
    node.run(1.0)
    raw = node.connect(BROKER_PORT)
    node.ask(raw, compacted("keyed"), 5)
    node.run(2.0)
    request = produced_bombs("keyed", 32)
    answer: Any = node.ask(raw, request, 9)
    (topic,) = answer.responses
    assert {each.error_code for each in topic.partition_responses} == {ErrorCode.INVALID_RECORD}
    watched.check(lambda raw: node.send(raw, request, 9, 7), LIMIT_MS / 2)


def compacted(name: str) -> Message:
    """Return the request that creates a compacted topic."""
    configs = (topics.CreatableTopicConfig(name="cleanup.policy", value="compact"),)
    (new,) = create(name).topics
    return topics.CreateTopicsRequest(
        topics=(dataclasses.replace(new, configs=configs),), timeout_ms=TIMEOUT_MS
    )


def produced_bombs(topic: str, count: int) -> Message:
    """Return a request with `count` small batches, each of as many keyless records as a batch of a
    compacted topic may have."""
    records = [Record(each, 0, None, None) for each in range(KEYS_CHECKED)]
    bomb = bytes(build_batch(records, leader_epoch=0, codec=Codec.ZSTD))
    assert len(bomb) < 100_000
    data = produce.PartitionProduceData(index=0, records=bomb)
    of_topic = produce.TopicProduceData(name=topic, partition_data=(data,) * count)
    return produce.ProduceRequest(acks=1, timeout_ms=1000, topic_data=(of_topic,))


def test_all_offsets_of_a_group_are_fetched_in_steps(watched: Watched) -> None:
    node = watched.node
    raw = node.connect(BROKER_PORT)
    node.ask(raw, create("many", HELD), 5)
    node.run(2.0)
    answer: Any = node.ask(raw, committed_to("many", HELD), 8)
    assert {each.error_code for each in answer.topics[0].partitions} == {0}
    whole = group_offsets.OffsetFetchRequest(
        groups=(group_offsets.OffsetFetchRequestGroup(group_id="all", topics=None),)
    )
    found: Any = node.ask(raw, whole, 8)
    (topic,) = found.groups[0].topics
    assert [each.committed_offset for each in topic.partitions] == list(range(HELD))
    watched.check(lambda raw: node.send(raw, whole, 8, 7), 5)


def committed_to(name: str, count: int) -> Message:
    partitions = tuple(
        group_offsets.OffsetCommitRequestPartition(partition_index=each, committed_offset=each)
        for each in range(count)
    )
    topic = group_offsets.OffsetCommitRequestTopic(name=name, partitions=partitions)
    return group_offsets.OffsetCommitRequest(group_id="all", member_id="", topics=(topic,))


# ----------------------------------------------------------------------------- from the schemas


def crowds() -> Iterator[Any]:
    """Yield each array of each API that may have many elements."""
    for api in APIS.values():
        for path, field in places(
            api.request, api.max_version, api.max_version >= api.flexible_since
        ):
            if not field.array or field.tag is not None or most(api, field, "empty") < FEWEST:
                continue
            for fill in ("distinct", "empty"):
                yield pytest.param(api, path, field, fill, id=f"{api.name}-{'.'.join(path)}-{fill}")


def most(api: Api, field: Field, fill: str) -> int:
    """Return the largest valid number of elements of the array.

    Each element of a full array has one element of each array inside."""
    assert field.count is not None
    limit = min(field.count.limit, LIMITS.get(api.key, field.count.limit))
    version, flexible = api.max_version, api.max_version >= api.flexible_since
    inside = 0
    if field.struct is not None and fill != "empty":
        inside = sum(each.array for _, each in places(field.struct, version, flexible))
    return min(limit, (api.request.MAX_ELEMENTS - ELEMENTS_AROUND) // (1 + inside))


@pytest.mark.long
@pytest.mark.parametrize(("api", "path", "field", "fill"), list(crowds()))
def test_no_step_is_long_whatever_array_is_full(
    watched: Watched, api: Api, path: tuple[str, ...], field: Field, fill: str
) -> None:
    version = api.max_version
    flexible = version >= api.flexible_since
    elements = FILLS[fill](field, version, flexible, SIZE_BYTES)[: most(api, field, fill)]
    body = with_place(api.request, version, flexible, path, array(elements, flexible=flexible))
    frame = head_of(api.key, version) + body
    broker = watched.node.cluster.brokers[0].process
    assert broker is not None and broker.broker is not None
    handler = broker.broker.client_ports[0].routes[api.key]
    ruled = handler.raw and api.key not in (ApiKey.PRODUCE, ApiKey.FETCH)
    watched.check(lambda raw: raw.link.send(frame), RULED_LIMIT_MS if ruled else LIMIT_MS)
