"""The records on the disks of a stopped cluster, read with our own readers."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from quorate.cli.chaos.workload.replicas import differing
from quorate.quorum.ids import METADATA_TOPIC, EpochOffset, Uuid
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.delta import Change
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import NO_LEADER
from quorate.quorum.metadata.snapshot_file import read_snapshot
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.raft.control_records import LeaderChangeMessage, decode_control
from tests.clients.cluster import ProcessCluster
from tests.sim.checks.committed_log import CommittedLog, Violation

READ_BYTES = 1 << 20
SETTINGS = LogSettings(flushed_is_acknowledged=True)
ACTIVE = re.compile(r"active controller of epoch (\d+)")

PartitionKey = tuple[Uuid, int]


K = TypeVar("K")
V = TypeVar("V")


def claim(claims: dict[K, V], what: K, value: V, meaning: str) -> None:
    known = claims.setdefault(what, value)
    if known != value:
        raise Violation(f"{meaning} {what}: {value} and {known}")


@dataclass(slots=True)
class Disks:
    """Fed with one node's metadata after the other's."""

    high_watermark: int
    """Of the metadata log, as the quorum told it before it was stopped."""
    log: CommittedLog = field(default_factory=lambda: CommittedLog(METADATA_TOPIC))
    snapshots: dict[EpochOffset, str] = field(default_factory=dict)
    images: dict[int, MetadataImage] = field(default_factory=dict)
    """By end offset: at snapshots, and at the high watermark."""
    raft_leaders: dict[int, int] = field(default_factory=dict)
    leaders: dict[tuple[PartitionKey, int], int] = field(default_factory=dict)

    def take(self, name: str, directory: Path) -> None:
        disk = OsDisk()
        storage = MetadataStorage.open(
            disk, str(directory), SETTINGS, wall_ms=int(time.time() * 1000)
        )
        try:
            self._take(name, storage)
        finally:
            storage.close()
            disk.close()

    def _take(self, name: str, storage: MetadataStorage) -> None:
        log = storage.log
        if log.end_offset < self.high_watermark:
            raise Violation(f"{name}: ends at {log.end_offset}, below {self.high_watermark}")
        loader = Loader(self._beginning(name, storage))
        while loader.position < self.high_watermark:
            data = log.read(loader.position, READ_BYTES, end=self.high_watermark)
            self.log.holds(name, data, self.high_watermark)
            self._take_leader_changes(data)
            for batch in metadata_batches(data):
                delta = loader.feed([batch])
                for topic, partition_id, change in delta.partitions():
                    self._take_change((topic.id, partition_id), change)
                if EpochOffset(batch.last.epoch, loader.position) in self.snapshots:
                    self._claim_image(name, loader.image)
        self._claim_image(name, loader.image)

    def _beginning(self, name: str, storage: MetadataStorage) -> MetadataImage:
        """Also compares the snapshots that this node has."""
        beginning = MetadataImage()
        for snapshot in storage.snapshots:
            content = b"".join(storage.snapshots.chunks(snapshot))
            digest = hashlib.sha256(content).hexdigest()
            claim(self.snapshots, snapshot, digest, "bytes of the snapshot at")
            image = read_snapshot(snapshot, [content]).image
            if snapshot.offset <= self.high_watermark:
                self._claim_image(name, image)
            if snapshot.offset == storage.log.start_offset:
                beginning = image
        return beginning

    def _claim_image(self, name: str, image: MetadataImage) -> None:
        """The clock of an image says when it was replayed, not what."""
        image = image._replace(last_timestamp_ms=-1)
        known = self.images.setdefault(image.last.offset + 1, image)
        if known != image:
            raise Violation(f"{name}: the image at {image.last} is {image}, elsewhere {known}")

    def _take_leader_changes(self, data: bytes) -> None:
        for position, header in batches(data):
            if not header.is_control:
                continue
            for record in records_of(data, position, header):
                control = decode_control(record.key, record.value)
                if isinstance(control, LeaderChangeMessage):
                    epoch, leader = header.leader_epoch, control.leader_id
                    claim(self.raft_leaders, epoch, leader, "leader of raft epoch")

    def _take_change(self, key: PartitionKey, change: Change[Partition]) -> None:
        old, new = change.old, change.new
        if new is None:
            return
        if new.leader != NO_LEADER:
            claim(self.leaders, (key, new.leader_epoch), new.leader, "leader of")
            if new.leader not in new.isr:
                raise Violation(f"{key}: leader {new.leader} is not in the ISR {new.isr}")
        if old is not None and (
            new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch
        ):
            raise Violation(f"{key}: epochs go back: {old} -> {new}")

    def take_active(self, node_id: int, node_log: str) -> None:
        """Record the epochs in which the node's log says that it was the active controller."""
        for epoch in ACTIVE.findall(node_log):
            claim(self.raft_leaders, int(epoch), node_id, "active controller of")

    @property
    def image(self) -> MetadataImage:
        return self.images[max(self.images)]


def check(cluster: ProcessCluster, high_watermark: int) -> Disks:
    disks = Disks(high_watermark)
    for node in cluster.nodes():
        directory = Path(node["log_dir"]) / f"{METADATA_TOPIC}-0"
        disks.take(f"node {node['id']}", directory)
        disks.take_active(node["id"], cluster.node_log(node["id"]))
    log_dirs = {node["id"]: Path(node["log_dir"]) for node in cluster.entry()["brokers"]}
    for name, replicas in in_sync_replicas(disks.image):
        found = differing(log_dirs, name, replicas)
        if found:
            raise Violation(f"{name}: replicas differ: {found}")
    return disks


def in_sync_replicas(image: MetadataImage) -> Iterator[tuple[str, Mapping[int, tuple[int, ...]]]]:
    for name in image.topic_names():
        partitions = image.topics[image.topic_ids[name]].partitions
        yield name, {index: partitions[index].isr for index in sorted(partitions)}
