"""The id of the cluster that a metadata log belongs to."""

from __future__ import annotations

from pathlib import Path

from quorate.quorum.analytics.log.segments import metadata_dir

PROPERTIES = "meta.properties"
KEY = "cluster.id="


def cluster_id_of(directory: Path | str) -> str | None:
    """Return the cluster id in the file meta.properties of a node's log directory.

    `directory` is that of `metadata_dir`. The file is in the log directory, and in copies often
    beside the segments. Return None if there is no such file, or if it names no cluster."""
    log = metadata_dir(str(directory))
    for place in (log.parent, log):
        try:
            lines = (place / PROPERTIES).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(KEY):
                return line.removeprefix(KEY).strip() or None
    return None
