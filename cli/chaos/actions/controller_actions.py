"""The steps that ask controllers directly, at their own listeners, during a fault."""

from __future__ import annotations

import asyncio
import time

from quorate.cli.chaos.actions.controller_question import Place, answer_to, is_active
from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.checks.check import listed
from quorate.cli.chaos.checks.observations import (
    ANSWERED,
    CHANGE,
    NOT_CONTROLLER,
    READ,
    MetadataAnswer,
    Resignation,
)

ASK_S = 0.05
"""Time, in s, between two questions to a controller."""
MAX_ASKED = 10_000
"""The most answers of controllers that a run records."""


async def wait_resigned(run: ScenarioRun, values: Values) -> None:
    """Ask the node, a controller that was active, until it answers that it is not active.

    Record the time since its fault began in `run.resignations`. Clients reach an isolated node, so
    the answers show if it still claims to be the active controller. No answer is none of both.

    Meanwhile also ask it to change metadata and to read it, until it refuses both. `run.asked` has
    these answers."""
    node, within_ms = run.node_named(values["node"]), values["within_ms"]
    fault = run.faults.open.get(node)
    if fault is None:
        raise StepFailed(f"wait-resigned: node {node} has no fault")
    place, answers = await place_of(run, node), 0
    deadline_s = time.monotonic() + within_ms / 1000
    resigned_ms = None
    async with asyncio.TaskGroup() as group:
        for what in (CHANGE, READ):
            group.create_task(ask_until_refused(run, node, what, deadline_s))
        while resigned_ms is None and time.monotonic() < deadline_s:
            said = await asyncio.to_thread(is_active, place)
            answers += said is not None
            if said is False:
                resigned_ms = run.clock.now_ms()
            else:
                await asyncio.sleep(ASK_S)
    run.resignations.append(
        Resignation(node=node, isolated_ms=fault.start_ms, resigned_ms=resigned_ms, answers=answers)
    )
    if resigned_ms is None:
        raise StepFailed(f"not within {within_ms:,} ms: controller {node} resigns")
    run.note(f"answers that it is not active after {resigned_ms - fault.start_ms:,} ms", node)


async def wait_refused(run: ScenarioRun, values: Values) -> None:
    """Ask each controller without a fault to change metadata, until it refuses clearly.

    The answers are in `run.asked`. Raise StepFailed if a controller carries the change out, or if
    one does not answer that it is not the active controller in time."""
    left = [each for each in run.controllers if each not in run.faults.open]
    if not left:
        raise StepFailed("wait-refused: every controller has a fault")
    begin_s, within_ms = time.monotonic(), values["within_ms"]
    while left:
        for node in list(left):
            error = await ask(run, node, CHANGE)
            if error == ANSWERED:
                raise StepFailed(f"controller {node} has carried out a change of metadata")
            if error == NOT_CONTROLLER:
                left.remove(node)
        if left and (time.monotonic() - begin_s) * 1000 > within_ms:
            raise StepFailed(f"not within {within_ms:,} ms: controllers {listed(left)} refuse")
        await asyncio.sleep(ASK_S)
    took_ms = round((time.monotonic() - begin_s) * 1000)
    run.note(f"every controller that runs refuses a change of metadata after {took_ms:,} ms")


async def ask_until_refused(run: ScenarioRun, node: int, what: str, deadline_s: float) -> None:
    """Send a CHANGE or a READ to a controller again and again, until it refuses one clearly."""
    while True:
        if await ask(run, node, what) == NOT_CONTROLLER or time.monotonic() > deadline_s:
            return
        await asyncio.sleep(ASK_S)


async def ask(run: ScenarioRun, node: int, what: str) -> str:
    """Send a CHANGE or a READ to a controller. Record and return the error in its answer.

    Only the first MAX_ASKED answers are recorded."""
    place, sent_ms = await place_of(run, node), run.clock.now_ms()
    error = await asyncio.to_thread(answer_to, what, place, run.brokers.topic)
    if len(run.asked) < MAX_ASKED:
        run.asked.append(MetadataAnswer(node, what, sent_ms, run.clock.now_ms(), error))
    return error


async def place_of(run: ScenarioRun, node: int) -> Place:
    """Return the listener of a controller, with the certificate that it demands."""
    entry = run.local.node(node)
    security = await asyncio.to_thread(run.local.controller_security)
    return Place(entry["host"], entry["port"], security.tls)
