"""The number of files and sockets that this process may have open, and the part for each use.

Clients' connections get a half, the segments and indexes of logs a quarter. The links between
nodes, the connections to a controller's Kafka port and those of followers get a sixteenth each. The
rest is for connections whose protocol is not known yet, for small files, and for the process
itself.
"""

from __future__ import annotations

import resource

NO_LIMIT = 2**31 - 1
LOGS_PART = 4
LEAST_LOG_FILES = 64


def open_files() -> int:
    """Return the number of files and sockets that this process may have open (the soft limit
    RLIMIT_NOFILE), or NO_LIMIT."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return NO_LIMIT if soft == resource.RLIM_INFINITY else soft


def log_files() -> int:
    """Return the number of files of logs that may be open: a quarter of `open_files`, but at least
    LEAST_LOG_FILES. The other files are closed, and opened again on demand."""
    return max(LEAST_LOG_FILES, open_files() // LOGS_PART)
