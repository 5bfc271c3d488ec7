"""The causes of change records, in one table.

A cause is the reason for a metadata record, and the record stores it in the tagged field 9000.
These records have the field:

- records that register, change or unregister a broker
- records that create or change a partition
- NoOp records

`quorate history` and `quorate dump-log` show the cause. Replay ignores it, so neither the image nor
a snapshot contains it. Records that Apache Kafka wrote, and records that need no explanation, have
the cause UNKNOWN.

Invariant: a name never changes, because logs store it.
"""

from __future__ import annotations

import enum


class Cause(enum.StrEnum):
    """The reason for a change of metadata. The value is the name that the record stores. `doc`
    explains it to operators in one line."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Cause:
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member

    UNKNOWN = "", "No cause is recorded: Apache Kafka or an older version wrote this record."

    # Brokers and their sessions
    REGISTERED = "registered", "The broker registered: a new process, or a new session of one."
    BROKER_UNFENCED = "broker-unfenced", "The broker caught up with the metadata log and serves."
    SESSION_EXPIRED = "session-expired", "No heartbeat came for broker.session.timeout.ms."
    CONNECTION_LOST = "connection-lost", "Its connection closed and its port refused: it is dead."
    FENCE_REQUESTED = "fence-requested", "The broker asked to be fenced in its heartbeat."
    SESSION_REPLACED = "session-replaced", "Another incarnation of the broker took its place."
    UNCLEAN_RESTART = "unclean-restart", "The broker came back without a clean shutdown."
    CONTROLLED_SHUTDOWN = "controlled-shutdown", "The broker is shutting down in order."
    SHUTDOWN_COMPLETE = "shutdown-complete", "The broker had moved everything away and went down."
    UNREGISTERED = "unregistered", "An administrator removed the broker's registration."

    # The ISR, as the partition's leader sees it
    ISR_SHRINK_LAG = "isr-shrink-lag", "A follower did not catch up for replica.lag.time.max.ms."
    ISR_SHRINK_BROKER = "isr-shrink-broker", "A follower's broker is fenced or shutting down."
    ISR_EXPAND = "isr-expand", "A follower caught up with the high watermark and its leader."
    LEADER_RECOVERED = "leader-recovered", "A leader elected uncleanly finished its recovery."

    # Topics and partitions
    TOPIC_CREATED = "topic-created", "The partition was created with its topic."
    PARTITION_GROWTH = "partition-growth", "An administrator raised the number of partitions."
    CONFIG_CHANGED = "config-changed", "A configuration changed what holds for the partition."
    DIRECTORY_ASSIGNED = "directory-assigned", "A broker placed its replica in a log directory."
    DIRECTORY_FAILED = "directory-failed", "A broker lost the log directory of its replica."

    # Elections
    PREFERRED_ELECTION = "preferred-election", "The preferred leader was elected, as was asked."
    LEADER_IMBALANCE = "leader-imbalance", "The periodic check gave leadership back as preferred."
    LAST_KNOWN_LEADER = (
        "last-known-leader",
        "No replica with all data was left; the last leader leads again: data may be lost.",
    )
    UNCLEAN_ELECTION = "unclean-election", "A leader outside the ISR was elected: data may be lost."

    # Reassignment
    REASSIGNMENT_START = "reassignment-start", "A reassignment began: replicas are added."
    REASSIGNMENT_STEP = "reassignment-step", "A reassignment made progress but is not complete."
    REASSIGNMENT_COMPLETE = (
        "reassignment-complete",
        "All new replicas are in the ISR.",
    )
    REASSIGNMENT_CANCEL = "reassignment-cancel", "A reassignment was cancelled and taken back."

    # The quorum itself
    QUORUM_REBUILT = (
        "quorum-rebuilt",
        "force-voters rebuilt a quorum that was lost, from what is before this record.",
    )


DOCS = {cause.value: cause.doc for cause in Cause}
"""The explanation of each cause, by its stored name. The name of UNKNOWN is empty."""


UNKNOWN_END = "?"
"""The stored text of an end offset that is not known."""


def with_ends(cause: str, old_end: int | None, new_end: int | None) -> str:
    """Return a stored cause that carries two end offsets, such as "unclean-election 120 100".

    `old_end` is the largest end offset that is known of the partition before the election, and
    `new_end` is the end of the new leader's log. None means that the offset is not known.
    """
    if old_end is None and new_end is None:
        return cause
    texts = (UNKNOWN_END if each is None else str(each) for each in (old_end, new_end))
    return " ".join((cause, *texts))


def describe(cause: str) -> str:
    """Return the explanation of a stored cause, with its end offsets if it carries them. "" is the
    name of UNKNOWN. If only a newer version knows the cause, return a text with its name. Never
    raise."""
    name, _, ends = cause.partition(" ")
    if name not in DOCS:
        return f"{cause} (not known to this version)"
    return f"{DOCS[name]} {describe_ends(ends)}" if ends else DOCS[name]


def describe_ends(ends: str) -> str:
    """Return a sentence about the two end offsets of `with_ends`."""
    old, _, new = ends.partition(" ")
    if not (old.isdecimal() and new.isdecimal()):
        return f"The log of the new leader ends at offset {new}; the old end is not known."
    lost = int(old) - int(new)
    what = f"at least {lost} offsets are lost" if lost > 0 else "no loss is known"
    return f"The new leader's log ends at offset {new}, the longest known one at {old}: {what}."
