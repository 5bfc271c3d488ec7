"""Watches the harnesses on which stories run (pure cores, replicas, the rules, disks, whole
clusters), and writes a `Trace`. It wraps only the tests' own harnesses and a few production
calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from quorate.broker.partition.partition import FollowerFetch, Partition
from quorate.quorum.raft import effects
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.hello import Peer
from tests.sim.ablations.stories import Scene, Story
from tests.sim.ablations.trace import Event, Kind, Trace, describe
from tests.sim.world.cluster import SimCluster, name_of
from tests.sim.world.disk import SimDisk
from tests.sim.world.disk_file import SimFile
from tests.sim.world.host import current_host
from tests.unit.controller.harness import Driver
from tests.unit.raft.harness import Letter, RaftCluster, RaftNode

Wrapper = Callable[..., Any]
BEGINNING = ("", "is unattached in epoch 0", "has saved Election epoch 0")
"""The first events of every history, which are left out."""
NOT_SHOWN = (effects.Send, effects.Reply, effects.Persist, effects.Flush)
STATIC = effects.VotersChanged(0, ())
QUIET = ("BrokerHeartbeat", "Fetch")
"""Messages of a whole cluster that are left out. There are thousands of them, and partitions record
their fetches anyway."""


@contextmanager
def recorded(trace: Trace, story: Story) -> Iterator[None]:
    watches = (_cluster, _partitions) if isinstance(story, Scene) else PURE
    with ExitStack() as stack:
        for watch in watches:
            for owner, name, around in watch(trace):
                original = getattr(owner, name)
                stack.enter_context(mock.patch.object(owner, name, _around(original, around)))
        yield


def _around(original: Wrapper, around: Callable[..., Any]) -> Wrapper:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        return around(lambda: original(*arguments, **named), *arguments, **named)

    return wrapped


Watch = Iterator[tuple[Any, str, Callable[..., Any]]]


def _raft(trace: Trace) -> Watch:
    def tell(cluster: RaftCluster, node_id: int, kind: Kind, text: str) -> None:
        if text not in BEGINNING:
            trace.add(Event(cluster.now_ms - 1000, str(node_id), kind, text))

    def carry_out(call: Any, cluster: RaftCluster, node: RaftNode, effect: Any) -> None:
        before = len(cluster.letters)
        call()
        for letter in cluster.letters[before:]:
            source, target = str(letter.source), str(letter.target)
            trace.sent(cluster.now_ms - 1000, id(letter), source, target, describe(letter.message))
            _alive.append(letter)
        if not isinstance(effect, NOT_SHOWN) and effect != STATIC:
            tell(cluster, node.me.id, Kind.EFFECT, describe(effect))

    def ended(*, lost: bool) -> Callable[..., None]:
        def end(call: Any, cluster: RaftCluster, letter: Letter, **_: Any) -> None:
            gone = lost or cluster.nodes[letter.target].raft is None
            trace.ended(cluster.now_ms - 1000, id(letter), lost=gone)
            call()

        return end

    def told(kind: Kind, words: Callable[..., str]) -> Callable[..., Any]:
        def tell_first(call: Any, cluster: RaftCluster, node_id: int, *rest: Any, **_: Any) -> Any:
            tell(cluster, node_id, kind, words(cluster.nodes[node_id], *rest))
            return call()

        return tell_first

    def isolate(call: Any, cluster: RaftCluster, *ids: int) -> None:
        for each in ids:
            tell(cluster, each, Kind.FAULT, f"cut off, with {list(ids)}")
        call()

    _alive: list[Letter] = []
    yield RaftCluster, "_carry_out", carry_out
    yield RaftCluster, "deliver", ended(lost=False)
    yield RaftCluster, "drop", ended(lost=True)
    yield RaftCluster, "isolate", isolate
    for name, kind, words in (
        ("start", Kind.FAULT, lambda node: "starts again" if node.incarnation else ""),
        ("crash", Kind.FAULT, lambda node: "crashes: what was not flushed or saved is gone"),
        ("wipe", Kind.FAULT, lambda node, *_: "comes back with an empty disk"),
        ("save", Kind.EFFECT, lambda node: f"has saved {describe(node.saving)}"),
        ("flush", Kind.EFFECT, lambda node: f"has flushed below {node.flushes[0].offset}"),
        ("install", Kind.EFFECT, lambda node: f"checks snapshot {node.installing}"),
        (
            "append",
            Kind.EFFECT,
            lambda node, *values: f"appends {len(values)} records at {node.log.end_offset}",
        ),
        ("add_voter", Kind.EFFECT, lambda node, other: f"is asked to add voter {other}"),
        ("remove_voter", Kind.EFFECT, lambda node, other: f"is asked to remove voter {other}"),
        ("take_snapshot", Kind.EFFECT, lambda node: "takes a snapshot"),
    ):
        yield RaftCluster, name, told(kind, words)


def _partitions(trace: Trace) -> Watch:
    def tell(replica: Partition, text: str, now_ms: int | None = None) -> None:
        last_ms = trace.events[-1].time_ms if trace.events else 0.0
        time_ms = _time_ms(last_ms if now_ms is None else now_ms)
        words = f"{_which(replica)}{text}"
        trace.add(Event(time_ms, _lane_of(replica._broker_id), Kind.EFFECT, words))

    def fetched(call: Any, leader: Partition, fetch: FollowerFetch, now_ms: int) -> Any:
        source, target = _lane_of(fetch.replica_id), _lane_of(leader._broker_id)
        key, time_ms = object(), _time_ms(now_ms)
        text = f"{_which(leader)}Fetch offset {fetch.offset}, last epoch {fetch.last_fetched_epoch}"
        trace.sent(time_ms, key, source, target, text)
        trace.ended(time_ms, key)
        diverging = call()
        answer = f"high watermark {leader.high_watermark}"
        if diverging is not None:
            answer = f"diverging: epoch {diverging.epoch} ends at {diverging.offset}"
        proposal = leader.leadership.proposal if leader.leadership is not None else None
        if proposal is not None:
            tell(leader, f"proposes ISR {[each for each, _ in proposal.isr]}", now_ms)
        trace.sent(time_ms, key, target, source, answer)
        trace.ended(time_ms, key)
        return diverging

    def lead(call: Any, replica: Partition, value: Any, now_ms: int) -> Any:
        new = call()
        if new:
            tell(replica, f"leads epoch {value.leader_epoch}, ISR {list(value.isr)}", now_ms)
        return new

    def follow(call: Any, replica: Partition, value: Any) -> Any:
        new = call()
        if new:
            tell(replica, f"follows {value.leader} in epoch {value.leader_epoch}")
        return new

    def produce(call: Any, replica: Partition, data: Any, acks: int, **moment: int) -> Any:
        appended = call()
        tell(replica, f"appends at {appended.base_offset}, acks={acks}", moment["now_ms"])
        return appended

    def append(call: Any, replica: Partition, data: Any, **_: Any) -> None:
        call()
        tell(replica, f"has all below {replica.log.end_offset}")

    def cut(call: Any, replica: Partition, offset: int) -> None:
        call()
        tell(replica, f"cuts its log at {offset}")

    yield Partition, "follower_fetched", fetched
    yield Partition, "make_leader", lead
    yield Partition, "make_follower", follow
    yield Partition, "append_as_leader", produce
    yield Partition, "append_as_follower", append
    yield Partition, "truncate_to", cut


def _rules(trace: Trace) -> Watch:
    def append(call: Any, driver: Driver, records: Any) -> None:
        for record in records:
            trace.add(Event(driver.now_ms, "controller", Kind.EFFECT, describe(record)))
        call()

    def handle(call: Any, driver: Driver, request: Any) -> Any:
        broker = f"replica {getattr(request, 'broker_id', '?')}"
        if type(request).__name__.startswith(QUIET):
            return call()
        key = object()
        trace.sent(driver.now_ms, key, broker, "controller", describe(request))
        trace.ended(driver.now_ms, key)
        return call()

    yield Driver, "append", append
    yield Driver, "handle", handle


def _disks(trace: Trace) -> Watch:
    def tell(kind: Kind, text: str) -> None:
        trace.add(Event(float(len(trace.events)), "disk", kind, text))

    def on_file(words: str) -> Callable[..., Any]:
        def do(call: Any, file: SimFile, *arguments: Any) -> Any:
            tell(Kind.EFFECT, words.format(file.path.rpartition("/")[2], *map(_size, arguments)))
            return call()

        return do

    def on_path(words: str) -> Callable[..., Any]:
        def do(call: Any, disk: SimDisk, *paths: str) -> Any:
            tell(Kind.EFFECT, words.format(*(each.rpartition("/")[2] for each in paths)))
            return call()

        return do

    def crash(call: Any, disk: SimDisk, **how: Any) -> SimDisk:
        tell(Kind.FAULT, "power is lost: what was not synced is gone, or any part of it")
        found: SimDisk = call()
        return found

    yield SimFile, "pwrite", on_file("{0}: write {1} bytes at {2}")
    yield SimFile, "truncate", on_file("{0}: cut to {1} bytes")
    yield SimFile, "sync", on_file("{0}: sync")
    yield SimDisk, "rename", on_path("{0} is renamed {1}")
    yield SimDisk, "remove", on_path("{0} is removed")
    yield SimDisk, "sync_dir", on_path("{0}/: sync")
    yield SimDisk, "crash", crash


def _size(argument: Any) -> int:
    return argument if isinstance(argument, int) else len(argument)


def _cluster(trace: Trace) -> Watch:
    def note(call: Any, cluster: SimCluster, event: str) -> None:
        call()
        words = event.split()
        named = [word for word in words if word in cluster.machines]
        if words[0] != "FAILED":
            lane = (named or [words[0] if words[0][-1].isdigit() else "cluster"])[0]
            kind = Kind.FAULT if named and words[0] not in named else Kind.EFFECT
            trace.add(Event(cluster.loop.time() * 1000, lane, kind, event))

    def request(call: Any, channel: Channel, message: Any, timeout_ms: int, done: Any) -> None:
        call()
        name = type(message).__name__
        source, target = current_host.get(), _name_of(channel.peer)
        if not name.startswith(QUIET):
            key = object()
            trace.sent(_time_ms(0), key, source, target, describe(message))
            trace.ended(_time_ms(0), key)

    yield SimCluster, "note", note
    yield Channel, "request", request


PURE = (_raft, _partitions, _rules, _disks)


def _name_of(peer: Peer) -> str:
    return name_of(peer.node_id, peer.hello.roles[0])


def _lane_of(broker_id: int) -> str:
    return f"replica {broker_id}" if current_host.get() == "-" else f"b{broker_id}"


def _which(replica: Partition) -> str:
    """Return the name of the partition, because a whole cluster has several."""
    return "" if current_host.get() == "-" else f"partition {replica.partition_id}: "


def _time_ms(now_ms: float) -> float:
    """Return the time of the loop in a whole cluster, whose nodes have clocks of their own.
    Otherwise return `now_ms`."""
    return now_ms if current_host.get() == "-" else asyncio.get_running_loop().time() * 1000
