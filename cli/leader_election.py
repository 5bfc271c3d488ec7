"""`quorate leader-election`, with the options and output of kafka-leader-election."""

from __future__ import annotations

import json

import click

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.client.quorum import require_controller
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.reassign.partition_files import (
    TopicPartition,
    duplicates,
    read_partitions,
    text_of,
)
from quorate.cli.terminal.safe_text import echo
from quorate.config.key import MAX_INT
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import elect_leaders as schemas

KINDS = {"preferred": 0, "unclean": 1}
Results = dict[TopicPartition, tuple[int, str | None]]


@click.command(cls=StrictCommand)
@cluster_options()
@click.option(
    "--election-type",
    type=click.Choice(list(KINDS), case_sensitive=False),
    required=True,
    help="preferred: elect the first replica. unclean: elect a replica outside the ISR if "
    "a partition has no leader; records may be lost.",
)
@click.option("--topic", help="A topic. Requires --partition.")
@click.option("--partition", type=click.IntRange(max=MAX_INT), help="A partition of --topic.")
@click.option(
    "--all-topic-partitions", is_flag=True, help="All partitions that need such an election."
)
@click.option(
    "--path-to-json-file", type=click.Path(), help="A JSON file with a list of partitions."
)
@click.option(
    "--admin.config",
    "admin_config",
    type=click.Path(exists=True, dir_okay=False),
    help="Same as --command-config.",
)
@format_option
def leader_election(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    election_type: str,
    topic: str | None,
    partition: int | None,
    all_topic_partitions: bool,
    path_to_json_file: str | None,
    admin_config: str | None,
    output: str,
) -> None:
    """Elect preferred leaders, or unclean ones for partitions without a leader."""
    given = [topic is not None, all_topic_partitions, path_to_json_file is not None]
    if sum(given) != 1:
        raise click.UsageError(
            "One and only one of the following options is required: topic, "
            "all-topic-partitions, path-to-json-file"
        )
    if command_config and admin_config:
        raise click.UsageError("only one of --command-config and --admin.config can be given")
    if (topic is None) != (partition is None):
        raise click.UsageError("--topic and --partition must be given together")
    wanted = None
    if topic is not None and partition is not None:
        wanted = [(topic, partition)]
    elif path_to_json_file is not None:
        wanted = [key for key, _ in read_partitions(path_to_json_file)]
        twice = duplicates(wanted)
        if twice:
            raise Refused(
                f"Replica election data contains duplicate partitions: [{', '.join(twice)}]"
            )
    with connected(
        bootstrap_server=bootstrap_server,
        command_config=command_config or admin_config,
        timeout_s=timeout_s,
    ) as admin:
        require_controller(admin, "no leader was elected")
        results = elect(admin, KINDS[election_type], wanted)
    print_result(results, election_type.upper(), output)


def elect(admin: Admin, kind: int, wanted: list[TopicPartition] | None) -> Results:
    """Run the elections and return the error and message of each partition.

    None means all partitions. The request may be sent again because a repetition is harmless: a
    partition with the wanted leader has the error ELECTION_NOT_NEEDED. Raise Refused if the request
    fails as a whole."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(wanted or []):
        topics.setdefault(topic, []).append(partition)
    request = schemas.ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None
        if wanted is None
        else tuple(
            schemas.TopicPartitions(topic=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ),
        timeout_ms=admin.timeout_ms,
    )
    answer = admin.change(
        request,
        schemas.ElectLeadersResponse,
        lambda answer: [answer.error_code],
        repeatable=True,
    )
    check(answer.error_code, None)
    found = {
        (topic.topic, each.partition_id): (each.error_code, each.error_message)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    return dict(sorted(found.items()))


def print_result(results: Results, kind: str, output: str) -> None:
    """Print the results. Raise Refused if any election failed."""
    unneeded = [key for key, (code, _) in results.items() if code == ErrorCode.ELECTION_NOT_NEEDED]
    elected = [key for key, (code, _) in results.items() if not code]
    failed = [key for key in results if key not in unneeded and key not in elected]
    if output == "json":
        groups = {"elected": elected, "unneeded": unneeded, "failed": failed}
        named = {name: [text_of(key) for key in keys] for name, keys in groups.items()}
        echo(json.dumps(named, indent=2))
    else:
        if elected:
            names = ", ".join(map(text_of, elected))
            echo(f"Successfully completed leader election ({kind}) for partitions {names}")
        if unneeded:
            names = ", ".join(map(text_of, unneeded))
            echo(f"Valid replica already elected for partitions {names}")
        for key in failed:
            echo(
                f"Error completing leader election ({kind}) for partition: {text_of(key)}: "
                f"{java_text(*results[key])}"
            )
    if failed:
        raise Refused(f"{len(failed)} replica(s) could not be elected")


def java_text(code: int, message: str | None) -> str:
    """Return an error as the Java client prints it, because scripts search for these names."""
    error = ErrorCode.of(code)
    name = "".join(word.capitalize() for word in error.name.split("_"))
    name = name.removesuffix("Exception")
    return f"org.apache.kafka.common.errors.{name}Exception: {message or error.message}"
