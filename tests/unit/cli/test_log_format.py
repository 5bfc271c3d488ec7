"""The formats of a node's log, and the bound on similar lines."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from pathlib import Path

import pytest

from quorate.cli.nodes.line_limit import MAX_LINES, LineLimit
from quorate.cli.nodes.log_format import FIELDS, error_in, formatter_of
from quorate.cli.nodes.node_process import configure_logging
from quorate.cli.nodes.server import load_config
from quorate.cli.state_changes.merge import Wanted, ms_of, of_log


def record(text: str, *, event: str | None = None, error: bool = False) -> logging.LogRecord:
    """Return a record, with a traceback if `error`."""
    found = logging.LogRecord(
        "quorate.cluster",
        logging.ERROR if error else logging.INFO,
        __file__,
        1,
        "%s",
        (text,),
        None,
    )
    if event is not None:
        found.event = event
    if error:
        try:
            raise ValueError("broken\nin two lines")
        except ValueError:
            found.exc_info = sys.exc_info()
    return found


def test_every_json_line_has_the_same_fields() -> None:
    formatter = formatter_of("json", 4, ("broker", "controller"))
    plain = formatter.format(record("fenced broker 1", event="broker-fenced"))
    failed = formatter.format(record("it ends", error=True))
    for line in (plain, failed):
        assert "\n" not in line
        assert tuple(json.loads(line)) == FIELDS
    found = json.loads(plain)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert found == {
        "level": "INFO",
        "node_id": 4,
        "roles": ["broker", "controller"],
        "logger": "quorate.cluster",
        "event": "broker-fenced",
        "message": "fenced broker 1",
        "error": None,
    }
    assert "ValueError: broken" in json.loads(failed)["error"]


def test_the_last_error_is_found_in_both_formats() -> None:
    for name in ("text", "json"):
        formatter = formatter_of(name, 4, ("broker",))
        assert "it ends" in error_in(formatter.format(record("it ends", error=True)).split("\n")[0])
        assert error_in(formatter.format(record("it starts"))) == ""
    assert error_in("{ no json") == ""


def test_both_formats_can_be_merged_with_the_metadata(tmp_path: Path) -> None:
    line = "partition orders-1: this broker leads"
    times = []
    for name in ("text", "json"):
        file = tmp_path / name
        text = formatter_of(name, 4, ("broker",)).format(record(line))
        file.write_text(f"{text}\n{{ damaged orders-1\n")
        (entry,) = of_log(file, Wanted(topic="orders"))
        assert (entry.source, entry.text) == ("broker 4", f"quorate.cluster: {line}")
        times.append(entry.time_ms)
    assert abs(times[0] - times[1]) < 5000


def test_the_lines_of_both_formats_have_their_time_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        made = record("it starts")
        made.created, made.msecs = 1_767_225_599.5, 500.0
        text = formatter_of("text", 4, ("broker",)).format(made)
        as_json = json.loads(formatter_of("json", 4, ("broker",)).format(made))
        assert text.startswith("2025-12-31 23:59:59,500Z INFO [broker 4] ")
        assert as_json["time"] == "2025-12-31T23:59:59.500Z"
        assert ms_of("2025-12-31 23:59:59,500Z") == 1_767_225_599_500
        assert ms_of("2025-12-31 18:59:59,500") == 1_767_225_599_500, "a local time"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_flood_of_one_event_does_not_hide_another() -> None:
    limit = LineLimit(clock_s=lambda: 1.0)
    passed = [limit.filter(record("t", event="topics-created")) for _ in range(MAX_LINES + 5)]
    assert passed.count(True) == MAX_LINES
    assert limit.filter(record("fenced", event="broker-fenced"))


@pytest.mark.parametrize(("level", "written"), [("ERROR", 0), ("INFO", 1), ("DEBUG", 2)])
def test_the_level_and_the_format_of_the_configuration_are_in_effect(
    level: str, written: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=C\n"
        "listeners=C://127.0.0.1:0\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
    )
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    try:
        configure_logging(load_config(str(file), ("log.format=json", f"log.level={level}")))
        logging.getLogger("quorate.x").info("listening")
        logging.getLogger("quorate.x").debug("details")
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["listening", "details"][:written]
