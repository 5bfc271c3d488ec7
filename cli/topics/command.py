"""`quorate topics`, with the options and output of kafka-topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.client.quorum import require_controller
from quorate.cli.parsing.option_rules import is_given, not_together
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import show
from quorate.cli.topics import topic_changes, topic_tables, topic_view
from quorate.cli.topics.topic_changes import UNSET, raise_error
from quorate.quorum.protocol.schemas import topics as schemas

ACTIONS = ("list", "describe", "create", "alter", "delete")
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
REPORTS = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
"""The options that select partitions."""
ACTIONS_OF = {
    "topic_id": ("describe",),
    "partitions": ("create", "alter"),
    "replica_assignment": ("create", "alter"),
    "if_exists": ("alter", "delete", "describe"),
    "if_not_exists": ("create",),
    "exclude_internal": ("list", "describe"),
    "topics_with_overrides": ("describe",),
    **dict.fromkeys(REPORTS, ("describe",)),
}
"""The actions that each option may be used with, as in Kafka. Another action would ignore it, so
that `--delete --exclude-internal` would delete internal topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The options of one call."""

    topic: str | None
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    replica_assignment: str | None
    config: tuple[str, ...]
    if_exists: bool
    if_not_exists: bool
    exclude_internal: bool
    partition_size_limit_per_response: int
    under_replicated_partitions: bool
    unavailable_partitions: bool
    under_min_isr_partitions: bool
    at_min_isr_partitions: bool
    topics_with_overrides: bool
    output: str


class Failed(Refused):
    """A failure that Kafka's tool prints to standard output."""

    def show(self, file: Any = None) -> None:
        """Print the message to standard output, with the prefix of Kafka's tool."""
        echo(f"Error while executing topic command : {self.message}")


