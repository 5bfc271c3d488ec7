"""A temporary directory with the files of an archive, which several processes share.

The processes of Spark that plan and read an archive start and end independently. The first one that
needs the archive extracts it, and the others find its directory by the archive's name, size and
time. A directory that was not asked for during KEPT_S is removed when another archive is extracted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from quorate.quorum.analytics.archives.unpacking import unpack
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.disks.disk import DIRECTORY_MODE

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
KEPT_S = 86_400
"""The seconds for which the files of an archive stay after it was last loaded."""
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
    own = Path(tempfile.mkdtemp(dir=place.parent, prefix="partial-"))
    try:
        unpack(archive, own)
        os.rename(own, place)
    except OSError:
        # If another process was faster, its directory is not empty.
        if not place.is_dir():
            raise
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _remove_unused(shared: Path) -> None:
    oldest_s = time.time() - KEPT_S
    for path in shared.iterdir():
        with suppress(FileNotFoundError):  # Another process has renamed or removed it.
            if path.stat().st_mtime < oldest_s:
                shutil.rmtree(path, ignore_errors=True)
