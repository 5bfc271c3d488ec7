"""Nodes that commands control: the seen effects, the bounds, and the guard of abandoned runs."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.cli.chaos.actions import table
from quorate.cli.chaos.actions.fault_log import FaultLog, OpenFault
from quorate.cli.chaos.actions.node_actions import start_node
from quorate.cli.chaos.actions.scenario_run import StepFailed
from quorate.cli.chaos.control import command_control
from quorate.cli.chaos.control.command_control import CommandControl, run_command
from quorate.cli.chaos.control.command_guard import CommandGuard
from quorate.cli.chaos.loading.node_file import ListedNode, NodeList
from quorate.cli.chaos.run import run as run_module
from quorate.cli.chaos.scenario.scenario import Step
from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.errors import Refused
from quorate.quorum.seams import Address

TOUCH = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
WAIT_S = 20.0


def node(port: int = 1, **commands: list[str]) -> ListedNode:
    """Return a node whose other commands do nothing."""
    nothing = {each: ["true"] for each in ("kill", "stop", "pause", "resume", "start")}
    return ListedNode(
        id=4,
        roles=("broker",),
        address=Address("127.0.0.1", port),
        commands={**nothing, **commands},
    )


def control(found: ListedNode) -> CommandControl:
    """Return the control of one node."""
    listed = NodeList(nodes={found.id: found}, expect={}, command_timeout_ms=10_000)
    return CommandControl(listed, 60_000)


@asynccontextmanager
async def answering(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[bool], None]]:
    """Let every node answer ApiVersions, until the yielded function says otherwise."""
    serves = [True]

    async def answers(address: Address, security: ClientSecurity) -> bool:
        return serves[0]

    monkeypatch.setattr(command_control, "answers", answers)
    monkeypatch.setattr(command_control, "SILENT_S", 0.05)
    yield lambda now: serves.__setitem__(0, now)


async def until(file: Path) -> None:
    """Wait until the file exists."""
    deadline_s = time.monotonic() + WAIT_S
    while not file.exists():  # noqa: ASYNC240 - another process creates it
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.02)


async def test_a_kill_that_does_nothing_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(monkeypatch) as serve:
        controlled = control(node())
        async with controlled.leases():
            ending = await controlled.kill(4)
            assert await ending() == (0, "127.0.0.1:1 still answers after `kill`")
            serve(False)
            assert await ending() == (1, "127.0.0.1:1 does not answer after `kill`")


async def test_a_node_that_is_silent_already_cannot_be_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with answering(monkeypatch) as serve:
        serve(False)
        controlled = control(node())
        async with controlled.leases():
            with pytest.raises(Refused, match="node 4 does not answer at 127"):
                await controlled.kill(4)


async def test_a_pause_that_ended_early_did_not_last(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(monkeypatch) as serve:
        controlled = control(node())
        async with controlled.leases():
            assert (await controlled.pause(4)).affected == 0
            assert controlled.paused == [4]
            assert not await controlled.resume(4)
            assert controlled.paused == []
            serve(True)
            await controlled.pause(4)
            serve(False)
            assert await controlled.resume(4)


async def test_a_node_that_something_else_has_started_was_not_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with answering(monkeypatch) as serve:
        controlled = control(node())
        async with controlled.leases():
            assert not await controlled.start(4)
            serve(False)
            assert await controlled.start(4)


@pytest.mark.parametrize(("was_down", "affected"), [(True, 1), (False, 0)])
async def test_a_kill_has_its_effect_until_the_step_that_starts_the_node(
    was_down: bool, affected: int
) -> None:
    faults = FaultLog()
    faults.begin(
        OpenFault(
            kind="kill", node=4, role="broker", start_ms=0, led=(), affected=1, effect="it ended"
        )
    )
    run = SimpleNamespace(
        control=SimpleNamespace(start=lambda node: asyncio.sleep(0, was_down)),
        faults=faults,
        end_fault=lambda node: faults.end(node, 9),
        note=lambda *said: None,
    )
    await start_node(cast(Any, run), 4)
    (fault,) = faults.ended
    assert fault.affected == affected
    assert fault.effect.endswith("it ran again before the step that starts it") != was_down


async def test_a_node_has_ended_if_its_port_is_closed_after_it_was_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_control, "WATCH_S", 0.01)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    controlled = control(node(server.sockets[0].getsockname()[1]))
    async with controlled.leases():
        await asyncio.sleep(0.1)
        assert controlled.runs(4)
        server.close()
        await server.wait_closed()
        deadline_s = time.monotonic() + WAIT_S
        while controlled.runs(4):
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.02)
        await controlled.start(4)
        await asyncio.sleep(0.1)
        assert controlled.runs(4), "it has not opened its port since its start"


def test_a_command_that_fails_says_why() -> None:
    fails = [sys.executable, "-c", "import sys; sys.exit('no such unit')"]
    with pytest.raises(Refused, match="node 4: kill ended with status 1: no such unit"):
        run_command(node(kill=fails), "kill", 20)


def test_a_command_that_hangs_is_ended() -> None:
    begin_s = time.monotonic()
    with pytest.raises(Refused, match="node 4: stop did not end within 0 s"):
        run_command(node(stop=["sleep", "600"]), "stop", 0.2)
    assert time.monotonic() - begin_s < WAIT_S


def test_a_node_may_keep_the_output_of_its_start_command_open() -> None:
    leaves = ["sh", "-c", "sleep 5 &"]
    begin_s = time.monotonic()
    run_command(node(start=leaves), "start", 20)
    assert time.monotonic() - begin_s < 4


async def slow(*arguments: object) -> bool:
    """Take longer than a step or the end of a fault may take without commands."""
    await asyncio.sleep(0.05)
    return True


@pytest.mark.parametrize(("command_ms", "in_time"), [(0, False), (60_000, True)])
async def test_a_step_may_take_the_time_of_its_command(
    command_ms: int, in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "SLACK_MS", 1)
    monkeypatch.setitem(table.ACTIONS, "kill", slow)
    control = SimpleNamespace(command_ms=command_ms)
    run = cast(Any, SimpleNamespace(node_ids=[4], control=control))
    ended: AbstractContextManager[Any] = nullcontext() if in_time else pytest.raises(StepFailed)
    with ended:
        await table.carry_out(run, Step("kill", {"node": 4}))


@pytest.mark.parametrize(("command_ms", "problems"), [(0, 1), (60_000, 0)])
async def test_the_end_of_a_fault_may_take_the_time_of_its_command(
    command_ms: int, problems: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "FAULT_S", 0.001)
    found: list[str] = []
    run = SimpleNamespace(
        control=SimpleNamespace(command_ms=command_ms, paused=[], start=slow),
        faults=FaultLog(),
        pinned_writer=None,
        died=list,
        down=lambda: [4],
        end_fault=lambda node: None,
        note=lambda *said: None,
        problem=found.append,
    )
    await run_module.end_all_faults(cast(Any, run))
    assert len(found) == problems


def test_the_time_of_the_commands_in_a_file() -> None:
    assert control(node()).command_ms == 10_000


async def test_the_guard_undoes_what_a_killed_run_has_done(tmp_path: Path) -> None:
    guard = CommandGuard(60_000, 10_000)
    guard.start()
    undone, settled = tmp_path / "undone", tmp_path / "settled"
    guard.owe(4, [sys.executable, "-c", TOUCH, str(undone)])
    guard.owe(5, [sys.executable, "-c", TOUCH, str(settled)])
    guard.settle(5)
    assert guard._process is not None
    assert guard._process.stdin is not None
    guard._process.stdin.close()  # as the kernel does if the run is killed
    await until(undone)
    assert guard._process.wait(WAIT_S) == 0
    assert not settled.exists()
    assert guard._process.stdout is not None
    guard._process.stdout.close()


async def test_the_guard_waits_for_a_command_that_outlives_its_run(tmp_path: Path) -> None:
    guard = CommandGuard(60_000, 10_000)
    guard.start()
    done, undone = tmp_path / "done", tmp_path / "undone"
    late = f"import time; time.sleep(0.5); {TOUCH}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", late, str(done))
    guard.began(process.pid)
    guard.owe(4, ["mv", str(done), str(undone)])
    await guard.close()
    await until(undone)
    assert await process.wait() == 0


async def test_the_guard_knows_the_commands_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[dict[str, Any]] = []

    def tell(guard: CommandGuard, each: dict[str, Any]) -> bool:
        said.append(each)
        return True

    monkeypatch.setattr(CommandGuard, "_tell", tell)
    async with answering(monkeypatch):
        await control(node()).kill(4)
        await asyncio.sleep(0)
    owed, began, ended = said
    assert "owed" in owed
    assert began["began"] == ended["ended"] > 0


async def test_the_guard_undoes_it_if_the_lease_expires(tmp_path: Path) -> None:
    guard = CommandGuard(300, 10_000)
    guard.start()
    undone = tmp_path / "undone"
    guard.owe(4, [sys.executable, "-c", TOUCH, str(undone)])
    for _ in range(8):
        await asyncio.sleep(0.1)
        guard.renew()
    assert not undone.exists()
    await until(undone)
    await guard.close()


async def test_no_fault_without_a_guard() -> None:
    guard = CommandGuard(60_000, 10_000)
    guard.start()
    assert guard._process is not None
    guard._process.send_signal(signal.SIGKILL)
    guard._process.wait()
    with pytest.raises(Refused, match="ends the faults of an abandoned run has ended"):
        guard.owe(4, ["true"])
    await guard.close()
