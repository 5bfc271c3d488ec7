"""`bootstrap.checkpoint`: the records that the first active controller of a cluster commits.

`quorate storage format` writes it in the form of a snapshot, as Kafka's tool does. The features in
it are those of every new cluster. With `--add-scram` it has SCRAM credentials, and the secret that
comes with the first one.
"""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files.checkpoints import read_small
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.records import ConfigRecord, MetadataRecord
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.metadata.snapshot import snapshot_records
from quorate.quorum.metadata.snapshot_file import read_snapshot
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.seams import Disk

BOOTSTRAP_FILE = "bootstrap.checkpoint"
BEFORE_ALL = EpochOffset(0, 0)
"""The end of a snapshot without records of the log."""
COMMITTED = (UserScramCredentialRecord, ConfigRecord)
"""The types of records that are taken from the file."""


def bootstrap_records(disk: Disk, metadata_dir: str) -> tuple[MetadataRecord, ...]:
    """Return the credentials and configs in the file, or nothing if there is no file. Block.

    Raise StorageError if it is damaged."""
    path = f"{metadata_dir}/{BOOTSTRAP_FILE}"
    try:
        content = read_small(disk, path)
        if content is None:
            return ()
        image = read_snapshot(BEFORE_ALL, [content]).image
    except (LogError, MetadataError) as error:
        raise StorageError(
            f"{path}: {error}. Restore it, or remove it if the cluster has been started before"
        ) from None
    return tuple(each for each in snapshot_records(image) if isinstance(each, COMMITTED))
