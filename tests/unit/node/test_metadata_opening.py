"""The start of a controller whose metadata log has a damaged leader epoch, which no CRC covers."""

from __future__ import annotations

import pytest

from quorate.quorum.log.files.checkpoints import EPOCHS_NAME
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.raft.quorum_state import COPY_NAME, KAFKA_NAME
from tests.sim.world.disk import SimDisk
from tests.unit.node.test_metadata_mark import METADATA, lived, start

LOW_BYTE_OF_THE_EPOCH = 15
FILE = f"{METADATA}/{0:020}.log"


def damaged() -> SimDisk:
    """Return the disk of a controller that took part in epoch 3, and whose first batch says epoch
    19. No checkpoint vouches for its epoch: a crash took what was not flushed."""
    disk = lived()
    for name in (EPOCHS_NAME, FLUSHED_MARKER_NAME):
        disk.remove(f"{METADATA}/{name}")
    disk.flip(FILE, LOW_BYTE_OF_THE_EPOCH, 0x10)
    return disk


def test_an_epoch_that_this_node_never_saved_is_damage() -> None:
    """With it the controller would count as further ahead than all others, and win an election
    without their committed records."""
    disk = damaged()
    before = disk.content(FILE)
    with pytest.raises(CorruptLog, match="leader epoch 19 differs"):
        start(disk)
    assert disk.content(FILE) == before, "nothing was changed"
    disk.flip(FILE, LOW_BYTE_OF_THE_EPOCH, 0x10)
    opened = start(disk)
    assert (opened.storage.log.last_epoch, opened.storage.log.end_offset) == (3, 4)


@pytest.mark.parametrize("lost", [KAFKA_NAME, COPY_NAME])
def test_one_of_the_two_files_is_enough(lost: str) -> None:
    disk = damaged()
    disk.remove(f"{METADATA}/{lost}")
    with pytest.raises(CorruptLog, match="leader epoch 19 differs"):
        start(disk)
