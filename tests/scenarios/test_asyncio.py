"""Mistakes that asyncio makes easy, A1 to A8 (README.md of this folder)."""

from __future__ import annotations

import ast
import asyncio
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quorate.broker.replication.follower.replica_fetcher import ReplicaFetcher
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.rpc.kafka_frames import SIZE_BYTES, KafkaLink
from tests.unit.replication.cluster import ReplicaCluster, led_by

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 30
UNWATCHED_TASKS = {
    "quorum/watch/http_dispatch.py": "answers 500 itself; a scrape that fails must not stop a node",
    "quorum/rpc/websocket.py": "waits for the end of its link and gives back what it held",
    "quorum/faults/transport.py": "closes a transport on behalf of a node that has crashed",
}


def callers_of(name: str) -> list[tuple[str, str]]:
    """The functions of the nodes' code that call it: where each stands, and its code."""
    return [
        (path.relative_to(ROOT).as_posix(), ast.unparse(function))
        for top in ("quorum", "broker")
        for path in sorted((ROOT / top).rglob("*.py"))
        if name in (text := path.read_text())
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and name
        in {name_of(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)}
    ]


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def test_a2_a_cancellation_that_wait_for_swallows() -> None:
    """bpo-42130 (Python 3.11): `asyncio.wait_for` may return a result and forget that its task was
    cancelled. `asyncio.timeout` does not, so nothing else is used."""
    assert callers_of("wait_for") == []


def test_a3_a_bug_in_a_background_task_stops_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySyncObj's _autoTickThread catches every exception and continues after a broken invariant.
    This scenario found the same bug here: a failure behind a fetcher's connect was not reported."""

    def broken(fetcher: ReplicaFetcher) -> object:
        raise RuntimeError("a bug nobody expected")

    cluster = ReplicaCluster(brokers=2)
    monkeypatch.setattr(ReplicaFetcher, "_next_request", broken)
    cluster.create("t", [led_by(1, 2)])
    with pytest.raises(RuntimeError, match="nobody expected"):
        cluster.run(50)
    cluster.loop.close()
    gc.collect()


def test_a3_every_task_has_somebody_who_hears_of_its_failure() -> None:
    """PySyncObj's _autoTickThread once more: a task that nobody awaits tells its exception when it
    is collected, if ever. Each has `raise_failure` as a callback, or a reason why not."""
    unwatched = {path for path, code in callers_of("create_task") if "raise_failure" not in code}
    assert unwatched == set(UNWATCHED_TASKS)


class Wire:
    """An asyncio transport that keeps each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(bytes(data))

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("peer", 1)


def test_a4_a_frame_leaves_whole_or_not_at_all() -> None:
    """asyncio streams: a task that is cancelled between write and drain leaves half a frame on the
    wire. The code awaits nothing between a frame's first byte and its last, so that a cancelled
    task cannot interrupt it."""

    class Handler:
        def on_frame(self, frame: memoryview) -> None: ...

        def on_closed(self, error: Exception | None) -> None: ...

    async def run() -> list[bytes]:
        wire = Wire()
        link = KafkaLink(lambda link: Handler(), 1 << 20)
        link.connection_made(wire)  # type: ignore[arg-type]

        async def send() -> None:
            link.send(b"head", b"x" * 50_000, b"tail")
            await asyncio.sleep(DEADLINE_S)

        task = asyncio.create_task(send())
        await asyncio.sleep(0)
        task.cancel()
        link.send(b"next")
        await asyncio.gather(task, return_exceptions=True)
        return wire.writes

    sent = b"".join(asyncio.run(run()))
    assert len(sent) == SIZE_BYTES + 50_008 + SIZE_BYTES + 4
    assert sent.endswith(b"tail\x00\x00\x00\x04next")
    drains = {path for path, _ in callers_of("drain")}
    assert drains <= {"quorum/faults/control.py"}, "one line at a time to whoever rehearses"


WALK = """
import hashlib
from tests.unit.raft.walk import Walk
walk = Walk(7, steps=300)
seen = hashlib.sha256()
def note(node, effect):
    seen.update(f"{walk.cluster.now_ms} {node.me.id} {effect}".encode())
    note.before(node, effect)
note.before = walk.cluster.on_effect
walk.cluster.on_effect = note
walk.run()
print(seen.hexdigest())
"""


def test_a5_the_order_of_a_set_decides_nothing() -> None:
    """simloop's own last Raft bug: a set of tasks was iterated, and a seed replayed on one machine
    only. All effects of a history are the same whatever the seed of hashes."""
    found = set()
    for hash_seed in ("0", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", WALK],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=DEADLINE_S,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_a6_a_disk_that_takes_long_does_not_stop_the_loop() -> None:
    """A blocking call on the loop (aiohttp's blockbuster finds them in its tests): everybody waits
    for one fsync. Here the disk waits for something that only the loop can do."""

    async def run() -> str:
        disk, done = OsDisk(), asyncio.Event()
        release = threading.Event()
        answers: list[str | None] = []

        def work() -> str:
            return "released" if release.wait(DEADLINE_S) else "the loop stood still"

        def ended(answer: str | None, error: BaseException | None) -> None:
            answers.append(answer)
            done.set()

        disk.submit(work, ended)
        asyncio.get_running_loop().call_soon(release.set)
        async with asyncio.timeout(2 * DEADLINE_S):
            await done.wait()
        disk.close()
        return str(answers[0])

    assert asyncio.run(run()) == "released"


def test_a7_the_disk_ends_after_the_loop() -> None:
    """A future of an executor that is done after the shutdown raises into a closed loop, or into
    the next loop. The disk's thread reports to no loop after its end, and ends."""
    release, told = threading.Event(), []
    disk = OsDisk()

    async def start() -> None:
        disk.submit(lambda: release.wait(DEADLINE_S), lambda result, error: told.append(error))

    asyncio.run(start())
    release.set()
    disk.close()
    assert told == []
