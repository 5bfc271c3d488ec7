"""The reasons why a broker is not ready. Clients should use a broker only if it is ready.

A ready broker is registered, is in the state RUNNING, and has replayed its own registration. In its
image it is not fenced, and no other process has registered as this broker. A broker without a link
to the controllers cannot see that it was fenced. It is therefore not ready if no controller has
answered a heartbeat for `broker.session.timeout.ms`.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.broker.controller.lifecycle import BrokerLifecycle, State
from quorate.quorum.node.node_core import NodeCore


def broker_reasons(
    core: NodeCore, lifecycle: BrokerLifecycle | None, unopened: int
) -> Iterator[str]:
    """Yield the reasons why the broker is not ready, each as a text for people. Yield nothing if it
    is ready.

    `lifecycle` is None before the broker's start. `unopened` is the number of partitions whose logs
    are not open yet. If it is not 0, the reason for a state other than RUNNING contains it. The
    number alone is no reason."""
    if lifecycle is None or lifecycle.broker_epoch < 0:
        yield "the broker is not registered yet"
        return
    if lifecycle.state is not State.RUNNING:
        waits = f", logs left to open: {unopened}" if unopened else ""
        yield f"the broker is {lifecycle.state.value}{waits}"
    broker = core.image.brokers.get(core.me.id)
    if broker is None or broker.epoch < lifecycle.broker_epoch:
        yield "the broker has not replayed its own registration yet"
    elif broker.epoch > lifecycle.broker_epoch:
        yield "another process has registered as this broker"
    elif broker.fenced:
        yield "the broker is fenced"
    silent_ms = core.seams.clock.now_ms() - lifecycle.heard_ms
    timeout_ms = core.config["broker.session.timeout.ms"]
    if lifecycle.state is State.RUNNING and silent_ms > timeout_ms:
        yield (
            f"no controller has answered a heartbeat for {silent_ms} ms "
            f"(broker.session.timeout.ms is {timeout_ms}): it may be fenced"
        )
