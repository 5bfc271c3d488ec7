"""`quorate storage repair-epoch`: a smaller epoch for a controller that cannot be elected."""

from __future__ import annotations

import time

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.server import load_config
from quorate.cli.storage.verify import unused
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.node.opening.data_directory import require_formatted
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.offline.epoch_repair import EpochKept, repair_epoch
from quorate.quorum.raft.errors import ElectionFileError


def run(file: str, epoch: int | None) -> None:
    """Set the epoch of a stopped controller and print the next steps.

    Raise Refused if a node runs, the directory cannot be used, or its epoch is plausible."""
    config = load_config(file)
    disk = OsDisk()
    try:
        require_formatted(disk, config, repair=False)
        with unused(disk, config.log_dir):
            before, after = repair_epoch(disk, config, int(time.time() * 1000), epoch)
    except (EpochKept, StorageError, ElectionFileError, LogError, OSError) as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    echo(
        f"{config.metadata_log_dir}: epoch {before} became {after}, without a vote. Run this on "
        "every other controller before any of them starts: while one still runs, or starts with "
        "votes that another has forgotten, an epoch could get two leaders."
    )
