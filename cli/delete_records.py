"""`quorate delete-records`, with the options, files and output of kafka-delete-records."""

from __future__ import annotations

import json

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.by_leader import Answer, TopicPartition, ask_leaders
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.leader_election import java_text
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.reassign.partition_files import duplicates, entries, text_of
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import topics as schemas


@click.command(cls=StrictCommand)
@cluster_options()
@click.option(
    "--offset-json-file",
    type=click.Path(),
    required=True,
    help='A JSON file, such as {"partitions": [{"topic": "t", "partition": 0, "offset": '
    '5}], "version": 1}. Offset -1 means the high watermark.',
)
@format_option
def delete_records(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    offset_json_file: str,
    output: str,
) -> None:
    """Delete the records of partitions below an offset.

    The command fails if one partition fails. The records of the others are then deleted."""
    found = entries(offset_json_file, "partitions", {"topic": str, "partition": int, "offset": int})
    keys = [(entry["topic"], entry["partition"]) for entry in found]
    twice = duplicates(keys)
    if twice:
        raise Refused(f"Offset json file contains duplicate topic partitions: {','.join(twice)}")
    offsets = {key: entry["offset"] for key, entry in zip(keys, found, strict=True)}
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        if output == "text":
            echo("Executing records delete operation")
        results = delete(admin, offsets)
    if output == "json":
        shown = [
            {"partition": text_of(key), "error": ErrorCode.of(error).name, "low_watermark": low}
            for key, (error, low) in results.items()
        ]
        echo(json.dumps(shown, indent=2))
    else:
        echo("Records delete operation completed:")
        for key, (error, low_watermark) in results.items():
            if error:
                echo(f"partition: {text_of(key)}\terror: {java_text(error, None)}")
            else:
                echo(f"partition: {text_of(key)}\tlow_watermark: {low_watermark}")
    failed = sum(bool(error) for error, _ in results.values())
    if failed:
        raise Refused(f"No records were deleted in {failed} of {len(results)} partition(s).")


def delete(admin: Admin, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, Answer]:
    """Delete the records below the given offset of each partition (-1: the high watermark).

    Return the error and the new low watermark of each partition. Each leader gets one request. It
    may be sent again, because a repetition is harmless. Raise as `ask_leaders` does."""

    def ask(leader: int, topics: dict[str, list[int]]) -> dict[TopicPartition, Answer]:
        request = schemas.DeleteRecordsRequest(
            topics=tuple(
                schemas.DeleteRecordsTopic(
                    name=topic,
                    partitions=tuple(
                        schemas.DeleteRecordsPartition(
                            partition_index=each, offset=offsets[topic, each]
                        )
                        for each in partitions
                    ),
                )
                for topic, partitions in topics.items()
            ),
            timeout_ms=admin.timeout_ms,
        )
        answer = admin.ask_node(leader, request, schemas.DeleteRecordsResponse)
        return {
            (topic.name, each.partition_index): (each.error_code, each.low_watermark)
            for topic in answer.topics
            for each in topic.partitions
        }

    return ask_leaders(admin, sorted(offsets), ask)
