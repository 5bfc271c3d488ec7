"""The configuration of a node from a file, the environment and overrides."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import get_args

import pytest

import quorate.config
from quorate.config.key import ConfigError
from quorate.config.loader import environment_key, load
from quorate.config.network_keys import MAX_RACK_BYTES
from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import (
    effective_topic_configs,
    topic_defaults,
    validate_topic_configs,
)
from quorate.quorum.node_message_bounds import Bytes, Rack

BROKER = """\
process.roles=broker
node.id=4
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://localhost:9092
controller.listener.names=CONTROLLER
log.dirs=/tmp/x
"""
# The content of config/server.properties in Kafka 4.1.
KAFKA_SAMPLE = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
log.retention.hours=168
log.segment.bytes=1073741824
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of the .properties file."""
    return tmp_path / "server.properties"


def loaded(file: Path, text: str, **variables: str) -> NodeConfig:
    """Write the file, and load it with these environment variables."""
    file.write_text(text)
    return load(str(file), environment=variables, hostname="here")


def test_values_are_typed_and_know_where_they_come_from(file: Path) -> None:
    config = loaded(file, BROKER + "broker.session.timeout.ms=8000\n", KAFKA_BROKER_RACK="r1")
    assert config["broker.session.timeout.ms"] == 8000
    assert config.origin("broker.session.timeout.ms") == f"{file}:7"
    assert config["broker.rack"] == "r1"
    assert config.origin("broker.rack") == "environment KAFKA_BROKER_RACK"
    assert config["replica.lag.time.max.ms"] == 30_000
    assert config.origin("replica.lag.time.max.ms") == "default"
    assert (config.node_id, config.roles, config.log_dir) == (4, ("broker",), "/tmp/x")
    assert config.metadata_log_dir == "/tmp/x"


def test_overrides_win_over_the_environment_and_that_over_the_file(file: Path) -> None:
    file.write_text(BROKER + "num.partitions=1\n")
    environment = {"KAFKA_NUM_PARTITIONS": "2"}
    assert load(str(file), environment=environment)["num.partitions"] == 2
    config = load(str(file), environment=environment, overrides={"num.partitions": "3"})
    assert (config["num.partitions"], config.origin("num.partitions")) == (3, "override")


def test_the_environment_alone_describes_a_node() -> None:
    config = load(
        None,
        environment={
            "KAFKA_PROCESS_ROLES": "controller",
            "KAFKA_NODE_ID": "1",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
            "KAFKA_LISTENERS": "CONTROLLER://localhost:9093",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qg",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "PATH": "/bin",
        },
    )
    assert config.is_controller
    assert config.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
    assert not config.unknown


def test_names_in_the_environment() -> None:
    assert environment_key("KAFKA_A_B__C___D") == "a.b_c-d"


