"""The quotas of a broker's clients, on virtual time: throttle times, muted connections, and records
that are withheld. The requests are those of a client with the id "test"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.metrics.scrape import broker_metrics
from quorate.quorum.node.controller.controller_metrics import controller_metrics
from quorate.quorum.principal import Principal
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.client_quotas import (
    AlterationData,
    AlterClientQuotasRequest,
    AlteredEntityData,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster, Raw
from tests.ports.requests import READ, World, produced
from tests.ports.secured import ALICE, ROOT, secured_cluster

ME = {"client-id": "test"}


@pytest.fixture
def node(prepared: tuple[PortCluster, World]) -> Iterator[PortCluster]:
    node, _ = prepared
    yield node
    change(node, ME, producer_byte_rate=None, consumer_byte_rate=None, request_percentage=None)
    change(node, ME, controller_mutation_rate=None)
    change(node, {"ip": None}, connection_creation_rate=None)


def change(node: PortCluster, entity: Mapping[str, str | None], **quotas: Any) -> None:
    """Set the quotas, or remove those that are None, and wait until the nodes apply them."""
    request = AlterClientQuotasRequest(
        entries=(
            AlterationData(
                entity=tuple(
                    AlteredEntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ),
                ops=tuple(
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in quotas.items()
                ),
            ),
        ),
        validate_only=False,
    )
    raw = node.connect(CONTROLLERS_PORT)
    answer: Any = node.ask(raw, request, 1)
    assert [each.error_code for each in answer.entries] == [0], answer
    raw.link.abort()
    node.run(1.0)


def world_of(node: PortCluster) -> World:
    raw = node.connect(BROKER_PORT)
    read_id = node._topic_id(raw, READ)
    raw.link.abort()
    return World(node.broker_id, topic_id=read_id, read_id=read_id)


def described(node: PortCluster) -> Any:
    raw = node.connect(BROKER_PORT)
    component = ComponentData(entity_type="client-id", match_type=2, match=None)
    request = DescribeClientQuotasRequest(components=(component,), strict=False)
    answer: Any = node.ask(raw, request, 1)
    raw.link.abort()
    return [
        (
            [(p.entity_type, p.entity_name) for p in each.entity],
            {v.key: v.value for v in each.values},
        )
        for each in answer.entries
    ]


def silent_for(node: PortCluster, raw: Raw, throttle_ms: int) -> None:
    """Assert that the next request is not answered before the throttle time is over."""
    raw.frames.clear()
    begun_s = node.loop.time()
    node.send(raw, MetadataRequest(topics=()), 12, 9)
    node.until(lambda: raw.frames)
    waited_ms = (node.loop.time() - begun_s) * 1000
    assert throttle_ms - 100 <= waited_ms <= throttle_ms + 200


def test_a_quota_is_forwarded_and_described(node: PortCluster) -> None:
    raw = node.connect(BROKER_PORT)
    entity = (AlteredEntityData(entity_type="client-id", entity_name="test"),)
    op = OpData(key="producer_byte_rate", value=5e9, remove=False)
    entry = AlterationData(entity=entity, ops=(op,))
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    answer: Any = node.ask(raw, request, 0)
    assert [each.error_code for each in answer.entries] == [0]
    node.run(1.0)
    assert described(node) == [([("client-id", "test")], {"producer_byte_rate": 5e9})]


def test_a_producer_above_its_rate_is_muted(node: PortCluster) -> None:
    world = world_of(node)
    raw = node.connect(BROKER_PORT)
    request = produced(READ, world.read_id)
    assert node.ask(raw, request, 9).throttle_time_ms == 0  # type: ignore[attr-defined]
    change(node, ME, producer_byte_rate=10.0)
    answer: Any = node.ask(raw, request, 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE, "it is stored"
    assert answer.throttle_time_ms > 1000
    silent_for(node, raw, answer.throttle_time_ms)
    other = node.connect(BROKER_PORT)
    assert node.ask(other, MetadataRequest(topics=()), 12).throttle_time_ms == 0  # type: ignore[attr-defined]


def test_acks_0_is_muted_although_nothing_tells_the_client(node: PortCluster) -> None:
    world = world_of(node)
    change(node, ME, producer_byte_rate=10.0)
    raw = node.connect(BROKER_PORT)
    node.send(raw, replace(produced(READ, world.read_id), acks=0), 9, 1)
    begun_s = node.loop.time()
    node.run(0.1)
    node.send(raw, MetadataRequest(topics=()), 12, 9)
    node.until(lambda: raw.frames)
    assert node.loop.time() - begun_s > 1


def fetch(world: World, session: int, epoch: int, *, offset: int | None = 0) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset or 0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=READ, topic_id=world.read_id, partitions=(wanted,))
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session,
        session_epoch=epoch,
        topics=() if offset is None else (topic,),
    )


def error_of(answer: Any) -> int:
    """Return the error of a Produce to one partition."""
    error: int = answer.responses[0].partition_responses[0].error_code
    return error


def records_of(answer: Any) -> int:
    return sum(len(p.records or b"") for each in answer.responses for p in each.partitions)


def test_a_throttled_fetch_has_no_records_and_does_not_count(node: PortCluster) -> None:
    """KAFKA-6946: the session goes on, and the records arrive after the throttle time."""
    world = world_of(node)
    raw = node.connect(BROKER_PORT)
    first: Any = node.ask(raw, fetch(world, 0, 0), 12)
    size = records_of(first)
    assert size > 50
    assert first.session_id
    change(node, ME, consumer_byte_rate=float(size))
    second: Any = node.ask(raw, fetch(world, first.session_id, 1, offset=None), 12)
    assert records_of(second) == size
    throttled = 0
    for epoch in range(2, 40):
        answer: Any = node.ask(raw, fetch(world, first.session_id, epoch, offset=None), 12)
        assert answer.error_code == ErrorCode.NONE
        assert answer.session_id == first.session_id
        assert (records_of(answer) == 0) == (answer.throttle_time_ms > 0)
        throttled += answer.throttle_time_ms > 0
    assert throttled > 3
    change(node, ME, consumer_byte_rate=None)
    answer = node.ask(raw, fetch(world, first.session_id, 40, offset=None), 12)
    assert records_of(answer) == size


def test_a_throttled_full_fetch_begins_no_session(node: PortCluster) -> None:
    """KAFKA-9677: a batch that is larger than the quota reaches the consumer."""
    world = world_of(node)
    raw = node.connect(BROKER_PORT)
    change(node, ME, consumer_byte_rate=15.0)
    large: Any = node.ask(raw, fetch(world, 0, 0), 12)
    assert records_of(large), "more than the quota of all windows, after no use at all"
    assert large.throttle_time_ms > 0
    silent_for(node, raw, large.throttle_time_ms)
    answer: Any = node.ask(raw, fetch(world, 0, 0), 12)
    assert answer.throttle_time_ms > 0
    assert (answer.session_id, records_of(answer), answer.responses) == (0, 0, ())
    silent_for(node, raw, answer.throttle_time_ms)


def topic(name: str, partitions: int) -> CreateTopicsRequest:
    wanted = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(wanted,), timeout_ms=5000)


@pytest.mark.parametrize("address", [BROKER_PORT, CONTROLLERS_PORT])
def test_mutations_are_refused_and_the_client_is_muted(node: PortCluster, address: Any) -> None:
    """KAFKA-14215: forwarded requests count. The active controller counts them, and the port that
    the client uses mutes it."""
    node.run(30.0)  # an earlier debt is paid
    change(node, ME, controller_mutation_rate=1.0)
    raw = node.connect(address)
    name = f"quota-{address.port}"
    made: Any = node.ask(raw, topic(name, 13), 7)
    assert (made.topics[0].error_code, made.throttle_time_ms) == (0, 0)
    deleted = DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=5000)
    refused: Any = node.ask(raw, deleted, 6)
    assert refused.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 1000 < refused.throttle_time_ms <= 2000
    if address == BROKER_PORT:
        silent_for(node, raw, refused.throttle_time_ms)
    change(node, ME, controller_mutation_rate=None)
    other = node.connect(address)
    gone: Any = node.ask(other, deleted, 6)
    assert gone.responses[0].error_code == 0


def test_mutations_count_for_the_authenticated_user() -> None:
    """Forwarded or not, the quota of alice bounds her on all ports, and does not bound root."""
    with secured_cluster(allow_everyone_if_no_acl_found="true") as secured:
        change(secured.node, {"user": "alice"}, controller_mutation_rate=1.0)

        def made(name: str, principal: Principal, port: Any) -> int:
            answer: Any = secured.ask(principal, topic(name, 13), 7, port)
            code: int = answer.topics[0].error_code
            return code

        exceeded = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        for port in (BROKER_PORT, CONTROLLERS_PORT):
            assert made(f"alice-{port.port}", ALICE, port) == 0
            for other in (BROKER_PORT, CONTROLLERS_PORT):
                assert made("more", ALICE, other) == exceeded
            assert made(f"root-{port.port}", ROOT, port) == 0
            secured.node.run(30.0)  # the debt is paid


def test_the_size_of_a_fetch_is_bounded_by_the_quota_of_its_own_user() -> None:
    """KAFKA-9677: a quota of alice bounds her fetches, and those of other users do not."""
    with secured_cluster(allow_everyone_if_no_acl_found="true") as secured:
        raw = secured.connect(ALICE)
        for _ in range(3):
            assert not error_of(secured.node.ask(raw, produced(READ, secured.world.read_id), 9))

        def received() -> int:
            return records_of(secured.ask(ALICE, fetch(secured.world, 0, 0), 12))

        everything = received()
        change(secured.node, {"user": "ANONYMOUS"}, consumer_byte_rate=1.0)
        change(secured.node, {"user": None}, consumer_byte_rate=1.0)
        change(secured.node, {"user": "alice"}, consumer_byte_rate=1e9)
        assert received() == everything
        secured.node.run(30.0)  # the use so far is no longer in the windows
        change(secured.node, {"user": "alice"}, consumer_byte_rate=1.0)
        assert 0 < received() < everything


def test_connections_above_the_rate_of_their_address_are_closed(node: PortCluster) -> None:
    change(node, {"ip": None}, connection_creation_rate=1.0)
    opened = [node.connect(BROKER_PORT) for _ in range(14)]
    node.run(3.0)
    closed = sum(each.closed for each in opened)
    assert 1 <= closed <= 4
    for each in opened:
        each.link.abort()


def samples(node: PortCluster) -> dict[tuple[str, ...], float]:
    """Return the metrics of quotas of both nodes: (name, the values of its labels) to value."""
    (broker,), (controller,) = node.cluster.brokers, node.cluster.controllers
    assert broker.process is not None and broker.process.broker is not None
    assert controller.process is not None and controller.process.controller is not None
    rules = controller.process.controller
    families = (
        *broker_metrics(broker.process.broker),
        *controller_metrics(rules.core, rules.rules, rules.shell),
    )
    return {
        (each.name, *each.labels.values()): each.value
        for family in families
        for each in family.samples
        if "throttle" in each.name or "byte_rate" in each.name
    }


def test_rates_and_throttle_times_are_metrics(node: PortCluster) -> None:
    world = world_of(node)
    change(node, ME, producer_byte_rate=10.0)
    raw = node.connect(BROKER_PORT)
    before = samples(node)
    answer: Any = node.ask(raw, produced(READ, world.read_id), 9)
    after = samples(node)
    total = ("quorate_quota_throttled_total", "producer_byte_rate")
    assert after[total] == before[total] + 1
    time_s = ("quorate_quota_throttle_seconds_total", "producer_byte_rate")
    took_s = after[time_s] - before[time_s]
    assert took_s == pytest.approx(answer.throttle_time_ms / 1000)
    assert after["kafka_server_produce_byte_rate", "", "test"] > 10
    assert after["kafka_server_produce_throttle_time", "", "test"] > 0
    assert ("quorate_controller_mutations_throttled_total",) in after


def test_the_removal_of_a_default_quota_is_effective(node: PortCluster) -> None:
    """KAFKA-9658: the quota of all users counted until the broker restarted."""
    world = world_of(node)
    request = produced(READ, world.read_id)
    change(node, {"user": None}, producer_byte_rate=10.0)
    throttled: Any = node.ask(node.connect(BROKER_PORT), request, 9)
    assert throttled.throttle_time_ms > 1000
    change(node, {"user": None}, producer_byte_rate=None)
    free: Any = node.ask(node.connect(BROKER_PORT), request, 9)
    assert free.throttle_time_ms == 0
