"""Messages of nodes that are no nodes (item 5)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from quorate.quorum.controller.state import messages as controller
from quorate.quorum.ids import EpochOffset, ReplicaKey, Uuid
from quorate.quorum.metadata.records import Endpoint, FeatureRange
from quorate.quorum.raft import messages as raft
from quorate.quorum.raft.control_records import KRaftVersionFeature, Voter, VoterEndpoint
from quorate.quorum.raft.generation import Rebuild
from quorate.quorum.rpc.hello import Hello
from quorate.quorum.seams import Address
from tests.attacks.node_frames import (
    ATTACKER_ID,
    DIRECTORY_ID,
    INCARNATION_ID,
    NodeLink,
    row,
)
from tests.attacks.raw import Raw
from tests.attacks.registry import attack
from tests.attacks.target import NOT_CONNECTED, Succeeded, Target

EPOCHS = (2**31 - 1, 2**31, 2**40, 2**63 - 1, -1, -(2**63))
IDS = (2**63 - 1, 2**31, -1, -(2**31))
ME = ReplicaKey(ATTACKER_ID, DIRECTORY_ID)
LONG_HOST = "h" * 40_000


async def speak(target: Target, address: Address, message: Any, **fields: Any) -> None:
    """Say Hello, send one message, and count what happened. A refused Hello counts, too."""
    try:
        link = await NodeLink.open(address)
    except (OSError, TimeoutError):
        target.outcome[NOT_CONNECTED] += 1
        return
    try:
        if await link.greet(target.cluster_id, **fields) is None:
            target.outcome["no hello"] += 1
            return
        answer = await link.call(row(message))
        ended = answer is None and link.reader.at_eof()
        target.outcome["closed" if ended else "answered" if answer else "silent"] += 1
    finally:
        link.close()


async def met(target: Target, address: Address) -> Hello | None:
    with suppress(OSError, TimeoutError):
        link = await NodeLink.open(address)
        try:
            return await link.greet(target.cluster_id)
        finally:
            link.close()
    return None


def votes(target: Target, voter: ReplicaKey) -> Iterator[raft.VoteRequest]:
    for epoch in EPOCHS:
        for pre_vote in (True, False):
            yield raft.VoteRequest(
                cluster_id=target.cluster_id,
                voter=voter,
                candidate=ME,
                epoch=epoch,
                last=EpochOffset(epoch, 2**62),
                pre_vote=pre_vote,
            )


@attack(5)
async def votes_of_the_far_future(target: Target) -> None:
    """Ask every controller for a vote in epochs that no int32 holds, and in its last one."""
    for address in target.controllers:
        hello = await met(target, address)
        if hello is None:
            target.outcome["no hello"] += 1
            continue
        for vote in votes(target, ReplicaKey(hello.node_id, hello.directory_id)):
            await speak(target, address, vote)


@attack(5)
async def another_leader(target: Target) -> None:
    """Announce another leader for the current epoch, and the end of that epoch, to every voter."""
    _, epoch = await target.quorum()
    for address in target.controllers:
        hello = await met(target, address)
        if hello is None:
            target.outcome["no hello"] += 1
            continue
        voter = ReplicaKey(hello.node_id, hello.directory_id)
        for leader_id in (ATTACKER_ID, *IDS):
            begin = raft.BeginQuorumEpochRequest(
                cluster_id=target.cluster_id,
                voter=voter,
                leader_id=leader_id,
                epoch=epoch,
                leader=raft.LeaderAddress(host=LONG_HOST, port=2**40),
            )
            await speak(target, address, begin)
            far = dataclasses.replace(begin, epoch=2**40)
            await speak(target, address, far)
        end = raft.EndQuorumEpochRequest(
            cluster_id=target.cluster_id,
            leader_id=ATTACKER_ID,
            epoch=2**40,
            preferred_candidates=(ME,) * 1000,
        )
        await speak(target, address, end)


@attack(5)
async def forged_generations(target: Target) -> None:
    """Claim to every controller that its quorum was rebuilt: a Hello of the next generation."""
    end = raft.EndQuorumEpochRequest(
        cluster_id=target.cluster_id, leader_id=ATTACKER_ID, epoch=1, preferred_candidates=()
    )
    forged = Rebuild(id=DIRECTORY_ID, epoch=2**31 - 1, offset=2**62)
    for address in target.controllers:
        theirs = await met(target, address)
        rebuilds = (forged,) if theirs is None else (*theirs.rebuilds, forged)
        await speak(target, address, end, generation=len(rebuilds), rebuilds=rebuilds)


def registrations(target: Target) -> Iterator[controller.BrokerRegistrationRequest]:
    good = controller.BrokerRegistrationRequest(
        broker_id=ATTACKER_ID,
        cluster_id=target.cluster_id,
        incarnation_id=INCARNATION_ID,
        endpoints=(Endpoint(name="PLAINTEXT", host="127.0.0.1", port=1),),
        features=(),
        rack=None,
        log_dirs=(DIRECTORY_ID,),
        previous_broker_epoch=-1,
        replication_address=("127.0.0.1", 1),
    )
    for each in IDS:
        yield dataclasses.replace(good, broker_id=each)
    for port in (-1, 65_536, 2**40):
        endpoint = Endpoint(name="PLAINTEXT", host="127.0.0.1", port=port)
        yield dataclasses.replace(good, endpoints=(endpoint,))
        yield dataclasses.replace(good, replication_address=("127.0.0.1", port))
    for name, host in (("PLAINTEXT", LONG_HOST), (LONG_HOST, "127.0.0.1")):
        endpoint = Endpoint(name=name, host=host, port=1)
        yield dataclasses.replace(good, endpoints=(endpoint,))
    yield dataclasses.replace(good, replication_address=(LONG_HOST, 1))
    yield dataclasses.replace(good, rack=LONG_HOST)
    for version in (2**15, 2**40, -(2**40)):
        feature = FeatureRange(
            name="metadata.version", min_supported_version=0, max_supported_version=version
        )
        yield dataclasses.replace(good, features=(feature,))
    yield dataclasses.replace(good, log_dirs=(Uuid(b"short"),))
    yield dataclasses.replace(good, log_dirs=(DIRECTORY_ID,) * 50_000)
    yield dataclasses.replace(good, incarnation_id=Uuid(b""))
    yield dataclasses.replace(good, previous_broker_epoch=2**63)
    yield dataclasses.replace(good, cluster_id=LONG_HOST)


@attack(5)
async def impossible_registrations(target: Target) -> None:
    """Register brokers with ids, ports, hosts and feature versions that no record holds."""
    for address in target.controllers:
        for each in registrations(target):
            await speak(target, address, each, node_id=ATTACKER_ID)


def others(target: Target) -> Iterator[Any]:
    voter = Voter(
        voter_id=2**40,
        voter_directory_id=DIRECTORY_ID,
        endpoints=(VoterEndpoint(name="CONTROLLER", host=LONG_HOST, port=2**20),),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=-(2**20), max_supported_version=2**20
        ),
    )
    for number in (2**31, 2**63 - 1, -1, -(2**63)):
        yield raft.FetchRequest(
            cluster_id=target.cluster_id,
            replica=ME,
            epoch=number,
            offset=number,
            last_fetched_epoch=number,
            max_wait_ms=number,
            max_bytes=number,
            high_watermark=number,
        )
        yield raft.FetchSnapshotRequest(
            cluster_id=target.cluster_id,
            replica=ME,
            epoch=number,
            snapshot=EpochOffset(number, number),
            position=number,
            max_bytes=number,
        )
        yield raft.UpdateVoterRequest(
            cluster_id=target.cluster_id, replica=ME, epoch=number, voter=voter, join=True
        )
        yield controller.BrokerHeartbeatRequest(
            broker_id=number,
            broker_epoch=number,
            metadata_offset=number,
            want_fence=False,
            want_shut_down=False,
        )
        yield controller.AllocateProducerIdsRequest(broker_id=number, broker_epoch=number)
        yield controller.AssignReplicasToDirsRequest(
            broker_id=number,
            broker_epoch=number,
            assignments=((target.topic_id, number, target.topic_id),) * 100,
        )
        yield controller.AlterPartitionRequest(
            broker_id=number,
            broker_epoch=number,
            changes=(
                controller.IsrChange(
                    topic_id=target.topic_id,
                    partition_id=number,
                    leader_epoch=number,
                    partition_epoch=number,
                    isr=((number, number),) * 100,
                    leader_recovery_state=number,
                    cause=LONG_HOST,
                ),
            ),
        )
        yield controller.EnvelopeRequest(
            api_key=number, version=number, client_id=LONG_HOST, body=b"\xff" * 100
        )


@attack(5)
async def impossible_numbers(target: Target) -> None:
    """Send every other node message with numbers at and beyond their edges."""
    for address in target.controllers:
        for each in others(target):
            await speak(target, address, each)


@attack(5)
async def foreign_origins(target: Target) -> None:
    """Open node links as a web page would, with an Origin, and ask for pages of another Host."""
    for address in (*target.controllers, *target.brokers):
        for origin in ("http://example.com", "null", "http://localhost", f"http://{address}"):
            with suppress(OSError, TimeoutError):
                link = await NodeLink.upgraded(address, f"Origin: {origin}")
                target.outcome["refused" if link is None else "let in"] += 1
                if link is not None:
                    link.close()
        for path in (b"/metrics", b"/v1/changes", b"/healthz"):
            head = b"GET " + path + b" HTTP/1.1\r\nHost: example.com\r\n\r\n"
            let_in = (await plain_answer(address, head)).startswith(b"HTTP/1.1 200")
            target.outcome["let in" if let_in else "refused"] += 1
    if target.outcome["let in"]:
        raise Succeeded(f"{target.outcome['let in']} links of a web page were let in")


async def plain_answer(address: Address, head: bytes) -> bytes:
    """Return the first bytes of the answer; empty if there is none."""
    with suppress(OSError, TimeoutError):
        connection = await Raw.open(address, login=False)
        try:
            await connection.send(head, timeout_s=2)
            async with asyncio.timeout(2):
                return await connection.reader.read(100)
        finally:
            connection.close()
    return b""


HEADS = (
    b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
    b"GET /v1/changes HTTP/1.1\r\nHost: example.com\r\nOrigin: http://example.com\r\n\r\n",
    b"GET /v1/changes?from=99999999999999999999&limit=-1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics?" + b"a=b&" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET \xff\xfe HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
    b"GET /rpc HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /rpc HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /rpc HTTP/9.9\r\n" + b"\x00" * 100 + b"\r\n\r\n",
)


@attack(5)
async def strange_http(target: Target) -> None:
    """Send HTTP heads that no browser would send to every port."""
    for address in (*target.controllers, *target.brokers):
        for head in HEADS:
            with suppress(OSError, TimeoutError):
                connection = await Raw.open(address, login=False)
                await connection.send(head, timeout_s=2)
                answer = await connection.frame(timeout_s=1)
                target.outcome["closed" if answer is None else "answered"] += 1
                connection.close()
