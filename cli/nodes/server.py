"""`quorate server FILE`: one node, in the foreground, from its .properties file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from quorate.cli.client.errors import Refused
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig

LOG_LEVELS = ("debug", "info", "warning", "error")
log_level_option = click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    help="Set log.level, instead of its value in the configuration. [default: info]",
)
override_option = click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key, instead of its value in FILE. May be repeated.",
)


def level_override(level: str | None) -> tuple[str, ...]:
    """Return the override of log.level for the option --log-level, as KEY=VALUE."""
    return () if level is None else (f"log.level={level.upper()}",)


@click.command(cls=StrictCommand)
@click.argument(
    "file",
    type=click.Path(exists=True, dir_okay=False),
    cls=DescribedArgument,
    description="The .properties file of the node.",
)
@override_option
@log_level_option
@click.option(
    "--faults",
    is_flag=True,
    help="Create a socket in FILE's directory, through which `quorate chaos` injects faults.",
)
def server(file: str, overrides: tuple[str, ...], log_level: str | None, faults: bool) -> None:
    """Run one node in the foreground, with the configuration in the .properties file FILE.

    `quorate storage format` must have formatted its directory. SIGTERM and Ctrl-C stop the node
    cleanly."""
    from quorate.cli.nodes.cluster_dir import FAULTS_SOCKET
    from quorate.cli.nodes.node_process import configure_logging, run_node

    config = load_config(file, (*overrides, *level_override(log_level)))
    configure_logging(config)
    sys.exit(run_node(config, Path(file).with_name(FAULTS_SOCKET) if faults else None))


def load_config(file: str, overrides: Sequence[str] = ()) -> NodeConfig:
    """Return the config of a .properties file, in which `overrides` (KEY=VALUE) replace values.

    Raise Refused, which names the wrong setting and its line, and UsageError for a malformed
    override."""
    pairs = dict(pair_of(each) for each in overrides)
    try:
        return load(file, overrides=pairs)
    except ConfigError as error:
        raise Refused(str(error)) from None


def pair_of(text: str) -> tuple[str, str]:
    """Return the key and the value of KEY=VALUE. Raise UsageError if it is malformed."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"{text!r} must be KEY=VALUE")
    return name.strip(), value.strip()
