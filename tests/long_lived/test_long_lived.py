"""Every mutable container that lives as long as a node has a bound, which `containers.md` names.

The test builds three controllers and two brokers on virtual time, with a group, a waiting fetch and
followers. It then collects the classes of all objects that the nodes reach, and the containers that
these classes declare (`walk.py`). A new container without a row fails the test. Its author must
bound the container and add the row.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.broker.kafka.shared.forwarding import _ConnectionQueue
from quorate.broker.partition.producer_state import Producer
from quorate.broker.replication.fetches.consumer_sessions import ConsumerSession
from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.snapshots.snapshot_reader import SnapshotReader
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas import fetch
from quorate.quorum.raft.states import ResignedLeader, VoteRound
from quorate.quorum.rpc.kafka_frames import KafkaLink
from quorate.quorum.rpc.transport import AioListener, AioTransport
from quorate.quorum.seams import Address
from tests.long_lived.walk import all_containers, containers_of, declared, module_classes
from tests.ports.node import PortCluster, running
from tests.ports.requests import BUILDERS, READ, World

TABLE = Path(__file__).parent / "containers.md"
SOURCES = Path(__file__).parents[2]
NOT_REACHED = (
    AioListener,
    ConsumerSession,
    KafkaLink,
    Producer,
    ResignedLeader,
    SnapshotReader,
    VoteRound,
    _ConnectionQueue,
)
"""Classes whose objects live long, but which the simulated nodes do not have at that moment."""
JOIN_VERSION, COMMIT_VERSION, PRODUCER_VERSION, FETCH_VERSION = 3, 7, 3, 11


def rows() -> dict[str, tuple[str, str]]:
    """Return the bound and the place of each container in the table."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = [each for each in cells if each[0] != "container"]
    assert len({each[0] for each in rows}) == len(rows), "a container has two rows"
    return {name: (bound, place) for name, bound, place in rows}


def use(node: PortCluster) -> None:
    """Create topics, a group with a member, a producer, and a fetch that waits."""
    node.prepared()
    world = World(node.broker_id)
    # One of the two brokers coordinates the group. The other refuses.
    other = Address(f"b{node.broker_id + 1}", node.broker_port.port)
    raw = node.connect(node.broker_port)
    for link in (node.connect(other), raw):
        for key, version in (
            (ApiKey.JOIN_GROUP, JOIN_VERSION),
            (ApiKey.OFFSET_COMMIT, COMMIT_VERSION),
            (ApiKey.INIT_PRODUCER_ID, PRODUCER_VERSION),
        ):
            node.ask(link, BUILDERS[key](world, version), version)
    partition = fetch.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1)
    topic = fetch.FetchTopic(topic=READ, partitions=(partition,))
    waiting = fetch.FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(topic,))
    node.send(raw, waiting, FETCH_VERSION, 1)
    node.run(0.2)


@pytest.fixture(scope="module")
def containers() -> Iterator[dict[str, type]]:
    """Return the containers of a cluster, by "Class.attribute", with a class that has it."""
    replicated = {"offsets_topic_replication_factor": "2", "default_replication_factor": "2"}
    authorizer = {
        "authorizer_class_name": STANDARD_AUTHORIZER,
        "allow_everyone_if_no_acl_found": "true",
    }
    with running(controllers=3, brokers=2, **replicated, **authorizer) as node:
        use(node)
        disk = OsDisk()
        roots: list[object] = [disk, AioTransport()]
        for machine in node.cluster.machines.values():
            assert machine.process is not None
            process = machine.process
            roots += [process.core, process.controller, process.broker]
        found = all_containers(roots)
        for kind in NOT_REACHED:
            found |= dict.fromkeys(declared(kind).values(), kind)
        disk.close()
        yield found


def test_every_container_has_a_bound(containers: dict[str, type]) -> None:
    table = rows()
    missing = [
        f"{name} ({kind.__module__})" for name, kind in containers.items() if name not in table
    ]
    assert not missing, f"without a row in {TABLE.name}: {sorted(missing)}"


def test_the_walk_reaches_the_parts_of_a_node(containers: dict[str, type]) -> None:
    """A walk that finds nothing would let every container pass."""
    for name in ("Group.members", "ReplicaFetcher._partitions", "Leader.voters", "Budget._large"):
        assert name in containers
    assert len(containers) > 100


def test_no_row_is_stale(containers: dict[str, type]) -> None:
    declared = {
        f"{title}.{attribute}"
        for name in list(sys.modules)
        if name.startswith("quorate.")
        for title, body in module_classes(name).items()
        for attribute in containers_of(body)
    }
    stale = set(rows()) - declared - set(containers)
    assert not stale, f"no class declares these any more: {sorted(stale)}"


def test_every_row_names_a_bound_and_the_place_that_keeps_it() -> None:
    for name, (bound, place) in rows().items():
        path, _, identifier = place.partition(" ")
        assert bound, name
        assert identifier in (SOURCES / path).read_text(), f"{name}: {place}"


DECLARATIONS = """
class Example:
    by_field: dict[str, int] = field(default_factory=dict)
    fixed: Mapping[str, int]

    def __init__(self, given):
        self.made = {}
        self.called: object = deque()
        self.typed: list[int] | None = None
        self.made["key"] = []
        self.given = given
"""


def test_the_walk_finds_each_form_of_declaration() -> None:
    (body,) = ast.parse(DECLARATIONS).body
    assert isinstance(body, ast.ClassDef)
    assert set(containers_of(body)) == {"by_field", "made", "called", "typed"}
