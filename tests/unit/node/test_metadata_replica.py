"""The metadata replica: its inputs to Raft, snapshots on the disk's thread, and its failures."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.disks.retried_work import RETRY_MS
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log_limit import INTERVAL_MS as LINE_INTERVAL_MS
from quorate.quorum.metadata.snapshot_file import SnapshotContents, write_snapshot
from quorate.quorum.node.replica.metadata_replica import MAX_HELD, MetadataReplica
from quorate.quorum.node.replica.replica_flushes import INTERVAL_MS
from quorate.quorum.node.replica.replica_listener import ReplicaListener, VoterLinks
from quorate.quorum.raft import effects
from quorate.quorum.raft.effects import Effect
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.voter_history import QuorumVoters
from quorate.quorum.seams import Seams
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.unit.node.metadata_disk import MetadataDisk, image_at
from tests.unit.node.test_metadata_storage import opened
from tests.unit.rpc.kafka.fakes import FakeClock

SNAPSHOT = EpochOffset(2, 1200)


class Core:
    """A Raft core that records its inputs. Its `snapshot_checked` changes the log as Raft does."""

    def __init__(self, node: MetadataDisk) -> None:
        self.storage = node.storage
        self.effects: list[Effect] = []
        self.put: list[object] = []

    def take_effects(self) -> list[Effect]:
        taken, self.effects = self.effects, []
        return taken

    def deadline_ms(self) -> None:
        return None

    def link_lost(self, now_ms: int, voter_id: int) -> None:
        self.put.append(("link lost", voter_id, now_ms))

    def snapshot_checked(
        self, now_ms: int, snapshot: EpochOffset, size_bytes: int, quorum: QuorumVoters
    ) -> None:
        self.put.append("checked" if size_bytes > 0 else "damaged")
        if size_bytes > 0:
            self.storage.snapshots.added(snapshot, size_bytes)
            self.storage.log.reset_to(snapshot.offset, snapshot.epoch)
            self.storage.snapshots.remove_before(snapshot.offset)
            self.effects.append(effects.SnapshotInstalled(snapshot))


class Listener:
    def __init__(self) -> None:
        self.loaded: list[SnapshotContents] = []
        self.failures: list[BaseException] = []

    def on_loaded(self, contents: SnapshotContents) -> None:
        self.loaded.append(contents)

    def on_failed(self, error: BaseException) -> None:
        self.failures.append(error)


class ReplicaBench:
    """A replica. A test runs the work of the disk's thread itself, piece by piece."""

    def __init__(self) -> None:
        self.node = opened()
        self.node.append(5)
        self.clock = FakeClock()
        self.works: deque[Callable[[], None]] = deque()
        self.node.disk._later = self.works.append
        seams = Seams(self.clock, cast(Any, None), cast(Any, None), self.node.disk)
        self.core, self.listener = Core(self.node), Listener()
        self.replica = MetadataReplica(
            seams,
            cast(Raft, self.core),
            self.node.storage,
            cast(ElectionFile, None),
            cast(VoterLinks, None),
            cast(ReplicaListener, self.listener),
        )
        self.replica.start()
        for offset in range(5, SNAPSHOT.offset):
            self.node.epochs[offset] = 2
        self.image = image_at(SNAPSHOT.offset, self.node.epochs)

    def receive(self, content: bytes) -> None:
        self.node.storage.snapshots.write_part(SNAPSHOT, 0, content)
        self.core.effects.append(effects.InstallSnapshot(SNAPSHOT))
        self.link_lost(0)

    def link_lost(self, voter_id: int) -> None:
        """Give the core an input."""
        self.replica.put(cast(Raft, self.core).link_lost, voter_id)

    def content(self) -> bytes:
        return b"".join(write_snapshot(self.image, QuorumVoters()))

    def work_until(self, is_reached: Callable[[], bool]) -> int:
        count = 0
        while not is_reached():
            self.works.popleft()()
            count += 1
        return count

    def bases(self) -> list[int]:
        return [int(name[:20]) for name in self.node.names() if name.endswith(".log")]


def test_nothing_is_put_to_the_core_while_its_log_is_replaced() -> None:
    """An observer, or a new leader, could append behind files that are about to be removed. After a
    crash, the log would have a gap."""
    node = ReplicaBench()
    node.receive(node.content())
    node.work_until(lambda: node.listener.loaded != [])
    assert node.listener.loaded[0].image == node.image
    assert node.bases() == [0, 4], "readers have the empty log already"
    assert node.node.storage.log.end_offset == SNAPSHOT.offset
    node.clock.advance(7)
    node.link_lost(1)
    node.link_lost(2)
    assert node.core.put[1:] == ["checked"]
    node.clock.advance(7)
    node.work_until(lambda: len(node.core.put) > 2)
    assert node.bases() == [SNAPSHOT.offset]
    now_ms = node.clock.now_ms()
    assert node.core.put[2:] == [("link lost", 1, now_ms), ("link lost", 2, now_ms)]
    assert not node.listener.failures


def test_others_get_at_the_disk_while_a_snapshot_is_read() -> None:
    """Otherwise a vote would wait until the whole snapshot is read, half a minute with a million
    partitions."""
    node = ReplicaBench()
    node.receive(node.content())
    saved: list[None] = []
    node.node.disk.submit(lambda: None, lambda result, error: saved.append(None))
    node.work_until(lambda: bool(saved))
    assert node.core.put == [("link lost", 0, node.clock.now_ms())], "the snapshot is not read yet"
    node.work_until(lambda: node.listener.loaded != [])


