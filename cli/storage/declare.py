"""`quorate storage declare`: the operator declares whether a controller's disk lost records."""

from __future__ import annotations

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.server import load_config
from quorate.cli.storage.verify import unused
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.ids import ReplicaKey
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.node.opening.data_directory import require_formatted
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.node.opening.metadata_opening import declare_lost, declare_new
from quorate.quorum.raft.errors import ElectionFileError


def run(file: str, *, new: bool) -> None:
    """Record for a stopped controller that its directory is `new`, or that it lost records.

    Raise Refused for a broker, a running node, or a directory that cannot be used."""
    config = load_config(file)
    if not config.is_controller:
        raise Refused(
            f"{config.log_dir} belongs to a broker, which does not vote. Start it, and it fetches "
            "the metadata again"
        )
    disk = OsDisk()
    try:
        meta = require_formatted(disk, config, repair=False).metadata
        me = ReplicaKey(config.node_id, meta.directory_id)
        with unused(disk, config.log_dir):
            (declare_new if new else declare_lost)(disk, config, me)
    except (StorageError, ElectionFileError, LogError, OSError) as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    what = (
        "counts as a disk that lost nothing: the node votes from its next start on"
        if new
        else "counts as a disk that lost records: the node catches up before it votes"
    )
    echo(f"{config.metadata_log_dir} {what}.")
