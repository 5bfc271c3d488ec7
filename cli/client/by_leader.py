"""One request per leader for many partitions, with retries for partitions whose leader moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quorate.cli.client.admin import PASSING, RETRY_DELAY_S, Admin
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.connection import Unsupported as Unserved
from quorate.cli.client.errors import Refused
from quorate.quorum.protocol.errors import ErrorCode

TopicPartition = tuple[str, int]
Answer = tuple[int, int]
"""An error code with an offset, or with a leader's id in the results of `leaders_of`."""
Ask = Callable[[int, dict[str, list[int]]], dict[TopicPartition, Answer]]
"""A function that sends one request to a broker for the given partitions of each topic.

It must return an answer for each of them. It may raise ConnectionLost and Unsupported."""


def ask_leaders(
    admin: Admin, wanted: Sequence[TopicPartition], ask: Ask
) -> dict[TopicPartition, Answer]:
    """Send one request to each leader, and return the answers in the order of `wanted`.

    Partitions with a transient error are asked for again until the timeout of the Admin has passed,
    and then keep their last error. The errors of `leaders_of` are answers, too. Raise Refused if a
    leader does not serve the API, NotReachable if no node returns the metadata."""
    deadline = time.monotonic() + admin.timeout_ms / 1000
    found: dict[TopicPartition, Answer] = {}
    left = list(dict.fromkeys(wanted))
    while left:
        leaders = leaders_of(admin, left)
        for key in left:
            found[key] = (leaders[key][0], -1)
        for leader, topics in grouped(leaders).items():
            try:
                found.update(ask(leader, topics))
            except ConnectionLost:
                for topic, partitions in topics.items():
                    for each in partitions:
                        found[topic, each] = (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            except Unserved as error:
                raise Refused(str(error)) from None
        left = [key for key in left if found[key][0] in PASSING]
        if left and time.monotonic() > deadline:
            break
        if left:
            admin.wait(RETRY_DELAY_S)
    return {key: found[key] for key in wanted}


def leaders_of(admin: Admin, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, Answer]:
    """Return the error code and the leader's id (-1 if there is none) of each partition.

    A partition without a leader has LEADER_NOT_AVAILABLE. A partition that the metadata does not
    list has UNKNOWN_TOPIC_OR_PARTITION, whatever the error of its topic is."""
    found = {key: (int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), -1) for key in wanted}
    for topic in admin.metadata(sorted({topic for topic, _ in wanted})).topics:
        for each in topic.partitions:
            key = (topic.name or "", each.partition_index)
            if key in found:
                none = each.leader_id < 0
                error = ErrorCode.LEADER_NOT_AVAILABLE if none else ErrorCode.NONE
                found[key] = (int(error), each.leader_id)
    return found


def grouped(leaders: dict[TopicPartition, Answer]) -> dict[int, dict[str, list[int]]]:
    """Return the partitions of each topic for each leader.

    Partitions with an error are left out."""
    found: dict[int, dict[str, list[int]]] = {}
    for (topic, partition), (error, leader) in sorted(leaders.items()):
        if not error:
            found.setdefault(leader, {}).setdefault(topic, []).append(partition)
    return found