def test_a_real_kafka_file_loads_with_one_warning(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        config = loaded(file, KAFKA_SAMPLE)
    assert len(caplog.records) == 1
    assert "num.io.threads, num.network.threads" in caplog.text
    assert config.unknown["num.io.threads"].text == "8"
    assert config.bootstrap_servers == (("localhost", 9093),)


def test_broker_id_is_the_old_name_of_node_id(file: Path) -> None:
    assert loaded(file, BROKER.replace("node.id", "broker.id")).node_id == 4


def test_a_key_that_stands_twice_is_told(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = loaded(file, BROKER + "num.partitions=1\nnum.partitions=2\n")
    assert config["num.partitions"] == 2
    assert f"{file}:8: num.partitions is set twice" in caplog.text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("num.partitions=x", ":7: num.partitions: value 'x' must be a whole number"),
        ("num.partitions=0", ":7: num.partitions: value '0' must be at least 1"),
        ("num.partitions=3000000000", ":7: num.partitions: value '3000000000' must be a whole"),
        ("num.partitions=1_0", ":7: num.partitions: value '1_0' must be a whole number"),
        ("delete.topic.enable=yes", ":7: delete.topic.enable: value 'yes' must be true or false"),
        ("compression.type=rar", ":7: compression.type: value 'rar' must be one of uncompressed"),
        ("log.cleanup.policy=", ":7: log.cleanup.policy: value '' must be not empty"),
        ("process.roles=zookeeper", ":7: process.roles: value 'zookeeper' must be one of broker"),
        ("log.dirs=/a,/a", ":7: log.dirs: value '/a,/a' must name /a only once"),
        ("listeners=nonsense", ":7: listeners: value 'nonsense' must be NAME://host:port"),
        ("controller.quorum.voters=4@a:1", ":7: controller.quorum.voters: must not name node.id 4"),
        ("listener.security.protocol.map=PLAINTEXT:SSL", ":7: listener.security.protocol.map: val"),
        ("broker.heartbeat.interval.ms=9000", ":7: broker.heartbeat.interval.ms: value '9000'"),
        ("quorate.http.host.names=a:9092", ":7: quorate.http.host.names: value 'a:9092' must be"),
        ("quorate.http.host.names=*", ":7: quorate.http.host.names: value '*' must be host names"),
        ("process.roles=broker,broker", ":7: process.roles: value 'broker,broker' must be a list"),
        ("broker.rack=a\\u0000b", ":7: broker.rack: value 'a\\x00b' must be UTF-8 text without"),
        (f"broker.rack={'x' * 1001}", f":7: broker.rack: value '{'x' * 1001}' must be at most"),
        ("log.dirs=/a\\u0000b", ":7: log.dirs: value '/a\\x00b' must be UTF-8 text without NUL"),
        ("controller.quorum.voters=99999999999@a:1", ":7: controller.quorum.voters: value"),
        (f"controller.quorum.voters={'9' * 5000}@a:1", ":7: controller.quorum.voters: value"),
        (f"listeners=PLAINTEXT://a:{'9' * 5000}", ":7: listeners: value 'PLAINTEXT://a:999"),
        (
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTERNAL:TLS",
            ":7: listener.security.protocol.map: value 'TLS' of listener EXTERNAL must be PLAINT",
        ),
        ("log.cleaner.min.cleanable.ratio=0_1", ":7: log.cleaner.min.cleanable.ratio: value '0_1'"),
        (
            "metadata.log.segment.ms=-1",
            ":7: metadata.log.segment.ms: value '-1' must be at least",
        ),
        ("replica.fetch.wait.max.ms=30001", ":7: replica.fetch.wait.max.ms: value '30001'"),
    ],
)
def test_errors_name_file_line_key_value_and_what_is_allowed(
    file: Path, line: str, message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(file, BROKER + line + "\n")
    assert str(raised.value).startswith(f"{file}{message}")


def test_a_link_to_another_log_directory_is_refused(file: Path) -> None:
    """The format said that a running node used the directory."""
    first, link = file.parent / "a", file.parent / "b"
    link.symlink_to(first)
    assert loaded(file, f"{BROKER}log.dirs={link}\n").log_dirs == (str(link),)
    with pytest.raises(ConfigError, match=r"a and .*b must not be the same directory"):
        loaded(file, f"{BROKER}log.dirs={first},{link}\n")


def test_a_variable_that_is_not_utf_8_is_refused(file: Path) -> None:
    """The broker's registration could not hold it, and the node stopped."""
    with pytest.raises(ConfigError, match=r"^environment KAFKA_BROKER_RACK: broker\.rack: value"):
        loaded(file, BROKER, KAFKA_BROKER_RACK="\udcff")


def test_the_longest_rack_fits_a_registration() -> None:
    assert get_args(Rack)[1] == Bytes(MAX_RACK_BYTES)


@pytest.mark.parametrize("key", ["process.roles", "node.id", "controller.quorum.voters"])
def test_what_must_be_set(file: Path, key: str) -> None:
    text = "".join(line for line in BROKER.splitlines(True) if not line.startswith(key))
    with pytest.raises(ConfigError, match=f"^{key}: must be set"):
        loaded(file, text)


def test_the_names_that_http_is_asked_by(file: Path) -> None:
    """A scraper addresses a controller by its host in controller.quorum.voters."""
    text = """\
process.roles=controller
node.id=2
controller.quorum.voters=1@quorate-1:9093,2@quorate-2:9093
listeners=CONTROLLER://:9093
controller.listener.names=CONTROLLER
log.dirs=/tmp/x
"""
    assert loaded(file, text).host_names == ("here", "quorate-2")
    config = loaded(file, text + "quorate.http.host.names=metrics.example,quorate-2\n")
    assert config.host_names == ("here", "quorate-2", "metrics.example")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties: cannot be read"):
        load(str(tmp_path / "nowhere.properties"), environment={})


@pytest.mark.parametrize("name", ["controller", "broker", "server"])
def test_the_files_that_come_with_it_load(name: str) -> None:
    directory = Path(quorate.config.__file__).parent
    config = load(str(directory / f"{name}.properties"), environment={})
    assert not config.unknown


def test_topic_defaults_come_from_the_first_node_key_that_is_set(file: Path) -> None:
    text = BROKER + "log.retention.hours=2\nlog.roll.ms=77\nmin.insync.replicas=2\n"
    defaults = topic_defaults(loaded(file, text))
    assert defaults["retention.ms"] == 2 * 3_600_000
    assert defaults["segment.ms"] == 77
    assert defaults["min.insync.replicas"] == 2
    assert defaults["cleanup.policy"] == ("delete",)
    unlimited = topic_defaults(loaded(file, BROKER + "log.retention.minutes=-1\n"))
    assert unlimited["retention.ms"] == -1


def test_without_settings_a_node_gives_topics_kafkas_defaults(file: Path) -> None:
    defaults = topic_defaults(loaded(file, BROKER))
    assert defaults["retention.ms"] == 604_800_000
    assert defaults["segment.ms"] == 604_800_000
    assert defaults["segment.bytes"] == 1_073_741_824
    assert defaults["flush.ms"] == 2**63 - 1


def test_a_topics_own_configs_win() -> None:
    merged = effective_topic_configs(
        {"retention.ms": "1", "gone.in.kafka.5": "x"}, {"retention.ms": 2, "preallocate": False}
    )
    assert merged == {"retention.ms": 1, "preallocate": False}


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"remote.storage.enable": "true"}, "Unknown topic config name: remote.storage.enable"),
        ({"retention.ms": "-2"}, "retention.ms: value '-2' must be at least -1"),
        ({"cleanup.policy": "zap"}, "cleanup.policy: value 'zap' must be one of compact, delete"),
        (
            {"min.cleanable.dirty.ratio": "1.5"},
            "min.cleanable.dirty.ratio: value '1.5' must be bet",
        ),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
            "min.compaction.lag.ms: value '5' must be at most max.compaction.lag.ms (4)",
        ),
        ({"leader.replication.throttled.replicas": "1"}, "leader.replication.throttled.replicas: "),
    ],
)
def test_topic_configs_are_validated(configs: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        validate_topic_configs(configs)
    assert str(raised.value).startswith(message)


def test_good_topic_configs_pass() -> None:
    validate_topic_configs(
        {
            "cleanup.policy": "compact,delete",
            "leader.replication.throttled.replicas": "0:1,1:2",
            "follower.replication.throttled.replicas": "*",
            "compression.gzip.level": "-1",
        }
    )


def test_the_data_directory(file: Path) -> None:
    without = BROKER.replace("log.dirs=/tmp/x\n", "")
    assert loaded(file, without).log_dir == "/tmp/kafka-logs"
    config = loaded(file, without + "log.dir=/one\n")
    assert (config.log_dir, config.metadata_log_dir) == ("/one", "/one")
    config = loaded(file, BROKER + "log.dir=/one\nmetadata.log.dir=/two\n")
    assert (config.log_dir, config.metadata_log_dir) == ("/tmp/x", "/two")
    assert config.directories == ("/two", "/tmp/x")
    config = loaded(file, without + "log.dirs=/one, /two/,/three\nmetadata.log.dir=/three\n")
    assert config.log_dirs == ("/one", "/two", "/three")
    assert config.directories == ("/three", "/one", "/two")
    assert loaded(file, without + "log.dir=/one,/two\n").log_dirs == ("/one", "/two")
    with pytest.raises(ConfigError, match="names 101 directories, at most 100"):
        loaded(file, without + f"log.dirs={','.join(f'/{i}' for i in range(101))}\n")
