"""`quorate storage format`: formats the directories of a node.

The formatted metadata directory holds the following files:

- `meta.properties` with the ids of cluster, node and directory, and its checksummed copy;
- `bootstrap.checkpoint` with the features that the first active controller finalizes, and with the
  SCRAM credentials that it commits;
- on a controller, the mark of a new metadata log (`quorate-metadata-mark`);
- if initial voters are given, the snapshot at offset 0 with these voters.

Every directory of `log.dirs` gets `meta.properties`. Only the metadata directory gets the rest.
Each directory has an id of its own (KIP-858). `meta.properties` is written last, because it makes
the directory a formatted one, and that of the metadata directory after those of all others.
`meta.properties`, `bootstrap.checkpoint` and the snapshot are in Kafka's format at metadata.version
27. Apache Kafka ignores the other files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import SystemRandom

from quorate.config.node_config import NodeConfig
from quorate.quorum.controller.clients.scram_credentials import secret_record
from quorate.quorum.controller.state.settings import NEW_CLUSTER_FEATURES
from quorate.quorum.ids import ReplicaKey, Uuid, random_uuid
from quorate.quorum.log.batches.batch import CONTROL, build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.checkpoints import replace
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.metadata.records import FeatureLevelRecord, MetadataRecord
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.node.opening.bootstrap_file import BOOTSTRAP_FILE
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY, keep_private
from quorate.quorum.node.opening.meta_properties import MetaProperties, read_meta, write_meta
from quorate.quorum.node.replica.metadata_mark import Mark, write_mark
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
INITIAL_SNAPSHOT = f"{METADATA_DIRECTORY}/{0:020d}-{0:010d}.checkpoint"
"""The path of the snapshot with the initial voters, below the metadata log directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialVoter:
    """One voter of --initial-controllers: id@host:port:directory id."""

    key: ReplicaKey
    host: str
    port: int


def system_random_id() -> Uuid:
    """Return a random directory id."""
    return random_uuid(SystemRandom())


def format_directory(
    disk: Disk,
    config: NodeConfig,
    *,
    cluster_id: str,
    directory_id: Uuid,
    wall_ms: int,
    voters: Sequence[InitialVoter] = (),
    credentials: Sequence[UserScramCredentialRecord] = (),
    new_id: Callable[[], Uuid] = system_random_id,
) -> None:
    """Format `config.metadata_log_dir` and `config.log_dirs` for this node and cluster. Block.

    The metadata directory gets `directory_id`. If there are several log directories, each of the
    others gets an id from `new_id`. A single log directory beside the metadata directory shares its
    id. Directories beside the metadata directory that are formatted already stay as they are.

    Missing directories are created, and other users lose their access. Everything is durable on
    return. `voters` makes the quorum a dynamic one. `credentials` are those of
    the new cluster. An existing format of the metadata directory is
    overwritten: the caller checks first that there is none. Raise OSError, and StorageError if
    another directory holds a damaged format."""
    metadata_dir = config.metadata_log_dir
    for path in config.directories:
        disk.make_dirs(path)
    for path in config.directories:
        keep_private(disk, path)
    bootstrap = bootstrap_snapshot(wall_ms, credentials)
    replace(disk, f"{metadata_dir}/{BOOTSTRAP_FILE}", bootstrap)
    if voters:
        disk.make_dirs(f"{metadata_dir}/{METADATA_DIRECTORY}")
        listener = config.listeners.controller[0].name
        snapshot = voters_snapshot(voters, listener, wall_ms)
        replace(disk, f"{metadata_dir}/{INITIAL_SNAPSHOT}", snapshot)
    if config.is_controller:
        write_mark(disk, metadata_dir, Mark(directory_id=directory_id))
    meta = MetaProperties(cluster_id=cluster_id, node_id=config.node_id, directory_id=directory_id)
    shared = len(config.log_dirs) == 1
    format_others(
        disk, config, cluster_id=cluster_id, new_id=(lambda: directory_id) if shared else new_id
    )
    write_meta(disk, metadata_dir, meta)


def format_others(
    disk: Disk,
    config: NodeConfig,
    *,
    cluster_id: str,
    new_id: Callable[[], Uuid] = system_random_id,
) -> list[str]:
    """Format the log directories that are not formatted, except for the metadata directory. Return
    their paths. Block.

    Each one gets an id from `new_id`. Everything is durable on return. Raise OSError, and
    StorageError if a directory holds a damaged format."""
    formatted = []
    for path in config.log_dirs:
        if path == config.metadata_log_dir:
            continue
        disk.make_dirs(path)
        keep_private(disk, path)
        if read_meta(disk, path) is None:
            meta = MetaProperties(
                cluster_id=cluster_id, node_id=config.node_id, directory_id=new_id()
            )
            write_meta(disk, path, meta)
            formatted.append(path)
    return formatted


def bootstrap_snapshot(
    wall_ms: int, credentials: Sequence[UserScramCredentialRecord] = ()
) -> bytes:
    """Return the content of `bootstrap.checkpoint`. A secret accompanies the first credential
    (`quorum/controller/clients/scram_credentials.py`)."""
    features: list[MetadataRecord] = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in sorted(
            NEW_CLUSTER_FEATURES.items(), key=lambda item: item[0] != METADATA_VERSION
        )
    ]
    secret = [secret_record(SystemRandom())] if credentials else []
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
        for offset, feature in enumerate([*features, *secret, *credentials], 1)
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
