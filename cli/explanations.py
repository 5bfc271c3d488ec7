"""Why brokers are fenced and partitions are as they are: the newest change of each, with its cause.

Causes stand in the metadata log, which every Quorate node serves on GET /v1/changes. What is asked
about is looked for backwards from the log's end, in pages that grow, until all is explained, the
log begins, or the time is over; afterwards only what is new is read. Nodes of Apache Kafka do not
answer: there every cause is unknown, and nobody asks twice.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.quorum.metadata.causes import describe

REQUEST_TIMEOUT_S = 2.0
LOOKING_BACK_S = 4.0
FIRST_PAGE = 2000
LARGEST_PAGE = 200_000
LIMIT = 10_000
NEXT_OFFSET = "Quorate-Next-Offset"

Key = tuple[str, str, int]
"""("broker", "", id) or ("partition", topic id, partition)."""
Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    cause: str
    timestamp_ms: int
    offset: int

    def __str__(self) -> str:
        at = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.timestamp_ms / 1000))
        what = f"{self.cause}: {describe(self.cause)}" if self.cause else describe(self.cause)
        return f"{what} ({at}, offset {self.offset})"


class NotServed(Exception):
    """The node does not answer GET /v1/changes."""


@dataclass(frozen=True, slots=True)
class Page:
    lines: list[dict[str, Any]]
    next_offset: int


Get = Callable[[str], Page]


def get_from(addresses: Sequence[Address], target: str) -> Page:
    """Of the first that answers."""
    for host, port in addresses:
        connection = http.client.HTTPConnection(host, port, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            body = answer.read()
            following = answer.getheader(NEXT_OFFSET)
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
        if answer.status == 200 and following is not None:
            return Page([json.loads(line) for line in body.splitlines()], int(following))
        if answer.status == 410:
            raise LookupError(body.decode().strip())
    raise NotServed(f"no node answers GET {target}")


class Explanations:
    def __init__(self) -> None:
        self._latest: dict[Key, Explanation] = {}
        self._from = self._to = -1  # what has been read of the log
        self._served = True

    def of(self, wanted: Iterable[Key], end: int, get: Get) -> dict[Key, Explanation]:
        """What is known about `wanted`; `end` is the high watermark."""
        if not self._served:
            return {}
        if self._to < 0:
            self._from = self._to = end
        missing = set(wanted)
        try:
            self._read_on(end, get)
            self._look_back(missing - self._latest.keys(), get)
        except LookupError:  # the log was cleaned beyond what was read of it
            self._to = end
        except NotServed:
            self._served = self._from < self._to  # it was once
        return {key: self._latest[key] for key in missing if key in self._latest}

    def _read_on(self, end: int, get: Get) -> None:
        for line in lines_between(self._to, end, get):
            self._latest.update(explained(line))
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
            except LookupError:  # the log begins later
                start = 0
                for line in lines_between(None, self._from, get):
                    found.update(explained(line))
            for key, explanation in found.items():
                self._latest.setdefault(key, explanation)
            self._from = start
            missing -= found.keys()
            size = min(size * 4, LARGEST_PAGE)


def lines_between(start: int | None, end: int, get: Get) -> Iterator[dict[str, Any]]:
    types = ",".join(EXPLAINING)
    while start is None or start < end:
        place = "" if start is None else f"from={start}&"
        page = get(f"/v1/changes?{place}limit={LIMIT}&types={types}")
        yield from (line for line in page.lines if line["offset"] < end)
        if page.next_offset == start:
            return
        start = page.next_offset


def explained(line: dict[str, Any]) -> dict[Key, Explanation]:
    key = EXPLAINING[line["type"]](line["record"])
    if key is None:
        return {}
    return {
        key: Explanation(
            cause=line["cause"] or "", timestamp_ms=line["timestamp_ms"], offset=line["offset"]
        )
    }


def of_broker(record: dict[str, Any]) -> Key:
    return ("broker", "", record["brokerId"])


def of_broker_change(record: dict[str, Any]) -> Key | None:
    return of_broker(record) if "fenced" in record else None


def of_partition(record: dict[str, Any]) -> Key:
    return ("partition", record["topicId"], record["partitionId"])


def of_partition_change(record: dict[str, Any]) -> Key | None:
    """Of those that say who leads or who is in sync."""
    return of_partition(record) if "isr" in record or "leader" in record else None


EXPLAINING: dict[str, Callable[[dict[str, Any]], Key | None]] = {
    "REGISTER_BROKER_RECORD": of_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": of_broker_change,
    "PARTITION_RECORD": of_partition,
    "PARTITION_CHANGE_RECORD": of_partition_change,
}
