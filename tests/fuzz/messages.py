"""Node messages: a plausible one of every kind, with parts of it at their edges."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.controller.state import messages as controller
from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey, Uuid
from quorate.quorum.metadata.records import Endpoint, FeatureRange
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.schemas.topics import DeleteTopicsRequest
from quorate.quorum.raft import messages as raft
from quorate.quorum.raft.control_records import KRaftVersionFeature, Voter, VoterEndpoint
from quorate.quorum.rpc.hello import VersionRange
from quorate.quorum.rpc.messages import RPCS
from tests.attacks.node_frames import (
    ATTACKER_ID,
    DIRECTORY_ID,
    INCARNATION_ID,
    hello,
    node_frame,
    row,
)
from tests.attacks.raw import body_of
from tests.fuzz.requests import body, versions

Row = list[Any]
INTEGERS = (
    *(0, 1, -1, 2**15, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
    *(-(2**31), -(2**63)),
)
STRINGS = ("", "x", "x" * 255, "x" * 32_767, "x" * 40_000, "\x00", "é" * 100)
BYTES = (b"", b"\x00", bytes(16), b"\xff" * 16, bytes(15), bytes(65_536))
OTHERS: tuple[Any, ...] = (None, True, 1.5, float("nan"), [], [[]], [None] * 10)
MANY = (0, 1, 2, 100, 5_000)
DELETE_VERSION = 5
SAFE_APIS = versions([key for key in APIS if key not in (20, 64, 57)])
"""Requests for an envelope: without deletions, unregistrations and features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The node that the messages come from, as it presents itself, and the node they go to."""

    cluster_id: str
    peer: ReplicaKey
    me: ReplicaKey = ReplicaKey(ATTACKER_ID, DIRECTORY_ID)
    broker_epoch: int = 1
    topic_id: Uuid = ZERO_UUID


def originals(sender: Sender) -> list[Any]:
    """Return one plausible request of every kind."""
    return [
        hello(sender.cluster_id),
        *raft_requests(sender),
        *broker_requests(sender),
        *controller_requests(sender),
    ]


def raft_requests(sender: Sender) -> list[Any]:
    """Return one plausible request of each kind that Raft sends."""
    cluster_id, peer, me = sender.cluster_id, sender.peer, sender.me
    voter = Voter(
        voter_id=me.id,
        voter_directory_id=me.directory_id,
        endpoints=(VoterEndpoint(name="CONTROLLER", host="attacker", port=9),),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )
    return [
        raft.VoteRequest(
            cluster_id=cluster_id,
            voter=peer,
            candidate=me,
            epoch=3,
            last=EpochOffset(1, 1),
            pre_vote=True,
        ),
        raft.BeginQuorumEpochRequest(
            cluster_id=cluster_id,
            voter=peer,
            leader_id=me.id,
            epoch=1,
            leader=raft.LeaderAddress(host="attacker", port=9),
        ),
        raft.EndQuorumEpochRequest(
            cluster_id=cluster_id, leader_id=peer.id, epoch=1, preferred_candidates=(peer, me)
        ),
        raft.FetchRequest(
            cluster_id=cluster_id,
            replica=me,
            epoch=1,
            offset=1,
            last_fetched_epoch=1,
            max_wait_ms=5,
            max_bytes=1000,
            high_watermark=0,
        ),
        raft.FetchSnapshotRequest(
            cluster_id=cluster_id,
            replica=me,
            epoch=1,
            snapshot=EpochOffset(1, 1),
            position=0,
            max_bytes=1000,
        ),
        raft.UpdateVoterRequest(cluster_id=cluster_id, replica=me, epoch=1, voter=voter),
    ]


def broker_requests(sender: Sender) -> list[Any]:
    """Return one plausible request of each kind that a broker sends to the controller."""
    me = sender.me
    endpoint = Endpoint(name="PLAINTEXT", host="attacker", port=9)
    feature = FeatureRange(
        name="metadata.version", min_supported_version=7, max_supported_version=27
    )
    change = controller.IsrChange(
        topic_id=sender.topic_id,
        partition_id=0,
        leader_epoch=0,
        partition_epoch=0,
        isr=((me.id, sender.broker_epoch),),
        leader_recovery_state=0,
        cause="",
    )
    return [
        controller.BrokerRegistrationRequest(
            broker_id=me.id,
            cluster_id=sender.cluster_id,
            incarnation_id=INCARNATION_ID,
            endpoints=(endpoint,),
            features=(feature,),
            rack=None,
            log_dirs=(me.directory_id,),
            previous_broker_epoch=-1,
            replication_address=("attacker", 9),
        ),
        controller.BrokerHeartbeatRequest(
            broker_id=me.id,
            broker_epoch=1,
            metadata_offset=1,
            want_fence=False,
            want_shut_down=False,
        ),
        controller.AlterPartitionRequest(
            broker_id=me.id, broker_epoch=sender.broker_epoch, changes=(change,)
        ),
        controller.AllocateProducerIdsRequest(broker_id=me.id, broker_epoch=sender.broker_epoch),
        controller.AssignReplicasToDirsRequest(
            broker_id=me.id,
            broker_epoch=sender.broker_epoch,
            assignments=((change.topic_id, change.partition_id, me.directory_id),),
        ),
    ]


def controller_requests(sender: Sender) -> list[Any]:
    """Return one plausible request of each kind that a controller sends, and an envelope."""
    endpoint = Endpoint(name="CONTROLLER", host="attacker", port=9)
    feature = FeatureRange(
        name="metadata.version", min_supported_version=7, max_supported_version=27
    )
    names = DeleteTopicsRequest(topic_names=("no-such-topic",), timeout_ms=1)
    return [
        controller.ControllerRegistrationRequest(
            controller_id=sender.me.id,
            incarnation_id=INCARNATION_ID,
            endpoints=(endpoint,),
            features=(feature,),
        ),
        controller.ReplicaLogsRequest(partitions=((sender.topic_id, 0),)),
        controller.EnvelopeRequest(
            api_key=names.API_KEY,
            version=DELETE_VERSION,
            client_id="fuzz",
            body=body_of(names, DELETE_VERSION),
        ),
    ]


def envelope(chance: random.Random) -> controller.EnvelopeRequest:
    api, version = chance.choice(SAFE_APIS)
    return controller.EnvelopeRequest(
        api_key=api.key,
        version=version,
        client_id=chance.choice(STRINGS),
        body=body(api, version, chance),
    )


def every_row(sender: Sender) -> Iterator[Row]:
    """Yield every message with each of its parts, at any depth, at each of its edges."""
    for original in originals(sender):
        made = row(original)
        yield made
        for path in paths(made):
            for edge in edges(at(made, path)):
                yield with_part(made, path, edge)
    for rpc in RPCS:
        for width in range(12):
            yield [2 * rpc.number + 1, 1, *([0] * width)]
            yield [2 * rpc.number, 1, *([None] * width)]
    yield [4, 2**64 - 1]
    yield [2**64 - 1, 1]
    yield row(VersionRange(rpc=0, minimum=0, maximum=0), kind=0)


def a_frame(sender: Sender, chance: random.Random) -> bytes:
    """Return a frame of one to four messages, each with up to three parts changed."""
    rows = []
    for _ in range(chance.choice((1, 1, 1, 4))):
        options = [*originals(sender), envelope(chance), envelope(chance)]
        made = row(chance.choice(options), chance.choice((0, 1, 2**31, 2**63)))
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            found = list(paths(made))
            if found:
                path = chance.choice(found)
                made = with_part(made, path, chance.choice(edges(at(made, path))))
        rows.append(made)
    return node_frame(*rows)


def packed(rows: Any) -> bytes:
    data: bytes = msgpack.packb(rows, use_bin_type=True)
    return data


Path = tuple[int, ...]


def paths(value: Row, before: Path = ()) -> Iterator[Path]:
    for index, each in enumerate(value):
        if not before and index < 2:
            continue
        yield (*before, index)
        if isinstance(each, list):
            yield from paths(each, (*before, index))


def at(value: Any, path: Path) -> Any:
    for index in path:
        value = value[index]
    return value


def with_part(value: Any, path: Path, part: Any) -> Any:
    if not path:
        return part
    changed = list(value)
    changed[path[0]] = with_part(value[path[0]], path[1:], part)
    return changed


def edges(value: Any) -> Sequence[Any]:
    """Return what may stand in the place of `value`: its kind's edges, then other kinds."""
    if isinstance(value, bool):
        return (not value, 2, *OTHERS)
    if isinstance(value, int):
        return (*INTEGERS, "1", *OTHERS)
    if isinstance(value, str):
        return (*STRINGS, b"x", 0, *OTHERS)
    if isinstance(value, bytes):
        return (*BYTES, "x", 0, *OTHERS)
    if isinstance(value, list):
        return (*([value[0] if value else 0] * count for count in MANY), "x", 0, *OTHERS)
    return (*INTEGERS, *STRINGS[:4], *OTHERS)
