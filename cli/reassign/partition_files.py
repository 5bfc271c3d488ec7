"""The JSON files of Kafka's tools that list partitions with their offsets or replicas.

Errors name the file, and the line or the entry."""

from __future__ import annotations

import json
import json.scanner
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from quorate.cli.client.errors import Refused, said_once
from quorate.cli.reassign.plan import Assignment

TopicPartition = tuple[str, int]
VERSION = 1
ANY = "any"
"""The log directory of a replica for which the file names none."""
KINDS = {str: "a string", int: "an integer", list: "a list", dict: "an object"}


class Replica(NamedTuple):
    """The replica of a partition on one broker. `str()` of it is Kafka's name."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


def text_of(partition: TopicPartition) -> str:
    """Return Kafka's name of a partition."""
    return f"{partition[0]}-{partition[1]}"


class Located(dict[str, Any]):
    """An object of a JSON file that knows its position in the text."""

    text = ""
    start = 0

    @property
    def line(self) -> int:
        """Return the number of the line on which the object begins."""
        return self.text.count("\n", 0, self.start) + 1


class LocatingDecoder(json.JSONDecoder):
    """A JSON decoder whose objects know their lines, so that errors can name them."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_object = self._located
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    @staticmethod
    def _located(start: tuple[str, int], *options: Any) -> tuple[Located, int]:
        value, end = json.decoder.JSONObject(start, *options)  # type: ignore[attr-defined]
        located = Located(value)
        located.text, located.start = start
        return located, end


def read_json(path: str) -> Located:
    """Return the object in a file. Raise Refused if it cannot be read or has another version."""
    try:
        value = json.loads(Path(path).read_text(), cls=LocatingDecoder)
    except json.JSONDecodeError as error:
        raise Refused(f"{path}:{error.lineno}: {error.msg}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(said_once(error, path)) from None
    except RecursionError:
        raise Refused(f"{path}: the values are nested too deeply") from None
    except ValueError:
        raise Refused(f"{path}: a number has too many digits") from None
    if not isinstance(value, Located):
        raise Refused(f"{path}: the value must be an object")
    version = value.get("version", VERSION)
    if version != VERSION:
        raise Refused(f"{path}:{value.line}: Not supported version field value {version}")
    return value


def entries(path: str, name: str, fields: dict[str, type]) -> list[Located]:
    """Return the objects of the list `name`.

    Raise Refused unless each has all `fields` of their types."""
    found = read_json(path).get(name)
    if not isinstance(found, list):
        raise Refused(f"{path}: {name!r} must be a list")
    for number, entry in enumerate(found):
        if not isinstance(entry, Located):
            raise Refused(f"{path}: {name}[{number}] must be an object")
        for field, kind in fields.items():
            value = entry.get(field)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise Refused(
                    f"{path}:{entry.line}: {name}[{number}].{field} must be {KINDS[kind]}"
                )
    return found


def read_partitions(path: str) -> list[tuple[TopicPartition, Located]]:
    """Return each partition of a file with its entry. Raise Refused if the file is invalid."""
    found = entries(path, "partitions", {"topic": str, "partition": int})
    return [((entry["topic"], entry["partition"]), entry) for entry in found]


def duplicates(partitions: Sequence[TopicPartition]) -> list[str]:
    """Return the names of partitions that occur more than once."""
    times = Counter(partitions)
    return [text_of(each) for each in sorted(times) if times[each] > 1]


def read_topics(path: str) -> list[str]:
    """Return the topics of a file. Raise Refused if one occurs more than once."""
    topics = [entry["topic"] for entry in entries(path, "topics", {"topic": str})]
    times = Counter(topics)
    twice = sorted(each for each in times if times[each] > 1)
    if twice:
        raise Refused(f"List of topics to reassign contains duplicate entries: {','.join(twice)}")
    return topics


def read_assignment(path: str) -> Assignment:
    """Return the replicas of each partition in a reassignment file.

    Raise Refused if it is invalid."""
    found = entries(path, "partitions", {"topic": str, "partition": int, "replicas": list})
    keys = [(entry["topic"], entry["partition"]) for entry in found]
    if not keys:
        raise Refused("Partition reassignment list cannot be empty")
    twice = duplicates(keys)
    if twice:
        raise Refused(
            f"Partition reassignment contains duplicate topic partitions: {','.join(twice)}"
        )
    for key, entry in zip(keys, found, strict=True):
        check_replicas(path, key, entry)
    return {key: tuple(entry["replicas"]) for key, entry in zip(keys, found, strict=True)}


def check_replicas(path: str, key: TopicPartition, entry: Located) -> None:
    """Raise Refused unless the replicas are distinct integers with a log directory for each."""
    replicas = entry["replicas"]
    if not all(type(each) is int for each in replicas):  # a bool is an int, too
        raise Refused(f"{path}:{entry.line}: replicas of {text_of(key)} must be integers")
    if not replicas:
        raise Refused("Partition replica list cannot be empty")
    twice = sorted({each for each in replicas if replicas.count(each) > 1})
    if twice:
        raise Refused(
            "Partition replica lists may not contain duplicate entries: "
            f"{text_of(key)} contains multiple entries for {','.join(map(str, twice))}"
        )
    log_dirs = entry.get("log_dirs", [ANY] * len(replicas))
    if not isinstance(log_dirs, list) or len(log_dirs) != len(replicas):
        raise Refused(
            f"Size of replicas list {replicas} is different from size of log dirs list {log_dirs} "
            f"for partition {text_of(key)}"
        )
    if not all(
        each == ANY or (isinstance(each, str) and each.startswith("/")) for each in log_dirs
    ):
        raise Refused(
            f'{path}:{entry.line}: log_dirs of {text_of(key)} must be absolute paths or "{ANY}"'
        )


def read_log_dirs(path: str) -> dict[Replica, str]:
    """Return the log directory of each replica in a reassignment file that names one. Raise Refused
    if the file is invalid."""
    read_assignment(path)
    return {
        Replica(topic, partition, broker_id): log_dir
        for (topic, partition), entry in read_partitions(path)
        for broker_id, log_dir in zip(entry["replicas"], entry.get("log_dirs", ()), strict=False)
        if log_dir != ANY
    }


def assignment_json(assignment: Assignment) -> str:
    """Return an assignment as the JSON of a reassignment file."""
    partitions = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(replicas),
            "log_dirs": [ANY] * len(replicas),
        }
        for (topic, partition), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"))
