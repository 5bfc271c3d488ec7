"""Why a history cannot be read.

AnalyticsError
├── NoMetadataLog  the directory holds no metadata log
├── DamagedLog     bytes of the log, not at its end, cannot be read
├── OutOfHistory   an offset, a time or a topic that this log does not hold
├── BadOption      the data source has no such option
└── NoJava         Spark cannot run here
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class AnalyticsError(ValueError):
    """What was given, or where it was given, does not do; the message names the way out."""


class NoMetadataLog(AnalyticsError):
    pass


class DamagedLog(AnalyticsError):
    pass


class OutOfHistory(AnalyticsError):
    pass


class BadOption(AnalyticsError):
    pass


class NoJava(AnalyticsError):
    pass


@contextmanager
def damage_said_plainly() -> Iterator[None]:
    """Spark wraps what a task raises in its own errors and two languages' stack traces."""
    try:
        yield
    except Exception as error:
        damaged = re.search(r"\bDamagedLog: (.*)", str(error))
        if damaged is None:
            raise
        raise DamagedLog(damaged[1]) from None
