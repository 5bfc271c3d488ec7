"""Causes from the change log, read backwards and then forwards, and nodes without a change log."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from quorate.cli.client.node_http import NodeHttp
from quorate.cli.status import explanations
from quorate.cli.status.explanations import NEXT_OFFSET, Explanations, NotServed, Page, get_from
from tests.unit.cli.fake_kafka import fake_kafka

ORDERS_0 = ("partition", "T", 0)
BROKER_4 = ("broker", "", 4)


def change(cause: str, **record: Any) -> dict[str, Any]:
    """Return a line of the change log that changes partition 0 of topic T."""
    return {
        "type": "PARTITION_CHANGE_RECORD",
        "cause": cause,
        "record": {"topicId": "T", "partitionId": 0, **record},
    }


FENCED = {
    "type": "BROKER_REGISTRATION_CHANGE_RECORD",
    "cause": "session-expired",
    "record": {"brokerId": 4, "fenced": 1},
}
MOVED = {
    "type": "BROKER_REGISTRATION_CHANGE_RECORD",
    "cause": "directory-assigned",
    "record": {"brokerId": 4, "logDirs": ["x"]},
}


class FakeLog:
    """A change log with records at some offsets. A page covers at most `page` offsets."""

    def __init__(self, records: dict[int, dict[str, Any]], end: int, start: int = 0) -> None:
        self.records = records
        self.start, self.end = start, end
        self.page = 500
        self.targets: list[str] = []

    def get(self, target: str) -> Page:
        """Return the page for a target. Raise LookupError if it begins before the log."""
        self.targets.append(target)
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        start = int(query.get("from", self.start))
        if start < self.start:
            raise LookupError("gone")
        end = min(self.end, start + self.page)
        types = query["types"].split(",")
        lines = [
            {"offset": offset, "timestamp_ms": offset * 1000, **record}
            for offset, record in sorted(self.records.items())
            if start <= offset < end and record["type"] in types
        ]
        return Page(lines, end)


def test_the_newest_change_explains() -> None:
    log = FakeLog(
        {
            10: change("isr-shrink-lag", isr=[5]),
            20: change("session-expired", isr=[5], leader=5),
            30: change("reassignment-start", addingReplicas=[7]),  # neither leader nor ISR
            40: FENCED,
            50: MOVED,
        },
        end=9000,
    )
    found = Explanations().of([ORDERS_0, BROKER_4, ("broker", "", 9)], 9000, log.get)
    assert found[ORDERS_0].cause == "session-expired"
    assert found[ORDERS_0].offset == 20
    assert str(found[BROKER_4]) == (
        "session-expired: No heartbeat came for broker.session.timeout.ms. "
        "(1970-01-01 00:00:40Z, offset 40)"
    )
    assert ("broker", "", 9) not in found


def test_what_is_known_is_not_looked_for_again() -> None:
    log = FakeLog({8990: change("session-expired", isr=[5])}, end=9000)
    known = Explanations()
    known.of([ORDERS_0], 9000, log.get)
    assert len(log.targets) == 4  # the last 2,000 offsets in pages of 500
    known.of([ORDERS_0], 9000, log.get)
    assert len(log.targets) == 4
    log.records[9001] = change("isr-expand", isr=[4, 5])
    log.end = 9002
    assert known.of([ORDERS_0], 9002, log.get)[ORDERS_0].cause == "isr-expand"
    assert len(log.targets) == 5


def test_the_number_of_kept_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console reads for days, while topics are created and deleted."""
    monkeypatch.setattr(explanations, "MAX_KEPT", 3)
    log = FakeLog({n: change("isr-expand", partitionId=n, isr=[5]) for n in range(1, 9)}, end=9)
    known, keys = Explanations(), [("partition", "T", n) for n in range(20)]
    assert known.of(keys[1:2], 9, log.get).keys() == {keys[1]}, "the wanted one is kept"
    log.records |= {n: change("isr-expand", partitionId=n, isr=[5]) for n in range(9, 15)}
    log.end = 15
    assert known.of([], 15, log.get) == {}
    assert list(known._latest) == keys[12:15], "the newest ones"


def test_a_log_that_begins_later_is_read_from_its_start() -> None:
    log = FakeLog({8100: change("session-expired", isr=[5])}, end=9000, start=8050)
    assert Explanations().of([ORDERS_0], 9000, log.get)[ORDERS_0].offset == 8100
    assert Explanations().of([BROKER_4], 9000, log.get) == {}


def test_looking_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "LOOKING_BACK_S", 0)
    log = FakeLog({1: FENCED}, end=1_000_000)
    assert Explanations().of([BROKER_4], 1_000_000, log.get) == {}
    assert log.targets == []


def test_nodes_that_tell_nothing_are_asked_once() -> None:
    asked: list[str] = []

    def get(target: str) -> Page:
        asked.append(target)
        raise NotServed

    known = Explanations()
    assert known.of([BROKER_4], 100, get) == {}
    assert known.of([BROKER_4], 200, get) == {}
    assert len(asked) == 1


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves one line at /v1/changes, and 410 for offset 0."""

    def do_GET(self) -> None:
        """Answer the request."""
        body = json.dumps({"offset": 3}).encode() + b"\n"
        gone = "from=0" in self.path
        self.send_response(410 if gone else 200)
        self.send_header(NEXT_OFFSET, "4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def http_node() -> Iterator[tuple[str, int]]:
    """Run an HTTP server with Handler, and yield its address."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_first_node_that_answers_is_heard() -> None:
    """A controller of Apache Kafka closes the connection, because the request looks like a frame of
    1.2 GB."""
    with fake_kafka({}) as kafka, http_node() as node:
        addresses = [(kafka.host, kafka.port), node]
        assert get_from(NodeHttp(), addresses, "/v1/changes?from=3") == Page([{"offset": 3}], 4)
        with pytest.raises(LookupError):
            get_from(NodeHttp(), addresses, "/v1/changes?from=0")
        with pytest.raises(NotServed):
            get_from(NodeHttp(), addresses[:1], "/v1/changes?from=3")
