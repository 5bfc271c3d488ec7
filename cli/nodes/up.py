"""`quorate up`: a whole cluster on this machine, kept in one directory."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from quorate.cli.client.client_properties import client_security
from quorate.cli.client.errors import PARTLY, NotReachable, Refused
from quorate.cli.client.options import command_config_option, read_client_config
from quorate.cli.nodes.client_protocol import refuse_other_protocol
from quorate.cli.nodes.cluster_dir import (
    HOST,
    ClusterDir,
    Shape,
    addresses,
    private,
    write_private,
)
from quorate.cli.nodes.cluster_processes import directory_option, running_nodes, supervisor_of
from quorate.cli.nodes.lifeline import lifeline_of_stdin, watch_lifeline
from quorate.cli.nodes.ports_in_use import require_free
from quorate.cli.nodes.readiness import Readiness
from quorate.cli.nodes.server import level_override, load_config, log_level_option, pair_of
from quorate.cli.nodes.supervisor import Supervisor, run_loop
from quorate.config.listeners import PLAINTEXT
from quorate.config.node_config import NodeConfig

READY_TIMEOUT_S = 60.0
READY_POLL_S = 0.03
REMEDY = "Give --command-config a file with this security.protocol and its settings"


@click.command()
@directory_option
@click.option(
    "--controllers",
    type=click.IntRange(1, 9),
    default=3,
    show_default=True,
    help="Number of controllers of a new cluster.",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Number of brokers of a new cluster.",
)
@click.option(
    "--racks",
    type=click.IntRange(0, 100),
    default=0,
    help="Spread the brokers of a new cluster over so many racks (broker.rack). [default: no rack]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65000),
    default=9092,
    show_default=True,
    help="The first port. Brokers get the first ports, controllers the next ones. 0: free ports.",
)
@click.option(
    "--detach", is_flag=True, help="Return when the cluster is ready. `quorate down` stops it."
)
@click.option("--restart", is_flag=True, help="Restart a node that ends by itself.")
@click.option(
    "--faults", is_flag=True, help="Let `quorate chaos` cut links and drop messages of the nodes."
)
@click.option("--until-eof", is_flag=True, help="Stop the cluster when standard input ends.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key on every node. May be repeated.",
)
@command_config_option
@log_level_option
@click.pass_context
def up(
    context: click.Context,
    root: str,
    controllers: int,
    brokers: int,
    racks: int,
    port: int,
    detach: bool,
    restart: bool,
    faults: bool,
    until_eof: bool,
    overrides: tuple[str, ...],
    command_config: str | None,
    log_level: str | None,
) -> None:
    """Run a cluster on this machine, one process per node.

    The first `up` formats the directory. A later `up` runs the same cluster again. The command
    prints `ready HOST:PORT,...` when every broker is unfenced. It asks the brokers as a client
    does, so it needs --command-config if they demand TLS or SASL. Ctrl-C or `quorate down` stops
    the cluster cleanly.

    If a minority of the controllers refuses to start, the others run. Each one that refuses is
    listed with its reason, and the exit code is 4."""
    directory = ClusterDir(Path(root))
    security = client_security(read_client_config(command_config))
    shape = Shape(
        controllers=controllers,
        brokers=brokers,
        racks=racks,
        port=port,
        overrides=tuple(pair_of(each) for each in (*overrides, *level_override(log_level))),
    )
    explicit = {
        name
        for name in ("controllers", "brokers", "port")
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
    }
    refuse_if_running(directory)
    running = running_nodes(directory)
    if port and not directory.node_ids():
        users = {(HOST, each): "the new cluster" for each in directory.ports(shape)}
        require_free(users)
    configs = prepare(directory, shape, explicit, security.protocol)
    require_free(ports_of(configs, running))
    entries = directory.read()["brokers"]
    readiness = Readiness({each["id"]: (each["host"], each["port"]) for each in entries}, security)
    supervisor = Supervisor(directory, configs, say, restart, faults)
    lifeline = lifeline_of_stdin() if until_eof else None
    if detach:
        sys.exit(detached(supervisor, readiness, lifeline))
    sys.exit(supervise(supervisor, readiness, sys.stdout.fileno(), lifeline))


def ports_of(configs: Sequence[NodeConfig], running: set[int]) -> dict[tuple[str, int], str]:
    """Return the user of each port that the nodes need, without those that run already."""
    found = {}
    for config in configs:
        listeners = config.listeners
        replication = (listeners.replication,) if listeners.replication else ()
        for each in (*listeners.client, *listeners.controller, *replication):
            if each.port and config.node_id not in running:
                found[each.host, each.port] = f"{config.roles[0]} {config.node_id}"
    return found


def refuse_if_running(directory: ClusterDir) -> None:
    """Raise Refused if the cluster has a supervisor that runs.

    Nodes that run without a supervisor are not noticed. Their locks refuse the new processes."""
    supervisor = supervisor_of(directory)
    if supervisor is not None:
        raise Refused(
            f"{directory.root}the cluster runs already, pid {supervisor}; `quorate down --dir "
            f"{directory.root}` stops it"
        )


def prepare(
    directory: ClusterDir, shape: Shape, explicit: set[str], protocol: str = PLAINTEXT
) -> list[NodeConfig]:
    """Return the configs of the nodes, whose files are created and formatted on first use.

    Overrides are written to the files of existing nodes, even if the call then fails. cluster.json
    is written again. `explicit` names the fields of `shape` that the user has given. `protocol` is
    the security protocol of this command's connections to the brokers. Raise Refused if a config is
    invalid, if a number of nodes in `explicit` contradicts the existing cluster, if the brokers'
    listeners have another protocol, or as `format_nodes` does."""
    node_ids = directory.node_ids()
    if not node_ids:
        directory.create(shape)
        node_ids = directory.node_ids()
    elif shape.overrides:
        for node_id in node_ids:
            directory.override(node_id, dict(shape.overrides))
    configs = [load_config(str(directory.node_file(node_id))) for node_id in node_ids]
    refuse_other_shape(directory, configs, shape, explicit)
    refuse_other_protocol(configs, protocol, REMEDY)
    cluster_id = format_nodes(configs)
    directory.write(cluster_id, configs)
    return configs


def refuse_other_shape(
    directory: ClusterDir, configs: Sequence[NodeConfig], shape: Shape, explicit: set[str]
) -> None:
    """Raise Refused if an explicit number of nodes differs from the directory's.

    An explicit port is not compared."""
    have = {
        "controllers": sum(config.is_controller for config in configs),
        "brokers": sum(config.is_broker for config in configs),
    }
    for name, count in have.items():
        wanted = getattr(shape, name)
        if name in explicit and wanted != count:
            raise Refused(
                f"--{name}: value {wanted} must be {count}: {directory.root} has that many; "
                "choose another --dir for another cluster"
            )


def format_nodes(configs: Sequence[NodeConfig]) -> str:
    """Format the directories that are not formatted, and return the cluster id.

    The cluster id is that of the formatted directories. If none is formatted, it is that of the
    first config, or a random one. A directory with a defect is left to its node, which refuses to
    start. Raise Refused if one has a defect and no other one holds the cluster id, or if formatting
    fails."""
    import random

    from quorate.quorum.ids import random_uuid, uuid_to_text
    from quorate.quorum.log.disk import OsDisk
    from quorate.quorum.node.meta_properties import MetaProperties, StorageError, read_meta
    from quorate.quorum.offline.storage_format import format_directory

    disk = OsDisk()
    chance = random.SystemRandom()
    try:
        metas: list[MetaProperties | StorageError | None] = []
        for config in configs:
            try:
                metas.append(read_meta(disk, config.log_dir))
            except StorageError as error:  # that node refuses to start and reports the error itself
                metas.append(error)
        known = next((each.cluster_id for each in metas if isinstance(each, MetaProperties)), None)
        for each in metas:
            if known is None and isinstance(each, StorageError):
                raise each
        cluster_id = known or configs[0].cluster_id or uuid_to_text(random_uuid(chance))
        for config, meta in zip(configs, metas, strict=True):
            if meta is None:
                format_directory(
                    disk,
                    config,
                    cluster_id=cluster_id,
                    directory_id=random_uuid(chance),
                    wall_ms=int(time.time() * 1000),
                )
    except StorageError as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    return cluster_id


def detached(supervisor: Supervisor, readiness: Readiness, lifeline: int | None = None) -> int:
    """Supervise in a new session, and return the exit code once the cluster is ready.

    `readiness` and `lifeline` are those of `supervise`.

    The exit code is 0, or PARTLY if a node has ended. Print the `ready` line and a line for each
    node that ended. If the cluster does not get ready, raise NotReachable with the last line of
    up.log."""
    directory = supervisor.directory
    reading, writing = os.pipe()
    sys.stdout.flush()
    if os.fork() == 0:
        status = 1
        try:
            os.setsid()
            os.close(reading)
            null = os.open(os.devnull, os.O_RDWR)
            log = private(directory.root / "up.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.dup2(null, 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            status = supervise(supervisor, readiness, writing, lifeline)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as lines:
        text = lines.read()
    ready, *failures = text.splitlines() or [""]
    if ready.startswith("ready "):
        click.echo(ready)
        for line in failures:
            say(f"{line}; the other nodes run")
        return PARTLY if failures else 0
    said = (directory.root / "up.log").read_text().strip().splitlines()
    raise NotReachable(
        "the cluster is not ready: " + (said[-1] if said else "the supervisor ended")
    )


async def wait_ready(supervisor: Supervisor, readiness: Readiness, stop: asyncio.Event) -> bool:
    """Wait until every broker is ready, and return True.

    Return False if `stop` is set, after READY_TIMEOUT_S, or if a broker refuses the connection of
    `readiness`. Without `restart` of the supervisor also return False if a broker ended, or so many
    controllers that no majority is left."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            if await asyncio.to_thread(readiness.poll):
                return True
        except Refused as refused:
            say(refused.message)
            return False
        if stop.is_set():
            return False
        if not supervisor.serves_clients and not supervisor.restart:
            break
        await asyncio.sleep(READY_POLL_S)
    if supervisor.serves_clients:
        waiting = ", ".join(map(str, readiness.waits_for()))
        say(
            f"not ready within {READY_TIMEOUT_S:.0f} s: brokers {waiting} do not see all "
            "brokers unfenced"
        )
    return False


