"""The steps that start and stop the producer that writes to one broker only."""

from __future__ import annotations

from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.checks.pinned_client import Pinned, Refusal
from quorate.cli.chaos.timeline.timeline import partitions_text
from quorate.cli.chaos.workload.writer import PinnedWriter


async def pin_writer(run: ScenarioRun, values: Values) -> None:
    """Start a producer that writes only to this broker, to the partitions that it leads now.

    The producer runs until `unpin_writer`. Raise StepFailed if such a producer runs already or the
    broker leads nothing, and NoProducerId if no broker assigns a producer id within ten request
    timeouts of the clients."""
    if run.pinned_writer is not None:
        raise StepFailed("pin-writer: a pinned writer runs already; use unpin-writer first")
    node = run.node_named(values["node"])
    led = run.states.led_by(node)
    if not led:
        raise StepFailed(f"pin-writer: node {node} leads no partition of the topic")
    brokers = run.make_brokers()
    writer = PinnedWriter(
        brokers=brokers,
        ledger=run.ledger,
        pace=run.writer.pace,
        timeout_ms=run.writer.timeout_ms,
        acks=run.writer.acks,
        node_id=node,
    )
    try:
        await brokers.refresh()
        await writer.start(led)
    except BaseException:
        brokers.close()
        raise
    run.pinned_writer = writer
    run.pinned.append(Pinned(node=node, from_ms=run.clock.now_ms()))
    run.note(f"a client writes only to it, for {partitions_text(led)}", node)


async def unpin_writer(run: ScenarioRun, values: Values) -> None:
    """Stop the producer of `pin_writer`, and record its results in the last entry of `run.pinned`.

    Raise StepFailed if no such producer runs."""
    writer, run.pinned_writer = run.pinned_writer, None
    if writer is None:
        raise StepFailed("unpin-writer: no pinned writer runs; use pin-writer first")
    try:
        await writer.stop(writer.timeout_ms * 2 / 1000)
    finally:
        writer.brokers.close()
    pinned = run.pinned[-1]
    pinned.until_ms = run.clock.now_ms()
    pinned.refused = writer.refused
    pinned.refusals = [
        Refusal(partition, run.clock.ms(sent_s), name)
        for partition, sent_s, name in writer.refusals
    ]
    pinned.successes = [(each.partition, run.clock.ms(each.sent_s)) for each in writer.successes]
    pinned.acknowledged = len(writer.successes) * writer.pace.records
    errors = ", ".join(f"{count:,} x {name}" for name, count in sorted(writer.refused.items()))
    run.note(f"the client that wrote only to it ends; errors: {errors or 'nothing'}", pinned.node)
