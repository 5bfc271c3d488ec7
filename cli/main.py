"""The `quorate` command with its table of sub-commands.

A module is imported only when its command is called. `quorate --help` imports click and nothing
else, because COMMANDS holds the names and their help."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.parsing.suggesting_group import SuggestingGroup, with_examples

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """The module of a command in `quorate.cli`, and its help.

    The module defines a click command with the name of the command, with `_` for `-`. A `hidden`
    command can be called, but is not listed in the help."""

    module: str
    help: str
    hidden: bool = False


COMMANDS = {
    "acls": LazyCommand("acls.command", "Add, remove and list ACLs."),
    "broker-api-versions": LazyCommand(
        "broker_api_versions", "List the APIs and versions that each broker supports."
    ),
    "certs": LazyCommand("certs.command", "Make and renew certificates for TLS."),
    "chaos": LazyCommand(
        "chaos.command", "Run failure scenarios on a real cluster and check the outcome."
    ),
    "cluster": LazyCommand(
        "cluster.command", "Print the cluster id, decommission or unregister a broker."
    ),
    "completion": LazyCommand("completion", "Print the completion script of a shell."),
    "configs": LazyCommand(
        "configs.command", "Describe and alter the configs of topics and brokers."
    ),
    "console": LazyCommand("console.command", "Show a running cluster in the browser."),
    "console-consumer": LazyCommand("console_consumer", "Print the records of a topic."),
    "console-producer": LazyCommand(
        "console_producer", "Send the lines of standard input to a topic."
    ),
    "delete-records": LazyCommand("delete_records", "Delete the oldest records of partitions."),
    "consumer-groups": LazyCommand(
        "groups.command", "List, describe, delete and reset consumer groups."
    ),
    "demo": LazyCommand(
        "demo.command", "Kill a leader and the controller under load, and verify.", True
    ),
    "down": LazyCommand("nodes.down", "Stop a cluster that `quorate up` started."),
    "dump-log": LazyCommand("dump_log.command", "Print log segments, snapshots and indexes."),
    "features": LazyCommand("features.tables", "Show, upgrade and downgrade feature levels."),
    "get-offsets": LazyCommand(
        "get_offsets", "Print the first, last or timestamped offsets of partitions."
    ),
    "history": LazyCommand("history.command", "Query the history in the metadata log, with Spark."),
    "leader-election": LazyCommand(
        "leader_election", "Elect preferred leaders, or leaders outside the ISR."
    ),
    "log-dirs": LazyCommand("log_dirs", "Print the size and the lag of every replica."),
    "man-pages": LazyCommand("manual.command", "Write the man pages of all commands."),
    "metadata-quorum": LazyCommand(
        "metadata_quorum.command", "Describe the metadata quorum, change or rebuild its voters."
    ),
    "metadata-shell": LazyCommand(
        "shell.command", "Browse the metadata in a snapshot or log as files."
    ),
    "reassign-partitions": LazyCommand("reassign.command", "Move replicas between brokers."),
    "replica-verification": LazyCommand(
        "replica_verification.command", "Check that the replicas of partitions are equal."
    ),
    "server": LazyCommand("nodes.server", "Run one node from its .properties file."),
    "state-changes": LazyCommand(
        "state_changes.command",
        "Merge the story of partitions from the metadata and the nodes' logs.",
    ),
    "status": LazyCommand(
        "status.command", "Show brokers, quorum and unhealthy partitions with causes."
    ),
    "storage": LazyCommand(
        "storage.command", "Format, inspect, verify and repair data directories."
    ),
    "topics": LazyCommand("topics.command", "Create, list, describe, alter and delete topics."),
    "up": LazyCommand("nodes.up", "Run a local cluster, one process per node."),
}


UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The errors of a write to standard output. Errors of other files name the file."""


class LazyGroup(SuggestingGroup):
    """A click group whose commands are imported on demand."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command. If a file or standard output cannot be used, such as a file on a full
        disk, end with one line and exit code 1. Click itself ends a command whose reader closed the
        pipe."""
        open_missing_streams()
        if isinstance(sys.stdout, TextIOWrapper):
            # The names of files may have bytes, and the terminal an encoding, that are not UTF-8.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().main(*args, **extra)
        except OSError as error:
            from quorate.cli.terminal.safe_text import echo

            if error.filename is not None:
                echo(f"Error: {error.filename}: {error.strerror}", err=True)
                sys.exit(1)
            if error.errno not in UNWRITABLE:
                raise
            echo(f"Error: standard output: {error.strerror}", err=True)
            # The rest of the buffer must not be written again when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or return None if there is no such command."""
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        module = importlib.import_module(f"quorate.cli.{lazy.module}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        command.hidden = lazy.hidden
        return with_examples(command, ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the completions of a command's name or of an option. No command is imported."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=lazy.help)
            for name, lazy in sorted(COMMANDS.items())
            if name.startswith(incomplete) and not lazy.hidden
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help from COMMANDS, so that no command is imported."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, lazy.help) for name, lazy in sorted(COMMANDS.items()) if not lazy.hidden]
            )


def open_missing_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed (`>&-`).

    Otherwise the first file that a node opens would get the descriptor of the stream, and receive
    what a library writes there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quorate")
def main() -> None:
    """Run Kafka-compatible clusters, and administer them as Kafka's tools do.

    `quorate up` runs a cluster on this machine. The other commands connect to any cluster with
    --bootstrap-server HOST:PORT. A command with the name of one of Kafka's tools, such as `topics`
    for kafka-topics, has the options and the output of that tool.

    Exit codes: 0 success, 1 refused, 2 wrong usage, 3 no node answered in time, 4 some nodes of
    `up` do not run."""
