"""The fault socket of a node: its permissions, its answers, and its errors for wrong lines."""

from __future__ import annotations

import asyncio
import json
import random
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.chaos.control.fault_sockets import FaultSockets
from quorate.cli.nodes.cluster_dir import ClusterDir
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.control import (
    MAX_LINE_BYTES,
    FaultControl,
    controlled,
    short_enough,
)
from quorate.quorum.faults.faults import AFFECTED, Faults
from quorate.quorum.faults.rules import Rules, rules_to_json
from quorate.quorum.faults.witness import WitnessTransport
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Seams
from tests.unit.rpc.kafka.fakes import FakeClock


@pytest.fixture
async def socket(tmp_path: Path) -> AsyncIterator[Path]:
    """A path of a fault socket in a directory whose name is too long for a socket."""
    path = tmp_path / ("long" * 25) / "faults.sock"
    path.parent.mkdir()
    path.write_text("left behind by a node that was killed")
    disk = OsDisk()
    seams = Seams(
        clock=AsyncioClock(), random=random.Random(0), transport=AioTransport(), disk=disk
    )
    async with controlled(seams, path, {}) as ruled:
        assert isinstance(ruled.clock, FaultClock)
        yield path
    disk.close()
    assert not path.exists()


async def asked(path: Path, *lines: bytes) -> list[Any]:
    """Send lines to a fault socket and return the decoded answers, None for a closed connection."""
    with short_enough(path) as name:
        reader, writer = await asyncio.open_unix_connection(name)
    answers = []
    for line in lines:
        writer.write(line + b"\n")
        answer = await reader.readline()
        answers.append(json.loads(answer) if answer else None)
    writer.close()
    await writer.wait_closed()
    return answers


async def test_rules_are_put_in_force_whole(socket: Path) -> None:
    drop = b'{"rules": {"drop": ["BrokerHeartbeatRequest"]}, "lease_ms": 600000}'
    hold = b'{"rules": {"hold": [1]}, "lease_ms": 600000}'
    first, second, third = await asked(socket, drop, b"{}", hold)
    assert first["rules"]["drop"] == ["BrokerHeartbeatRequest"]
    assert second["rules"] == first["rules"]
    assert 0 < second["lease_ms"] <= 600_000
    assert (third["rules"]["drop"], third["rules"]["hold"]) == ([], [1])
    assert third["last_sent_ms"] == {}


def control() -> tuple[FaultControl, FakeClock, Faults]:
    """Return a fault control on a clock that the test advances."""
    clock, faults = FakeClock(), Faults()
    witness = WitnessTransport(AioTransport(), clock)
    return FaultControl(faults, witness, Path("unused"), clock), clock, faults


def ask(asked: FaultControl, **request: object) -> dict[str, Any]:
    """Return the answer to a request."""
    answer: dict[str, Any] = asked.answer(json.dumps(request).encode())
    return answer


def test_rules_end_by_themselves_when_nothing_renews_their_lease() -> None:
    held, clock, faults = control()
    assert ask(held, rules={"hold": [1]}, lease_ms=5_000)["lease_ms"] == 5_000
    clock.advance(4_999)
    assert faults.rules.hold == (1,)
    assert ask(held)["lease_ms"] == 1
    clock.advance(1)
    assert faults.rules == Rules()
    assert ask(held)["lease_ms"] is None


def test_a_renewal_extends_the_lease_and_keeps_the_rules() -> None:
    held, clock, faults = control()
    ask(held, rules={"hold": [1]}, lease_ms=5_000)
    for _ in range(3):
        clock.advance(4_000)
        assert ask(held, lease_ms=5_000)["lease_ms"] == 5_000
    assert faults.rules.hold == (1,)
    clock.advance(5_000)
    assert faults.rules == Rules()


def test_the_lease_of_rules_that_ended_does_not_end_the_next_ones() -> None:
    held, clock, faults = control()
    ask(held, rules={"hold": [1]}, lease_ms=5_000)
    ask(held, rules={})
    ask(held, rules={"hold": [2]}, lease_ms=60_000)
    clock.advance(5_000)
    assert faults.rules.hold == (2,)
    assert clock.waiting == 1


