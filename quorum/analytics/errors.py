"""Why a history cannot be read.

AnalyticsError
├── NoMetadataLog  the directory holds no metadata log
├── DamagedLog     bytes of the log, not at its end, cannot be read
├── BadOption      the data source has no such option
└── NoJava         Spark cannot run here
"""

from __future__ import annotations


class AnalyticsError(ValueError):
    """What was given, or where it was given, does not do; the message names the way out."""


class NoMetadataLog(AnalyticsError):
    pass


class DamagedLog(AnalyticsError):
    pass


class BadOption(AnalyticsError):
    pass


class NoJava(AnalyticsError):
    pass
