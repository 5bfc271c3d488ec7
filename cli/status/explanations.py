"""The causes of fenced brokers and of the states of partitions: the newest change of each.

The causes are in the metadata log, which every Quorate node serves at GET /v1/changes. The log is
searched backwards from its end in growing steps, until all questions are answered, the log begins,
or the time is over. Later calls read what is new, and continue backwards if questions are left.
Nodes of Apache Kafka do not serve that path. Then every cause is unknown, and no further request is
sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.cli.client.node_http import Address, NodeHttp
from quorate.quorum.metadata.causes import describe

LOOKING_BACK_S = 4.0
"""The time after which one call begins no further step backwards."""
FIRST_PAGE = 2000
"""The number of offsets in the first step backwards. Each step is four times as long as the last
one, up to LARGEST_PAGE."""
LARGEST_PAGE = 200_000
MAX_KEPT = 100_000
"""The most keys whose newest change is kept. Those of deleted topics are among them."""
LIMIT = 10_000
"""The most lines that one request asks for. A step backwards may need several requests."""
NEXT_OFFSET = "Quorate-Next-Offset"
"""The response header with the offset that follows the lines."""

Key = tuple[str, str, int]
"""("broker", "", broker id) or ("partition", topic id, partition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The newest change of a broker or partition: its cause, time and offset in the metadata log.

    An empty cause means that the record names none."""

    cause: str
    timestamp_ms: int
    offset: int

    @property
    def name(self) -> str:
        """Return the name of the cause, without the offsets that it may carry."""
        return self.cause.partition(" ")[0]

    def __str__(self) -> str:
        at = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.timestamp_ms / 1000))
        what = f"{self.cause}: {describe(self.cause)}" if self.cause else describe(self.cause)
        return f"{what} ({at}, offset {self.offset})"


class NotServed(Exception):
    """No node answers GET /v1/changes."""


@dataclass(frozen=True, slots=True)
class Page:
    """One response of GET /v1/changes: its lines, and the offset that follows them."""

    lines: list[dict[str, Any]]
    next_offset: int


Get = Callable[[str], Page]
"""A function that gets a path with its query from some node. It raises as `get_from` does."""


def get_from(nodes: NodeHttp, addresses: Sequence[Address], target: str) -> Page:
    """Return the page of the first node that answers.

    Raise LookupError if the log begins after the wanted offset, NotServed if no node answers."""
    for address in addresses:
        answer = nodes.get(address, target)
        if answer is None:
            continue
        following = answer.headers.get(NEXT_OFFSET.lower())
        if answer.status == 200 and following is not None:
            try:
                return Page([json.loads(line) for line in answer.body.splitlines()], int(following))
            except (ValueError, RecursionError):
                continue  # this is no node of Quorate
        if answer.status == 410:
            raise LookupError(answer.body.decode("utf-8", "replace").strip())
    raise NotServed(f"no node answers GET {target}")


class Explanations:
    """The newest changes found so far, and the range of the metadata log that has been read."""

    def __init__(self) -> None:
        self._latest: dict[Key, Explanation] = {}
        self._from = self._to = -1  # the range of the log that has been read
        self._served = True

    def of(self, wanted: Iterable[Key], end: int, get: Get) -> dict[Key, Explanation]:
        """Return the known explanations of `wanted`.

        `end` is the high watermark of the metadata log. A key without a known explanation is left
        out. Errors of `get` are not raised.

        The call blocks for the requests of `get`. Looking back takes LOOKING_BACK_S at most plus
        one step."""
        if not self._served:
            return {}
        if self._to < 0:
            self._from = self._to = end
        missing = set(wanted)
        try:
            self._read_on(end, get)
            self._look_back(missing - self._latest.keys(), get)
        except LookupError:  # the log now begins after the range that was read
            self._to = end
        except NotServed:
            # a node that served the path before may serve it again
            self._served = self._from < self._to
        return {key: self._latest[key] for key in missing if key in self._latest}

    def _read_on(self, end: int, get: Get) -> None:
        for line in lines_between(self._to, end, get):
            for key, explanation in explained(line).items():
                self._latest.pop(key, None)
                self._latest[key] = explanation
            if len(self._latest) > MAX_KEPT:
                del self._latest[next(iter(self._latest))]
            self._to = line["offset"] + 1
        self._to = max(self._to, end)

    def _look_back(self, missing: set[Key], get: Get) -> None:
        deadline = time.monotonic() + LOOKING_BACK_S
        size = FIRST_PAGE
        while missing and self._from > 0 and time.monotonic() < deadline:
            start = max(0, self._from - size)
            found: dict[Key, Explanation] = {}
            try:
                for line in lines_between(start, self._from, get):
                    found.update(explained(line))
            except LookupError:  # the log begins after `start`
                start = 0
                for line in lines_between(None, self._from, get):
                    found.update(explained(line))
            for key, explanation in found.items():
                if key in missing or len(self._latest) < MAX_KEPT:
                    self._latest.setdefault(key, explanation)
            self._from = start
            missing -= found.keys()
            size = min(size * 4, LARGEST_PAGE)


def lines_between(start: int | None, end: int, get: Get) -> Iterator[dict[str, Any]]:
    """Yield the lines of the log from `start` (None: its start) to before `end`.

    Raise as `get` does."""
    types = ",".join(EXPLAINING)
    while start is None or start < end:
        place = "" if start is None else f"from={start}&"
        page = get(f"/v1/changes?{place}limit={LIMIT}&types={types}")
        yield from (line for line in page.lines if line["offset"] < end)
        if page.next_offset == start:
            return
        start = page.next_offset


def explained(line: dict[str, Any]) -> dict[Key, Explanation]:
    """Return the explanation in a line.

    It is empty unless the line registers a broker, creates a partition, or changes a leader, an ISR
    or fencing. The type of the line must be in EXPLAINING."""
    key = EXPLAINING[line["type"]](line["record"])
    if key is None:
        return {}
    return {
        key: Explanation(
            cause=line["cause"] or "", timestamp_ms=line["timestamp_ms"], offset=line["offset"]
        )
    }


def of_broker(record: dict[str, Any]) -> Key:
    """Return the key of the broker that a record registers."""
    return ("broker", "", record["brokerId"])


def of_broker_change(record: dict[str, Any]) -> Key | None:
    """Return the key of the broker if the record changes its fencing, else None."""
    return of_broker(record) if "fenced" in record else None


def of_partition(record: dict[str, Any]) -> Key:
    """Return the key of the partition that a record creates."""
    return ("partition", record["topicId"], record["partitionId"])


def of_partition_change(record: dict[str, Any]) -> Key | None:
    """Return the key of the partition if the record changes its leader or ISR, else None."""
    return of_partition(record) if "isr" in record or "leader" in record else None


EXPLAINING: dict[str, Callable[[dict[str, Any]], Key | None]] = {
    "REGISTER_BROKER_RECORD": of_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": of_broker_change,
    "PARTITION_RECORD": of_partition,
    "PARTITION_CHANGE_RECORD": of_partition_change,
}
"""The types of records that explain a state. A function returns the key of the record, or None."""
