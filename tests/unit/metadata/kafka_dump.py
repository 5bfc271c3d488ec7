"""Reads the fixture: a real Apache Kafka's metadata log and what its own dump tool says of it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.metadata.framing import TYPE_NAMES
from quorate.quorum.metadata.records import CAUSE_TAG, MetadataRecord
from quorate.quorum.rpc.kafka.wire import Wired

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kafka-4.1.1-metadata"
C1 = FIXTURE / "c1"
LOG = C1 / "00000000000000000000.log"
CHECKPOINTS = sorted(C1.glob("*.checkpoint"))
HISTORY = json.loads((FIXTURE / "history.json").read_text())
BEFORE_SHUTDOWN = 369
"""The last offset before the brokers were shut down in order: where `final` holds."""

PAYLOAD = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .* payload: (\{.*\})$")


def dumped(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(offset, timestamp, {type, version, data}) of each record in Kafka's dump of `path`."""
    for line in path.with_name(path.name + ".dump.txt").read_text().splitlines():
        if match := PAYLOAD.match(line):
            yield int(match[1]), int(match[2]), json.loads(match[3])


def as_kafka_shows(record: MetadataRecord, version: int) -> dict[str, Any]:
    return {
        "type": TYPE_NAMES[type(record)],
        "version": version,
        "data": json_of(record, version),
    }


def json_of(value: Any, version: int) -> Any:
    """As Kafka's JSON converters: camelCase names, no tagged fields that are the default."""
    if dataclasses.is_dataclass(value):
        shown = {}
        for field in dataclasses.fields(value):
            wired: Wired = field.metadata["wire"]
            item = getattr(value, field.name)
            if not includes(wired.versions, version) or wired.tag == CAUSE_TAG:
                continue
            if wired.tag is not None and item == field.default:
                continue
            shown[camel(field.name)] = json_of(item, version)
        return shown
    if isinstance(value, tuple):
        return [json_of(each, version) for each in value]
    return uuid_to_text(Uuid(value)) if isinstance(value, bytes) else value


def includes(versions: str, version: int) -> bool:
    assert versions.endswith("+")
    return version >= int(versions[:-1])


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
