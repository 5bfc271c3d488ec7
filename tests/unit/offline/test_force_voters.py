"""A lost quorum rebuilt from directories, with power cuts at every disk call.

The tests cover the choice of the source, the written directories and the refusals.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import batches as batches_of
from quorate.quorum.log.batches.batch import build_value_batch, records_of
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.snapshots.snapshots import snapshot_name
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
)
from quorate.quorum.metadata.snapshot_file import write_snapshot
from quorate.quorum.node.opening.data_directory import LOCK_FILE, METADATA_DIRECTORY
from quorate.quorum.node.opening.directory_replacement import (
    REBUILT_DIRECTORY,
    replace_metadata_directory,
)
from quorate.quorum.node.opening.meta_properties import StorageError, read_meta
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.offline.force_voters import (
    EPOCH_MARGIN,
    ForceRefused,
    Plan,
    carry_out,
    complete_interrupted,
    locked,
    plan,
)
from quorate.quorum.offline.source_directories import DamagedSource, SourceDirectory, read_source
from quorate.quorum.offline.storage_format import format_directory
from quorate.quorum.offline.storage_verify import verify
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.generation import FILE_NAME, GenerationFile
from quorate.quorum.raft.voter_history import STATIC_VOTERS
from tests.sim.world.disk import PowerCut, SimDisk

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
WALL_MS = 1_700_000_000_000
BACKUP = f"{METADATA_DIRECTORY}.before-20260101T000000Z"
SETTINGS = LogSettings(segment_bytes=400, flushed_is_acknowledged=True)
TOPIC = Uuid(bytes(15) + b"\5")


def config_of(node_id: int, role: str = "controller") -> NodeConfig:
    values = {
        "process.roles": role,
        "node.id": str(node_id),
        "log.dirs": f"/n{node_id}",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://c:9093" if role == "controller" else "PLAINTEXT://b:9092",
        "controller.quorum.bootstrap.servers": "c:9093",
    }
    return load(None, environment={}, overrides=values, hostname="h")


def setting(name: str) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="orders", name=name, value="1")


CREATED = (
    TopicRecord(name="orders", topic_id=TOPIC),
    PartitionRecord(
        topic_id=TOPIC,
        partition_id=0,
        replicas=(4, 5),
        isr=(4, 5),
        leader=4,
        leader_epoch=0,
        partition_epoch=0,
    ),
)
Batch = tuple[int, Sequence[MetadataRecord]]
LOG: tuple[Batch, ...] = (
    (1, [setting("a")]),
    (1, [setting("b"), setting("c")]),
    (3, CREATED),
    (3, [setting("d")]),
)


@dataclass
class StoppedNodes:
    """The formatted directories of nodes that do not run, on one disk."""

    disk: SimDisk = field(default_factory=lambda: SimDisk(random.Random(1)))

    def node(
        self,
        node_id: int,
        log: Sequence[Batch] = LOG,
        *,
        role: str = "broker",
        cluster: str = CLUSTER,
        epoch: int = 3,
    ) -> str:
        """Create a formatted directory with this log, and return its path."""
        config = config_of(node_id, role)
        directory_id = Uuid(bytes(15) + bytes([node_id]))
        format_directory(
            self.disk, config, cluster_id=cluster, directory_id=directory_id, wall_ms=WALL_MS
        )
        self.disk.lock(f"{config.log_dir}/{LOCK_FILE}").release()
        directory = f"{config.log_dir}/{METADATA_DIRECTORY}"
        if log:
            self.append(config.log_dir, log)
            ElectionFile(self.disk, directory, (1, 2, 3)).save(Election(epoch=epoch))
        return config.log_dir

    def append(self, parent: str, log: Sequence[Batch]) -> None:
        directory = f"{parent}/{METADATA_DIRECTORY}"
        storage = MetadataStorage.open(self.disk, directory, SETTINGS, wall_ms=WALL_MS)
        for leader_epoch, records in log:
            batch = build_value_batch(
                [encode_record(each) for each in records],
                base_offset=storage.log.end_offset,
                leader_epoch=leader_epoch,
                timestamp_ms=WALL_MS + storage.log.end_offset,
            )
            storage.log.append(batch, wall_ms=WALL_MS)
        storage.close()

    def snapshot(self, parent: str, snapshot: EpochOffset, image: MetadataImage) -> None:
        directory = f"{parent}/{METADATA_DIRECTORY}"
        file = self.disk.open(f"{directory}/{snapshot_name(snapshot)}", create=True)
        file.pwrite(b"".join(write_snapshot(image, STATIC_VOTERS)), 0)
        file.sync()
        self.disk.sync_dir(directory)

    def plan(self, directories: Sequence[str], *controllers: int, seed: int = 0) -> Plan:
        configs = [config_of(each) for each in controllers]
        with locked(self.disk, directories, configs):
            return plan(self.disk, directories, configs, random.Random(seed))

    def force(self, directories: Sequence[str], *controllers: int, seed: int = 0) -> Plan:
        complete_interrupted(self.disk, directories, [config_of(each) for each in controllers])
        planned = self.plan(directories, *controllers, seed=seed)
        carry_out(self.disk, planned, wall_ms=WALL_MS, backup=BACKUP)
        return planned

    def open(self, node_id: int) -> MetadataStorage:
        directory = f"/n{node_id}/{METADATA_DIRECTORY}"
        return MetadataStorage.open(self.disk, directory, SETTINGS, wall_ms=WALL_MS)

    def rebuilt(self, node_id: int, planned: Plan) -> None:
        """Check that a controller of the new quorum has all files, and that they agree."""
        directory = f"/n{node_id}/{METADATA_DIRECTORY}"
        storage = self.open(node_id)
        assert storage.history.latest.kraft_version == 1
        assert storage.history.latest.voters == planned.quorum.voters
        assert storage.log.end_offset == planned.quorum.end.offset + 3
        assert storage.log.last_epoch == planned.quorum.epoch
        *_, last = batches_of(storage.log.read(planned.quorum.end.offset, 1 << 20))
        storage.close()
        assert GenerationFile(self.disk, directory).load() == planned.quorum.rebuilds
        election = ElectionFile(self.disk, directory, (), kraft_version=1).load()
        assert election == Election(epoch=planned.quorum.epoch)
        again = read_source(self.disk, f"/n{node_id}")
        assert again.rank > planned.chosen.rank
        assert again.image.topics == planned.chosen.image.topics
        assert again.image.configs == planned.chosen.image.configs
        assert again.meta.cluster_id == CLUSTER
        keys = [each.voter_directory_id for each in planned.quorum.voters]
        assert again.meta.directory_id in keys
        assert last[1].record_count == 1, "why is the last record"

    def content(self, path: str = "/") -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in self.disk.list(path):
            below = f"{path.rstrip('/')}/{name}"
            if self.disk.is_dir(below):
                found |= self.content(below)
            else:
                found[below] = self.disk.content(below)
        return found


@pytest.fixture
def cluster() -> StoppedNodes:
    return StoppedNodes()


# -- which log, and what the others lack -----------------------------------------------------------


def test_the_log_that_goes_furthest_is_taken_and_others_say_what_they_lack(
    cluster: StoppedNodes,
) -> None:
    short, long = cluster.node(4, LOG[:2]), cluster.node(5)
    planned = cluster.plan([short, long], 10)
    assert planned.chosen.directory == long
    assert planned.chosen.end == EpochOffset(3, 6)
    (comparison,) = planned.others
    assert comparison.missing == range(3, 6) and not comparison.surplus
    assert comparison.changes == {"topics created": ["orders"], "configs changed": ["topic orders"]}


def test_a_later_epoch_counts_more_than_more_records(cluster: StoppedNodes) -> None:
    """Records of an old leader after the start of the next epoch were never committed."""
    old = (*LOG[:2], *[(1, [setting(f"x{each}")]) for each in range(9)])
    longer, later = cluster.node(1, old, role="controller"), cluster.node(4)
    planned = cluster.plan([longer, later], 10)
    assert planned.chosen.directory == later
    (comparison,) = planned.others
    assert (
        comparison.surplus == range(3, 12)
        and comparison.missing == range(3, 6)
        and comparison.never_committed
    )


def test_a_later_generation_counts_more_than_all_that_the_older_quorum_did_since(
    cluster: StoppedNodes,
) -> None:
    cluster.force([cluster.node(4)], 10)
    old = cluster.node(1, (*LOG, *[(9000, [setting(f"x{n}")]) for n in range(9)]))
    planned = cluster.plan(["/n10", old], 10)
    assert planned.chosen.directory == "/n10" and planned.generation == 2
    (comparison,) = planned.others
    assert comparison.surplus == range(6, 15) and not comparison.never_committed
    assert planned.quorum.epoch == 9000 + EPOCH_MARGIN


@pytest.mark.parametrize(
    "went_on",
    [
        pytest.param([], id="shorter"),
        pytest.param([(7, [setting("x")])], id="shorter, of a deposed leader that nobody followed"),
        pytest.param([(2, [setting(f"x{n}")]) for n in range(9)], id="longer, of an older epoch"),
    ],
)
def test_a_snapshot_counts_as_the_log_that_it_stands_for(
    cluster: StoppedNodes, went_on: list[Batch]
) -> None:
    """The snapshot was replacing the log."""
    behind, source = cluster.node(4, (*LOG[:1], *went_on), epoch=7), cluster.node(5)
    image = read_source(cluster.disk, source).image
    cluster.snapshot(behind, EpochOffset(3, 6), image)
    found = read_source(cluster.disk, behind)
    assert found.end == EpochOffset(3, 6) and found.image == image
    planned = cluster.force([behind], 10)
    cluster.rebuilt(10, planned)


def test_where_another_log_left_the_one_that_now_begins_behind_a_snapshot(
    cluster: StoppedNodes,
) -> None:
    """Epoch 1 ends in the snapshot at offset 3. The old leader of epoch 2 diverged from offset 1
    on. The log after the snapshot contains epoch 3 only."""
    whole = read_source(cluster.disk, cluster.node(4, LOG[:2]))
    cut = cluster.node(5, LOG[:1])
    cluster.snapshot(cut, EpochOffset(1, 3), whole.image)
    cluster.append(cut, LOG[2:])
    astray = cluster.node(1, (*LOG[:1], *[(2, [setting(f"x{each}")]) for each in range(3)]))
    (comparison,) = cluster.plan([cut, astray], 10).others
    assert (comparison.missing, comparison.surplus) == (range(1, 6), range(1, 4))


def test_a_torn_tail_ends_the_log_and_damage_below_is_refused(cluster: StoppedNodes) -> None:
    torn, damaged = cluster.node(4), cluster.node(5)
    segment = f"{torn}/{METADATA_DIRECTORY}/{0:020d}.log"
    last = max(name for name in cluster.content(torn) if name.endswith(".log"))
    file = cluster.disk.open(last)
    file.pwrite(b"\0\0\0\0\0\0\0\x06\0\0\1\0", file.size())
    assert read_source(cluster.disk, torn).end == EpochOffset(3, 6)
    cluster.disk.flip(segment.replace(torn, damaged), 80)
    with pytest.raises(DamagedSource, match=r"damaged at offset 0: .* leave /n5 out"):
        cluster.plan([torn, damaged], 10)
    cluster.rebuilt(10, cluster.force([torn], 10))


@pytest.mark.parametrize("flushed", [True, False])
@pytest.mark.parametrize("at", range(3))
def test_damage_of_what_may_be_committed_ends_no_log_without_a_word(
    cluster: StoppedNodes, at: int, flushed: bool
) -> None:
    """A killed broker has not recorded its latest records as flushed. The test also follows the
    advice of the error message."""
    whole, damaged = cluster.node(5), cluster.node(4)
    directory = f"{damaged}/{METADATA_DIRECTORY}"
    segment = f"{directory}/{0:020d}.log"
    marker = f"{directory}/{FLUSHED_MARKER_NAME}"
    file = cluster.disk.open(segment)
    position, header = list(batches_of(file.pread(file.size(), 0)))[at]
    cluster.disk.flip(segment, position + header.size_bytes - 1)
    if not flushed:
        cluster.disk.remove(marker)
    with pytest.raises(DamagedSource) as refused:
        cluster.plan([whole, damaged], 10)
    assert f"damaged at offset {header.base_offset}: the batch fails its CRC" in str(refused.value)
    assert f"`truncate --size {position} {segment}`, and remove" in str(refused.value)
    file.truncate(position)
    if flushed:
        cluster.disk.remove(marker)
    (comparison,) = cluster.plan([whole, damaged], 10).others
    assert comparison.missing == range(header.base_offset, 6)
    if at:
        cluster.rebuilt(10, cluster.force([damaged], 10))


# -- what is written -------------------------------------------------------------------------------


def test_a_new_controller_gets_the_log_the_voters_and_the_next_generation(
    cluster: StoppedNodes,
) -> None:
    directories = [cluster.node(4, LOG[:3]), cluster.node(5, epoch=77)]
    before = cluster.content()
    planned = cluster.force(directories, 10)
    assert planned.generation == 1
    assert planned.quorum.epoch == 77 + EPOCH_MARGIN
    assert planned.quorum.rebuilds[0].end == EpochOffset(3, 6)
    cluster.rebuilt(10, planned)
    after = cluster.content()
    assert before.items() <= after.items(), "the directories that are left are as they were"
    log = cluster.open(10).log
    position, header = list(batches_of(log.read(8, 1 << 20)))[-1]
    (record,) = records_of(log.read(8, 1 << 20), position, header)
    assert record.value is not None
    assert decode_record(record.value) == NoOpRecord(cause="quorum-rebuilt")


def test_storage_verify_finds_it_sound_and_a_damaged_generation_not(cluster: StoppedNodes) -> None:
    cluster.force([cluster.node(4)], 10)
    before = cluster.content()
    found = verify(cluster.disk, "/n10", whole_producers=lambda _: True)
    assert found.sound and not found.results
    assert cluster.content() == before
    cluster.disk.flip(f"/n10/{METADATA_DIRECTORY}/{FILE_NAME}", 20)
    (finding,) = verify(cluster.disk, "/n10", whole_producers=lambda _: True).results
    assert "generation of this node" in finding.what


def test_several_controllers_begin_with_the_same_quorum(cluster: StoppedNodes) -> None:
    planned = cluster.force([cluster.node(4)], 10, 11, 12)
    assert [each.voter_id for each in planned.quorum.voters] == [10, 11, 12]
    for node_id in (10, 11, 12):
        cluster.rebuilt(node_id, planned)


def test_a_controller_that_is_left_is_rebuilt_in_place_and_keeps_what_it_had(
    cluster: StoppedNodes,
) -> None:
    behind, ahead = cluster.node(1, LOG[:2], role="controller"), cluster.node(4)
    had = cluster.content(f"{behind}/{METADATA_DIRECTORY}")
    planned = cluster.force([behind, ahead], 1)
    cluster.rebuilt(1, planned)
    kept = cluster.content(f"{behind}/{BACKUP}")
    assert [name.rpartition("/")[2] for name in kept] == [name.rpartition("/")[2] for name in had]
    assert list(kept.values()) == list(had.values())
    again = cluster.plan([behind, ahead], 1)
    assert again.chosen.directory == behind and again.generation == 2
    assert again.quorum.epoch == planned.quorum.epoch + EPOCH_MARGIN


# -- refusals --------------------------------------------------------------------------------------


def test_a_directory_in_use_is_refused(cluster: StoppedNodes) -> None:
    broker = cluster.node(4)
    cluster.disk.lock(f"{broker}/{LOCK_FILE}")
    with pytest.raises(ForceRefused, match="/n4 is in use by a running node"):
        cluster.plan([broker], 10)


@pytest.mark.parametrize(
    ("directories", "controllers", "reason"),
    [
        (["/n4", "/n6"], [10], "/n6 belongs to cluster another"),
        (["/n7"], [10], "none of /n7 holds records"),
        (["/n4"], [10, 10], "node.id 10 is given twice"),
        (["/n4"], [1], "Give the directory with --dir too"),
        (["/n4", "/n1"], [4], "process.roles must contain controller"),
    ],
)
def test_what_is_refused_changes_nothing(
    cluster: StoppedNodes, directories: list[str], controllers: list[int], reason: str
) -> None:
    cluster.node(4)
    cluster.node(1, LOG[:2], role="controller")
    cluster.node(6, LOG[:1], cluster="another")
    cluster.node(7, ())
    before = cluster.content()
    configs = [config_of(each, "broker" if each == 4 else "controller") for each in controllers]
    with pytest.raises((ForceRefused, StorageError), match=reason):
        plan(cluster.disk, directories, configs, random.Random(0))
    assert cluster.content() == before


def test_a_dry_run_changes_nothing(cluster: StoppedNodes) -> None:
    directories = [cluster.node(4, LOG[:3]), cluster.node(5), cluster.node(1, role="controller")]
    before = cluster.content()
    cluster.plan(directories, 1, 10)
    assert cluster.content() == before


# -- the order of several controllers --------------------------------------------------------------


def test_no_directory_is_replaced_if_a_later_one_cannot_be(cluster: StoppedNodes) -> None:
    """The backup of the second controller exists, so the first one must stay as it was."""
    directories = [cluster.node(4), cluster.node(1, LOG[:2], role="controller")]
    directories.append(cluster.node(2, LOG[:2], role="controller"))
    planned = cluster.plan(directories, 1, 2)
    taken = planned.controllers[-1].config.metadata_log_dir
    cluster.disk.make_dirs(f"{taken}/{BACKUP}")
    old = {each: read_source(cluster.disk, each) for each in directories}
    with pytest.raises(StorageError, match="exists already"):
        carry_out(cluster.disk, planned, wall_ms=WALL_MS, backup=BACKUP)
    complete_interrupted(cluster.disk, directories, [config_of(1), config_of(2)])
    assert {each: read_source(cluster.disk, each) for each in directories} == old


def test_after_a_power_cut_a_replaced_directory_is_never_the_only_copy() -> None:
    """As soon as one controller belongs to the new quorum, every other one has its durable copy."""
    replaced, alone = 0, 0
    die_at = 1
    while True:
        cluster = StoppedNodes(SimDisk(random.Random(die_at)))
        directories = [cluster.node(4), cluster.node(1, LOG[:2], role="controller")]
        directories.append(cluster.node(2, LOG[:2], role="controller"))
        old = read_source(cluster.disk, directories[1])
        planned = cluster.plan(directories, 1, 2)
        cluster.disk.die_at = cluster.disk.calls + die_at
        try:
            carry_out(cluster.disk, planned, wall_ms=WALL_MS, backup=BACKUP)
        except PowerCut:
            pass
        else:
            break
        die_at += 1
        cluster.disk = cluster.disk.crash()
        complete_interrupted(cluster.disk, directories, [config_of(1), config_of(2)])
        if read_source(cluster.disk, "/n1") == old:
            continue
        replaced += 1
        if cluster.disk.is_dir(f"/n2/{REBUILT_DIRECTORY}"):
            alone += 1
            replace_metadata_directory(cluster.disk, "/n2", BACKUP)
        cluster.rebuilt(1, planned)
        cluster.rebuilt(2, planned)
    assert replaced > alone > 0


# -- power cuts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_place", [False, True], ids=["new controller", "in place"])
def test_a_power_cut_at_any_disk_call_leaves_the_old_quorum_or_the_new(in_place: bool) -> None:
    node_id = 1 if in_place else 10
    cuts, olds, news = 0, 0, 0
    die_at = 1
    while True:
        cluster = StoppedNodes(SimDisk(random.Random(die_at)))
        directories = [cluster.node(4), cluster.node(1, LOG[:2], role="controller")]
        old = {each: read_source(cluster.disk, each) for each in directories}
        planned = cluster.plan(directories, node_id)
        cluster.disk.die_at = cluster.disk.calls + die_at
        try:
            carry_out(cluster.disk, planned, wall_ms=WALL_MS, backup=BACKUP)
        except PowerCut:
            cuts += 1
        else:
            break
        die_at += 1
        cluster.disk = cluster.disk.crash()
        assert read_source(cluster.disk, "/n4") == old["/n4"]
        complete_interrupted(cluster.disk, directories, [config_of(node_id)])  # as a node's start
        if in_place:
            found = read_source(cluster.disk, "/n1")
            if found == old["/n1"]:
                olds += 1
            else:
                news += 1
                cluster.rebuilt(1, planned)
                assert _backup(cluster) == old["/n1"].image
        cluster.disk.make_dirs("/n10")
        if read_meta(cluster.disk, "/n10"):
            cluster.rebuilt(10, planned)  # it is complete before it is formatted
            directories.append("/n10")
        again = cluster.plan(directories, node_id, seed=1)
        carry_out(cluster.disk, again, wall_ms=WALL_MS, backup=BACKUP + "-again")
        cluster.rebuilt(node_id, again)
    assert cuts > 50
    assert not in_place or (olds > 20 and news > 3)


def _backup(cluster: StoppedNodes) -> object:
    source: SourceDirectory = read_source(cluster.disk, "/n1")
    assert len(source.rebuilds) == 1
    storage = MetadataStorage.open(cluster.disk, f"/n1/{BACKUP}", SETTINGS, wall_ms=WALL_MS)
    assert storage.log.end_offset == 3
    storage.close()
    cluster.disk.rename(f"/n1/{METADATA_DIRECTORY}", "/n1/aside")
    cluster.disk.rename(f"/n1/{BACKUP}", f"/n1/{METADATA_DIRECTORY}")
    image = read_source(cluster.disk, "/n1").image
    cluster.disk.rename(f"/n1/{METADATA_DIRECTORY}", f"/n1/{BACKUP}")
    cluster.disk.rename("/n1/aside", f"/n1/{METADATA_DIRECTORY}")
    return image
