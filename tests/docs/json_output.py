"""The page docs/json-output.md: the fields of the JSON that commands print, seen in real output.

`python -m tests.docs.json_output` runs each command on a small cluster or on a log of Apache Kafka,
and writes the page. A test does the same and compares.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from quorate.cli.main import main
from quorate.testing import LocalCluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "json-output.md"
KAFKA = ROOT / "tests" / "fixtures" / "kafka-4.1.1-metadata" / "c1"
TOPIC = "orders"
HEAD = """# JSON output of commands

These commands print JSON with `--format json`. The tables show the fields of real output on a small
cluster. A state that this cluster did not have may add others. `[]` follows a field whose value is
an array, and `*` stands for any id, name or path. An alternative "null" says that there may be no
value. `python -m tests.docs.json_output` writes this page.

The other commands with such an option:

"""
CONFIG: dict[str, str | int | float | bool] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 1,
}
ON_A_WHOLE_CLUSTER = {
    "acls --list": "acls --list {at}",
    "broker-api-versions": "broker-api-versions {at}",
    "cluster cluster-id": "cluster cluster-id {at}",
    "configs --describe": f"configs --describe --topic {TOPIC} {{at}}",
    "consumer-groups --describe": "consumer-groups --describe --group readers {at}",
    "delete-records": "delete-records --offset-json-file {offsets} {at}",
    "features describe": "features describe {at}",
    "get-offsets": f"get-offsets --topic {TOPIC} {{at}}",
    "metadata-quorum describe --status": "metadata-quorum {at} describe --status",
    "metadata-quorum describe --replication": "metadata-quorum {at} describe --replication",
    "replica-verification": "replica-verification --once {at}",
    "topics --list": "topics --list {at}",
    "topics --describe": f"topics --describe --topic {TOPIC} {{at}}",
}
WITHOUT_A_BROKER = {
    "leader-election": "leader-election --election-type preferred --all-topic-partitions {at}",
    "reassign-partitions --list": "reassign-partitions --list {at}",
    "status": "status {at}",
}
"""The commands that run after one of two brokers was killed, so that there is something to list."""
WITHOUT_BROKERS = {
    "status --bootstrap-controller": "status {at} --bootstrap-controller {controllers}",
}
"""The commands that run after all brokers were killed."""
ON_A_LOG = {
    "chaos list": "chaos list",
    "dump-log": "dump-log --cluster-metadata-decoder --files {kafka}/00000000000000000000.log",
    "history at": "history at {kafka} --offset 300",
    "history diff": "history diff {kafka} 200 300",
    "history explain": "history explain {kafka} --topic topic-0 --partition 0",
    "history whatif": "history whatif {kafka} --kill 4",
    "metadata-shell": "metadata-shell --snapshot {kafka}/00000000000000000000.log ls /",
    "storage verify": "storage verify {kafka}",
}
ELSEWHERE = {
    "chaos run": "`quorate chaos schema` prints the JSON Schema of a run.",
    "history export": "The columns are those of [the tables](tables.md).",
    "history report": "The key figures that the command also prints as text.",
    "history sql": "An array of rows with the columns of the query.",
    "history stream": "One object for each batch, on a line of its own.",
    "history top": "The rows of each ranking, with the columns of the text.",
    "metadata-quorum force-voters": "The plan, as the text has it.",
    "state-changes merge": "An array with an object for each line of the text.",
}
"""The commands that the page does not show in a table, with the reason."""
NAME = re.compile(rf"\d+|{TOPIC}|.*[./].*")
"""A key that is an id, a name or a path, and not a field."""


def shape(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the type of each field of a JSON value. A path may occur many times."""
    if isinstance(value, dict):
        if path and not value:
            yield path, "object"
        for key, inner in value.items():
            name = "*" if NAME.fullmatch(key) else key
            yield from shape(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        if not value:
            yield f"{path}[]", "array"
        for inner in value:
            yield from shape(inner, f"{path}[]")
    else:
        types = {bool: "boolean", int: "integer", float: "number", str: "string"}
        yield path, "null" if value is None else types[type(value)]


def fields(values: list[Any]) -> dict[str, str]:
    """Return the types of all fields of some JSON values, by path, in the order of their output.

    An empty array or object says nothing beside one with content."""
    found: dict[str, set[str]] = {}
    for value in values:
        for path, kind in shape(value):
            found.setdefault(path, set()).add(kind)
    full = {
        path
        for path, kinds in found.items()
        if not kinds <= {"array", "object"}
        or not any(other != path and other.startswith(path) for other in found)
    }
    return {
        path: " or ".join(sorted(kinds - {"array", "object"} or {"empty here"}))
        for path, kinds in found.items()
        if path in full
    }


def output(line: str) -> list[Any]:
    """Run a command, and return the JSON values that it prints: one, or one for each line."""
    done = CliRunner().invoke(main, [*line.split(), "--format", "json"])
    assert done.stdout, (line, done.stderr, done.exception)
    try:
        return [json.loads(done.stdout)]
    except json.JSONDecodeError:
        return [json.loads(each) for each in done.stdout.splitlines()]


def seen() -> dict[str, list[Any]]:
    """Run all commands, and return their output by the name of the command. Block."""
    found: dict[str, list[Any]] = {}
    with TemporaryDirectory() as name, LocalCluster(brokers=2, config=CONFIG) as cluster:
        offsets = Path(name) / "offsets.json"
        partition = {"topic": TOPIC, "partition": 0, "offset": 0}
        offsets.write_text(json.dumps({"partitions": [partition], "version": 1}))
        values = {
            "at": f"--bootstrap-server {cluster.bootstrap}",
            "controllers": cluster.bootstrap_controllers,
            "kafka": str(KAFKA),
            "offsets": str(offsets),
        }
        cluster.create_topic(TOPIC, partitions=2, replication_factor=2)
        prepare(values["at"])
        for command, line in {**ON_A_LOG, **ON_A_WHOLE_CLUSTER}.items():
            found[command] = output(line.format(**values))
        killed = cluster.leader(TOPIC)
        cluster.kill_broker(killed)
        cluster.wait_fenced(killed)
        for command, line in WITHOUT_A_BROKER.items():
            found[command] = output(line.format(**values))
        cluster.kill_broker(next(each for each in cluster.broker_ids if each != killed))
        for command, line in WITHOUT_BROKERS.items():
            found[command] = output(line.format(**values))
    return found


def prepare(at: str) -> None:
    """Write two records, read one of them as a member of a group, and set a config and an ACL."""
    for line, written in (
        (f"console-producer --topic {TOPIC} {at}", b"a\nb\n"),
        (f"console-consumer --topic {TOPIC} --group readers --max-messages 1 {at}", b""),
        (f"configs --alter --topic {TOPIC} --add-config retention.ms=86400000 {at}", b""),
        (f"acls --add --allow-principal User:alice --operation Read --topic {TOPIC} {at}", b""),
    ):
        more = ["--from-beginning", "--timeout-ms", "10000"] if "consumer" in line else []
        command = [sys.executable, "-m", "quorate.cli", *line.split(), *more]
        subprocess.run(command, input=written, capture_output=True, timeout=30, check=True)


def page(found: dict[str, list[Any]]) -> str:
    """Return the page about this output."""
    lines = [f"- `quorate {name}`: {reason}" for name, reason in ELSEWHERE.items()]
    for command in sorted(found):
        lines += ["", f"## quorate {command}", ""]
        if len(found[command]) > 1:
            lines += ["One JSON object on each line.", ""]
        lines += ["| field | type |", "|---|---|"]
        lines += [f"| `{path}` | {kind} |" for path, kind in fields(found[command]).items()]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(seen()))