def test_a_wrong_lease_keeps_the_rules_and_their_lease() -> None:
    held, clock, faults = control()
    ask(held, rules={"hold": [1]}, lease_ms=5_000)
    assert "error" in ask(held, rules={"hold": [2]}, lease_ms="long")
    assert faults.rules.hold == (1,)
    clock.advance(5_000)
    assert faults.rules == Rules()


def test_a_pause_cannot_stop_its_own_lease() -> None:
    held, clock, faults = control()
    ask(held, rules={"paused": True}, lease_ms=100)
    clock.advance(100)
    assert not faults.rules.paused


def test_the_answer_counts_what_the_rules_affected() -> None:
    held, _, faults = control()
    faults.affected["drop"] += 3
    assert ask(held)["affected"] == {**dict.fromkeys(AFFECTED, 0), "drop": 3}


def mode_of(path: Path) -> int:
    """Return the permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_its_user_may(socket: Path) -> None:
    assert mode_of(socket) == 0o600


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "Expecting value"),
        (b"[]", 'must be {} or {"rules": {...}, "lease_ms": N}'),
        (b'{"rule": {}}', 'must be {} or {"rules": {...}, "lease_ms": N}'),
        (b'{"rules": {"drop": ["Nothing"]}}', "drop: value 'Nothing' must be one of"),
        (b'{"rules": {"cut": [1]}}', "rules with a fault need a lease_ms"),
        (b'{"rules": {"cut": [1]}, "lease_ms": null}', "lease_ms: value None must be a whole"),
        (b'{"rules": {"cut": [1]}, "lease_ms": 0}', "value 0 must be a whole number from 1 to"),
        (b'{"lease_ms": true}', "value True must be a whole number from 1 to 600000"),
        (b'{"rules": {"cut": [1]}, "lease_ms": 600001}', "value 600001 must be a whole number"),
        (b'{"rules": {"cuts": []}}', "unknown key 'cuts'"),
    ],
)
async def test_a_wrong_line_changes_nothing(socket: Path, line: bytes, said: str) -> None:
    wrong, after = await asked(socket, line, b"{}")
    assert said in wrong["error"]
    assert after["rules"]["drop"] == []


async def test_a_line_without_end_is_not_kept(socket: Path) -> None:
    assert await asked(socket, b"x" * (2 * MAX_LINE_BYTES)) == [None]
    assert (await asked(socket, b"{}"))[0]["rules"]["paused"] is False


def test_nodes_without_faults_import_nothing_of_it() -> None:
    script = (
        "import sys; from quorate.cli.nodes.node_process import preload; preload(); "
        "print([name for name in sys.modules if name.startswith('quorate.quorum.faults')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 5000,
        b'{"rules": {"cut": ' + b"[" * 5000,
        b'{"rules": {"cut": [' + b"[" * 60 + b"]" * 60 + b"]}}",
        b'{"rules": {"delay_ms": 1' + b"0" * 5000 + b"}}",
        b'{"rules": {"' + b"x" * 60_000 + b'": 1}}',
        b'{"rules": {"drop": ["' + b"x" * 60_000 + b'"]}}',
    ],
    ids=lambda line: repr(line[:30]),
)
async def test_a_line_of_any_content_is_answered(socket: Path, line: bytes) -> None:
    """A line of 5,000 brackets once stopped the node."""
    (refused, well) = await asked(socket, line, b"{}")
    assert refused.keys() == {"error"}
    assert len(refused["error"]) < 5000
    assert "rules" in well


def test_a_node_without_a_fault_has_no_rules_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"rules": json.loads(rules_to_json(Rules()))}
    monkeypatch.setattr(FaultSockets, "_ask", lambda self, node_id, request: answer)
    sockets = FaultSockets(ClusterDir(tmp_path))
    assert sockets.in_force(4) == {}
    answer["rules"] |= {"delay_ms": 5, "slow_links": "clients"}
    assert sockets.in_force(4) == {"delay_ms": 5, "slow_links": "clients"}
