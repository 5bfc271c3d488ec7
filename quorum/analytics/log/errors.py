"""The exceptions of this package.

AnalyticsError
├── NoMetadataLog  the directory holds no metadata log
├── DamagedLog     bytes of the log, not at its end, cannot be read
├── NewerRecord    a record of a newer version than this one reads; only strict readers raise it
├── MissingBase    older segments were deleted, and the snapshot of their records is missing
├── OutOfHistory   this log does not hold the offset, time or topic
├── StreamDiverged a stream delivered records that were replaced later
├── BadOption      the data source has no such option, value or column
├── WorkersLack    Spark's Python workers cannot import this package
└── NoJava         no Java that Spark supports was found
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class AnalyticsError(ValueError):
    """The input does not allow the request, or the environment is unsuitable. The message says why,
    and names a remedy if there is one."""


class NoMetadataLog(AnalyticsError):
    """The directory holds no metadata log."""


class DamagedLog(AnalyticsError):
    """Bytes of the log that are not its torn end cannot be read."""


class NewerRecord(AnalyticsError):
    """A record has a newer version than this one reads. Only strict readers raise it."""


class MissingBase(AnalyticsError):
    """Older segments were deleted, and the snapshot that holds their records is missing."""


class OutOfHistory(AnalyticsError):
    """This log does not hold the offset, the time or the topic."""


class StreamDiverged(AnalyticsError):
    """A stream delivered records that were not committed, and that were replaced later."""


class BadOption(AnalyticsError):
    """The data source has no such option, value or column."""


class WorkersLack(AnalyticsError):
    """Spark's Python workers cannot import this package. The message names the interpreter."""


class NoJava(AnalyticsError):
    """No Java that Spark supports was found."""


SAID_PLAINLY: dict[str, type[AnalyticsError]] = {
    cls.__name__: cls
    for cls in (DamagedLog, NewerRecord, MissingBase, OutOfHistory, StreamDiverged, BadOption)
}
"""The errors that a task or the planner of Spark raises."""


@contextmanager
def damage_said_plainly() -> Iterator[None]:
    """Raise an error of `SAID_PLAINLY` in place of Spark's exception if a task failed with it.

    Spark wraps the exceptions of tasks in its own errors, with the stack traces of two languages.
    The new error has only the message of the task's error. All other exceptions pass unchanged.
    """
    try:
        yield
    except Exception as error:
        said = re.search(rf"\b({'|'.join(SAID_PLAINLY)}): (.*)", str(error))
        if said is None:
            raise
        raise SAID_PLAINLY[said[1]](said[2]) from None