@click.command(cls=StrictCommand)
@cluster_options()
@click.option("--list", "do_list", is_flag=True, help="Print the names of topics.")
@click.option(
    "--describe", "do_describe", is_flag=True, help="Print the partitions and configs of topics."
)
@click.option("--create", "do_create", is_flag=True, help="Create a topic.")
@click.option("--alter", "do_alter", is_flag=True, help="Add partitions to topics.")
@click.option("--delete", "do_delete", is_flag=True, help="Delete topics.")
@click.option("--topic", help="The topic. A regular expression, except with --create.")
@click.option("--topic-id", help="The id of the topic to describe.")
@click.option("--partitions", type=int, help="The number of partitions, with --create or --alter.")
@click.option(
    "--replication-factor",
    type=int,
    help="The number of replicas of each partition, with --create.",
)
@click.option("--replica-assignment", help="The brokers of each partition, such as 1:2:3,2:3:1.")
@click.option(
    "--config",
    multiple=True,
    metavar="NAME=VALUE",
    help="A config of the new topic, with --create. May be repeated.",
)
@click.option("--if-exists", is_flag=True, help="Succeed if the topic does not exist.")
@click.option("--if-not-exists", is_flag=True, help="With --create: succeed if the topic exists.")
@click.option("--exclude-internal", is_flag=True, help="Do not include internal topics.")
@click.option("--partition-size-limit-per-response", type=int, default=2000, hidden=True)
@click.option(
    "--under-replicated-partitions",
    is_flag=True,
    help="Print only partitions whose ISR lacks a replica.",
)
@click.option(
    "--unavailable-partitions",
    is_flag=True,
    help="Print only partitions without a leader that is alive.",
)
@click.option(
    "--under-min-isr-partitions",
    is_flag=True,
    help="Print only partitions whose ISR is below min.insync.replicas.",
)
@click.option(
    "--at-min-isr-partitions",
    is_flag=True,
    help="Print only partitions whose ISR is equal to min.insync.replicas.",
)
@click.option(
    "--topics-with-overrides", is_flag=True, help="Print only topics with configs of their own."
)
@format_option
def topics(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    do_list: bool,
    do_describe: bool,
    do_create: bool,
    do_alter: bool,
    do_delete: bool,
    **rest: Any,
) -> None:
    """Create, list, describe, alter and delete topics.

    \b
    quorate topics -b HOST:PORT --create --topic orders --partitions 12 --replication-factor 3
    quorate topics -b HOST:PORT --describe --topic orders"""
    chosen = [
        name
        for name, wanted in zip(
            ACTIONS, (do_list, do_describe, do_create, do_alter, do_delete), strict=True
        )
        if wanted
    ]
    if len(chosen) != 1:
        raise click.UsageError(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    arguments = Arguments(**rest)
    check_arguments(chosen[0], arguments)
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        try:
            RUN[chosen[0]](admin, arguments)
        except Refused as error:
            raise Failed(error.message) from None


def check_arguments(action: str, arguments: Arguments) -> None:
    """Raise UsageError if the options do not fit the action."""
    if action not in ("list", "describe") and not arguments.topic:
        raise click.UsageError('Missing required argument "[topic]"')
    if action == "alter" and arguments.partitions is None:
        raise click.UsageError('Missing required argument "[partitions]"')
    if action != "create" and (arguments.config or arguments.replication_factor is not None):
        raise click.UsageError(
            "--config and --replication-factor require --create "
            "(quorate configs alters topic configs)"
        )
    if (
        action == "create"
        and arguments.replica_assignment
        and (arguments.partitions is not None or arguments.replication_factor is not None)
    ):
        raise click.UsageError(
            "--replica-assignment cannot be used with --partitions or --replication-factor"
        )
    for name, actions in ACTIONS_OF.items():
        if is_given(getattr(arguments, name)) and action not in actions:
            raise not_together(name, action)
    for name in REPORTS:
        if arguments.topics_with_overrides and getattr(arguments, name):
            raise not_together(name, "topics_with_overrides")


def list_topics(admin: Admin, arguments: Arguments) -> None:
    """Print the names of the topics that match."""
    names = topic_view.matching(
        topic_view.topic_names(admin),
        arguments.topic,
        exclude_internal=arguments.exclude_internal,
    )
    echo(json.dumps(names) if arguments.output == "json" else "\n".join(names))


def describe_topics(admin: Admin, arguments: Arguments) -> None:
    """Print the state of the topics that match. Raise Refused if none does."""
    names = topic_view.names_of(
        admin,
        arguments.topic,
        arguments.topic_id,
        exclude_internal=arguments.exclude_internal,
    )
    require_topics(names, arguments)
    report = topic_view.Report(
        under_replicated=arguments.under_replicated_partitions,
        unavailable=arguments.unavailable_partitions,
        under_min_isr=arguments.under_min_isr_partitions,
        at_min_isr=arguments.at_min_isr_partitions,
        overrides=arguments.topics_with_overrides,
    )
    views = topic_view.describe(admin, names, page=arguments.partition_size_limit_per_response)
    live = frozenset(node.node_id for node in admin.metadata(()).brokers)
    if arguments.output == "json":
        echo(json.dumps(topic_view.as_json(views, report, live), indent=2))
        return
    show(topic_view.lines(views, report, live), topic_tables.tables(views, report, live))


def create_topic(admin: Admin, arguments: Arguments) -> None:
    """Create a topic.

    Raise Refused if it exists, unless --if-not-exists is given, or is invalid."""
    assert arguments.topic is not None
    if arguments.partitions is not None and arguments.partitions < 1:
        raise Refused("The partitions must be greater than 0")
    if arguments.replication_factor is not None and not 1 <= arguments.replication_factor < 2**15:
        raise Refused("The replication factor must be between 1 and 32767 inclusive")
    if "." in arguments.topic or "_" in arguments.topic:
        echo(COLLISION_WARNING)
    assignment = parse_assignment(arguments.replica_assignment)
    topic = schemas.CreatableTopic(
        name=arguments.topic,
        num_partitions=UNSET if arguments.partitions is None else arguments.partitions,
        replication_factor=(
            UNSET if arguments.replication_factor is None else arguments.replication_factor
        ),
        assignments=tuple(
            schemas.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in enumerate(assignment)
        ),
        configs=tuple(config_of(text) for text in arguments.config),
    )
    if topic_changes.create(admin, topic, if_not_exists=arguments.if_not_exists):
        echo(f"Created topic {topic.name}.")


def alter_topics(admin: Admin, arguments: Arguments) -> None:
    """Add partitions to the topics that match. Raise Refused if none does, or on an error.

    After an error of one topic, the others may have new partitions."""
    assert arguments.partitions is not None
    names = topic_view.names_of(admin, arguments.topic, None)
    require_topics(names, arguments)
    if not names:
        return
    require_controller(admin, f"{topic_changes.topics_text(names)} not changed")
    added = parse_assignment(arguments.replica_assignment)
    counts = {topic.name: len(topic.partitions) for topic in admin.metadata(names).topics}
    request = schemas.CreatePartitionsRequest(
        topics=tuple(
            schemas.CreatePartitionsTopic(
                name=name,
                count=arguments.partitions,
                assignments=tuple(
                    schemas.CreatePartitionsAssignment(broker_ids=brokers)
                    for brokers in added[counts[name] :]
                )
                if added
                else None,
            )
            for name in names
        ),
        timeout_ms=admin.timeout_ms,
        validate_only=False,
    )
    answer = admin.change(
        request,
        schemas.CreatePartitionsResponse,
        lambda answer: [each.error_code for each in answer.results],
    )
    for result in answer.results:
        raise_error(result.error_code, result.error_message)


def delete_topics(admin: Admin, arguments: Arguments) -> None:
    """Delete the topics that match. Raise Refused if none does, or on an error.

    After an error of one topic, the others may be deleted."""
    names = topic_view.names_of(admin, arguments.topic, None)
    require_topics(names, arguments)
    if names:
        topic_changes.delete(admin, names)


RUN = {
    "list": list_topics,
    "describe": describe_topics,
    "create": create_topic,
    "alter": alter_topics,
    "delete": delete_topics,
}


def require_topics(names: Sequence[str], arguments: Arguments) -> None:
    """Raise Refused if no topic matches --topic or --topic-id, unless --if-exists is given."""
    if names or arguments.if_exists:
        return
    if arguments.topic_id:
        raise Refused(f"TopicId '{arguments.topic_id}' does not exist as expected")
    if arguments.topic:
        raise Refused(f"Topic '{arguments.topic}' does not exist as expected")


def config_of(text: str) -> schemas.CreatableTopicConfig:
    """Return the config of NAME=VALUE. Raise UsageError if it is malformed."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(
            f"--config: value {text!r} must be name=value (all configs to be added must be in the "
            'format "key=val")'
        )
    return schemas.CreatableTopicConfig(name=name.strip(), value=value.strip())


def parse_assignment(text: str | None) -> list[tuple[int, ...]]:
    """Return the brokers of each partition in `0:1,1:2`, where the first part is partition 0.

    Raise UsageError or Refused if it is invalid."""
    if not text:
        return []
    try:
        parsed = [tuple(int(broker) for broker in part.split(":")) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--replica-assignment: value {text!r} must be broker:broker,broker:broker,..."
        ) from None
    for number, brokers in enumerate(parsed):
        if len(set(brokers)) < len(brokers):
            repeated = ",".join(
                str(each) for each in sorted(set(brokers)) if brokers.count(each) > 1
            )
            raise Refused(f"Partition replica lists may not contain duplicate entries: {repeated}")
        if len(brokers) != len(parsed[0]):
            raise Refused(f"Partition {number} has different replication factor: {list(brokers)}")
    return parsed
