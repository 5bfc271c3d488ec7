"""The directory of each replica of a partition, as the metadata records it (KIP-858)."""

from __future__ import annotations

from quorate.quorum.directory_ids import MIGRATING, is_online
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage, Partition


def replica_directory(partition: Partition, broker_id: int) -> Uuid:
    """Return the id of the directory that holds the replica of a broker, or MIGRATING if it is not
    recorded."""
    directories, replicas = partition.directories, partition.replicas
    if len(directories) != len(replicas) or broker_id not in replicas:
        return MIGRATING
    return directories[replicas.index(broker_id)]


def has_online_directory(image: MetadataImage, broker_id: int, directory: Uuid) -> bool:
    """Return True unless the directory of a replica is offline. A broker that is not registered has
    no directories that could be."""
    broker = image.brokers.get(broker_id)
    return broker is None or is_online(directory, broker.log_dirs)
