"""The errors of a log.

LogError
    ├── CorruptBatch      bytes that are no valid batch, for example those of a producer
    │   └── ExpandsTooFar     a payload expands beyond the bound (compression.py)
    ├── BrokenChain       an append does not continue the log; the caller broke its contract
    ├── OffsetOutOfRange  an offset outside of the log
    ├── CorruptLog        stored bytes, which may have been acknowledged, are damaged
    ├── CorruptCheckpoint a small file does not have its format, or is too large
    └── ArchiveRefused    the archive directory cannot be used (archive.py)

The messages of the last three are for the operator and say what to do. Errors of the disk itself
stay OSErrors. After an OSError of a flush the owner of the log stops using it, because a second
fsync may succeed without the bytes (R45, tests/scenarios). OutOfFiles is an OSError that changes
nothing, also if a flush raises it.
"""

from __future__ import annotations


class OutOfFiles(OSError):
    """The process may open no further file, or the system has no memory for one. Nothing was
    changed. The call may succeed later."""


class LogError(Exception):
    """Base of all errors of this package."""

    retriable = False
    """True if the same request may succeed later."""
    for_operator = False
    """True if the message says what the operator has to do."""


class CorruptBatch(LogError):
    """The bytes are no valid batch. If an append raises it, the log is unchanged.

    Functions that parse or decompress batches raise it. A log raises CorruptLog instead if it finds
    such bytes on its disk, with one exception. A lookup raises CorruptBatch for a stored batch
    whose CRC is right but whose payload is unreadable, because its producer sent it like this."""

    retriable = True  # the bytes may have been damaged on their way


class BrokenChain(LogError):
    """The batches do not continue the log: a wrong base offset, a lower leader epoch, or more
    offsets in one append than the index of a segment can hold."""


class OffsetOutOfRange(LogError):
    """The offset lies below the log start or above the log end. `offset` is the offset."""

    def __init__(self, path: str, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(
            f"{path}: offset {offset} is outside of the log, which holds {start_offset} to "
            f"{end_offset}"
        )
        self.offset = offset


class CorruptLog(LogError):
    """Stored bytes are damaged or missing. `path`, `position` (in bytes) and `offset` say where.

    A log is not shortened to repair this damage, unless other replicas have the records, because
    they may have been acknowledged. `consequence` tells the operator whether the log was changed.
    """

    for_operator = True

    def __init__(
        self,
        path: str,
        position: int,
        offset: int,
        reason: str,
        *,
        consequence: str = "Nothing was changed",
    ) -> None:
        super().__init__(
            f"{path}: damaged at byte {position}, offset {offset}: {reason}. {consequence}."
            " `quorate storage verify DIR` lists all damage. Restore this replica from its "
            "peers. For"
            " the metadata log: move this metadata directory out of the data directory, keep all"
            " other files, and start the node. It fetches the metadata again; a controller does not"
            " vote until it has caught up. For a partition: let another replica of the ISR lead it,"
            " or reassign it, before you move its directory"
        )
        self.path = path
        self.position = position
        self.offset = offset


class CorruptCheckpoint(LogError):
    """A small file cannot be read. The message names the line. Line 0 means that the
    whole file is too large."""

    for_operator = True

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path = path
