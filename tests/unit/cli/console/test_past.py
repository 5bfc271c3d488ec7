"""Earlier states of the cluster, from a log in a directory, as the page gets them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from quorate.cli.client.errors import Refused
from quorate.cli.console import past as past_module
from quorate.cli.console.access.request_rules import TOKEN_HEADER
from quorate.cli.console.past import MAX_STATES, NOT_IN_LOG, range_of, state_at
from quorate.config.sensitive import HIDDEN
from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.metadata.records import ConfigRecord
from tests.unit.analytics.logs import SCRIPT, batches, snapshot_of, write_segment
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, served
from tests.unit.cli.console.test_server import until

WITH_TOKEN = {TOKEN_HEADER: TOKEN}
LED, LOST = 22, 25
"""Offsets at which partition a-1 has a leader, and has lost it."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_segment(tmp_path, 0, b"".join(batches()))
    return tmp_path


def test_a_state_has_the_tables_of_a_running_cluster(log: Path) -> None:
    before, after = state_at(log, LED), state_at(log, LOST)
    assert before.tables["brokers"].rows[0][:2] == (2, "fenced")
    assert before.overview["quorum"] == "Quorum: leader 1, epoch 1; voters 1"
    assert before.overview["counts"]["offline"] == 0
    assert after.overview["counts"]["offline"] == 1
    assert after.overview["offset"] == LOST
    assert str(after.overview["time"]).startswith("2027-01-15 08:00:")
    assert after.tables["partitions"].rows[0][:5] == ("a", 1, "offline", None, (3,))
    assert after.tables["topics"].rows == [("a", "offline", 2, 2, 3, 1)]
    assert before.tables["topics"].rows[0][-1] == 1, "the min ISR of the topic"
    assert state_at(log, 12).tables["topics"].rows[0][-1] == 2, "the default of all brokers"
    assert ("topic", "a", "min.insync.replicas", "1") in after.tables["configs"].rows


def test_a_secret_of_the_log_is_hidden(tmp_path: Path) -> None:
    secret = ConfigRecord(
        resource_type=4, resource_name="1", name="ssl.key.password", value="do not show"
    )
    write_segment(tmp_path, 0, b"".join(batches([*SCRIPT[:4], (secret,)])))
    assert state_at(tmp_path, 13).tables["configs"].rows[-1][-1] == HIDDEN


def test_the_range_begins_with_the_first_snapshot_if_the_log_was_cut(tmp_path: Path) -> None:
    whole = batches()
    write_segment(tmp_path, 0, b"".join(whole))
    found = range_of(tmp_path)
    assert (found["first"], found["last"]) == (
        0,
        moment(tmp_path).offset + 2,
    )  # unfinished at its end
    image = moment(tmp_path, offset=12).image
    cut = tmp_path / "cut"
    write_segment(cut, 13, b"".join(whole[5:]))
    snapshot = cut / "__cluster_metadata-0" / "00000000000000000013-0000000001.checkpoint"
    snapshot.write_bytes(snapshot_of(image))
    assert range_of(cut)["first"] == 12
    assert state_at(cut, 12).tables["topics"].rows == state_at(tmp_path, 12).tables["topics"].rows
    with pytest.raises(Refused, match="begins"):
        state_at(cut, 11)


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no metadata log"):
        range_of(tmp_path)


async def test_the_page_gets_windows_of_a_state(log: Path) -> None:
    async with served(reading(12), past=log) as console, ClientSession(headers=WITH_TOKEN) as http:

        async def got(path: str) -> tuple[int, Any]:
            async with http.get(f"{console.url}/api/past{path}") as answer:
                return answer.status, await (
                    answer.json() if answer.status == 200 else answer.text()
                )

        assert (await got(""))[1]["first"] == 0
        assert (await got(f"/overview?at={LOST}"))[1]["counts"]["offline"] == 1
        status, found = await got(f"/table/partitions?at={LOST}&filter=offline")
        assert (status, found["matching"], found["total"]) == (200, 1, 2)
        assert (await got(f"/table/groups?at={LOST}"))[1]["note"] == NOT_IN_LOG
        status, text = await got("/overview?at=99999")
        assert (status, "ends at offset" in text) == (409, True)
        for wrong in ("", "x", "-1", "9" * 30):
            assert (await got(f"/overview?at={wrong}"))[0] == 400
        assert (await got(f"/table/partitions?at={LOST}&limit=999"))[0] == 400
        for offset in range(20, 26):
            assert (await got(f"/overview?at={offset}"))[0] == 200
        assert list(console.past._states) == [24, 25]
        assert len(console.past._states) == MAX_STATES


async def test_one_state_is_replayed_at_a_time_and_few_requests_wait(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays, going = [], threading.Event()

    def slow(directory: Path, offset: int) -> Any:
        replays.append(offset)
        assert going.wait(30)
        return state_at(directory, offset)

    monkeypatch.setattr(past_module, "state_at", slow)
    monkeypatch.setattr(past_module, "MAX_WAITING", 3)
    async with served(reading(12), past=log) as console, ClientSession(headers=WITH_TOKEN) as http:

        async def status_at(offset: int) -> int:
            async with http.get(f"{console.url}/api/past/overview?at={offset}") as answer:
                return answer.status

        asked = [asyncio.create_task(status_at(each)) for each in (20, 20, 21)]
        await until(lambda: console.past._waiting == 3)
        assert await status_at(22) == 503
        assert replays == [20]
        going.set()
        assert await asyncio.gather(*asked) == [200, 200, 200]
        assert replays == [20, 21], "the two requests for one state share a replay"
        assert console.past._waiting == 0


async def test_without_a_directory_the_page_says_how_to_see_the_past() -> None:
    async with served(reading(12)) as console, ClientSession(headers=WITH_TOKEN) as http:
        async with http.get(f"{console.url}/api/past") as answer:
            assert "--metadata-dir" in (await answer.json())["why"]
        async with http.get(f"{console.url}/api/past/overview?at=3") as answer:
            assert answer.status == 404
