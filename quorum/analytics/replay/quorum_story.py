"""The story of the quorum: its active controllers, its voters, and the features of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quorate.quorum.analytics.log.damage import Found, refuse
from quorate.quorum.analytics.log.text import span
from quorate.quorum.analytics.replay.chronicle import Batch, Chronicle, chronicles
from quorate.quorum.analytics.replay.inference import listed
from quorate.quorum.metadata.records import FeatureLevelRecord, RegisterControllerRecord
from quorate.quorum.raft.control_records import LeaderChangeMessage, VotersRecord

ELECTED = "The voters elected it. The log does not say why the last one ended."
FIRST = "The log does not reach back to an earlier election."
BY_ADMINISTRATOR = "An administrator changed it."


def explain_quorum(directory: Path | str, *, found: Found = refuse) -> Chronicle:
    """Return the story of the quorum. Raise OutOfHistory if the log holds no election, no voters
    and no features; other errors are those of `story.explain`."""
    (story,) = chronicles(directory, QuorumTeller(), "quorum", found)
    return story


class QuorumTeller:
    """Collects the happenings of the quorum."""

    def __init__(self) -> None:
        self._chronicle = Chronicle(subject="quorum")
        self._leader: int | None = None
        self._epoch = -1
        self._voters: tuple[int, ...] = ()
        self._levels: dict[str, int] = {}
        self._last_ms: int | None = None

    def tell(self, batch: Batch) -> None:
        """Add the happenings of the batch, one for each record about the quorum."""
        for each in batch.records:
            for what, reason in self._of_record(each.message, each.epoch, each.timestamp_ms):
                self._chronicle.happenings.append(batch.happening(what, reason=reason))
        self._last_ms = batch.records[-1].timestamp_ms

    def told(self) -> list[Chronicle]:
        """Return the story, or nothing if no record is about the quorum."""
        if not self._chronicle.happenings:
            return []
        leader = "not known" if self._leader is None else f"node {self._leader}"
        voters = listed(self._voters) if self._voters else "not known"
        self._chronicle.ending = (
            f"the active controller is {leader}, epoch {self._epoch}, voters {voters}"
        )
        return [self._chronicle]

    def _of_record(self, message: object, epoch: int, at_ms: int) -> Iterator[tuple[str, str]]:
        match message:
            case LeaderChangeMessage(leader_id=leader):
                voters = tuple(sorted(voter.voter_id for voter in message.voters))
                yield (
                    self._elected(leader, epoch, at_ms, voters),
                    (FIRST if self._leader is None else ELECTED),
                )
                self._leader, self._epoch, self._voters = leader, epoch, voters
            case VotersRecord():
                voters = tuple(sorted(voter.voter_id for voter in message.voters))
                if voters != self._voters:
                    yield f"The voters are {listed(voters)}.", BY_ADMINISTRATOR
                self._voters = voters
            case FeatureLevelRecord(name=name, feature_level=level):
                if self._levels.get(name, 0) != level:
                    yield f"The feature {name} has level {level}.", BY_ADMINISTRATOR
                self._levels[name] = level
            case RegisterControllerRecord(controller_id=controller):
                yield f"Controller {controller} registered.", "It started, or found a new leader."

    def _elected(self, leader: int, epoch: int, at_ms: int, voters: tuple[int, ...]) -> str:
        again = " again" if leader == self._leader else ""
        text = [f"Node {leader} became the active controller{again}, epoch {epoch}."]
        if self._leader is not None and self._last_ms is not None:
            gap_ms = max(at_ms - self._last_ms, 0)
            text.append(f"The log has no record of the {span(gap_ms)} before.")
            if skipped := epoch - self._epoch - 1:
                text.append(f"{skipped} epochs before it had no active controller.")
        if voters != self._voters and voters:
            text.append(f"The voters are {listed(voters)}.")
        return " ".join(text)
