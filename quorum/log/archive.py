"""Where sealed segments and old snapshots of the metadata log go before it forgets them.

History needs them; the node never reads them again. They keep their names, in a directory that has
to be on the same file system: a file is renamed, whole, never copied. When `archive` returns, the
file is durable there; a crash before leaves it where it was.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.log.errors import LogError
from quorate.quorum.seams import Disk

PROBE_NAME = "quorate-archive-probe"


class Archivable(Protocol):
    path: str

    def sync(self) -> None: ...


class ArchiveRefused(LogError):
    """The archive directory cannot take files of the log's."""

    for_operator = True


def archive(disk: Disk, file: Archivable, directory: str) -> None:
    file.sync()
    archive_path(disk, file.path, directory)


def archive_path(disk: Disk, path: str, directory: str) -> None:
    """`path` is durable already."""
    disk.rename(path, f"{directory}/{path.rpartition('/')[2]}")
    disk.sync_dir(directory)


def prepare_archive(disk: Disk, log_directory: str, directory: str) -> None:
    """Before the first file has to go there. Raises ArchiveRefused."""
    probe = f"{log_directory}/{PROBE_NAME}"
    try:
        disk.make_dirs(directory)
        disk.open(probe, create=True).close()
        disk.rename(probe, f"{directory}/{PROBE_NAME}")
        disk.remove(f"{directory}/{PROBE_NAME}")
    except OSError as error:
        raise ArchiveRefused(
            f"quorate.metadata.archive.dir: {directory} cannot take files of {log_directory} "
            f"({error}); name a writable directory on the same file system"
        ) from error
