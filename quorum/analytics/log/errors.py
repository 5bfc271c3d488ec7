"""The exceptions of this package.

AnalyticsError
├── NoMetadataLog  the directory holds no metadata log
├── DamagedLog     bytes of the log, not at its end, cannot be read
├── OutOfHistory   this log does not hold the offset, time or topic
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


class OutOfHistory(AnalyticsError):
    """This log does not hold the offset, the time or the topic."""


class BadOption(AnalyticsError):
    """The data source has no such option, value or column."""


class WorkersLack(AnalyticsError):
    """Spark's Python workers cannot import this package. The message names the interpreter."""


class NoJava(AnalyticsError):
    """No Java that Spark supports was found."""


@contextmanager
def damage_said_plainly() -> Iterator[None]:
    """Raise a DamagedLog in place of Spark's exception if a task failed with a DamagedLog.

    Spark wraps the exceptions of tasks in its own errors, with the stack traces of two languages.
    The new DamagedLog has only the message of the task's DamagedLog. All other exceptions pass
    unchanged.
    """
    try:
        yield
    except Exception as error:
        damaged = re.search(r"\bDamagedLog: (.*)", str(error))
        if damaged is None:
            raise
        raise DamagedLog(damaged[1]) from None
