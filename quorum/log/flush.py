"""What of a log was written and not yet synced, and the work that syncs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from quorate.quorum.log import checkpoints
from quorate.quorum.log.segment import Segment
from quorate.quorum.seams import Disk


class FlushedLog(Protocol):
    """The part of a log that its flush reads; `Log` satisfies it."""

    disk: Disk
    directory: str
    deleted: bool


@dataclass(slots=True)
class Unsynced:
    """Segments with new bytes and directories with new names, in the order of the first change."""

    segments: list[Segment] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)

    def wrote(self, segment: Segment) -> None:
        if not segment.dirty and segment.size:
            segment.dirty = True
            self.segments.append(segment)

    def removed(self, segment: Segment) -> None:
        if segment.dirty:
            self.segments.remove(segment)

    def named(self, directory: str) -> None:
        if directory not in self.directories:
            self.directories.append(directory)

    def take(self) -> tuple[tuple[Segment, ...], tuple[str, ...]]:
        taken = tuple(self.segments), tuple(self.directories)
        for segment in self.segments:
            segment.dirty = False
        self.segments.clear()
        self.directories.clear()
        return taken


@dataclass(frozen=True, slots=True)
class Flush:
    """All that was appended up to `end_offset`; `run` makes it durable, in any thread."""

    log: FlushedLog
    end_offset: int
    generation: int
    segments: tuple[Segment, ...]
    epochs: bytes | None
    directories: tuple[str, ...]

    def run(self) -> None:
        try:
            for segment in self.segments:
                segment.sync()
            if self.epochs is not None:
                path = checkpoints.epochs_path(self.log.directory)
                checkpoints.replace(self.log.disk, path, self.epochs)
            for directory in self.directories:
                self.log.disk.sync_dir(directory)
        except FileNotFoundError:
            if not self.log.deleted:
                raise
