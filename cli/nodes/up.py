"""`quorate up`: a whole cluster on this machine, kept in one directory."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import traceback
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click

from quorate.cli.client.client_properties import client_security
from quorate.cli.client.errors import PARTLY, NotReachable, Refused
from quorate.cli.client.options import command_config_option, read_client_config
from quorate.cli.nodes.cluster_dir import (
    HOST,
    ClusterDir,
    Shape,
    addresses,
    private,
    write_private,
)
from quorate.cli.nodes.cluster_processes import directory_option, running_nodes, supervisor_of
from quorate.cli.nodes.console_process import DEFAULT_PORT, ConsoleProcess
from quorate.cli.nodes.lifeline import lifeline_of_stdin, watch_lifeline
from quorate.cli.nodes.ports_in_use import require_free
from quorate.cli.nodes.preparation import ports_of, prepare
from quorate.cli.nodes.readiness import Readiness
from quorate.cli.nodes.secured_up import is_secured, secured_dir, ways_to_connect
from quorate.cli.nodes.server import level_override, log_level_option, pair_of
from quorate.cli.nodes.supervisor import Supervisor, run_loop
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo

READY_TIMEOUT_S = 60.0
STARTING = "starting the cluster"
READY_POLL_S = 0.03


@click.command(cls=StrictCommand)
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
@click.option(
    "--console",
    "console_port",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=DEFAULT_PORT,
    metavar="[PORT]",
    help=f"Also serve `quorate console`, on port {DEFAULT_PORT} or on this one. 0: a free port.",
)
@click.option(
    "--allow-actions",
    is_flag=True,
    help="With --console: let the page create and delete topics, move replicas and elect leaders.",
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
@click.option(
    "--secure",
    is_flag=True,
    help="Use TLS everywhere, logins of clients, and ACLs. A new cluster gets an authority, its "
    "certificates, an admin user, and files for clients.",
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
    console_port: int | None,
    allow_actions: bool,
    restart: bool,
    faults: bool,
    until_eof: bool,
    overrides: tuple[str, ...],
    secure: bool,
    command_config: str | None,
    log_level: str | None,
) -> None:
    """Run a cluster on this machine, one process per node.

    The first `up` formats the directory. A later `up` runs the same cluster again. The command
    prints `ready HOST:PORT,...` when every broker is unfenced, and then the address of --console.
    It asks the brokers as a client does, so it needs --command-config if they demand TLS or SASL.
    Ctrl-C or `quorate down` stops the cluster cleanly.

    If a minority of the controllers refuses to start, the others run. Each one that refuses is
    listed with its reason, and the exit code is 4."""
    if allow_actions and console_port is None:
        raise click.UsageError("--allow-actions needs --console")
    directory = ClusterDir(Path(root))
    shape = Shape(
        controllers=controllers,
        brokers=brokers,
        racks=racks,
        port=port,
        overrides=tuple(pair_of(each) for each in (*overrides, *level_override(log_level))),
    )
    if secure:
        if command_config is not None:
            raise click.UsageError("--secure has its own file for --command-config")
        files = secured_dir(directory, shape)
        shape = replace(shape, secured=files)
        command_config = str(files.java)
    elif command_config is None and is_secured(directory.root):
        raise Refused(f"{directory.root} was created with --secure: give it again")
    security = client_security(read_client_config(command_config))
    explicit = explicit_options(context)
    refuse_if_running(directory)
    running = running_nodes(directory)
    if port and not directory.node_ids():
        require_free({(HOST, each): "the new cluster" for each in directory.ports(shape)})
    configs = prepare(directory, shape, explicit, security.protocol)
    require_free(ports_of(configs, running))
    if console_port:
        require_free({(HOST, console_port): "the console"}, option="--console")
    entries = (entry := directory.read())["brokers"]
    readiness = Readiness({each["id"]: (each["host"], each["port"]) for each in entries}, security)
    supervisor = Supervisor(directory, configs, say, restart, faults)
    lifeline = lifeline_of_stdin() if until_eof else None
    bootstrap, console = addresses(entries), None
    if console_port is not None:
        console = ConsoleProcess(
            bootstrap, command_config, console_port, directory.root, say, actions=allow_actions
        )
    if shape.secured is not None:
        for line in ways_to_connect(shape.secured, bootstrap, entry["bootstrap_controllers"]):
            say(line)
    if detach:
        sys.exit(detached(supervisor, readiness, lifeline, console))
    sys.exit(supervise(supervisor, readiness, sys.stdout.fileno(), lifeline, console))


def explicit_options(context: click.Context) -> set[str]:
    """Return the options about the shape of the cluster that the command line gives."""
    return {
        name
        for name in ("controllers", "brokers", "port", "racks")
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
    }


def refuse_if_running(directory: ClusterDir) -> None:
    """Raise Refused if the cluster has a supervisor that runs.

    Nodes that run without a supervisor are not noticed. Their locks refuse the new processes."""
    supervisor = supervisor_of(directory)
    if supervisor is not None:
        raise Refused(
            f"{directory.root}: the cluster runs already, pid {supervisor}; `quorate down --dir "
            f"{directory.root}` stops it"
        )


def detached(
    supervisor: Supervisor,
    readiness: Readiness,
    lifeline: int | None = None,
    console: ConsoleProcess | None = None,
) -> int:
    """Supervise in a new session, and return the exit code once the cluster is ready.

    `readiness`, `lifeline` and `console` are those of `supervise`.

    The exit code is 0, or PARTLY if a node has ended. Print the `ready` line, the line of the
    console, and a line for each node that ended. If the cluster does not get ready, raise
    NotReachable with the last line of up.log."""
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
            status = supervise(supervisor, readiness, writing, lifeline, console)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as lines, waiting_for(STARTING):
        text = lines.read()
    ready, *failures = text.splitlines() or [""]
    if ready.startswith("ready "):
        echo(ready)
        if console is not None:
            echo(failures.pop(0))
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
    echo(line, err=True)


def supervise(
    supervisor: Supervisor,
    readiness: Readiness,
    output: int,
    lifeline: int | None = None,
    console: ConsoleProcess | None = None,
) -> int:
    """Start the nodes, write the `ready` line to `output`, and run until a signal stops them.

    `readiness` is the check after which the line is written. The end of the file descriptor
    `lifeline` also stops the nodes (`lifeline.py`). If the cluster does not get ready, stop the
    nodes. The `console` starts when the cluster is ready, writes its line to `output`, and ends
    after the nodes. `output` is standard output, or a pipe. A pipe also gets a line for each node
    that ended, and is closed then. Return the exit code: 0, 3 if the cluster did not get ready, or
    PARTLY if a node had ended when it got ready."""
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
        # With --detach the process that waits for the line shows the progress.
        with waiting_for(STARTING) if output <= 2 else nullcontext():
            is_ready = await wait_ready(supervisor, readiness, stop)
        if is_ready:
            bootstrap = addresses(directory.read()["brokers"])
            lines = [f"ready {bootstrap}"]
            if console is not None:
                lines.append(await console.start())
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
        if console is not None:
            await console.stop()

    try:
        supervisor.start()
        run_loop(main)
    finally:
        directory.supervisor_file.unlink(missing_ok=True)
    return status
