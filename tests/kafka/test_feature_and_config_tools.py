"""Kafka's FeatureCommand and ConfigCommand against one node of Apache Kafka and one of Quorate.

Most commands print the same on both sides. The tables name every other one, with the sentence that
Quorate's node answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.golden.nodes import KAFKA, QUORATE
from tests.kafka.one_node import OneNode
from tests.kafka.tools import Ended, kafka, missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

ELR = "eligible.leader.replicas.version"
FAILED = "The update failed for all features since the following feature had an error: "
FEATURES = (
    # (arguments, a part of the output): the same output, in this order
    ("version-mapping", "metadata.version=27 (4.1-IV1)"),
    ("version-mapping --release-version 4.0", "metadata.version=25 (4.0)"),
    (f"feature-dependencies --feature {ELR}=1", "metadata.version=23 (4.0-IV1)"),
    (f"upgrade --feature {ELR}=1 --dry-run", f"{ELR} can be upgraded to 1."),
    ("downgrade --feature metadata.version=24", "metadata.version was downgraded to 24."),
    ("upgrade --metadata 4.1-IV1", "metadata.version was upgraded to 27."),
    (f"disable --feature {ELR}", f"{ELR} was disabled."),
    (f"upgrade --feature {ELR}=1", f"{ELR} was upgraded to 1."),
    ("upgrade --feature no.such=1", "Local controller 1 does not support this feature."),
)
OUT_OF_RANGE = (
    "downgrade --metadata 3.9-IV0",
    "downgrade --unsafe --metadata 3.4-IV0",
    "upgrade --feature metadata.version=99",
    "disable --feature metadata.version",
)
"""Both refuse these. Kafka supports versions from 7 on (docs/differences.md)."""
ALTERED = (
    # (entity, added config)
    ("--entity-type topics --entity-name t", "retention.ms=1000"),
    ("--entity-type brokers --entity-name 1", "log.retention.ms=70000"),
    ("--entity-type brokers --entity-default", "log.retention.ms=80000"),
    ("--entity-type users --entity-name u", "producer_byte_rate=1000"),
    ("--entity-type clients --entity-name c", "consumer_byte_rate=2000"),
    ("--entity-type users --entity-name u --entity-type clients --entity-default",
     "request_percentage=50"),
    ("--entity-type ips --entity-name 127.0.0.1", "connection_creation_rate=100"),
)  # fmt: skip
NO_CONFIGS = "resource type {} has no configs here: name 2 (topic) or 4 (broker)"
REFUSED = (
    # (arguments, Quorate's sentence): Apache Kafka accepts them
    ("--describe --entity-type broker-loggers --entity-name 1", NO_CONFIGS.format(8)),
    ("--alter --entity-type groups --entity-name g --add-config consumer.session.timeout.ms=50000",
     "only groups of the classic protocol exist here"),
    ("--alter --entity-type client-metrics --entity-name m --add-config interval.ms=5000",
     NO_CONFIGS.format(16)),
)  # fmt: skip


class Sides:
    """The two nodes. Both run a command at the same time."""

    def __init__(self, theirs: OneNode, ours: OneNode) -> None:
        self.ports = (theirs.port, ours.port)

    def run(self, tool: str, arguments: str) -> tuple[Ended, Ended]:
        """Return what Kafka's tool prints for Kafka's node, and for ours."""
        words = arguments.split()

        def one(port: int) -> Ended:
            return kafka(tool, "--bootstrap-server", f"127.0.0.1:{port}", *words)

        with ThreadPoolExecutor(2) as both:
            theirs, ours = both.map(one, self.ports)
        return theirs, ours

    def same(self, tool: str, arguments: str) -> list[str]:
        theirs, ours = self.run(tool, arguments)
        assert (ours.code, ours.lines) == (theirs.code, theirs.lines), (arguments, ours.errors)
        return ours.lines


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("features-and-configs")
    with (
        OneNode(root / "kafka", KAFKA).running() as theirs,
        OneNode(root / "quorate", QUORATE).running() as ours,
    ):
        yield Sides(theirs, ours)


def described(ended: Ended) -> dict[str, str]:
    """Return the versions of each feature, without the epoch."""
    rows = (re.match(r"Feature: (\S+)\t(.*)\tEpoch: \d+$", each) for each in ended.lines)
    return {row[1]: row[2] for row in rows if row is not None}


def test_feature_command_prints_the_same(sides: Sides) -> None:
    for arguments, part in FEATURES:
        assert part in "\n".join(sides.same("features", arguments)), arguments


def test_both_refuse_the_versions_that_quorate_does_not_have(sides: Sides) -> None:
    for arguments in OUT_OF_RANGE:
        theirs, ours = sides.run("features", arguments)
        assert theirs.code == ours.code == 1, arguments
        assert "only supports versions 23-27" in "\n".join(ours.lines), arguments


def test_feature_command_describes_the_features_that_both_have(sides: Sides) -> None:
    theirs, ours = map(described, sides.run("features", "describe"))
    assert set(ours) == {ELR, "kraft.version", "metadata.version"}
    both = {name: theirs[name] for name in ours}
    name = "metadata.version"
    both[name] = both[name].replace("MinVersion: 3.3-IV3", "MinVersion: 4.0-IV1")
    assert ours == both
    assert set(theirs) - set(ours) == {"group.version", "share.version", "transaction.version"}


def test_a_whole_release_is_refused_because_it_names_unknown_features(
    sides: Sides,
) -> None:
    """Each release names levels of group.version and transaction.version. A finalized level would
    tell clients of APIs that do not exist here."""
    theirs, ours = sides.run("features", "upgrade --release-version 4.1 --dry-run")
    assert theirs.code == 0
    assert ours.code == 1
    text = "these features do not exist here: group.version, transaction.version. Name the others"
    assert all(text in each for each in ours.lines), ours.lines
    assert len(ours.lines) == len(theirs.lines) == 5


def test_config_command_changes_and_describes_each_entity(sides: Sides) -> None:
    assert sides.same("topics", "--create --topic t") == ["Created topic t."]
    for entity, config in ALTERED:
        (line,) = sides.same("configs", f"--alter {entity} --add-config {config}")
        assert line.startswith("Completed updating"), line
        key = config.partition("=")[0]
        shown = sides.same("configs", f"--describe {entity}")
        assert any(key in each for each in shown), shown
        sides.same("configs", f"--alter {entity} --delete-config {key}")
        assert not any(key in each for each in sides.same("configs", f"--describe {entity}"))


def test_config_command_is_refused_with_a_sentence(sides: Sides) -> None:
    for arguments, sentence in REFUSED:
        theirs, ours = sides.run("configs", arguments)
        assert theirs.code == 0, theirs.errors
        assert ours.code == 1
        assert sentence in ours.errors, arguments


def test_config_command_errors_are_the_same(sides: Sides) -> None:
    for arguments in (
        "--describe --entity-type brokers --entity-name 9",
        "--describe --entity-type groups --entity-name nobody",
        "--describe --entity-type client-metrics --entity-name nobody",
        "--alter --entity-type topics --entity-name nosuch --add-config retention.ms=1000",
        "--alter --entity-type broker-loggers --entity-name 1 --add-config no.such.logger=DEBUG",
    ):
        sides.same("configs", arguments)