def test_a_damaged_snapshot_is_told_and_nothing_is_replaced() -> None:
    node = ReplicaBench()
    content = bytearray(node.content())
    content[-10] ^= 1
    node.receive(bytes(content))
    node.work_until(lambda: len(node.core.put) > 1)
    assert node.core.put[1:] == ["damaged"]
    assert node.bases() == [0, 4] and node.node.storage.log.end_offset == 5


def test_a_log_that_cannot_be_replaced_stops_the_node() -> None:
    node = ReplicaBench()
    node.receive(node.content())
    node.work_until(lambda: node.listener.loaded != [])
    node.link_lost(1)

    def fail(operation: str, path: str) -> None:
        if operation == "remove":
            raise OSError(5, "Input/output error", path)

    node.node.disk.before = fail
    node.work_until(lambda: not node.works)
    assert [type(each) for each in node.listener.failures] == [OSError]
    assert node.core.put[1:] == ["checked"], "nothing goes on"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyError("x"), StateInDoubt),
        (AssertionError(), StateInDoubt),
        (StateInDoubt("half"), StateInDoubt),
        (InvariantViolation("broken"), InvariantViolation),
        (OSError(errno.EIO, "disk"), OSError),
        (OSError(errno.EMFILE, "too many open files"), StateInDoubt),
    ],
)
def test_an_exception_inside_a_change_leaves_the_state_in_doubt(
    error: Exception, raised: type[Exception]
) -> None:
    """Otherwise the boundary of the node port would blame the request."""

    def fail(now_ms: int, voter_id: int) -> None:
        raise error

    node = ReplicaBench()
    node.core.link_lost = fail  # type: ignore[method-assign]
    with pytest.raises(raised):
        node.link_lost(1)


def test_requests_do_not_pile_up_while_the_log_is_replaced() -> None:
    node = ReplicaBench()
    node.receive(node.content())
    node.work_until(lambda: "checked" in node.core.put)
    taken: list[int] = []
    node.core.request = lambda now_ms, token, message: taken.append(token)  # type: ignore[attr-defined]
    for _ in range(MAX_HELD + 500):
        node.replica.request(cast(Any, None), lambda response: None)
    assert len(node.replica._held) == len(node.replica._replies) == MAX_HELD
    node.work_until(lambda: not node.works)
    assert len(taken) == MAX_HELD
    node.replica.request(cast(Any, None), lambda response: None)
    assert len(taken) == MAX_HELD + 1


def test_no_flush_overtakes_a_replacement_that_waits_for_a_descriptor() -> None:
    """The flushed marker named the end of the snapshot while the old segments were still there.
    After a crash the node did not start: its log had lost acknowledged records."""
    node = ReplicaBench()
    node.receive(node.content())
    node.work_until(lambda: node.listener.loaded != [])
    node.clock.advance(INTERVAL_MS - RETRY_MS // 2)
    tries: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation == "pwrite" and path.endswith(FLUSHED_MARKER_NAME):
            tries.append(path)
            if len(tries) == 1:
                raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    node.node.disk.before = before
    node.work_until(lambda: bool(tries))
    node.clock.advance(RETRY_MS // 2)  # The regular flush is due before the second try.
    while node.works:
        node.works.popleft()()
    assert node.bases() == [0, 4]
    disk = node.node.disk.restart()
    assert MetadataDisk(disk).open().log.end_offset == SNAPSHOT.offset

    node = ReplicaBench()
    node.receive(node.content())
    node.work_until(lambda: node.listener.loaded != [])
    node.clock.advance(INTERVAL_MS)
    node.work_until(lambda: not node.works)
    log = node.node.storage.log
    assert node.bases() == [SNAPSHOT.offset] and log.flushed_offset == log.end_offset


@pytest.mark.parametrize("operation", ["pread", "sync", "sync_dir", "open"])
def test_a_received_snapshot_waits_for_a_descriptor(operation: str) -> None:
    """Peers that hold all descriptors of the process must not stop the node."""
    node = ReplicaBench()
    node.receive(node.content())
    failed: list[str] = []

    def before(each: str, path: str) -> None:
        if each == operation and len(failed) < 3:
            failed.append(path)
            raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    node.node.disk.before = before
    for _ in range(5000):
        if node.listener.loaded and not node.works:
            break
        if node.works:
            node.works.popleft()()
        else:
            node.clock.advance(RETRY_MS)
    assert node.listener.loaded and len(failed) == 3
    assert not node.listener.failures


def test_a_snapshot_whose_reading_raises_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*arguments: object) -> Iterator[None]:
        yield from ()
        raise RecursionError

    monkeypatch.setattr("quorate.quorum.node.replica.received_snapshot.reading", raises)
    node = ReplicaBench()
    node.receive(node.content())
    node.work_until(lambda: "damaged" in node.core.put)
    assert not node.listener.failures


def test_a_peer_that_causes_problems_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    node = ReplicaBench()
    for number in range(100):
        node.core.effects.append(effects.PeerProblem(7, f"problem {number}"))
        node.link_lost(0)
    (line,) = caplog.messages
    assert line == "replica 7: problem 0"
    node.clock.advance(LINE_INTERVAL_MS)
    node.core.effects.append(effects.PeerProblem(7, "another problem"))
    node.link_lost(0)
    assert caplog.messages[1:] == ["replica 7: another problem (99 more like it were not logged)"]


def test_a_replica_that_is_closed_leaves_no_timer() -> None:
    node = ReplicaBench()
    assert node.clock.waiting == 1, "the regular flush"
    node.replica.close()
    assert node.clock.waiting == 0
