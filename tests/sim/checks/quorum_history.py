"""The requests and answers about the voters. One order must explain them all.

A change is answered when it is committed, so it took effect between its call and its answer. A
leader gives all other answers from memory, as Kafka's does: DescribeQuorum, and the reason why it
refuses a change. Such an answer may be old if another leader has been elected meanwhile. It may
also be ahead, because a change holds for the leader from the moment when it is in the log. The
answer must therefore be right at some moment after the leader was deposed, or after the request
if it was not. It may differ by one requested change whose outcome is unknown.

ApiVersions promises less, also in Kafka: any node answers from its own copy of the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.node.controller.voter_admin import NOT_IN_TIME
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.delayed_fetches import LEADERSHIP_LOST
from tests.sim.checks.invariants import Election, Violation
from tests.sim.checks.linearizability import NEVER, Operation
from tests.sim.checks.verdicts import Verdicts
from tests.sim.clients.answers import Apply, Impossible, Step, attempted, found, refused, succeeded

Voters = frozenset[ReplicaKey]


class Voting(NamedTuple):
    kraft_version: int
    voters: Voters


def added(key: ReplicaKey) -> Step[Voting]:
    def step(voting: Voting) -> Voting:
        _require_dynamic(voting)
        if key.id in {each.id for each in voting.voters}:
            raise Impossible(ErrorCode.DUPLICATE_VOTER)
        return voting._replace(voters=voting.voters | {key})

    return step


def removed(key: ReplicaKey) -> Step[Voting]:
    def step(voting: Voting) -> Voting:
        _require_dynamic(voting)
        if key not in voting.voters or voting.voters == {key}:
            raise Impossible(ErrorCode.VOTER_NOT_FOUND)
        return voting._replace(voters=voting.voters - {key})

    return step


def upgraded(voting: Voting) -> Voting:
    return voting._replace(kraft_version=1)


def _require_dynamic(voting: Voting) -> None:
    if voting.kraft_version == 0:
        raise Impossible(ErrorCode.UNSUPPORTED_VERSION)


OBSERVED = (
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.INVALID_REQUEST,
)
"""Refusals that depend on the state of the quorum."""
UNKNOWN_OUTCOMES = (NOT_IN_TIME, LEADERSHIP_LOST)
"""The texts of a REQUEST_TIMED_OUT after which the change may have happened. With any other text,
nothing was done."""


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    key: ReplicaKey | None
    start_s: float
    end_s: float
    apply: Apply[Voting]


@dataclass(frozen=True, slots=True)
class Said:
    """A leader's answer from memory. `voters` is None for a refusal."""

    name: str
    leader_id: int
    start_s: float
    end_s: float
    apply: Apply[Voting]
    voters: Voters | None = None


@dataclass(slots=True)
class QuorumHistory:
    initial: Voting
    elections: list[Election]
    changes: list[Change] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    verdicts: Verdicts = field(default_factory=Verdicts)

    def told(
        self,
        name: str,
        step: Step[Voting],
        key: ReplicaKey | None,
        leader_id: int,
        start_s: float,
        end_s: float,
        answer: tuple[int, str] | None,
    ) -> None:
        """Record a change that this leader was asked for. `answer` is the error code with its text,
        or None if no answer came."""
        error, words = answer or (ErrorCode.REQUEST_TIMED_OUT, UNKNOWN_OUTCOMES[0])
        if error == ErrorCode.NONE:
            self.changes.append(Change(name, key, start_s, end_s, succeeded(step)))
        elif error in OBSERVED:
            code = ErrorCode.of(error)
            name = f"{name}: {code.name}"
            self.said.append(Said(name, leader_id, start_s, end_s, refused(step, code)))
        elif words in UNKNOWN_OUTCOMES:
            self.changes.append(Change(f"{name}?", key, start_s, NEVER, attempted(step)))

    def described(
        self, voters: Iterable[ReplicaKey], leader_id: int, start_s: float, end_s: float
    ) -> None:
        now = frozenset(voters)
        self.said.append(Said(_text(now), leader_id, start_s, end_s, _are(now), now))

    def begin_anew(self, voting: Voting) -> None:
        """Restart the history, because the quorum was rebuilt, long after the last answer."""
        self.check(None, 0.0)
        self.initial = voting
        self.changes.clear()
        self.said.clear()

    def check(self, now: Voting | None, now_s: float) -> bool:
        """Raise Violation if no order explains all answers and the voters `now`. Return False if
        the search gave up."""
        operations = [Operation(c.name, c.start_s, c.end_s, c.apply) for c in self.changes]
        operations += [self._heard(each) for each in self.said]
        if now is not None:
            operations.append(Operation(f"is {_text(now.voters)}", now_s, now_s, found(now)))
        explained = self.verdicts.explained(operations, self.initial)
        if explained is False:
            operations.sort(key=lambda each: each.start)
            told = "; ".join(f"{o.start:.4f}-{o.end:.4f} {o.name}" for o in operations)
            raise Violation(f"no order explains the voters, {_text(self.initial.voters)}: {told}")
        return explained is True

    def _heard(self, said: Said) -> Operation[Voting]:
        start_s = min(said.start_s, self._deposed_s(said))
        unsettled = frozenset(
            each.key
            for each in self.changes
            if each.key is not None and each.start_s < said.end_s and each.end_s > start_s
        )
        apply = said.apply if said.voters is None else _are(said.voters, unsettled)
        return Operation(said.name, start_s, said.end_s, apply)

    def _deposed_s(self, said: Said) -> float:
        """Return the time of the first election after the last one that this leader won before its
        answer, or NEVER."""
        own = [each.epoch for each in self.elections if each.leader_id == said.leader_id]
        own = [each for each in own if self._elected_s(each) <= said.end_s]
        later = (each.at_s for each in self.elections if each.epoch > max(own, default=-1))
        return min(later, default=NEVER)

    def _elected_s(self, epoch: int) -> float:
        return next(each.at_s for each in self.elections if each.epoch == epoch)


def _are(voters: Voters, unsettled: frozenset[ReplicaKey] = frozenset()) -> Apply[Voting]:
    def apply(voting: Voting) -> tuple[Voting] | None:
        differ = voting.voters ^ voters
        ahead = len(differ) == 1 and differ <= unsettled
        return (voting,) if ahead or not differ else None

    return apply


def _text(voters: Voters) -> str:
    in_order = sorted(voters, key=lambda each: (each.id, each.directory_id))
    return ", ".join(f"{each.id}:{each.directory_id.hex()[:4]}" for each in in_order)
