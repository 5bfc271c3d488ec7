"""The requests of administrators and their answers by topic. One order must explain them all.

The state of a topic is its number of partitions and one of its configs, or None if the topic does
not exist. The defaults of all brokers are kept in the same way, under a name that no topic can
have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.checks.invariants import Violation
from tests.sim.checks.linearizability import NEVER, Operation
from tests.sim.checks.verdicts import Verdicts
from tests.sim.clients.answers import Impossible, Step, attempted, found, refused, succeeded

RETENTION = "log.retention.ms"
TOPIC_RETENTION = "retention.ms"
DEFAULTS = ""  # the name of the defaults of all brokers


class Topic(NamedTuple):
    partitions: int = 0
    retention: str | None = None


State = Topic | None


def created(partitions: int) -> Step[State]:
    def step(state: State) -> State:
        if state is not None:
            raise Impossible(ErrorCode.TOPIC_ALREADY_EXISTS)
        return Topic(partitions)

    return step


def there(state: State) -> Topic:
    if state is None:
        raise Impossible(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return state


def deleted(state: State) -> State:
    there(state)
    return None


def grown(count: int) -> Step[State]:
    def step(state: State) -> State:
        topic = there(state)
        if count <= topic.partitions:
            raise Impossible(ErrorCode.INVALID_PARTITIONS)
        return topic._replace(partitions=count)

    return step


def configured(value: int) -> Step[State]:
    return lambda state: there(state)._replace(retention=str(value))


OBSERVED = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_PARTITIONS,
)
"""Refusals that depend on the state of the topic."""
NOTHING_DONE = (ErrorCode.INVALID_REPLICATION_FACTOR,)


@dataclass(slots=True)
class AdminHistory:
    operations: dict[str, list[Operation[State]]] = field(default_factory=dict)
    initial: dict[str, State] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=Verdicts)

    def record(
        self,
        name: str,
        what: str,
        step: Step[State],
        start_s: float,
        end_s: float,
        error: int | None,
    ) -> None:
        """Record a request for a topic, or for the brokers' defaults, with its answer.

        `error` is None if no answer came. Then, and after an error that does not tell the outcome,
        the request may have been carried out, or may still be."""
        if error in NOTHING_DONE:
            return
        operations = self.operations.setdefault(name, [])
        if error == ErrorCode.NONE:
            operations.append(Operation(what, start_s, end_s, succeeded(step)))
        elif error in OBSERVED:
            operations.append(
                Operation(f"{what}: {error}", start_s, end_s, refused(step, ErrorCode.of(error)))
            )
        else:
            operations.append(Operation(f"{what}?", start_s, NEVER, attempted(step)))

    def check(self, image: MetadataImage, now_s: float) -> None:
        """Raise Violation if no order of the requests explains all answers and the present
        state."""
        for name, operations in self.operations.items():
            now = state_in(image, name)
            final = Operation(f"is {now}", now_s, now_s, found(now))
            initial = self.initial.get(name, Topic() if name == DEFAULTS else None)
            if self.verdicts.explained([*operations, final], initial) is False:
                told = "; ".join(f"{o.start:.4f}-{o.end:.4f} {o.name}" for o in operations)
                raise Violation(
                    f"{name or 'broker defaults'} is {now}, but no order explains {told}"
                )

    def given_up(self, known: MetadataImage, kept: MetadataImage, now_s: float) -> None:
        """Restart the history, because a quorum was rebuilt without its last changes.

        All answers until now led to `known`. The history continues with `kept`. A request without
        an answer may still be carried out."""
        self.check(known, now_s)
        for name, operations in self.operations.items():
            self.initial[name] = state_in(kept, name)
            operations[:] = [each for each in operations if not each.answered]


def state_in(image: MetadataImage, name: str) -> State:
    if name == DEFAULTS:
        return Topic(0, image.config(BROKER_RESOURCE, name).get(RETENTION))
    topic = image.topic(name)
    if topic is None:
        return None
    return Topic(len(topic.partitions), image.config(TOPIC_RESOURCE, name).get(TOPIC_RETENTION))
