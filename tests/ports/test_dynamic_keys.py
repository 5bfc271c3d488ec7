"""Each dynamic key is applied while the nodes run: for all brokers, for one, and back to the file.

The values are read where the code with the effect reads them. The effects themselves are shown by
the tests that `tests/unit/config/key_effects.txt` names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from quorate.broker.logs.log_cleaner import LogCleaner
from quorate.broker.node import BrokerNode
from quorate.config.dynamic_broker_keys import DYNAMIC_BROKER_KEYS
from quorate.config.dynamic_keys import DYNAMIC_KEYS, SETTABLE, AppliedBy
from quorate.config.key import Kind
from quorate.quorum.controller.partitions.unclean_elections import Strategy, strategy_of
from quorate.quorum.controller.state.result import Result
from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.node.peers.node_tls import NodeTls
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionLimits
from quorate.quorum.sasl.scram_mechanisms import SHA_256
from quorate.quorum.sasl.unknown_users import unknown_user
from tests.ports.node import BROKER_ID, BROKER_PORT, PortCluster, running
from tests.ports.requests import READ

BROKER = 4
SET, DELETE = 0, 1


class Nodes:
    """The running broker and controller, and the means to change their dynamic configs."""

    def __init__(self, cluster: PortCluster) -> None:
        self.cluster = cluster
        cluster.prepared()
        self.client = cluster.connect(BROKER_PORT)

    @property
    def broker(self) -> BrokerNode:
        process = self.cluster.cluster.brokers[0].process
        assert process is not None and process.broker is not None
        return process.broker

    @property
    def controller(self) -> ControllerNode:
        process = self.cluster.cluster.controllers[0].process
        assert process is not None and process.controller is not None
        return process.controller

    def alter(self, name: str, *changes: tuple[str, str | None]) -> tuple[int, str | None]:
        """Set the configs of a broker, or delete those whose value is None. Return the error and
        its message when the broker has replayed the change."""
        resource = IncrementalAlterConfigsResource(
            resource_type=BROKER,
            resource_name=name,
            configs=tuple(
                IncrementalAlterableConfig(
                    name=key, config_operation=DELETE if text is None else SET, value=text
                )
                for key, text in changes
            ),
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        answer: Any = self.cluster.ask(self.client, request, 1)
        self.cluster.run(1.0)
        (result,) = answer.responses
        return result.error_code, result.error_message

    def described(self, name: str, key: str) -> Any:
        """Return the description of one config with its synonyms, or None."""
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=name, configuration_keys=(key,)
        )
        request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
        answer: Any = self.cluster.ask(self.client, request, 4)
        (result,) = answer.results
        assert result.error_code == 0
        return result.configs[0] if result.configs else None

    def partition(self) -> Any:
        """Return a partition of a topic without configs of its own."""
        registry = self.broker.replicas.registry
        return next(each for each in registry if each.topic == READ)

    def default(self, key: str) -> object:
        """Return the default of a topic key, from which the settings of each topic are made."""
        settings: Any = self.broker.replicas._applier._configuration._topic_settings
        return settings._defaults[key]

    def limits(self) -> tuple[ConnectionLimits, ConnectionLimits]:
        return self.broker.connections.limits, self.controller.port._connections.limits

    def cleaner(self) -> Any:
        cleaner: LogCleaner = self.broker.replicas.cleaner
        return cleaner.settings


@contextmanager
def nodes() -> Iterator[Nodes]:
    with running() as cluster:
        yield Nodes(cluster)


@pytest.fixture(scope="module")
def shared() -> Iterator[Nodes]:
    """Nodes for the tests that delete again what they set."""
    with nodes() as started:
        yield started


def both(read: Callable[[ConnectionLimits], object]) -> Callable[[Nodes], object]:
    """Read a limit of the broker's connections and of the controller's."""
    return lambda n: tuple(read(each) for each in n.limits())


Read = Callable[[Nodes], object]
PLACES: dict[str, tuple[str, Read, object]] = {
    # key: (text, the value that the code reads, the expected value)
    "compression.gzip.level": ("7", lambda n: n.default("compression.gzip.level"), 7),
    "compression.lz4.level": ("7", lambda n: n.default("compression.lz4.level"), 7),
    "compression.zstd.level": ("7", lambda n: n.default("compression.zstd.level"), 7),
    "compression.type": (
        "lz4",
        lambda n: n.partition().partition.settings.compression is not None,
        True,
    ),
    "follower.replication.throttled.rate": (
        "77",
        lambda n: n.broker.replicas.follower_throttle.limit,
        77,
    ),
    "leader.replication.throttled.rate": (
        "77",
        lambda n: n.broker.replicas.leader_throttle.limit,
        77,
    ),
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "77",
        lambda n: n.broker.replicas.move_throttle.limit,
        77,
    ),
    "log.cleaner.backoff.ms": ("77", lambda n: n.cleaner().backoff_ms, 77),
    "log.cleaner.dedupe.buffer.size": (
        "7777777",
        lambda n: n.cleaner().dedupe_buffer_bytes,
        7777777,
    ),
    "log.cleaner.delete.retention.ms": (
        "77",
        lambda n: n.partition().partition.settings.compaction.delete_retention_ms,
        77,
    ),
    "log.cleaner.io.buffer.load.factor": ("0.5", lambda n: n.cleaner().load_factor, 0.5),
    "log.cleaner.io.buffer.size": ("7777", lambda n: n.cleaner().io_buffer_bytes, 7777),
    "log.cleaner.io.max.bytes.per.second": (
        "77.0",
        lambda n: n.cleaner().io_max_bytes_per_second,
        77,
    ),
    "log.cleaner.max.compaction.lag.ms": (
        "77",
        lambda n: n.partition().partition.settings.compaction.max_lag_ms,
        77,
    ),
    "log.cleaner.min.cleanable.ratio": (
        "0.25",
        lambda n: n.partition().partition.settings.compaction.min_dirty_ratio,
        0.25,
    ),
    "log.cleaner.min.compaction.lag.ms": (
        "77",
        lambda n: n.partition().partition.settings.compaction.min_lag_ms,
        77,
    ),
    "log.cleaner.threads": ("2", lambda n: n.cleaner().threads, 2),
    "log.cleanup.policy": (
        "compact",
        lambda n: n.partition().partition.settings.compacted,
        True,
    ),
    "log.flush.interval.messages": (
        "77",
        lambda n: n.partition().log.settings.flush_messages,
        77,
    ),
    "log.flush.interval.ms": ("77", lambda n: n.partition().log.settings.flush_ms, 77),
    "log.index.interval.bytes": (
        "77",
        lambda n: n.partition().log.settings.index_interval_bytes,
        77,
    ),
    "log.index.size.max.bytes": (
        "77",
        lambda n: n.partition().log.settings.index_max_bytes,
        77,
    ),
    "log.message.timestamp.after.max.ms": (
        "77",
        lambda n: n.partition().partition.settings.timestamp_after_max_ms,
        77,
    ),
    "log.message.timestamp.before.max.ms": (
        "77",
        lambda n: n.partition().partition.settings.timestamp_before_max_ms,
        77,
    ),
    "log.message.timestamp.type": (
        "LogAppendTime",
        lambda n: n.partition().partition.settings.log_append_time,
        True,
    ),
    "log.preallocate": ("true", lambda n: n.partition().log.settings.preallocate, True),
    "log.retention.bytes": (
        "7777777",
        lambda n: n.partition().log.settings.retention_bytes,
        7777777,
    ),
    "log.retention.ms": ("777777", lambda n: n.partition().log.settings.retention_ms, 777777),
    "log.roll.jitter.ms": ("77", lambda n: n.partition().log.settings.segment_jitter_ms, 77),
    "log.roll.ms": ("7777777", lambda n: n.partition().log.settings.segment_ms, 7777777),
    "log.segment.bytes": (
        "7777777",
        lambda n: n.partition().log.settings.segment_bytes,
        7777777,
    ),
    "log.segment.delete.delay.ms": (
        "77",
        lambda n: {
            n.partition().log.settings.file_delete_delay_ms,
            *(each.delete_delay_ms for each in n.broker.replicas.logs.directories),
        },
        {77},
    ),
    "max.connection.creation.rate": ("77", both(lambda limits: limits.max_creation_rate), (77, 77)),
    "max.connections": ("77", both(lambda limits: limits.max_connections), (77, 77)),
    "max.connections.per.ip": (
        "77",
        both(lambda limits: limits.max_connections_per_ip),
        (77, 77),
    ),
    "max.connections.per.ip.overrides": (
        "10.0.0.1:5",
        both(lambda limits: limits.max_of_host("10.0.0.1")),
        (5, 5),
    ),
    "message.max.bytes": (
        "7777",
        lambda n: n.partition().partition.settings.max_message_bytes,
        7777,
    ),
    "min.insync.replicas": (
        "7",
        lambda n: n.partition().partition.settings.min_insync_replicas,
        7,
    ),
    "num.replica.fetchers": ("2", lambda n: n.broker.replicas.fetchers._count, 2),
    "producer.id.expiration.ms": (
        "77",
        lambda n: n.partition().partition.settings.producer_id_expiration_ms,
        77,
    ),
    "quorate.sasl.scram.secret": (
        "s" * 32,
        lambda n: n.broker.unknown_users.credential(SHA_256, "u").salt,
        unknown_user(b"s" * 32, SHA_256, "u").salt,
    ),
    "unclean.leader.election.enable": (
        "true",
        lambda n: strategy_of(n.controller.rules._context, READ),
        Strategy.AGGRESSIVE,
    ),
    "unclean.recovery.strategy": (
        "balanced",
        lambda n: strategy_of(n.controller.rules._context, READ),
        Strategy.BALANCED,
    ),
}
"""Each key that can be set: where its value is read."""
CONTROLLERS_ONLY = ("unclean.leader.election.enable", "unclean.recovery.strategy")
"""The keys that only the active controller applies."""
ONE_VALUE = ("min.insync.replicas",)
"""The keys that no single broker may have while ELR is on, and whose default cannot be deleted."""


def is_secret(name: str) -> bool:
    return SETTABLE[name].kind is Kind.PASSWORD


def test_every_key_that_can_be_set_has_its_place() -> None:
    assert PLACES.keys() == SETTABLE.keys()


@pytest.mark.parametrize("name", SETTABLE)
def test_a_dynamic_key_is_applied_without_a_restart(shared: Nodes, name: str) -> None:
    text, read, expected = PLACES[name]
    file = read(shared)
    assert file != expected, "the value of the file is no evidence"
    assert shared.alter("", (name, text)) == (0, None)
    assert read(shared) == expected
    found = shared.described(str(BROKER_ID), name)
    secret = is_secret(name)
    assert (found.value, found.config_source) == (None if secret else text, 3)
    assert found.is_sensitive == secret
    assert all((each.value is None) == secret for each in found.synonyms)
    assert found.read_only == (name in DYNAMIC_BROKER_KEYS), "as Kafka describes them"
    if name not in ONE_VALUE:
        assert shared.alter("", (name, None)) == (0, None)
        assert read(shared) == file
        assert shared.described("", name) is None


@pytest.mark.parametrize("name", [each for each in SETTABLE if each not in ONE_VALUE])
def test_a_dynamic_key_of_one_broker_is_applied_by_it_alone(shared: Nodes, name: str) -> None:
    text, read, expected = PLACES[name]
    if DYNAMIC_KEYS[name].applied_by is AppliedBy.CONNECTIONS:
        assert isinstance(expected, tuple)
        expected = expected[0]  # the controller is another node
    file = read(shared)
    assert shared.alter(str(BROKER_ID), (name, text)) == (0, None)
    found = shared.described(str(BROKER_ID), name)
    assert (found.value, found.config_source) == (None if is_secret(name) else text, 2)
    now = read(shared)
    if isinstance(now, tuple):
        assert isinstance(file, tuple)
        assert now == (expected, file[1])
    elif name in CONTROLLERS_ONLY:
        assert now == file
    else:
        assert now == expected
    assert shared.alter(str(BROKER_ID), (name, None)) == (0, None)
    assert read(shared) == file


def test_a_restarted_broker_applies_the_stored_configs() -> None:
    with nodes() as running_nodes:
        assert running_nodes.alter("", ("max.connections", "77")) == (0, None)
        broker = running_nodes.cluster.cluster.brokers[0]
        running_nodes.cluster.cluster.kill(broker)
        running_nodes.cluster.run(0.5)
        running_nodes.cluster.cluster.start(broker)
        running_nodes.cluster.until(running_nodes.cluster._serves)
        running_nodes.cluster.run(1.0)
        assert running_nodes.broker.connections.limits.max_connections == 77


def test_a_broker_serves_no_client_before_its_dynamic_tls_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise its first clients could see the certificate of the file."""
    held: list[Callable[[], None]] = []
    with nodes() as running_nodes:
        cluster = running_nodes.cluster
        broker = cluster.cluster.brokers[0]
        cluster.cluster.kill(broker)
        monkeypatch.setattr(NodeTls, "when_settled", lambda self, done: held.append(done))
        cluster.cluster.start(broker)
        cluster.run(5.0)
        assert held and not running_nodes.broker._serving
        held[0]()
        cluster.until(cluster._serves)


