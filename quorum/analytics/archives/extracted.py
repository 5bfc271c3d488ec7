"""A temporary directory with the files of an archive, which several processes share.

The processes of Spark that plan and read an archive start and end independently. The first one that
needs the archive extracts it, and the others find its directory by the archive's name, size and
time. A directory that was not asked for during KEPT_S is removed when another archive is extracted.

After a crash, a directory under its final name has all files with all their bytes, because they
are flushed before the rename. The rename itself is not flushed: if it is lost, the next process
extracts the archive again. A process holds a lock while it extracts. A partial directory without a
lock is that of a process that has died, and is removed when another archive is extracted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quorate.quorum.analytics.archives.unpacking import unpack
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.disks.disk import DIRECTORY_MODE

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
KEPT_S = 86_400
"""The seconds for which the files of an archive stay after it was last loaded."""
NEW, PARTIAL = "new-", "partial-"
"""The first words of the names of a directory before it is locked, and during its extraction."""
PARTITION_DIR = f"{METADATA_TOPIC}-0"


def extracted(archive: Path) -> Path:
    """Return the directory with the files of the archive. Block while it is extracted.

    Only this user can read it. Errors are those of `unpack`."""
    shared = _shared_directory()
    found = archive.stat()
    identity = (str(archive.resolve()), found.st_size, found.st_mtime_ns, found.st_ino)
    place = shared / hashlib.sha256(repr(identity).encode()).hexdigest()
    if not place.is_dir():
        _remove_unused(shared)
        _extract(archive, place)
    os.utime(place)
    return place


def root_of(directory: Path) -> Path:
    """Return the root of the extracted files.

    An archive may hold the directory of a node or cluster, or only its content."""
    for found in sorted(directory.rglob("cluster.json")):
        return found.parent
    for found in sorted(directory.rglob("*.log")):
        if found.stem.isdecimal() and found.parent.name in (PARTITION_DIR, directory.name):
            return found.parent
    return directory


def _shared_directory() -> Path:
    """Return this user's directory for extracted archives.

    Raise PermissionError if another user owns it, who could replace its files."""
    path = Path(tempfile.gettempdir()) / f"quorate-archives-{os.getuid()}"
    path.mkdir(DIRECTORY_MODE, exist_ok=True)
    found = path.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{path} is open to other users: remove it, or set TMPDIR")
    return path


def _extract(archive: Path, place: Path) -> None:
    """Extract into a directory of this process, which then gets its final name."""
    own = Path(tempfile.mkdtemp(dir=place.parent, prefix=NEW))
    try:
        with _opened(own) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            own = own.rename(own.with_name(own.name.replace(NEW, PARTIAL, 1)))
            unpack(archive, own)
            _flush(own)
            os.rename(own, place)
    except OSError:
        # If another process was faster, its directory is not empty.
        if not place.is_dir():
            raise
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _flush(directory: Path) -> None:
    """Block until all files and names in the directory are on the disk."""
    for path in (directory, *directory.rglob("*")):
        with _opened(path) as descriptor:
            os.fsync(descriptor)


def _remove_unused(shared: Path) -> None:
    oldest_s = time.time() - KEPT_S
    for path in shared.iterdir():
        with suppress(FileNotFoundError):  # Another process has renamed or removed it.
            if path.stat().st_mtime < oldest_s or _is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    """Return True if no process extracts into this partial directory."""
    if not path.name.startswith(PARTIAL):
        return False
    with _opened(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Yield a descriptor of the file or directory. Closing it releases its locks."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
