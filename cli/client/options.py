"""The options of every command that talks to a cluster, and the Admin built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.client_properties import client_security
from quorate.cli.client.errors import Refused, said_once
from quorate.cli.terminal.progress import Background
from quorate.config import properties
from quorate.config.key import ConfigError
from quorate.config.listeners import parse_servers

ABSENT_S = 5.0
"""The time, in s, for which a command repeats its first attempt if every address refuses
connections or does not resolve. A cluster that starts at the same time needs about that long."""
F = TypeVar("F", bound=Callable[..., Any])
MAX_FILE_BYTES = 4 << 20
"""The maximum size of the file of --command-config, as of a node's file."""
MAX_TIMEOUT_S = 86_400
"""The longest timeout of a command: a day. Requests carry it in ms, in 32 bits."""

format_option = click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the output.",
)

command_config_option = click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False),
    help="A .properties file with client settings, such as security.protocol.",
)


def cluster_options(*, controllers: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the cluster options to a command.

    The options are --bootstrap-server, --command-config and --timeout. With `controllers` there is
    also --bootstrap-controller."""

    def decorated(command: F) -> F:
        command = click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(0, MAX_TIMEOUT_S, min_open=True),
            default=None,
            help="Time limit of each request with its retries, in seconds. If nothing listens at "
            "the addresses, the command ends after 5 s. [default: default.api.timeout.ms of "
            "--command-config, or 30]",
        )(command)
        command = command_config_option(command)
        if controllers:
            command = click.option(
                "--bootstrap-controller",
                metavar="HOST:PORT,...",
                help="Controllers to connect to first.",
            )(command)
        return click.option(
            "--bootstrap-server", "-b", metavar="HOST:PORT,...", help="Brokers to connect to first."
        )(command)

    return decorated


@contextmanager
def connected(
    *,
    bootstrap_server: str | None,
    bootstrap_controller: str | None = None,
    command_config: str | None = None,
    timeout_s: float | None = None,
    impatient: bool = False,
    shows_waiting: bool = True,
) -> Iterator[Admin]:
    """Yield an Admin with these options, and close it at the end of the block.

    Raise UsageError or Refused for invalid options (`admin_settings`). Nothing is connected yet.
    If `impatient`, a search for a server makes one attempt (`AdminSettings`). If a command takes
    long, standard error shows that it waits, unless `shows_waiting` is False because the command
    waits without an end or shows more itself."""
    settings = admin_settings(bootstrap_server, bootstrap_controller, command_config, timeout_s)
    progress = Background("asking the cluster") if shows_waiting else None
    admin = Admin(replace(settings, impatient=impatient), progress)
    try:
        yield admin
    finally:
        admin.close()
        if progress is not None:
            progress.close()


def admin_settings(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
) -> AdminSettings:
    """Return the settings from the options and the client config file. Options take precedence.

    The file's bootstrap.servers, which must be brokers, are used if no option names servers. Raise
    UsageError if both options are given, if there are no servers, or if an address is invalid.
    Raise Refused if the config file is malformed, has an invalid timeout, or asks for protection
    that the command line does not have (`client_properties.py`)."""
    client = read_client_config(command_config)
    if bootstrap_server and bootstrap_controller:
        raise click.UsageError(
            "only one of --bootstrap-server and --bootstrap-controller can be given"
        )
    given = {
        "--bootstrap-server": bootstrap_server,
        "--bootstrap-controller": bootstrap_controller,
        "bootstrap.servers": client.get("bootstrap.servers"),
    }
    named, text = next(((name, each) for name, each in given.items() if each), ("", ""))
    if not text:
        raise click.UsageError('Missing required argument "[bootstrap-server]"')
    try:
        servers = parse_servers(named, [each.strip() for each in text.split(",")])
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if timeout_s is None:
        timeout_s = timeout_in(client)
    return AdminSettings(
        servers=servers,
        timeout_s=timeout_s,
        client_id=client.get("client.id", "quorate-cli"),
        controllers=bool(bootstrap_controller),
        absent_s=ABSENT_S,
        security=client_security(client),
    )


def timeout_in(client: Mapping[str, str]) -> float:
    """Return default.api.timeout.ms of a client config file in seconds, or 30 if it is not set.

    Raise Refused if it is not a number of ms up to MAX_TIMEOUT_S."""
    text = client.get("default.api.timeout.ms", "30000")
    if not text.isdecimal() or not 0 < int(text) <= MAX_TIMEOUT_S * 1000:
        raise Refused(
            f"default.api.timeout.ms: value {text!r} must be a number from 1 to "
            f"{MAX_TIMEOUT_S * 1000}"
        )
    return int(text) / 1000


def read_client_config(path: str | None) -> dict[str, str]:
    """Return the entries of a .properties file, or none if `path` is None.

    Raise Refused if the file is malformed, is too large or cannot be read."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise Refused(
                f"{path}: has more than {MAX_FILE_BYTES} bytes: it is no .properties file"
            )
        entries = properties.parse(content.decode(), path)
    except ConfigError as error:
        raise Refused(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(said_once(error, path)) from None
    return {entry.name: entry.value for entry in entries}
