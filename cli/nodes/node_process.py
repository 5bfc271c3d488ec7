"""One node as this process: its injected interfaces, event loop, signals and log lines.

The node itself is the `run` function of its module. SIGTERM and SIGINT request a clean stop: a
controlled shutdown of a broker, or the resignation of a controller. A SIGINT after another SIGINT
or SIGTERM ends the process immediately."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import random
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, cast

from quorate.cli.nodes.cluster_dir import listed
from quorate.cli.nodes.line_limit import LineLimit
from quorate.cli.nodes.log_format import formatter_of
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.quorum.log.disks.disk_failures import explained
from quorate.quorum.node.allocator import (
    merge_freed_at_once,
    return_freed_pages,
    return_large_blocks,
)
from quorate.quorum.node.garbage import keep_collections_short
from quorate.quorum.seams import Address, Seams

RETURN_INTERVAL_S = 30.0
"""The time between two returns of freed memory to the system."""
MIN_OPEN_FILES = 65_536
"""The soft limit of open files that a node asks for. A lower hard limit bounds it."""

logger = logging.getLogger("quorate.server")

Run = Callable[[NodeConfig, Seams, asyncio.Event], Awaitable[None]]


class NodeModule(Protocol):
    """A module that runs a node until its event is set."""

    run: Run


NODE_MODULES = {
    "broker": "quorate.broker.running",
    "controller": "quorate.quorum.node.controller.controller_node",
}

# Modules that every node imports, but only on first use.
PRELOADED = (
    "quorate.quorum.clock",
    "quorate.quorum.log.disks.disk",
    "quorate.quorum.rpc.transport",
    "quorate.quorum.rpc.websocket",
    "quorate.quorum.protocol.schemas.api_versions",
    "quorate.quorum.protocol.schemas.cluster",
    "quorate.quorum.protocol.schemas.configs",
    "quorate.quorum.protocol.schemas.init_producer_id",
    "quorate.quorum.protocol.schemas.list_offsets",
    "quorate.quorum.protocol.schemas.metadata",
    "quorate.quorum.protocol.schemas.topics",
)


def node_module(role: str) -> NodeModule:
    """Import and return the module of a role, "broker" or "controller"."""
    return cast(NodeModule, importlib.import_module(NODE_MODULES[role]))


def preload() -> None:
    """Import all modules that nodes need once, before the nodes are forked."""
    for role in NODE_MODULES:
        node_module(role)
    for name in PRELOADED:
        importlib.import_module(name)
    loop_factory()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of event loops: uvloop's if it is installed, otherwise asyncio's."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop
    return cast(Callable[[], asyncio.AbstractEventLoop], uvloop.new_event_loop)


def run_node(config: NodeConfig, faults: Path | None = None) -> int:
    """Run the node until a signal or an error stops it, and return the exit code of the process.

    The main thread must call it. It also sets the limit of open files, the garbage collector and
    the allocator of this process. If the config names a cluster.json that exists, the node's pid is
    recorded there while the node runs. With `faults`, faults can be injected through a Unix socket
    at that path. Raise Refused if the cluster.json is not valid."""
    raise_open_files()
    keep_collections_short()
    merge_freed_at_once()
    return_large_blocks()
    cluster_file = config["quorate.cluster.file"]
    if cluster_file is None or not Path(cluster_file).exists():
        return run_to_end(config, faults)
    with listed(Path(cluster_file), config.node_id):
        return run_to_end(config, faults)


def run_to_end(config: NodeConfig, faults: Path | None) -> int:
    """Run the node in a new event loop.

    Return 0 after a clean stop, 1 after an error, which is logged."""
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve(config, faults))
    except (ConfigError, OSError) as error:
        logger.error("the node stops: %s", explained(error), extra={"event": "stopped"})
        return 1
    except Exception as error:
        if getattr(error, "for_operator", False):
            logger.error("the node stops: %s", error, extra={"event": "stopped"})
        else:
            logger.exception(
                "the node stops because an invariant is broken", extra={"event": "stopped"}
            )
        return 1
    logger.info("stopped", extra={"event": "stopped"})
    return 0


async def serve(config: NodeConfig, faults: Path | None) -> None:
    """Run the node on this event loop until a signal stops it. Raise the error that ends it."""
    from quorate.quorum.clock import AsyncioClock
    from quorate.quorum.log.disks.disk import OsDisk
    from quorate.quorum.rpc.socket_options import SocketOptions
    from quorate.quorum.rpc.transport import AioTransport

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, on_signal, stop)
    loop.add_signal_handler(signal.SIGINT, on_interrupt, stop)
    transport = AioTransport(config.host_names, SocketOptions.of(config))
    seams = Seams(
        clock=AsyncioClock(), random=random.SystemRandom(), transport=transport, disk=OsDisk()
    )
    async with returning_memory():
        await run_role(config, seams, faults, stop)


@asynccontextmanager
async def returning_memory() -> AsyncIterator[None]:
    """Return freed memory to the system from time to time, in a thread, until the end."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(RETURN_INTERVAL_S)
            await asyncio.to_thread(return_freed_pages)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def run_role(
    config: NodeConfig, seams: Seams, faults: Path | None, stop: asyncio.Event
) -> None:
    """Run the broker or the controller, with injected faults if there is a socket for them."""
    role = "broker" if config.is_broker else "controller"
    roles = ",".join(config.roles)
    started = {"event": "started"}
    logger.info("node %d starts with the roles %s", config.node_id, roles, extra=started)
    if faults is None:
        await node_module(role).run(config, seams, stop)
        return
    from quorate.quorum.faults.control import controlled

    voters = {Address(voter.host, voter.port): voter.id for voter in config.voters}
    async with controlled(seams, faults, voters) as ruled:
        await node_module(role).run(config, ruled, stop)


def on_signal(stop: asyncio.Event) -> None:
    """Request a stop.

    Repeated signals have no effect, because a supervisor and a service manager may both send
    one."""
    if not stop.is_set():
        logger.info("received a signal to stop", extra={"event": "stop-requested"})
        stop.set()


def on_interrupt(stop: asyncio.Event) -> None:
    """Request a stop. If one is already requested, end the process with exit code 1."""
    if stop.is_set():
        logger.warning(
            "received a second interrupt: the node ends without a clean shutdown",
            extra={"event": "stopped"},
        )
        os._exit(1)
    on_signal(stop)


def configure_logging(config: NodeConfig) -> None:
    """Write lines of log.level and above to standard error in the format log.format, with the bound
    of `LineLimit`.

    All other log handlers of the root logger are removed."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter_of(config["log.format"], config.node_id, config.roles))
    handler.addFilter(LineLimit())
    logging.basicConfig(level=config["log.level"], handlers=[handler], force=True)


def raise_open_files() -> None:
    """Raise the soft limit of open files to MIN_OPEN_FILES, as far as the hard limit allows.

    It is often 1,024, and a broker holds many segments open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MIN_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MIN_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def assert_forkable() -> None:
    """Assert that this process has one thread.

    A fork copies only the calling thread, so nodes are forked before any other thread exists."""
    assert threading.active_count() == 1, f"threads before fork: {threading.enumerate()}"
