"""The snapshots of the metadata on all nodes.

Snapshots of one offset have the same bytes on every node, and their image equals the image after
the replay of all records.
"""

from __future__ import annotations

import hashlib

from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import read_snapshot
from tests.sim.checks.claims import claim
from tests.sim.checks.committed_log import Violation
from tests.sim.world.cluster import Machine, Process
from tests.sim.world.seen import Seen


class Snapshots:
    """Compares each new snapshot with those of other nodes and with the replayed image."""

    def __init__(self) -> None:
        self.digests: dict[EpochOffset, str] = {}
        self.replayed: dict[int, MetadataImage] = {}
        """The images after the replay of all committed records, by offset."""
        self._images: dict[EpochOffset, MetadataImage] = {}
        """The image of each snapshot."""

    def look(self, machine: Machine, process: Process, seen: Seen) -> None:
        """Check the latest snapshot of a process if it is new. Raise Violation or OSError."""
        files = process.core.storage.snapshots
        if files.latest is None or files.latest == seen.snapshot or machine.scarred:
            return
        seen.snapshot = snapshot = files.latest
        digest = hashlib.sha256(b"".join(files.chunks(snapshot))).hexdigest()
        claim(self.digests, snapshot, digest, f"bytes of a snapshot on {machine.name},")
        # Also read a known snapshot, because the faults of a disk depend on the number of its
        # calls.
        chunks = list(files.chunks(snapshot))
        image = self._images.get(snapshot)
        if image is None:
            image = self._images[snapshot] = read_snapshot(snapshot, chunks).image
        known = self.replayed.get(snapshot.offset)
        if known is not None and image != known._replace(last_timestamp_ms=image.last_timestamp_ms):
            raise Violation(f"{machine.name}: {snapshot} says {image}, replaying says {known}")

    def forget_from(self, offset: int) -> MetadataImage:
        """Forget the images behind `offset`, and return the image at this offset."""
        self.replayed = {at: image for at, image in self.replayed.items() if at <= offset}
        return self.replayed[offset]
