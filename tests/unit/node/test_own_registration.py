"""Controllers of a simulated cluster register, and a node stops at an unsupported feature."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.metadata.records import FeatureLevelRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.node import node_core
from quorate.quorum.node.feature_support import UnsupportedFeature
from quorate.quorum.node.node_core import NodeCore
from tests.ports.node import PortCluster, running


def cores(cluster: PortCluster) -> list[NodeCore]:
    processes = [machine.process for machine in cluster.cluster.machines.values()]
    return [process.core for process in processes if process is not None]


def registered(cluster: PortCluster) -> bool:
    """Return True if each image has the incarnation of each controller."""
    running_now = {
        core.config.node_id: core.incarnation
        for core in cores(cluster)
        if core.config.is_controller
    }
    return all(
        {each.id: each.incarnation_id for each in core.image.controllers.values()} == running_now
        for core in cores(cluster)
    )


def test_each_controller_registers_with_its_listeners_and_features() -> None:
    with running(controllers=3) as cluster:
        cluster.until(lambda: registered(cluster))
        core = cores(cluster)[0]
        known = core.image.controllers[core.config.node_id]
        assert {each.name for each in known.features} == set(core.features().supported)
        assert [each.name for each in known.endpoints] == [
            each.name for each in core.config.listeners.controller
        ]
        assert all(each.port for each in known.endpoints)


def test_a_restarted_controller_registers_its_new_incarnation() -> None:
    with running(controllers=3) as cluster:
        cluster.until(lambda: registered(cluster))
        machine = next(iter(cluster.cluster.machines.values()))
        before = cores(cluster)[0].incarnation
        cluster.cluster.kill(machine)
        cluster.cluster.start(machine)
        cluster.until(lambda: registered(cluster))
        assert cores(cluster)[0].incarnation != before


def test_a_node_stops_at_a_level_that_its_release_does_not_support(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running() as cluster:
        core = cores(cluster)[0]
        failures: list[BaseException] = []
        monkeypatch.setattr(core, "fail", failures.append)
        level = core.image.features[METADATA_VERSION]
        record = FeatureLevelRecord(name=METADATA_VERSION, feature_level=level + 1)
        last = core.image.last
        later, delta = replay(
            core.image, [record], EpochOffset(last.epoch, last.offset + 1), core.clock.wall_ms()
        )
        seen: list[object] = []
        core.listeners.image.append(lambda image, delta: seen.append(image))
        core._image_changed(later, delta)
        assert [type(each) for each in failures] == [UnsupportedFeature]
        assert not seen, "a role acted on it"
        monkeypatch.setattr(node_core, "SUPPORTED_FEATURES", {METADATA_VERSION: (7, level - 1)})
        for _ in core._prepare_load(core.image):
            pass
        assert len(failures) == 2
