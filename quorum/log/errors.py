"""What can go wrong with a log.

LogError
├── CorruptBatch      bytes handed in are no valid batch: their sender is told, the log is unharmed
├── BrokenChain       an append does not continue the log: the caller broke its contract
├── OffsetOutOfRange  a read outside of what the log holds
├── CorruptLog        bytes that were stored, and may have been acknowledged, are damaged
└── CorruptCheckpoint a small file is not what Kafka's format says

The last two say what to do: they are for the operator.

Errors of the disk itself stay OSErrors: whoever meets one stops the log (R45).
"""

from __future__ import annotations


class LogError(Exception):
    retriable = False
    for_operator = False


class CorruptBatch(LogError):
    retriable = True  # the bytes may have been damaged on their way


class BrokenChain(LogError):
    pass


class OffsetOutOfRange(LogError):
    def __init__(self, path: str, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(
            f"{path}: offset {offset} is outside of {start_offset}..{end_offset} that the log holds"
        )
        self.offset = offset


class CorruptLog(LogError):
    """Never repaired by shortening, unless others have it: what is damaged may have been
    acknowledged."""

    for_operator = True

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(
            f"{path}: damaged at byte {position}, offset {offset}: {reason}. Nothing was changed."
            " `quorate storage verify DIR` lists all that is damaged. Restore this replica from its"
            " peers. Metadata: move this metadata directory out of the data directory, keep the"
            " rest, and start the node: it fetches the metadata again, and a controller does not"
            " vote before it has caught up. A partition: let another replica of the ISR lead it, or"
            " reassign it, before its directory is moved"
        )
        self.path = path
        self.position = position
        self.offset = offset


class CorruptCheckpoint(LogError):
    for_operator = True

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path = path
