"""A faulty node inside the cluster: it knows the cluster id, shakes hands, and then lies.

It shakes hands as a broker with an id of its own, or claims the id of a controller or broker. It
sends node messages to the controllers' ports, and node messages and followers' fetches to the
brokers' replication ports. `lies.py` lists the lies that it does not tell, with the reasons.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.controller.state import messages as controller
from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.raft import messages as raft
from quorate.quorum.rpc.hello import Hello
from quorate.quorum.rpc.messages import BY_CLASS, RPCS, VERSIONS
from quorate.quorum.seams import Address, Link, TransportError, Wire
from tests.sim.adversary.client import MAX_FRAME_BYTES, Deaf
from tests.sim.adversary.lies import acknowledges_for_replica, is_outside_the_model
from tests.sim.adversary.moves import Mover
from tests.sim.adversary.requests import drawn, frame
from tests.sim.adversary.rights import is_its_right
from tests.sim.adversary.rows import FAR_EPOCHS, Row, at, row_of
from tests.sim.adversary.values import OWN_ID, Draw
from tests.sim.world.cluster import CLIENT_PORT, CONTROLLER_PORT, Machine, SimCluster

CONNECT_TIMEOUT_MS = 300
MAX_LINKS = 8
REPLICA_FETCH_VERSION = 17
WILDNESS = (0.0, 0.0, 0.05, 0.3)
SENT = tuple(rpc.request for rpc in RPCS if rpc.request not in (None, Hello))
DISRUPTIVE = (raft.VoteRequest, raft.BeginQuorumEpochRequest, raft.EndQuorumEpochRequest)
NAMED_BY_ID = {
    raft.BeginQuorumEpochRequest: (2,),
    raft.EndQuorumEpochRequest: (1,),
    controller.BrokerRegistrationRequest: (0,),
    controller.BrokerHeartbeatRequest: (0,),
    controller.AlterPartitionRequest: (0,),
    controller.AllocateProducerIdsRequest: (0,),
    controller.AssignReplicasToDirsRequest: (0,),
}
"""The position in a row of the node id in whose name the request speaks. The row has no directory
id."""
SPEAKERS: dict[type, tuple[int, ...]] = {
    **NAMED_BY_ID,
    raft.VoteRequest: (2,),
    raft.FetchRequest: (1,),
    raft.FetchSnapshotRequest: (1,),
    raft.UpdateVoterRequest: (1,),
}
"""The position in a row of the replica in whose name the request speaks."""
HONEST = 0.85
"""The share of the messages that speak for the replica that shook hands."""
Identity = tuple[int, bytes]
CALM_S = 2.0
"""The time between two messages that force an election. If they were more frequent, there would be
no leader at all."""


class FaultyNode(Mover):
    letter = "n"

    def __init__(self, cluster: SimCluster, only: Sequence[str] | None) -> None:
        super().__init__(cluster, "faulty", only)
        self._incarnation = cluster.random("faulty incarnation").randbytes(16)
        self._directory = cluster.random("faulty directory").randbytes(16)
        self._links: dict[Deaf, tuple[Address, Identity]] = {}
        self._calm_until_s = 0.0
        self._moves: tuple[Callable[[Draw], Awaitable[None]], ...] = (
            *[self._message] * 10,
            *[self._epoch] * 2,
            *[self._registers] * 2,
            *[self._envelope] * 3,
            *[self._fetches_as_replica] * 3,
            self._garbage,
            self._greets_wildly,
        )

    async def move(self, draw: Draw) -> None:
        draw.wildness = draw.of(*WILDNESS)
        await draw.of(*self._moves)(draw)

    # -- node messages ---------------------------------------------------------------------------

    async def _message(self, draw: Draw) -> None:
        await self._say(draw, draw.of(*SENT), {})

    async def _epoch(self, draw: Draw) -> None:
        """Send a message that is plausible except for its epoch."""
        cls = draw.of(*DISRUPTIVE, raft.FetchRequest, raft.FetchSnapshotRequest)
        draw.wildness = 0.0
        await self._say(draw, cls, {"epoch": draw.of(*FAR_EPOCHS)})

    async def _registers(self, draw: Draw) -> None:
        """Register under its own id or a broker's. It sends no heartbeats, so it stays fenced."""
        broker_id = draw.of(OWN_ID, OWN_ID, *(each.id for each in self.cluster.brokers))
        features = [[METADATA_VERSION, *draw.of((1, 99), (1, 32_767), (1, 32_768), (1, 1 << 40))]]
        ports = (9092, 0, 1, 65_535, 65_536, 70_000, -1)
        hosts = ("faulty", "", "a" * 255, "a" * 256, "a" * 40_000)
        endpoint = ["PLAINTEXT", draw.of(*hosts), draw.of(*ports), 0]
        fixed = {
            "broker_id": broker_id if not draw.wild() else draw.arbitrary(),
            "cluster_id": self.cluster.cluster_id,
            "incarnation_id": draw.of(self._incarnation, draw.random.randbytes(16)),
            "endpoints": [endpoint] * draw.of(1, 1, 2),
            "features": features,
            "log_dirs": [draw.of(self._directory, draw.random.randbytes(16))],
            "replication_address": [draw.of(*hosts), draw.of(*ports)],
            "rack": draw.of(None, "", "r", "r" * 40_000),
        }
        await self._say(draw, controller.BrokerRegistrationRequest, fixed)

    async def _envelope(self, draw: Draw) -> None:
        """Send a client's request in a broker's envelope, sometimes damaged."""
        api = draw.of(*APIS.values())
        version = draw.random.randrange(api.min_version, api.max_version + 1)
        request = drawn(api, version, self.aims, draw)
        whole = frame(request, version, Draw(draw.random, 0.0))
        if whole is None or is_its_right(request, self.aims):
            return
        header_bytes = 14 + (api.request_header_version(version) == 2)  # client id "evil"
        body = whole[header_bytes:]
        if draw.random.getrandbits(1):
            body = body[: draw.random.randrange(len(body) + 1)]
        fixed = {"api_key": int(api.key), "version": version, "client_id": "evil", "body": body}
        self.note(f"envelope of {api.name} v{version}")
        await self._say(draw, controller.EnvelopeRequest, fixed)

    async def _say(self, draw: Draw, cls: Any, fixed: dict[str, Any]) -> None:
        if cls in DISRUPTIVE:
            if self.cluster.loop.time() < self._calm_until_s:
                return
            self._calm_until_s = self.cluster.loop.time() + CALM_S
        target = draw.of(*self.cluster.controllers, *self.cluster.machines.values())
        if target.process is None:
            return
        if "voter" not in fixed and cls in DISRUPTIVE and draw.random.random() < 0.8:
            fixed = {**fixed, "voter": list(_parts(target.key))}
        row = row_of(cls, draw, self.aims, fixed)
        if is_outside_the_model(cls, row, self.aims):
            return
        await self.tell(draw, target, cls, row)

    async def tell(
        self, draw: Draw, target: Machine, cls: Any, row: Row, speaker: Identity | None = None
    ) -> None:
        """Send the row of a `cls`, unless it has meanwhile become a lie outside of the model.

        `speaker` is the replica that shakes hands. By default this is mostly the one that the row
        names."""
        if speaker is None and draw.random.random() > 1 - HONEST:
            speaker = _speaker(cls, row)
        found = await self._greeted(draw, target, speaker)
        if found is None or is_outside_the_model(cls, row, self.aims):
            return
        self.note(f"{cls.__name__} {_short(row)} to {target.name}")
        number = BY_CLASS[cls].number
        found.link.send(msgpack.packb([[number, draw.random.getrandbits(20), *row]]))

    # -- a follower's fetches --------------------------------------------------------------------

    async def _fetches_as_replica(self, draw: Draw) -> None:
        api = APIS[ApiKey.FETCH]
        version = draw.of(REPLICA_FETCH_VERSION, REPLICA_FETCH_VERSION, 4, 12, 14, 15)
        request: Any = drawn(api, version, self.aims, draw)
        replica_id, epoch = request.replica_id, -1
        if version >= 15:
            state = request.replica_state
            replica_id, epoch = state.replica_id, state.replica_epoch
        brokers = [each for each in self.cluster.brokers if each.process is not None]
        if not brokers or acknowledges_for_replica(replica_id, epoch, self.aims):
            return
        whole = frame(request, version, draw)
        target = draw.of(*brokers)
        found = await self._connected(self._node_port(target), Wire.KAFKA)
        if found is None or whole is None or acknowledges_for_replica(replica_id, epoch, self.aims):
            return
        self.note(f"Fetch v{version} as replica {replica_id} of epoch {epoch} to {target.name}")
        found.link.send(whole)

    # -- handshakes and garbage ------------------------------------------------------------------

    async def _garbage(self, draw: Draw) -> None:
        """Send frames that hold no messages, before the handshake or after it."""
        target = draw.of(*self.cluster.machines.values())
        if target.process is None:
            return
        if draw.random.getrandbits(1):
            found = await self._greeted(draw, target)
        else:
            found = await self._connected(self._node_port(target), Wire.NODE)
        if found is None:
            return
        junk = (
            b"",
            draw.random.randbytes(300),
            msgpack.packb([[]] * 50_000),
            msgpack.packb([[4, 1]] * 5000),
            msgpack.packb({"a": 1}),
            msgpack.packb([[4, 1 << 63], [-1, 0], [99, 1], [5, 1]]),
            b"\xdd\xff\xff\xff\xff",
            b"\x91" * 2000,
        )
        self.note(f"garbage to {target.name}")
        found.link.send(draw.of(*junk))

    async def _greets_wildly(self, draw: Draw) -> None:
        target = draw.of(*self.cluster.machines.values())
        draw.wildness = draw.of(0.0, 0.1, 0.3)
        row = row_of(Hello, draw, self.aims, {"rebuilds": []} if draw.random.getrandbits(1) else {})
        if target.process is None or is_outside_the_model(Hello, row, self.aims):
            return
        found = await self._connected(self._node_port(target), Wire.NODE)
        if found is not None:
            self.note(f"Hello {_short(row)} to {target.name}")
            found.link.send(msgpack.packb([[BY_CLASS[Hello].number, 0, *row]]))

    async def _greeted(
        self, draw: Draw, target: Machine, speaker: Identity | None = None
    ) -> Deaf | None:
        """Return a link to the target on which `speaker` shook hands, or any identity if it is
        None."""
        address = self._node_port(target)
        identity = speaker or self._identity(draw)
        for known, made_as in self._links.items():
            if made_as == (address, identity) and not known.closed and draw.random.random() < 0.6:
                return known
        found = await self._connected(address, Wire.NODE)
        if found is not None:
            hello = self._hello(draw, *identity)
            found.link.send(msgpack.packb([[BY_CLASS[Hello].number, 0, *hello]]))
            self._links[found] = address, identity
        return found

    def _identity(self, draw: Draw) -> Identity:
        """Return its own identity, a claimed id, or a claimed id together with its true
        directory."""
        machine = draw.of(*self.cluster.machines.values())
        return draw.of(
            (OWN_ID, self._directory),
            (machine.id, self._directory),
            (machine.id, machine.key.directory_id),
        )

    def _hello(self, draw: Draw, node_id: int, directory: bytes) -> Row:
        roles = draw.of(["broker"], ["controller"], ["broker", "controller"])
        versions = [[each.rpc, each.minimum, each.maximum] for each in VERSIONS]
        cluster_id = self.cluster.cluster_id
        return [1, 1, versions, cluster_id, node_id, directory, roles, self._incarnation, -1, []]

    def _node_port(self, machine: Machine) -> Address:
        """Return the address at which the machine accepts node messages. A broker's port changes
        with each start."""
        if not machine.is_broker:
            return Address(machine.name, CONTROLLER_PORT)
        for address in self.cluster.network.listeners:
            if address.host == machine.name and address.port != CLIENT_PORT:
                return address
        return Address(machine.name, 1)

    async def _connected(self, address: Address, wire: Wire) -> Deaf | None:
        self._links = {each: at for each, at in self._links.items() if not each.closed}
        if len(self._links) >= MAX_LINKS:
            next(iter(self._links)).link.abort()
        made: list[Deaf] = []

        def accept(link: Link) -> Deaf:
            made.append(Deaf(link))
            return made[0]

        try:
            await self.transport.connect(
                address,
                wire,
                accept,
                max_frame_bytes=MAX_FRAME_BYTES,
                timeout_ms=CONNECT_TIMEOUT_MS,
            )
        except TransportError:
            return None
        return made[0]


def _speaker(cls: Any, row: Row) -> Identity | None:
    """Return the replica in whose name a request speaks, or None if the row names none. A receiver
    closes the link if this is not the replica that shook hands."""
    path = SPEAKERS.get(cls, ())
    node_id, directory = at(row, *path, 0), at(row, *path, 1)
    if cls in NAMED_BY_ID:
        node_id, directory = at(row, *path), b"\x02" * 16
    if isinstance(node_id, int) and isinstance(directory, bytes):
        return node_id, directory
    return None


def _parts(key: ReplicaKey) -> tuple[int, Uuid]:
    return key.id, key.directory_id


def _short(row: Row) -> str:
    text = repr(row)
    return text if len(text) < 300 else f"{text[:300]}... ({len(text)})"
