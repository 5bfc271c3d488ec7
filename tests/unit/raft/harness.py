"""Several Raft cores in one process, with logs in memory and a queue of messages.

The harness carries out effects as the production shell does: effects after a `Persist` wait until
the election is saved. Nothing happens by itself. `save`, `flush`, `deliver` and `drop` are single
steps. `settle` takes all of these steps until none is left. `run` also lets virtual time pass.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey, Uuid
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import KRaftVersionFeature, Voter, VoterEndpoint
from quorate.quorum.raft.effects import Effect, Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import Request, Response
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.settings import RaftSettings
from quorate.quorum.raft.voter_history import STATIC_VOTERS, Membership, QuorumVoters, VoterHistory
from tests.unit.raft.memory_log import MemoryMetadataLog
from tests.unit.raft.memory_snapshots import MemorySnapshots

CLUSTER_ID = "raft-test"
WALL_OFFSET_MS = 1_700_000_000_000
MAX_TICKS_PER_MS = 5


def directory(node_id: int, number: int = 1) -> Uuid:
    """Return a directory id for this number."""
    return Uuid(bytes([number]) * 12 + node_id.to_bytes(4, "big", signed=True))


def key(node_id: int, number: int = 1) -> ReplicaKey:
    """Return the key of a replica. `number` selects its directory id."""
    return ReplicaKey(node_id, directory(node_id, number))


def voter(node_id: int, port: int = 9093) -> Voter:
    """Return the description of a voter, with one address."""
    return Voter(
        voter_id=node_id,
        voter_directory_id=directory(node_id),
        endpoints=(VoterEndpoint(name="CONTROLLER", host=f"c{node_id}", port=port),),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )


def content_of(snapshot: EpochOffset, quorum: QuorumVoters) -> bytes:
    """Return bytes that represent a snapshot: its name and its voters."""
    voters = ",".join(str(each.voter_id) for each in quorum.voters)
    return f"{snapshot.offset}-{snapshot.epoch} {quorum.kraft_version} {voters}".encode()


def quorum_of(content: bytes) -> QuorumVoters:
    """Return the voters in the bytes of a snapshot."""
    _, version, voters = content.decode().split(" ")
    return QuorumVoters(int(version), tuple(voter(int(each)) for each in voters.split(",") if each))


@dataclass(eq=False)
class Letter:
    """A message in the queue."""

    source: int
    target: int
    token: int
    message: Request | Response
    is_response: bool

    def __str__(self) -> str:
        return f"{self.source}->{self.target} {self.message}"


@dataclass(eq=False)
class RaftNode:
    """One node: its disk, and its core while it runs."""

    me: ReplicaKey
    log: MemoryMetadataLog
    snapshots: MemorySnapshots = field(default_factory=MemorySnapshots)
    saved: Election = field(default_factory=Election)
    raft: Raft | None = None
    saving: Election | None = None
    outbox: deque[Effect] = field(default_factory=deque)
    flushes: deque[effects.Flush] = field(default_factory=deque)
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)  # token -> (timeout, voter)
    incoming: dict[int, tuple[int, int]] = field(default_factory=dict)  # token -> (source, token)
    incarnation: int = 0
    high_watermark: int = 0
    installing: EpochOffset | None = None
    meets: bool = True
    answers: dict[int, tuple[int, str]] = field(default_factory=dict)  # token -> (error, message)
    lost_log: bool = False
    roles: list[effects.RoleChanged] = field(default_factory=list)
    seen: list[Effect] = field(default_factory=list)

    @property
    def core(self) -> Raft:
        """The running core."""
        assert self.raft is not None, f"node {self.me.id} is down"
        return self.raft


class RaftCluster:
    """The nodes and the messages between them, on virtual time."""

    def __init__(
        self,
        voters: int = 3,
        observers: int = 0,
        *,
        settings: RaftSettings | None = None,
        seed: int = 0,
        start: bool = True,
        directories_known: bool = False,
        log: Callable[[int], MemoryMetadataLog] = lambda node_id: MemoryMetadataLog(),
        spares: int = 0,
        dynamic: bool = False,
    ) -> None:
        """Create the nodes.

        With `dynamic`, the log holds the voters (kraft.version 1), as `storage format` writes them.
        `spares` is the number of controllers 11, 12, ... that may become voters.
        """
        self.settings = settings or RaftSettings()
        self.random = random.Random(seed)
        self.now_ms = 1000
        self.voter_ids = list(range(1, voters + 1))
        self.voters = tuple(
            key(i) if directories_known else ReplicaKey(i, ZERO_UUID) for i in self.voter_ids
        )
        self.dynamic = dynamic
        self.spare_ids = list(range(11, 11 + spares))
        ids = [*self.voter_ids, *self.spare_ids, *range(101, 101 + observers)]
        self._log = log
        self.nodes = {i: RaftNode(key(i), log(i)) for i in ids}
        self.letters: list[Letter] = []
        self.cut: set[tuple[int, int]] = set()
        self.on_effect: Callable[[RaftNode, Effect], None] = lambda node, effect: None
        self._token = 0
        if start:
            for node_id in ids:
                self.start(node_id)

    # Nodes

    def start(self, node_id: int) -> Raft:
        """Start the node from its disk."""
        node = self.nodes[node_id]
        assert node.raft is None
        node.raft = Raft(
            self.settings,
            CLUSTER_ID,
            node.me,
            self.membership(node),
            node.log,
            node.snapshots,
            node.saved,
            random.Random(self.random.getrandbits(32)),
            self.now_ms,
            self.now_ms + WALL_OFFSET_MS,
            lost_log=node.lost_log,
        )
        self.collect(node)
        return node.raft

    def membership(self, node: RaftNode) -> Membership:
        """Return the voters as the node's disk or configuration holds them."""
        if not self.dynamic:
            return Membership(configured=self.voters, history=VoterHistory())
        formatted = node.me.id in self.voter_ids
        history = VoterHistory(QuorumVoters(1, tuple(map(voter, self.voter_ids))))
        if not formatted:
            history = VoterHistory()
        latest = node.snapshots.latest
        if latest is not None:
            history = VoterHistory(quorum_of(node.snapshots.files[latest]), in_log=True)
        for batch in node.log.batches:
            for offset, record in batch.control_records():
                if latest is None or offset >= latest.offset:
                    history.append(offset, record)
        return Membership(
            configured=(),
            history=history,
            bootstrap_ids=tuple(-each for each in self.voter_ids),
            own_voter=voter(node.me.id) if node.me.id < 100 else None,
        )

    def take_snapshot(self, node_id: int) -> EpochOffset | None:
        """Take a snapshot of all committed records, and remove the log below it."""
        node = self.nodes[node_id]
        below = [each for each in node.log.batches if each.next_offset <= node.high_watermark]
        if not below:
            return None
        snapshot = EpochOffset(below[-1].epoch, below[-1].next_offset)
        content = content_of(snapshot, node.core.voters_at(snapshot.offset))
        node.snapshots.files = {snapshot: content}  # older ones never outlive the log below them
        node.log.cut_head(snapshot.offset)
        return snapshot

    def add_voter(self, leader: int, node_id: int, *, meets: bool = True) -> int:
        """Return the token of the change. The result will be in the leader's `answers`."""
        node = self.nodes[leader]
        self._token += 1
        node.meets = meets
        node.core.add_voter(self.now_ms, self._token, voter(node_id))
        self.collect(node)
        return self._token

    def remove_voter(self, leader: int, node_id: int) -> int:
        """Return the token of the change. The result will be in the leader's `answers`."""
        node = self.nodes[leader]
        self._token += 1
        node.core.remove_voter(self.now_ms, self._token, self.nodes[node_id].me)
        self.collect(node)
        return self._token

    def crash(self, node_id: int) -> None:
        """Cut the node's power: everything that was not flushed, saved or delivered is lost."""
        node = self.nodes[node_id]
        node.raft = None
        node.log.crash()
        node.saving = node.installing = None
        for store in (node.outbox, node.flushes, node.waiting, node.incoming):
            store.clear()
        node.incarnation += 1
        node.high_watermark = 0
        self.letters = [
            each
            for each in self.letters
            if each.source != node_id and not (each.is_response and each.target == node_id)
        ]

    def kill(self, node_id: int) -> None:
        """Kill the process. The other nodes see closed links, and refused connections."""
        self.crash(node_id)
        for other_id in self.up():
            node = self.nodes[other_id]
            for token in [each for each, (_, to) in node.waiting.items() if to == node_id]:
                del node.waiting[token]
                node.core.response(self.now_ms, token, None)
            self.core(other_id).link_lost(self.now_ms, node_id)
            self.core(other_id).link_refused(self.now_ms, node_id)
            self.collect(self.nodes[other_id])

    def wipe(self, node_id: int, number: int = 2) -> None:
        """Replace the node's disk by an empty one with another directory id."""
        incarnation = self.nodes[node_id].incarnation
        self.nodes[node_id] = RaftNode(
            key(node_id, number), self._log(1000 * number + node_id), incarnation=incarnation
        )

    def lose_log(self, node_id: int) -> None:
        """Remove the metadata directory of a node that is down. The metadata mark outside of it
        stays, and holds the last epoch in which the node may have voted."""
        old = self.nodes[node_id]
        saved = Election(old.saved.epoch, old.me)
        self.nodes[node_id] = RaftNode(
            old.me, self._log(node_id), saved=saved, incarnation=old.incarnation, lost_log=True
        )

    def core(self, node_id: int) -> Raft:
        """Return the running core of the node."""
        return self.nodes[node_id].core

    def up(self) -> list[int]:
        """Return the ids of the nodes that run."""
        return [node_id for node_id, node in self.nodes.items() if node.raft is not None]

    def role(self, node_id: int) -> Role:
        """Return the node's role."""
        return self.core(node_id).role

    def leader(self) -> int:
        """Return the leader of the highest epoch."""
        leaders = [i for i in self.up() if self.role(i) is Role.LEADER]
        assert leaders, "no leader"
        return max(leaders, key=lambda i: self.core(i).epoch)

    def connect_all(self) -> None:
        """Open a link from each running node to each running voter."""
        for node_id in self.up():
            for other in self.voter_ids:
                if other != node_id and self.nodes[other].raft is not None:
                    self.core(node_id).voter_connected(self.now_ms, self.nodes[other].me)
            self.collect(self.nodes[node_id])

    # Network

    def isolate(self, *ids: int) -> None:
        """Cut all links between these nodes and the others."""
        for one in ids:
            for other in self.nodes:
                if other not in ids:
                    self.cut |= {(one, other), (other, one)}

    def heal(self) -> None:
        """Restore all links that were cut."""
        self.cut.clear()

    def pick(
        self, kind: type[object], source: int | None = None, target: int | None = None
    ) -> Letter:
        """Return the first message of that kind in the queue."""
        for letter in self.letters:
            if (
                isinstance(letter.message, kind)
                and source in (None, letter.source)
                and target in (None, letter.target)
            ):
                return letter
        raise AssertionError(f"no {kind.__name__} from {source} to {target} is under way")

    def deliver(self, letter: Letter, *, keep: bool = False) -> None:
        """Deliver the message. A request to a node that is down fails immediately. With `keep` the
        message stays in the queue, as a duplicate."""
        if not keep:
            self.letters.remove(letter)
        node = self.nodes[letter.target]
        if node.raft is None:
            if not letter.is_response:
                self.fail(letter)
            return
        if letter.is_response:
            node.waiting.pop(letter.token, None)
            node.raft.response(self.now_ms, letter.token, cast(Response, letter.message))
        else:
            self._token += 1
            node.incoming[self._token] = (letter.source, letter.token)
            node.raft.request(self.now_ms, self._token, cast(Request, letter.message))
        self.collect(node)

    def drop(self, letter: Letter) -> None:
        """Lose the message. The sender notices by its timeout."""
        self.letters.remove(letter)

    def fail(self, letter: Letter) -> None:
        """Lose the message, and report to the sender immediately that there will be no response."""
        sender = self.nodes[letter.source]
        sender.waiting.pop(letter.token, None)
        if sender.raft is not None:
            sender.raft.response(self.now_ms, letter.token, None)
            self.collect(sender)

    def inject(self, target: int, message: Request, source: int = 999) -> Response | None:
        """Deliver `message`, and return the response if the node gives it immediately."""
        self.deliver_request(target, message, source)
        self.save_all(target)
        for letter in self.letters:
            if letter.is_response and letter.target == source and letter.token == self._token:
                self.letters.remove(letter)
                return cast(Response, letter.message)
        return None

    def deliver_request(self, target: int, message: Request, source: int = 999) -> None:
        """Deliver a request that is not in the queue. The response goes to `source`."""
        node = self.nodes[target]
        self._token += 1
        node.incoming[self._token] = (source, self._token)
        node.core.request(self.now_ms, self._token, message)
        self.collect(node)

    # Disk

    def save_all(self, node_id: int) -> None:
        """Complete all elections that the node saves."""
        while self.nodes[node_id].saving is not None:
            self.save(node_id)

    def save(self, node_id: int) -> None:
        """Complete the save of the node's election."""
        node = self.nodes[node_id]
        assert node.saving is not None
        node.saved, node.saving = node.saving, None
        node.core.election_saved(node.saved)
        self.collect(node)

    def install(self, node_id: int) -> None:
        """Check the received snapshot. One that begins with "damaged" is not whole."""
        node = self.nodes[node_id]
        assert node.installing is not None
        snapshot, node.installing = node.installing, None
        data = node.snapshots.parts[snapshot]
        whole = not data.startswith(b"damaged")
        quorum = quorum_of(data) if whole and self.dynamic else STATIC_VOTERS
        node.core.snapshot_checked(self.now_ms, snapshot, len(data) if whole else -1, quorum)
        self.collect(node)

    def flush(self, node_id: int) -> None:
        """Complete the oldest requested flush."""
        node = self.nodes[node_id]
        done = node.flushes.popleft()
        node.log.flush(done.offset)
        node.core.flushed(self.now_ms, done.epoch, done.offset)
        self.collect(node)

    # Driving

    def collect(self, node: RaftNode) -> None:
        """Carry out the effects of the node, as the shell does."""
        node.outbox.extend(node.core.take_effects())
        while node.outbox and node.saving is None:
            effect = node.outbox.popleft()
            node.seen.append(effect)
            self.on_effect(node, effect)
            self._carry_out(node, effect)

    def _carry_out(self, node: RaftNode, effect: Effect) -> None:
        match effect:
            case effects.Persist(election):
                node.saving = election
            case effects.ProbeVoter(token):
                node.core.voter_probed(self.now_ms, token, node.meets)
                node.outbox.extend(node.core.take_effects())
            case effects.VoterChangeResult(token, error, message):
                node.answers[token] = (error, message)
            case effects.Send(voter_id, token, request, timeout_ms):
                node.waiting[token] = (self.now_ms + timeout_ms, voter_id)
                if (node.me.id, abs(voter_id)) not in self.cut:
                    self.letters.append(Letter(node.me.id, abs(voter_id), token, request, False))
            case effects.Reply(token, response):
                source, sender_token = node.incoming.pop(token)
                if (node.me.id, source) not in self.cut:
                    self.letters.append(Letter(node.me.id, source, sender_token, response, True))
            case effects.Flush():
                node.flushes.append(effect)
            case effects.Committed(high_watermark):
                node.high_watermark = high_watermark
            case effects.RoleChanged():
                node.roles.append(effect)
            case effects.InstallSnapshot(snapshot):
                node.installing = snapshot
            case effects.SnapshotInstalled():
                node.flushes.clear()
            case effects.CaughtUp():
                node.lost_log = False
                node.core.caught_up(self.now_ms)
                node.outbox.extend(node.core.take_effects())
            case effects.Truncated(offset):
                node.flushes = deque(each for each in node.flushes if each.offset <= offset)

    def append(self, node_id: int, *values: bytes) -> int:
        """Append one batch on the leader, and return the offset of its last record."""
        node = self.nodes[node_id]
        offset = node.core.append(self.now_ms, self.now_ms + WALL_OFFSET_MS, values)
        self.collect(node)
        return offset

    def settle(self, steps: int = 10_000) -> None:
        """Take all steps that need no time."""
        for _ in range(steps):
            if not self.one_step():
                return
        raise AssertionError("the cluster does not come to rest")

    def one_step(self) -> bool:
        """Save, install, flush or deliver once. Return False if there is nothing to do."""
        for node_id in self.up():
            node = self.nodes[node_id]
            if node.saving is not None:
                self.save(node_id)
                return True
            if node.installing is not None:
                self.install(node_id)
                return True
            if node.flushes:
                self.flush(node_id)
                return True
        if self.letters:
            self.deliver(self.letters[0])
            return True
        return False

    def pass_time(self, until_ms: int) -> None:
        """Advance the time to the next timer or timeout, at most to `until_ms`."""
        due = [until_ms]
        for node_id in self.up():
            node = self.nodes[node_id]
            deadline_ms = node.core.deadline_ms()
            due += [] if deadline_ms is None else [deadline_ms]
            due += [timeout_ms for timeout_ms, _ in node.waiting.values()]
        self.now_ms = max(self.now_ms, min(due))
        for node_id in self.up():
            self.tick(node_id)

    def tick(self, node_id: int) -> None:
        """Report timeouts to the node, and call `tick` while its timer is due."""
        node = self.nodes[node_id]
        for token, (timeout_ms, _) in list(node.waiting.items()):
            if timeout_ms <= self.now_ms:
                del node.waiting[token]
                node.core.response(self.now_ms, token, None)
        for _ in range(MAX_TICKS_PER_MS):
            deadline_ms = node.core.deadline_ms()
            if deadline_ms is None or deadline_ms > self.now_ms:
                break
            node.core.tick(self.now_ms)
        else:
            raise AssertionError(f"node {node_id} wants to be woken all the time: {node.core.role}")
        self.collect(node)

    def run(self, duration_ms: int) -> None:
        """Let virtual time pass, and take all steps that become possible."""
        end_ms = self.now_ms + duration_ms
        self.settle()
        while self.now_ms < end_ms:
            self.pass_time(end_ms)
            self.settle()

    def until(self, holds: Callable[[], bool], within_ms: int = 20_000) -> None:
        """Take single steps, and let time pass, until `holds` returns True. Fail after
        `within_ms`."""
        end_ms = self.now_ms + within_ms
        while not holds():
            assert self.now_ms < end_ms, f"not within {within_ms} ms"
            if not self.one_step():
                self.pass_time(end_ms)

    def elect(self, node_id: int = 1) -> int:
        """Let `node_id` campaign before the others, and win."""
        self.settle()
        self.prompt(node_id)
        self.settle()
        assert self.role(node_id) is Role.LEADER, self.role(node_id)
        return node_id

    def prompt(self, node_id: int) -> None:
        """Let only `node_id` campaign."""
        core = self.core(node_id)
        for other in self.voter_ids:
            if other == core.leader_id:
                core.link_lost(self.now_ms, other)
                core.link_refused(self.now_ms, other)
            elif other != node_id and core.role is Role.UNATTACHED:
                core.voter_connected(self.now_ms, self.nodes[other].me)
        self.collect(self.nodes[node_id])
        self.save_all(node_id)
        while core.role in (Role.UNATTACHED, Role.FOLLOWER):
            deadline_ms = core.deadline_ms()
            assert deadline_ms is not None
            self.now_ms = max(self.now_ms, deadline_ms)
            self.tick(node_id)

    def logs(self, ids: Iterable[int] | None = None) -> list[list[tuple[int, bytes]]]:
        """Return the entries of these logs, or of all logs."""
        return [self.nodes[i].log.entries() for i in (ids or self.nodes)]
