"""A node follows a rebuilt quorum durably, once, and only if it loses no committed records."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.quorum.ids import NO_NODE, ZERO_UUID, EpochOffset, Uuid
from quorate.quorum.node.peers.generations import Generations
from quorate.quorum.raft.generation import GenerationFile, LocalQuorumState, Rebuild, Rebuilds
from quorate.quorum.rpc.hello import Hello
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.seams import Address
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.rpc.kafka.fakes import FakeClock
from tests.unit.watch.node import made

REBUILD = Rebuild(id=Uuid(bytes(15) + b"\1"), epoch=5, offset=100)


class GenerationsBench:
    """A node whose log ends at `offset` of epoch 5. `steps` is the pending work of its disk."""

    def __init__(self, offset: int = 90, *, is_controller: bool = False, seed: int = 0) -> None:
        self.is_controller = is_controller
        self.steps: list[Callable[[], None]] = []
        self.disk = SimDisk(random.Random(seed), self.steps.append)
        self.disk.make_dirs("/d")
        self.offset = offset
        self.followed: list[Rebuilds] = []
        self.superseded: list[Rebuilds] = []
        self.failures: list[BaseException] = []
        self.generations = self.opened(self.disk)

    def opened(self, disk: SimDisk) -> Generations:
        return Generations(
            FakeClock(),
            disk,
            "/d",
            self.standing,
            followed=lambda: self.note(),
            superseded=lambda: self.superseded.append(self.generations.rebuilds),
            on_failed=self.failures.append,
        )

    def note(self) -> None:
        self.followed.append(self.generations.rebuilds)

    def standing(self, rebuilds: Rebuilds) -> LocalQuorumState:
        return LocalQuorumState(
            rebuilds=rebuilds,
            end=EpochOffset(5, self.offset),
            is_controller=self.is_controller,
            voted=False,
            leader_id=NO_NODE,
            directory="/d",
        )

    def pass_time(self) -> None:
        while self.steps:
            self.steps.pop(0)()


def hello(*rebuilds: Rebuild) -> Hello:
    return Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=10,
        directory_id=ZERO_UUID,
        roles=("controller",),
        incarnation_id=ZERO_UUID,
        generation=len(rebuilds),
        rebuilds=rebuilds,
    )


def test_it_is_durable_before_anybody_is_told() -> None:
    node = GenerationsBench()
    told: list[Rebuilds] = []
    node.note = lambda: told.append(GenerationFile(node.disk.crash(), "/d").load())  # type: ignore[method-assign]
    node.generations.met(hello(REBUILD))
    assert told == [(REBUILD,)]


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_any_call_leaves_no_broker_where_its_records_would_go(seed: int) -> None:
    """Before the node has followed, its old leader can send it records that the rebuilt quorum does
    not have."""
    died = 0
    for die_at in range(1, 20):
        node = GenerationsBench(seed=seed)
        node.disk.die_at = node.disk.calls + die_at
        try:
            node.generations.met(hello(REBUILD))
            if not node.followed:
                node.offset = 101
            node.pass_time()
        except PowerCut:
            died += 1
        rebuilds = GenerationFile(node.disk.crash(), "/d").load()
        assert not rebuilds or node.offset <= REBUILD.offset, f"crash at call {die_at}"
        assert not node.followed or rebuilds
    assert died > 4


def test_a_disk_that_fails_stops_the_node() -> None:
    node = GenerationsBench()

    def before(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(5, "Input/output error")

    node.disk.before = before
    node.generations.met(hello(REBUILD))
    assert isinstance(node.failures[0], OSError)
    assert node.generations.rebuilds == () and not node.followed


def test_a_broker_with_more_says_so_once_and_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    node = GenerationsBench(offset=101)
    for node_id in (10, 11, 10):
        node.generations.met(replace(hello(REBUILD), node_id=node_id))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("not following node 10 into generation 1: this broker has committed")
    assert "up to offset 101 of epoch 5" in line and "ends at offset 100" in line
    assert node.generations.rebuilds == () and not node.disk.exists("/d/quorate-quorum-generation")


def test_a_peer_that_varies_its_claims_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    node = GenerationsBench(offset=1000)
    for offset in range(100, 200):
        node.generations.met(hello(replace(REBUILD, offset=offset)))
    assert len(caplog.records) == 1


def test_a_controller_of_the_quorum_from_before_is_superseded_by_its_successor_only() -> None:
    node = GenerationsBench(is_controller=True)
    node.generations.met(hello(REBUILD))
    assert len(node.superseded) == 1 and not node.generations.rebuilds
    broker = GenerationsBench(offset=101)
    broker.generations.met(hello(REBUILD))
    assert not broker.superseded
    other = GenerationsBench(is_controller=True)
    other.generations.rebuilds = (replace(REBUILD, id=ZERO_UUID),)
    other.generations.met(hello(REBUILD, REBUILD))
    assert not other.superseded, "rebuilt apart from it"


def test_a_node_believes_only_controllers_whose_addresses_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer can name a leader at any address, and the node connects to it."""

    async def scenario() -> None:
        async with made(tmp_path) as node:
            core, believed = node.core, list[Hello]()
            monkeypatch.setattr(core.generations, "met", believed.append)
            (voter,) = core.config.voters
            core._meet_newer(hello(REBUILD), Address(voter.host, voter.port + 1))
            assert not believed
            core._meet_newer(hello(REBUILD), Address(voter.host, voter.port))
            assert believed == [hello(REBUILD)]

    asyncio.run(scenario())
