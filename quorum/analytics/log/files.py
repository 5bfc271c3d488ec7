"""The files of a metadata log, on this machine or on a filesystem that pyarrow or fsspec reads.

A path is that of a local file, or a URL such as `s3://bucket/node-1/__cluster_metadata-0`. A query
of the URL, such as `?endpoint_override=HOST:PORT`, applies to all files below it. pyarrow reads
`s3`, `gs`, `hdfs` and `abfs`. If it does not know the scheme, fsspec is asked.

`file:` is a local path. Every function blocks. Errors of the filesystem are OSErrors.
"""

from __future__ import annotations

import glob
import os
from functools import lru_cache
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.log.remote_files import WILDCARDS, Store, store_for


def local_path(location: str) -> str | None:
    """Return the path of a local location, or None if it is a URL of another filesystem."""
    if location.startswith("file:"):
        parts = urlsplit(location)
        return unquote(parts.path) if location.startswith("file://") else location[len("file:") :]
    return None if "://" in location else location


def files_in(directory: str) -> dict[str, int]:
    """Return the names and the sizes in bytes of the files in a directory. Links are followed.

    The result is empty if there is no such directory."""
    local = local_path(directory)
    if local is None:
        return _store(directory).files(_inner(directory))
    try:
        with os.scandir(local) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def modified_ms(path: str) -> int | None:
    """Return the time of the last change of a file, in ms since 1970, or None if the filesystem
    does not know it."""
    local = local_path(path)
    if local is None:
        return _store(path).modified_ms(_inner(path))
    return os.stat(local).st_mtime_ns // 1_000_000


def opened(path: str) -> IO[bytes]:
    """Open a file for reading. It can seek."""
    local = local_path(path)
    return _store(path).open(_inner(path)) if local is None else open(local, "rb")


def read_small(path: str, max_bytes: int) -> bytes | None:
    """Return the content of a small file, or None if it does not exist or is longer."""
    try:
        with opened(path) as file:
            content = file.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return content if len(content) <= max_bytes else None


def below(directory: str, name: str) -> str:
    """Return the path of `name` in a directory."""
    base, mark, query = _split(directory)
    return f"{base.rstrip('/')}/{name}{mark}{query}"


def parent_of(path: str) -> str:
    """Return the path of the directory that holds `path`."""
    base, mark, query = _split(path)
    return (os.path.dirname(base.rstrip("/")) or ".") + mark + query


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return os.path.basename(_split(path)[0].rstrip("/"))


def expanded(location: str) -> list[str]:
    """Return the locations that a pattern with wildcards matches, or `location` if it has none.

    Raise BadOption if nothing matches."""
    base, mark, query = _split(location)
    local = local_path(base)
    if not WILDCARDS & set(base) or (local is not None and os.path.exists(local)):
        return [location]
    if local is None:
        scheme = base.partition("://")[0]
        found = [f"{scheme}://{each}" for each in _store(location).matching(_inner(location))]
    else:
        found = sorted(glob.glob(local))
    if not found:
        raise BadOption(f"{location}: nothing matches this pattern")
    return [each + mark + query for each in found]


def absolute(location: str) -> str:
    """Return the location as an absolute path or a URL, because workers may run elsewhere."""
    local = local_path(location)
    return location if local is None else str(Path(local).absolute())


def _split(path: str) -> tuple[str, str, str]:
    """Return a path without its query, "?" or "", and the query of a URL."""
    if local_path(path) is not None:
        return path, "", ""
    base, mark, query = path.partition("?")
    # A question mark is also a wildcard. A query is NAME=VALUE.
    return (base, mark, query) if "=" in query else (path, "", "")


def _inner(path: str) -> str:
    return _split(path)[0].partition("://")[2].rstrip("/")


def _store(path: str) -> Store:
    base, mark, query = _split(path)
    scheme, _, rest = base.partition("://")
    return _stores(scheme, rest.partition("/")[0], mark + query)


@lru_cache(maxsize=16)
def _stores(scheme: str, authority: str, query: str) -> Store:
    return store_for(f"{scheme}://{authority}", query)
