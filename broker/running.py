"""Runs a broker process, with a controller in the same process if `process.roles` has both."""

from __future__ import annotations

import asyncio
from functools import partial

from quorate.broker.node import BrokerNode
from quorate.config.node_config import NodeConfig
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.node.unhandled import on_unhandled
from quorate.quorum.seams import Seams


async def run(config: NodeConfig, seams: Seams, stop: asyncio.Event) -> None:
    """Run a broker until `stop` is set, with a controller in the same process if `process.roles`
    has both. SIGHUP lets the broker read the certificates of its listeners again. When `stop` is
    set, stop in a controlled way (`BrokerNode.stop`). If the node fails, set `stop`, close without
    the controlled stop, and raise the error that made it fail."""
    failure: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failure.append(error)
        stop.set()

    core = NodeCore(config, seams, failed)
    controller = ControllerNode(core) if config.is_controller else None
    broker = BrokerNode(core)
    asyncio.get_running_loop().set_exception_handler(partial(on_unhandled, core))
    core.tls.reload_on_hangup()
    try:
        if controller is not None:
            await controller.start()
        await broker.start()
        core.start()
        core.http_endpoints.measures.loop_lag.start()
        await stop.wait()
        if not failure:
            await broker.stop()
        if not failure and controller is not None:
            await controller.stop()
    finally:
        core.http_endpoints.measures.loop_lag.close()
        core.close()
        await broker.close()
        if controller is not None:
            await controller.close()
    if failure:
        raise failure[0]
    core.release()