def test_the_synonyms_are_in_the_order_of_precedence() -> None:
    name = "log.retention.ms"
    with running(log_retention_ms="5000000") as cluster:
        running_nodes = Nodes(cluster)
        assert running_nodes.alter("", (name, "6000000")) == (0, None)
        assert running_nodes.alter(str(BROKER_ID), (name, "7000000")) == (0, None)
        found = running_nodes.described(str(BROKER_ID), name)
        assert [(each.name, each.value, each.source) for each in found.synonyms] == [
            (name, "7000000", 2),
            (name, "6000000", 3),
            (name, "5000000", 4),
            ("log.retention.hours", "168", 5),
        ]
        found = running_nodes.described("", name)
        assert (found.value, found.config_source) == ("6000000", 3)


def test_a_stored_config_without_an_effect_is_ignored_named_and_can_be_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An earlier version accepted unknown keys of brokers."""
    stored = [
        ConfigRecord(resource_type=BROKER, resource_name=name, name=key, value=value)
        for name, key, value in (
            ("", "own.of.all", "secret"),
            (str(BROKER_ID), "own.of.one", "secret"),
            ("", "max.connections", "none"),
        )
    ]
    with nodes() as running_nodes, caplog.at_level(logging.WARNING):
        shell = running_nodes.controller.shell
        shell.handle_event(lambda now_ms, _: Result(stored))
        running_nodes.cluster.run(1.0)
        assert "own.of.all" in caplog.text
        assert "secret" not in caplog.text
        assert running_nodes.broker.connections.limits.max_connections > 1
        found = running_nodes.described("", "own.of.all")
        assert (found.value, found.is_sensitive, found.config_source) == (None, True, 3)
        found = running_nodes.described(str(BROKER_ID), "own.of.one")
        assert (found.value, found.is_sensitive, found.config_source) == (None, True, 2)
        found = running_nodes.described(str(BROKER_ID), "max.connections")
        assert found.config_source == 5, "an invalid value is not in force"
        assert running_nodes.alter("", ("own.of.all", None), ("max.connections", None)) == (0, None)
        assert running_nodes.alter(str(BROKER_ID), ("own.of.one", None)) == (0, None)
        assert running_nodes.described("", "own.of.all") is None
        assert running_nodes.described(str(BROKER_ID), "own.of.one") is None


def test_unknown_and_read_only_keys_are_refused() -> None:
    """KAFKA-13609: the error is INVALID_REQUEST."""
    with nodes() as running_nodes:
        for key in ("a.plugins.own", "log.dirs", "num.io.threads", "ssl.keystore.location"):
            for name in ("", str(BROKER_ID)):
                error, message = running_nodes.alter(name, (key, "1"))
                assert error == 42
                assert message is not None and key in message
                assert running_nodes.described("", key) is None


def test_a_controller_applies_its_own_configs() -> None:
    with nodes() as running_nodes:
        own = ConfigRecord(
            resource_type=BROKER, resource_name="1", name="max.connections", value="7"
        )
        running_nodes.controller.shell.handle_event(lambda now_ms, _: Result([own]))
        running_nodes.cluster.run(1.0)
        broker, controller = running_nodes.limits()
        assert controller.max_connections == 7
        assert broker.max_connections > 7


def test_a_controller_applies_the_configs_of_a_snapshot() -> None:
    """A loaded image has no delta."""
    with nodes() as running_nodes:
        controller = running_nodes.controller
        image = controller.core.image
        record = ConfigRecord(
            resource_type=BROKER, resource_name="", name="max.connections", value="7"
        )
        end = EpochOffset(image.last.epoch, image.last.offset + 1)
        later, _ = replay(image, [record], end, 0)
        finished(controller._prepare_load(later))()
        assert controller.port._connections.limits.max_connections == 7
