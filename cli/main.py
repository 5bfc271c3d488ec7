"""The `quorate` command with its table of sub-commands.

A module is imported only when its command is called. `quorate --help` imports click and nothing
else, because COMMANDS holds the names and their help."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """The module of a command in `quorate.cli`, and its help.

    The module defines a click command with the name of the command, with `_` for `-`."""

    module: str
    help: str
    hidden: bool = False


COMMANDS = {
    "broker-api-versions": LazyCommand("broker_api_versions", "What each broker's port serves."),
    "chaos": LazyCommand("chaos.command", "Rehearse a failure; the exit status is the verdict."),
    "cluster": LazyCommand("cluster", "The cluster's id; taking a broker's registration away."),
    "configs": LazyCommand("configs", "Describe and alter the configs of topics and brokers."),
    "console-consumer": LazyCommand("console_consumer", "Print the records of a topic."),
    "console-producer": LazyCommand(
        "console_producer", "Send the lines of standard input to a topic."
    ),
    "delete-records": LazyCommand("delete_records", "Delete the oldest records of partitions."),
    "consumer-groups": LazyCommand(
        "consumer_groups", "List, describe, delete, reset consumer groups."
    ),
    "demo": LazyCommand(
        "demo.command", "Kill a leader and the controller under load; verify.", True
    ),
    "down": LazyCommand("up", "Stop a cluster that `up` started."),
    "dump-log": LazyCommand("dump_log", "Print what is in log segments, snapshots and indexes."),
    "features": LazyCommand(
        "feature_updates", "Feature levels: which there are; raise or lower them."
    ),
    "get-offsets": LazyCommand("get_offsets", "Where partitions begin, end, or were at a time."),
    "history": LazyCommand("history", "What happened: Spark over the metadata log."),
    "leader-election": LazyCommand("leader_election", "Elect preferred leaders, or unclean ones."),
    "log-dirs": LazyCommand("log_dirs", "Size of every replica, by broker and directory."),
    "metadata-quorum": LazyCommand(
        "metadata_quorum", "The quorum: leader, epoch, lag of every replica."
    ),
    "metadata-shell": LazyCommand(
        "shell.command", "Look at the metadata in a snapshot as at files."
    ),
    "reassign-partitions": LazyCommand("reassign_partitions", "Move replicas between brokers."),
    "replica-verification": LazyCommand(
        "replica_verification", "Compare what the replicas of partitions hold."
    ),
    "server": LazyCommand("server", "Run one node from its .properties file."),
    "status": LazyCommand("status", "The cluster at a glance."),
    "storage": LazyCommand("storage", "Format data directories and look at them."),
    "topics": LazyCommand("topics", "Create, list, describe, alter and delete topics."),
    "up": LazyCommand("up", "Run a whole cluster as processes on this machine."),
}


class LazyGroup(click.Group):
    """A click group whose commands are imported on demand."""

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
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help from COMMANDS, so that no command is imported."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, lazy.help) for name, lazy in sorted(COMMANDS.items()) if not lazy.hidden]
            )


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quorate")
def main() -> None:
    """A Kafka-compatible cluster in Python, and its tools.

    Exit codes: 0 done, 1 the cluster said no, 2 wrong usage, 3 not reachable.
    """
