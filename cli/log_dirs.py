"""`quorate log-dirs`, with the options and output of kafka-log-dirs."""

from __future__ import annotations

import json

import click

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.options import cluster_options, connected
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import log_dirs as schemas


@click.command(cls=StrictCommand)
@cluster_options()
@click.option(
    "--describe", is_flag=True, required=True, help="Print the size and the lag of every replica."
)
@click.option("--topic-list", default="", metavar="TOPIC,...", help="Print only these topics.")
@click.option("--broker-list", default="", metavar="ID,...", help="Print only these brokers.")
def log_dirs(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    describe: bool,
    topic_list: str,
    broker_list: str,
) -> None:
    """Print the log directories of brokers and their replicas."""
    topics = {each for each in topic_list.split(",") if each}
    try:
        asked = sorted({int(each) for each in broker_list.split(",") if each})
    except ValueError:
        raise click.UsageError(f"--broker-list: value {broker_list!r} must be ID,...") from None
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        live = sorted(each.node_id for each in admin.metadata(()).brokers)
        missing = [each for each in asked if each not in live]
        if missing:
            raise Refused(
                f"The given brokers do not exist from --broker-list: {commas(missing)}. "
                f"Current existent brokers: {commas(live)}"
            )
        echo("Querying brokers for log directories information")
        brokers = [directories(admin, each, topics) for each in asked or live]
        echo(f"Received log directory information from brokers {commas(asked or live)}")
        echo(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))


def directories(admin: Admin, broker_id: int, topics: set[str]) -> dict[str, object]:
    """Return the log directories of one broker as JSON values; `topics` empty means all.

    Raise NotReachable if the broker cannot be reached, Refused on an error in its response."""
    request = schemas.DescribeLogDirsRequest(topics=None)
    try:
        answer = admin.ask_node(broker_id, request, schemas.DescribeLogDirsResponse)
    except ConnectionLost as error:
        raise NotReachable(str(error)) from None
    check(answer.error_code, None, f"broker {broker_id}")
    return {
        "broker": broker_id,
        "logDirs": [
            {
                "partitions": [
                    {
                        "partition": f"{topic.name}-{each.partition_index}",
                        "size": each.partition_size,
                        "offsetLag": each.offset_lag,
                        "isFuture": each.is_future_key,
                    }
                    for topic in directory.topics
                    if not topics or topic.name in topics
                    for each in topic.partitions
                ],
                "error": ErrorCode.of(directory.error_code).name if directory.error_code else None,
                "logDir": directory.log_dir,
            }
            for directory in answer.results
        ],
    }


def commas(numbers: list[int]) -> str:
    """Return the numbers separated by commas."""
    return ",".join(map(str, numbers))
