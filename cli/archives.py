"""Unpacking what somebody sent: a .tar.gz or .zip of a node's directory.

Only plain files and directories come out, and only below the directory they are unpacked to;
whatever else an archive holds (links, devices, names that lead elsewhere) is passed over.
"""

from __future__ import annotations

import shutil
import tarfile
import zlib
from lzma import LZMAError
from pathlib import Path
from zipfile import BadZipFile

_DAMAGED = (tarfile.TarError, BadZipFile, zlib.error, LZMAError, EOFError)


def unpack(archive: Path, directory: Path) -> None:
    """Raises shutil.ReadError or an OSError when it is no archive that can be read."""
    try:
        if archive.suffix == ".zip":  # whose reader keeps names inside of the directory
            shutil.unpack_archive(archive, directory)
            return
        with tarfile.open(archive) as tar:
            for member in tar:
                _take(tar, member, directory.resolve())
    except _DAMAGED as error:
        raise shutil.ReadError(f"{archive} is damaged: {error}") from error


def _take(tar: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    target = (directory / member.name).resolve()
    if not target.is_relative_to(directory):
        return
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    elif member.isfile() and (content := tar.extractfile(member)) is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, open(target, "wb") as file:
            shutil.copyfileobj(content, file)
