"""The actions of scenarios: one coroutine for each kind of step. `ACTIONS` is the table.

An action gets the state of the run and the values of its step. `STEPS` in `scenario/steps.py`
defines the keys of these values. The key `node` holds an id or a role, which
`ScenarioRun.node_named` resolves. That node becomes the run's victim, so that a later step can name
it as `victim`.

Only `wait` and `wait-lasted` wait for a fixed time. The other actions wait for an event, if they
wait at all: a record in the metadata log, a result of the clients, a response, or the end of a
process. An action with the key `within_ms`, which has a default in `STEPS`, raises StepFailed if a
wait takes longer.
`carry_out` bounds the time of every action."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quorate.cli.chaos.actions import (
    client_actions,
    controller_actions,
    link_actions,
    node_actions,
    reassign_actions,
    wait_actions,
)
from quorate.cli.chaos.actions.rule_actions import FAULTS, injection
from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.scenario.scenario import Step
from quorate.cli.chaos.scenario.steps import STEPS

Action = Callable[[ScenarioRun, Values], Awaitable[None]]
SLACK_MS = 60_000
"""The time, in ms, that a step may take in addition to the waits that its keys bound, and to
the commands of a nodes.toml."""
WAITS_PER_NODE = 3
"""The waits of `roll` for each node, each of which `within_ms` bounds."""
COMMANDS_PER_NODE = 2
"""The most commands of one step for each node: `roll` stops and starts them all."""

ACTIONS: dict[str, Action] = {
    "kill": node_actions.kill,
    "start": node_actions.start,
    "stop": node_actions.stop,
    "roll": node_actions.roll,
    "kill-rack": node_actions.kill_rack,
    "kill-all": node_actions.kill_all,
    "start-all": node_actions.start_all,
    "pause": node_actions.pause,
    "resume": node_actions.resume,
    "mute-heartbeats": link_actions.mute_heartbeats,
    "cut-controllers": link_actions.cut_controllers,
    "hold-fetches": link_actions.hold_fetches,
    "isolate": link_actions.isolate,
    "cut-one-way": link_actions.cut_one_way,
    **{do: injection(do) for do in FAULTS},
    "heal": link_actions.heal,
    "reassign": reassign_actions.reassign,
    "wait-reassigned": reassign_actions.wait_reassigned,
    "pin-writer": client_actions.pin_writer,
    "unpin-writer": client_actions.unpin_writer,
    "wait": wait_actions.wait,
    "wait-lasted": wait_actions.wait_lasted,
    "wait-fenced": wait_actions.wait_fenced,
    "wait-stopped": node_actions.wait_stopped,
    "wait-isr-shrunk": wait_actions.wait_isr_shrunk,
    "wait-controller": wait_actions.wait_controller,
    "wait-resigned": controller_actions.wait_resigned,
    "wait-refused": controller_actions.wait_refused,
    "wait-caught-up": wait_actions.wait_caught_up,
    "wait-written": wait_actions.wait_written,
    "wait-in-sync": wait_actions.wait_in_sync,
    "write-metadata": wait_actions.write_metadata,
}
assert ACTIONS.keys() == STEPS.keys()


async def carry_out(run: ScenarioRun, step: Step) -> None:
    """Carry out one step, in `limit_ms` at most.

    Raise StepFailed, Refused, NotReachable or another error of the action if it fails."""
    limit = limit_ms(step, len(run.node_ids), run.control.command_ms)
    try:
        async with asyncio.timeout(limit / 1000):
            await ACTIONS[step.do](run, step.values)
    except TimeoutError:
        raise StepFailed(f"the step did not end within {limit:,} ms") from None


def limit_ms(step: Step, nodes: int, command_ms: int) -> int:
    """Return the time, in ms, in which the step must end on a cluster with `nodes` nodes.

    A command for a node takes `command_ms` at most."""
    bound: int = step.values.get("within_ms", step.values.get("ms", 0))
    rounds = nodes * WAITS_PER_NODE if step.do == "roll" else 1
    commands = 1 if "node" in step.values else nodes * COMMANDS_PER_NODE
    return bound * rounds + commands * command_ms + SLACK_MS
