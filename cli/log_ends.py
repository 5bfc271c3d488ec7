"""The start and end offsets of partitions, and their offsets at a time."""

from __future__ import annotations

from collections.abc import Iterable

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.consumer import EARLIEST, LATEST, Consumer
from quorate.cli.client.errors import Refused
from quorate.cli.client.groups import Place
from quorate.quorum.protocol.errors import ErrorCode


class LogEnds:
    """Offset lookups through one Admin. Each topic's partitions are looked up once.

    An instance is a function from a partition to its log end offset, as consumers see it: the high
    watermark. Lookups raise Refused if the topic does not exist, and as `Consumer.offset_of`."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._known: dict[str, Consumer] = {}

    def __call__(self, place: Place) -> int:
        return self.at(place, LATEST)

    def earliest(self, place: Place) -> int:
        """Return the log start offset of the partition."""
        return self.at(place, EARLIEST)

    def at(self, place: Place, time_ms: int) -> int:
        """Return the first offset with a timestamp of `time_ms` or later, or -1 if there is none.

        `time_ms` may also be EARLIEST or LATEST."""
        return self._topic(place[0]).offset_of(place[1], time_ms)

    def topics(self) -> frozenset[str]:
        """Ask the cluster, and return the names of all topics."""
        return frozenset(each.name or "" for each in self._admin.metadata(None).topics)

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic. Raise Refused if it does not exist."""
        return self._topic(topic).numbers

    def _topic(self, name: str) -> Consumer:
        if name not in self._known:
            self._known[name] = Consumer(self._admin, name)
        return self._known[name]


def places_of(topics: Iterable[str], ends: LogEnds) -> list[Place]:
    """Return the partitions that TOPIC or TOPIC:0,1 name. Raise Refused if one does not exist."""
    places = []
    for name, listed in map(parts_of, topics):
        known = ends.partitions(name)
        for each in known if listed is None else listed:
            if each not in known:
                raise Refused(f"{ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name}: {name}-{each}")
            places.append((name, each))
    return places


def parts_of(text: str) -> tuple[str, list[int] | None]:
    """Return the topic and the partitions (None: all) of TOPIC or TOPIC:0,1.

    Raise UsageError if a partition is no number."""
    name, colon, listed = text.partition(":")
    try:
        return name, [int(each) for each in listed.split(",")] if colon else None
    except ValueError:
        raise click.UsageError(f"--topic: value {text!r} must be TOPIC or TOPIC:0,1") from None
