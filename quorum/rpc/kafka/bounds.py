"""The bounds of Kafka messages: bytes of strings and counts of array elements.

Each declared field of a request or record that varies in size names one of these (`wire.py`), so
that a reader without a bound does not compile. A request beyond a bound is malformed: its
connection is closed.
"""

from __future__ import annotations

MAX_STRING_BYTES = 32_767
"""Kafka's own readers refuse longer strings in every version, and classic versions cannot say
them. The bound holds for every string, read or written: what arrives in a flexible version can
then leave in a classic one."""
