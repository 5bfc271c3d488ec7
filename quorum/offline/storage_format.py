"""`quorate storage format`: formats the directory of a node.

A formatted directory holds the following files:

- `meta.properties` with the ids of cluster, node and directory, and its checksummed copy;
- `bootstrap.checkpoint` with the features that the first active controller finalizes;
- on a controller, the mark of a new metadata log (`quorate-metadata-mark`);
- if initial voters are given, the snapshot at offset 0 with these voters.

If `metadata.log.dir` is another directory than `log.dirs`, both get `meta.properties`, and only
`metadata.log.dir` gets the rest. `meta.properties` is written last, because it makes the directory
a formatted one. `meta.properties`, `bootstrap.checkpoint` and the snapshot are in Kafka's format at
metadata.version 27. Apache Kafka ignores the other files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.config.node_config import NodeConfig
from quorate.quorum.controller.settings import NEW_CLUSTER_FEATURES
from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.log.batch import CONTROL, build_batch
from quorate.quorum.log.checkpoints import replace
from quorate.quorum.log.record import Record
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.metadata.records import FeatureLevelRecord
from quorate.quorum.node.data_directory import METADATA_DIRECTORY, keep_private
from quorate.quorum.node.meta_properties import MetaProperties, write_meta
from quorate.quorum.node.metadata_mark import Mark, write_mark
from quorate.quorum.protocol.codec import encode
from quorate.quorum.raft.control_records import (
    SUPPORTED,
    ControlType,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VoterEndpoint,
    VotersRecord,
    control_key,
)
from quorate.quorum.seams import Disk

METADATA_LEVEL_NAME = "4.1-IV1"
"""Kafka's name of the metadata.version of a new cluster, the only one that is supported."""
BOOTSTRAP_FILE = "bootstrap.checkpoint"
INITIAL_SNAPSHOT = f"{METADATA_DIRECTORY}/{0:020d}-{0:010d}.checkpoint"
"""The path of the snapshot with the initial voters, below the metadata log directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialVoter:
    """One voter of --initial-controllers: id@host:port:directory id."""

    key: ReplicaKey
    host: str
    port: int


def format_directory(
    disk: Disk,
    config: NodeConfig,
    *,
    cluster_id: str,
    directory_id: Uuid,
    wall_ms: int,
    voters: Sequence[InitialVoter] = (),
) -> None:
    """Format `config.log_dir`, and `config.metadata_log_dir`, for this node and cluster. Block.

    Missing directories are created, and other users lose their access. Everything is durable on
    return. `voters` makes the quorum a dynamic one. An existing format is overwritten: the caller
    checks first that there is none. Raise OSError."""
    log_dir, metadata_dir = config.log_dir, config.metadata_log_dir
    disk.make_dirs(log_dir)
    disk.make_dirs(metadata_dir)
    for path in dict.fromkeys((log_dir, metadata_dir)):
        keep_private(disk, path)
    replace(disk, f"{metadata_dir}/{BOOTSTRAP_FILE}", bootstrap_snapshot(wall_ms))
    if voters:
        disk.make_dirs(f"{metadata_dir}/{METADATA_DIRECTORY}")
        listener = config.listeners.controller[0].name
        snapshot = voters_snapshot(voters, listener, wall_ms)
        replace(disk, f"{metadata_dir}/{INITIAL_SNAPSHOT}", snapshot)
    if config.is_controller:
        write_mark(disk, metadata_dir, Mark(directory_id=directory_id))
    meta = MetaProperties(cluster_id=cluster_id, node_id=config.node_id, directory_id=directory_id)
    if metadata_dir != log_dir:
        write_meta(disk, metadata_dir, meta)
    write_meta(disk, log_dir, meta)


def bootstrap_snapshot(wall_ms: int) -> bytes:
    """Return the content of `bootstrap.checkpoint`."""
    features = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in sorted(
            NEW_CLUSTER_FEATURES.items(), key=lambda item: item[0] != METADATA_VERSION
        )
    ]
    header = control(
        0,
        wall_ms,
        (
            ControlType.SNAPSHOT_HEADER,
            SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0),
        ),
    )
    records = [
        Record(offset, wall_ms, None, encode_record(feature))
        for offset, feature in enumerate(features, 1)
    ]
    data = build_batch(records, leader_epoch=0)
    return bytes(header + data + footer(1 + len(records), wall_ms))


def voters_snapshot(voters: Sequence[InitialVoter], listener: str, wall_ms: int) -> bytes:
    """Return the snapshot at offset 0 that makes the quorum a dynamic one (KIP-853)."""
    record = VotersRecord(
        version=0,
        voters=tuple(
            Voter(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                endpoints=(VoterEndpoint(name=listener, host=voter.host, port=voter.port),),
                k_raft_version_feature=SUPPORTED,
            )
            for voter in voters
        ),
    )
    head = control(
        0,
        wall_ms,
        (
            ControlType.SNAPSHOT_HEADER,
            SnapshotHeaderRecord(version=0, last_contained_log_timestamp=wall_ms),
        ),
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, k_raft_version=1)),
        (ControlType.KRAFT_VOTERS, record),
    )
    return bytes(head + footer(3, wall_ms))


def footer(offset: int, wall_ms: int) -> bytearray:
    """Return the batch that ends a snapshot. It has one record, at `offset`."""
    return control(offset, wall_ms, (ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0)))


def control(offset: int, wall_ms: int, *messages: tuple[ControlType, object]) -> bytearray:
    """Return one batch of control records in leader epoch 0, the first of which has `offset`."""
    records = [
        Record(offset + number, wall_ms, control_key(kind), encode(message, 0))
        for number, (kind, message) in enumerate(messages)
    ]
    return build_batch(records, leader_epoch=0, flags=CONTROL)
