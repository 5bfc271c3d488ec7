"""The actions of the console as data. The page draws its buttons and dialogs from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.cli.client.admin import Admin
from quorate.cli.console.actions import requests
from quorate.cli.console.actions.fields import (
    BROKERS,
    PARTITION,
    TOPIC,
    Field,
    Values,
    whole_number,
)
from quorate.quorum.node_message_bounds import INT32_MAX

MAX_REPLICATION_FACTOR = 2**15 - 1
DEFAULT = "the cluster's default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change of the cluster. `label` is the text of its button.

    `question` is the confirmation, in which {NAME} is the value of the field NAME. `run` sends the
    request in the calling thread, and returns a sentence about the result. It raises a
    ClickException if the cluster refuses or does not answer."""

    name: str
    label: str
    question: str
    fields: tuple[Field, ...]
    run: Callable[[Admin, Values], str]

    def as_json(self) -> dict[str, Any]:
        """Return what the page needs to draw the action."""
        return {
            "name": self.name,
            "label": self.label,
            "question": self.question,
            "fields": [each.as_json() for each in self.fields],
        }


ONE_TOPIC = Field(name="topic", label="topic", kind=TOPIC)
AGAIN = Field(name="again", label="the name of the topic again", kind=TOPIC, same_as="topic")
ONE_PARTITION = Field(name="partition", label="partition", kind=PARTITION)
ACTIONS: Mapping[str, Action] = {
    each.name: each
    for each in (
        Action(
            name="create-topic",
            label="create topic",
            question="Create the topic {topic}? Partitions: {partitions}. Replicas of each "
            "partition: {replicas}.",
            fields=(
                ONE_TOPIC,
                Field(
                    name="partitions",
                    label="partitions",
                    kind=whole_number(1, INT32_MAX),
                    blank=DEFAULT,
                ),
                Field(
                    name="replicas",
                    label="replicas of each partition",
                    kind=whole_number(1, MAX_REPLICATION_FACTOR),
                    blank=DEFAULT,
                ),
            ),
            run=requests.create_topic,
        ),
        Action(
            name="delete-topic",
            label="delete topic",
            question="Delete the topic {topic} and all of its records? This cannot be undone.",
            fields=(ONE_TOPIC, AGAIN),
            run=requests.delete_topic,
        ),
        Action(
            name="reassign",
            label="move replicas",
            question="Move the replicas of partition {partition} of the topic {topic} to the "
            "brokers {brokers}? The first one is the preferred leader.",
            fields=(
                ONE_TOPIC,
                ONE_PARTITION,
                Field(name="brokers", label="brokers, such as 4,5,6", kind=BROKERS),
            ),
            run=requests.reassign,
        ),
        Action(
            name="cancel-reassignment",
            label="cancel move",
            question="Cancel the reassignment of partition {partition} of the topic {topic}? The "
            "replicas that it adds are removed.",
            fields=(ONE_TOPIC, ONE_PARTITION),
            run=requests.cancel_reassignment,
        ),
        Action(
            name="elect-preferred",
            label="elect preferred leader",
            question="Elect the preferred leader of partition {partition} of the topic {topic}?",
            fields=(ONE_TOPIC, ONE_PARTITION),
            run=requests.elect_preferred,
        ),
        Action(
            name="elect-all-preferred",
            label="elect all preferred leaders",
            question="Elect the preferred leader of every partition of the cluster?",
            fields=(),
            run=requests.elect_all_preferred,
        ),
        Action(
            name="elect-unclean",
            label="elect unclean leader",
            question="Elect a replica outside of the ISR as the leader of partition {partition} of "
            "the topic {topic}? Acknowledged records may be lost.",
            fields=(ONE_TOPIC, ONE_PARTITION, AGAIN),
            run=requests.elect_unclean,
        ),
    )
}
