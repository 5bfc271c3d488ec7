"""`quorate console`: the address, the token, and the life of the server."""

from __future__ import annotations

import asyncio
import errno
import secrets
import signal
from functools import partial
from pathlib import Path

import click
from aiohttp import web

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import admin_settings, cluster_options
from quorate.cli.console.access.connections import listening_on
from quorate.cli.console.actions.routes import Actions
from quorate.cli.console.chaos_runs import ChaosRuns
from quorate.cli.console.past import Past
from quorate.cli.console.server import ConsoleServer, Extra
from quorate.cli.console.watcher import Watcher
from quorate.cli.nodes.lifeline import lifeline_of_stdin, watch_lifeline
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.status.outage import named_controllers
from quorate.cli.terminal.safe_text import echo
from quorate.config.listeners import is_loopback

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 5.0
"""The default time limit of one request to the cluster. A node that hangs costs this time once."""


@click.command(cls=StrictCommand)
@cluster_options()
@click.option(
    "--bootstrap-controller",
    metavar="HOST:PORT,...",
    help="Controllers to ask if no broker answers. [default: those that the brokers name]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8787,
    show_default=True,
    help="The port of the page. 0: a free port.",
)
@click.option(
    "--listen",
    metavar="HOST",
    help="Listen on this address, also if other machines can reach it. [default: 127.0.0.1]",
)
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Let the page create and delete topics, move replicas, and elect leaders.",
)
@click.option(
    "--metadata-dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Show earlier states from the metadata log of a node or a local cluster in DIR.",
)
@click.option(
    "--chaos-progress",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also show the run of `quorate chaos` that writes its --progress into this file.",
)
@click.option("--until-eof", is_flag=True, help="End when standard input ends.")
def console(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    port: int,
    listen: str | None,
    allow_actions: bool,
    metadata_dir: Path | None,
    chaos_progress: Path | None,
    until_eof: bool,
) -> None:
    """Show a running cluster in the browser: quorum, brokers, topics, partitions, groups and lags.

    The command prints the address of the page, which contains a random token, and serves it until
    Ctrl-C. The page shows the cluster as it changes, the worst first. It needs no other site.
    If no broker answers, the page shows the quorum and the brokers as the controllers know them.

    With --metadata-dir, a slider shows the cluster as it was at any offset of the metadata log. The
    directory is a node's log directory on this machine, or that of `quorate up`.

    The page is read-only. With --allow-actions it can change the cluster, with the permissions of
    the user in --command-config, and the command prints a line for each action.

    The page is plain HTTP. Without --listen only this machine can reach it. From another machine,
    use `ssh -L`."""
    settings = admin_settings(bootstrap_server, None, command_config, timeout_s or TIMEOUT_S)
    known = named_controllers(bootstrap_controller)
    host = listen or LOOPBACK
    log = partial(echo, err=True)
    if not is_loopback(host):
        log(warning_of(host, allow_actions))

    lifeline = lifeline_of_stdin() if until_eof else None

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        watcher = Watcher(settings, lambda: _wake(loop, server), known=known)
        token = secrets.token_urlsafe(24)
        extras: list[Extra] = [Actions(lambda: watcher.settings, log)] if allow_actions else []
        if chaos_progress is not None:
            extras.append(ChaosRuns(chaos_progress))
        past = Past(metadata_dir)
        server = ConsoleServer(lambda: watcher.current, watcher.look, host, token, past, extras)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        if lifeline is not None:
            loop.add_reader(lifeline, watch_lifeline, lifeline, loop, stop, log)
        runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            assert runner.server is not None
            try:
                listening = await listening_on(runner.server, host, port)
            except OSError as error:
                raise Refused(
                    f"cannot listen on {host} port {port}: {error.strerror}. Choose another "
                    f"{'--port' if error.errno == errno.EADDRINUSE else '--listen or --port'}"
                ) from None
            used = listening.sockets[0].getsockname()[1]
            watcher.start()
            echo(f"console at http://{_in_url(host)}:{used}/#token={token}")
            await stop.wait()
            listening.close()
        finally:
            watcher.stop()
            await runner.cleanup()

    asyncio.run(serve())


def warning_of(host: str, allow_actions: bool) -> str:
    """Return the warning about an address that other machines reach."""
    may = "see and change" if allow_actions else "see"
    return (
        f"Warning: other machines may reach {host}. Their readers can {may} the cluster if they "
        "have the token, which crosses the network unencrypted."
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _wake(loop: asyncio.AbstractEventLoop, server: ConsoleServer) -> None:
    """Let the event loop wake the pages, unless it is closed. Any thread may call this."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(server.changed)
