"""The configs of brokers and topics, with their sources and defaults.

Each broker is asked for its own configs, because no other one knows its file. Every reading covers
all brokers and the next topics, up to TOPICS_PER_READING, so that its cost has a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar

from quorate.cli.client.admin import Admin
from quorate.cli.console.views.answers import Notes, answers_of
from quorate.cli.console.views.config_rows import (
    CONFIGS,
    ConfigOwner,
    ConfigRows,
    config_rows,
    rows_of,
)
from quorate.cli.console.views.group_rows import next_names
from quorate.cli.console.views.table import Table
from quorate.cli.status.cluster_status import Status
from quorate.cli.topics.topic_view import TopicView
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs as schemas

RESOURCES = {"broker": 4, "topic": 2}
"""The resource types of DescribeConfigs."""
TOPICS_PER_READING = 200
"""The most topics whose configs one reading asks for."""
MAX_TOPICS = 1_000
"""The most topics that the table has."""
MAX_ROWS = 50_000
"""The most rows of the table. Configs with their default are left out first."""


class ConfigsView:
    """The configs of the last readings. The thread of the watcher owns it."""

    COLUMNS: ClassVar = {"configs": CONFIGS}

    def __init__(self) -> None:
        self._known: dict[ConfigOwner, ConfigRows] = {}
        self._last = ""

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the table `configs`. Raise Refused if a broker does not serve the requests, and
        NotReachable if no node answers."""
        notes = Notes()
        brokers = [ConfigOwner("broker", str(each.id)) for each in status.brokers]
        names = sorted(each.name for each in islice(topics, MAX_TOPICS))
        if len(topics) > MAX_TOPICS:
            notes.add(f"the first {MAX_TOPICS} of {len(topics)} topics are shown")
        some = next_names(names, self._last, TOPICS_PER_READING)
        self._last = some[-1] if some else ""
        owners = [*brokers, *(ConfigOwner("topic", name) for name in names)]
        up = [each.id for each in status.brokers if each.state == "up"]
        found = {**broker_configs(admin, up, notes), **topic_configs(admin, some, notes)}
        self._known = {
            each: found.get(each) or self._known[each]
            for each in owners
            if each in found or each in self._known
        }
        if missing := len(owners) - len(self._known):
            notes.add(f"{missing} brokers and topics are not read")
        rows, left_out = config_rows(self._known.values(), MAX_ROWS)
        if left_out:
            notes.add(f"{left_out} rows are left out, most of them defaults")
        return {"configs": Table(CONFIGS, rows, str(notes))}


def broker_configs(
    admin: Admin, brokers: Sequence[int], notes: Notes
) -> dict[ConfigOwner, ConfigRows]:
    """Return the configs of each broker that answers. Raise Refused as `answers_of` does."""
    requests = {each: request_of("broker", [str(each)]) for each in brokers}
    answers = answers_of(admin, requests, schemas.DescribeConfigsResponse, notes)
    return {
        owner: rows
        for answer in answers.values()
        for owner, rows in described("broker", answer, notes).items()
    }


def topic_configs(
    admin: Admin, topics: Sequence[str], notes: Notes
) -> dict[ConfigOwner, ConfigRows]:
    """Return the configs of the topics. Raise Refused and NotReachable as `Admin.ask` does."""
    if not topics:
        return {}
    answer = admin.ask(request_of("topic", topics), schemas.DescribeConfigsResponse)
    return described("topic", answer, notes)


def request_of(kind: str, names: Sequence[str]) -> schemas.DescribeConfigsRequest:
    """Return the request for all configs of some brokers or topics."""
    return schemas.DescribeConfigsRequest(
        resources=tuple(
            schemas.DescribeConfigsResource(
                resource_type=RESOURCES[kind], resource_name=each, configuration_keys=None
            )
            for each in names
        ),
        include_synonyms=True,
    )


def described(
    kind: str, answer: schemas.DescribeConfigsResponse, notes: Notes
) -> dict[ConfigOwner, ConfigRows]:
    """Return the configs in a response. A resource with an error is left out, and is in the
    notes."""
    found = {}
    for each in answer.results:
        if each.error_code:
            notes.add(f"{kind} {each.resource_name}: {ErrorCode.of(each.error_code).name}")
        else:
            owner = ConfigOwner(kind, each.resource_name)
            found[owner] = rows_of(owner, each.configs)
    return found
