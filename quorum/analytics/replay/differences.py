"""The differences between the states of a cluster at two moments. Pure.

A state is first divided into subjects: the quorum, a feature, a controller, a broker, a topic, a
partition, the configs of a resource, the quotas of an entity. Then each subject is compared field
by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.quorum.analytics.log.damage import Found, refuse
from quorate.quorum.analytics.replay.moment import Moment, moment
from quorate.quorum.analytics.replay.moment_json import as_json

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a subject that differs.

    `before` is None if the subject is new or did not have the field, and `after` is None if it is
    gone. `what` is "created", "removed" or "changed" and says so about the whole subject."""

    subject: str
    what: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """The offsets and times of two moments, and their differences."""

    before_offset: int
    before_ms: int
    after_offset: int
    after_ms: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a history: an offset, or a time in ms since 1970. One of the two is not None."""

    offset: int | None = None
    time_ms: int | None = None


def diff(
    directory: Path | str, before: Point, after: Point, *, found: Found = refuse
) -> Comparison:
    """Return what differs between two points of a history. Block.

    `found` and the errors are those of `moment`."""
    states = [
        moment(directory, offset=point.offset, time_ms=point.time_ms, found=found)
        for point in (before, after)
    ]
    old, new = states
    return Comparison(
        old.offset, old.timestamp_ms, new.offset, new.timestamp_ms, tuple(differences(old, new))
    )


def differences(old: Moment, new: Moment) -> list[Difference]:
    """Return the differences, ordered by subject as in `as_json`."""
    before, after = subjects(as_json(old)), subjects(as_json(new))
    order = dict.fromkeys((*before, *after))
    return [each for subject in order for each in _of_subject(subject, before, after)]


def _of_subject(
    subject: str, before: Mapping[str, Fields], after: Mapping[str, Fields]
) -> list[Difference]:
    old, new = before.get(subject), after.get(subject)
    what = "created" if old is None else "removed" if new is None else "changed"
    old, new = old or {}, new or {}
    return [
        Difference(subject, what, name, old.get(name), new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


def subjects(state: Mapping[str, Any]) -> dict[str, Fields]:
    """Return the fields of each subject of a state that `as_json` made."""
    found: dict[str, Fields] = {"quorum": dict(state["quorum"])}
    for name, level in state["features"].items():
        found[f"feature {name}"] = {"level": level}
    for controller in state["controllers"]:
        found[f"controller {controller['id']}"] = _without(controller, "id")
    for broker in state["brokers"]:
        found[f"broker {broker['id']}"] = _without(broker, "id")
    for topic in state["topics"]:
        name = topic["name"]
        found[f"topic {name}"] = {"id": topic["id"], "partitions": len(topic["partitions"])}
        for partition in topic["partitions"]:
            fields = _without(partition, "partition")
            found[f"partition {name}-{partition['partition']}"] = fields
    for config in state["configs"]:
        name = config["resource_name"] or "(default)"
        found[f"config of {config['resource_type']} {name}"] = config["configs"]
    for quota in state["client_quotas"]:
        entity = ", ".join(
            f"{kind} {name or '(default)'}" for kind, name in quota["entity"].items()
        )
        found[f"quotas of {entity}"] = quota["quotas"]
    for credential in state["scram_credentials"]:
        name = f"{credential['mechanism']} credential of user {credential['user']}"
        found[name] = {"iterations": credential["iterations"]}
    for acl in state["acls"]:
        kind, name = acl["resource_type"], acl["resource_name"]
        rule = f"{acl['permission']} {acl['operation']} for {acl['principal']} from {acl['host']}"
        found[f"acl on {acl['pattern_type']} {kind} {name}: {rule}"] = {"set": True}
    found["producer ids"] = {"next": state["next_producer_id"]}
    return found


def _without(fields: Mapping[str, Any], name: str) -> Fields:
    return {key: value for key, value in fields.items() if key != name}