def say(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr, flush=True)


def supervise(
    supervisor: Supervisor, readiness: Readiness, output: int, lifeline: int | None = None
) -> int:
    """Start the nodes, write the `ready` line to `output`, and run until a signal stops them.

    `readiness` is the check after which the line is written. The end of the file descriptor
    `lifeline` also stops the nodes (`lifeline.py`). If the cluster does not get ready, stop the
    nodes. `output` is standard output, or a pipe. A pipe also gets a line for each node that ended,
    and is closed then. Return the exit code: 0, 3 if the cluster did not get ready, or PARTLY if a
    node had ended when it got ready."""
    directory = supervisor.directory
    write_private(directory.supervisor_file, f"{os.getpid()}\n")
    status = 0

    async def main() -> None:
        nonlocal status
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        if lifeline is not None:
            loop.add_reader(lifeline, watch_lifeline, lifeline, loop, stop, say)
        watching = loop.create_task(supervisor.watch(stop))
        if await wait_ready(supervisor, readiness, stop):
            bootstrap = addresses(directory.read()["brokers"])
            lines = [f"ready {bootstrap}"]
            if supervisor.failures:
                status = PARTLY
                lines += supervisor.failures.values() if output > 2 else ()
            os.write(output, "".join(f"{line}\n" for line in lines).encode())
        elif not stop.is_set():
            status = 3
            stop.set()
        if output > 2:
            os.close(output)
        await watching

    try:
        supervisor.start()
        run_loop(main)
    finally:
        directory.supervisor_file.unlink(missing_ok=True)
    return status
