"""Moves sealed segments and old snapshots of the metadata log into an archive directory.

Analytics reads the archive; the node never does. A file is renamed, never copied, and keeps its
name. A file of that name in the archive is replaced. The archive must be on the same file system as
the log. When `archive` returns, the file is durable in the archive. After a crash before that, the
file is whole in the log or in the archive.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.log.files.errors import LogError
from quorate.quorum.seams import Disk

PROBE_NAME = "quorate-archive-probe"
"""A file of this name shows that files of the log can be renamed into the archive."""


class Archivable(Protocol):
    """A file with a path that can be made durable; `Segment` satisfies it."""

    path: str

    def sync(self) -> None:
        """Make the bytes durable. Block."""


class ArchiveRefused(LogError):
    """The archive directory cannot take files of the log."""

    for_operator = True


def archive(disk: Disk, file: Archivable, directory: str) -> None:
    """Make a file durable and move it into `directory`. Block; may run in any thread. Raise
    OSError."""
    file.sync()
    archive_path(disk, file.path, directory)


def archive_path(disk: Disk, path: str, directory: str) -> None:
    """Move a file that is durable already into `directory`, durably. Block; may run in any thread.
    Raise OSError."""
    disk.rename(path, f"{directory}/{path.rpartition('/')[2]}")
    disk.sync_dir(directory)


def prepare_archive(disk: Disk, log_directory: str, directory: str) -> None:
    """Create the archive directory and check that files can be renamed into it. Block.

    Raise ArchiveRefused if they cannot."""
    probe = f"{log_directory}/{PROBE_NAME}"
    try:
        disk.make_dirs(directory)
        disk.open(probe, create=True).close()
        disk.rename(probe, f"{directory}/{PROBE_NAME}")
        disk.remove(f"{directory}/{PROBE_NAME}")
    except OSError as error:
        raise ArchiveRefused(
            f"quorate.metadata.archive.dir: files of {log_directory} cannot be moved to "
            f"{directory} ({error}). Set it to a writable directory on the same file system"
        ) from error
