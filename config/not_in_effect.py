"""Kafka's properties that a node accepts although they change nothing, with the reason of each.

A real configuration file of Kafka must load. It sets thread pools and buffers that an event loop
does not have, and properties of features that Quorate does not have. The loader names those that
are set in one warning at the start. `refused_keys.py` has the properties that are not accepted.

Most names have no entry in the tables of keys. Those that have one (`NOT_YET`) are read and checked
for the time until their feature exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from quorate.config.did_you_mean import did_you_mean

ONE_LOOP = "one event loop serves all connections, and one thread the disk"
NO_PURGATORY = "a request that ended leaves nothing behind that must be purged"
NOT_YET: dict[str, tuple[str, ...]] = {}
"""The keys of the tables that are not in effect yet, by reason. No other key of a table may be
without an effect (tests/unit/config/test_key_effects.py)."""

REASONS = (
    # (reason, patterns of whole names)
    (
        ONE_LOOP,
        (
            r"num\.(network|io)\.threads",
            r"background\.threads",
            r"num\.recovery\.threads\.per\.data\.dir",
            r"(group|share)\.coordinator\.threads",
        ),
    ),
    (
        NO_PURGATORY,
        (
            r"(fetch|producer|delete\.records|share\.fetch)\.purgatory\.purge\.interval\.requests",
            r"internal\.metadata\.delete\.delay\.millis",
        ),
    ),
    (
        "/metrics keeps counters and histograms, from which the scraper computes rates",
        (
            r"metric\.reporters",
            r"metrics\.(num\.samples|recording\.level|sample\.window\.ms)",
            r"auto\.include\.jmx\.reporter",
            r"kafka\.metrics\.(polling\.interval\.secs|reporters)",
            r"controller\.performance\..+",
            r"telemetry\.max\.bytes",
        ),
    ),
    (
        "there are no transactions",
        (
            r"transaction\..+",
            r"transactional\.id\.expiration\.ms",
            r"add\.partitions\.to\.txn\..+",
        ),
    ),
    (
        "there are only groups of the classic protocol",
        (
            r"group\.(consumer|share|streams)\..+",
            r"group\.coordinator\.rebalance\.protocols",
            r"share\.coordinator\..+",
        ),
    ),
    (
        "there is no tiered storage",
        (r"remote\..+", r"rlmm\.config\..+", r"rsm\.config\..+", r"log\.local\.retention\..+"),
    ),
    (
        "there are no delegation tokens",
        (r"delegation\.token\..+",),
    ),
    (
        "one move between log directories copies at a time",
        (r"num\.replica\.alter\.log\.dirs\.threads",),
    ),
    (
        "the coordinator appends with each request and reads back with bounded memory",
        (
            r"group\.coordinator\.append\.linger\.ms",
            r"offsets\.load\.buffer\.size",
            r"offsets\.topic\.compression\.codec",
        ),
    ),
    (
        "the sizes of Raft's batches and fetches are fixed",
        (r"internal\.metadata\.max\.(batch|fetch)\.size\.in\.bytes",),
    ),
    (
        "the transport chooses the buffers of the connections between nodes",
        (r"replica\.socket\.receive\.buffer\.bytes",),
    ),
    (
        "a node gives an attempt to connect to another node up after one or two seconds",
        (r"socket\.connection\.setup\.timeout\.(max\.)?ms",),
    ),
    (
        "each periodic task first runs after its own interval",
        (r"log\.initial\.task\.delay\.ms",),
    ),
    (
        "a commit of offsets waits until it is committed or the leadership is lost",
        (r"offsets\.commit\.timeout\.ms",),
    ),
    (
        "every listener opens when the node is ready to serve it",
        (r"early\.start\.listeners", r"server\.max\.startup\.time\.ms"),
    ),
    (
        "a node serves released versions only",
        (r"unstable\.(api|feature)\.versions\.enable",),
    ),
)
"""The properties of Kafka that have no entry in the tables of keys, by reason."""
UNKNOWN = "no such property is known"

_PATTERNS = tuple(
    (re.compile(pattern), reason) for reason, patterns in REASONS for pattern in patterns
)
_NOT_YET = {name: reason for reason, names in NOT_YET.items() for name in names}


def why_not_in_effect(name: str) -> str | None:
    """Return the reason for which a property changes nothing, or None if it is not listed here."""
    if name in _NOT_YET:
        return _NOT_YET[name]
    return next((reason for pattern, reason in _PATTERNS if pattern.fullmatch(name)), None)


def unknown(name: str, known: Iterable[str]) -> str:
    """Return the reason for a name that no list has, with a similar one of `known`."""
    hint = did_you_mean(name, known)
    return f"{UNKNOWN}.{hint}" if hint else UNKNOWN


def described(names: Iterable[str], known: Iterable[str] = ()) -> str:
    """Return the text of the warning about these properties: the names of each reason, sorted. For
    a name that no list has, suggest a similar one of `known`."""
    known = tuple(known)
    by_reason: dict[str, list[str]] = {}
    for name in sorted(names):
        reason = why_not_in_effect(name) or unknown(name, known)
        by_reason.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(listed)} ({reason})" for reason, listed in by_reason.items())
