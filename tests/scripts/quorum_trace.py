"""The messages and effects of the Raft core as English sentences.

An empty text means that the trace does not show the message or the effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.ids import NO_NODE, EpochOffset
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects, messages
from quorate.quorum.raft.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
)
from quorate.quorum.raft.effects import Effect, Role
from quorate.quorum.raft.election import Election
from tests.unit.log.memory_log import Batch
from tests.unit.raft.harness import Letter


def snapshot_name(snapshot: EpochOffset) -> str:
    """Return the name of a snapshot as its file has it: end offset and epoch."""
    return f"snapshot {snapshot.offset}-{snapshot.epoch}"


# Requests


def _vote(letter: Letter, request: messages.VoteRequest) -> str:
    kind = "a pre-vote" if request.pre_vote else "its vote"
    last = request.last
    log = f"a log that ends at offset {last.offset} in epoch {last.epoch}"
    log = log if last.offset else "an empty log"
    return (
        f"node {letter.source} asks node {letter.target} for {kind} in epoch {request.epoch}, "
        f"with {log}"
    )


def _begin_epoch(letter: Letter, request: messages.BeginQuorumEpochRequest) -> str:
    return f"node {letter.source} tells node {letter.target} that it leads epoch {request.epoch}"


def _end_epoch(letter: Letter, request: messages.EndQuorumEpochRequest) -> str:
    preferred = ", ".join(str(each.id) for each in request.preferred_candidates)
    return f"node {letter.source} tells node {letter.target} that epoch {request.epoch} is over" + (
        f"; preferred successors: {preferred}" if preferred else ""
    )


def _fetch(letter: Letter, request: messages.FetchRequest) -> str:
    last = f", last epoch {request.last_fetched_epoch}" if request.offset else ""
    return (
        f"node {letter.source} fetches from node {letter.target} at offset {request.offset}{last}"
    )


def _fetch_snapshot(letter: Letter, request: messages.FetchSnapshotRequest) -> str:
    name = snapshot_name(request.snapshot)
    return f"node {letter.source} fetches {name} from node {letter.target}"


def _update_voter(letter: Letter, request: messages.UpdateVoterRequest) -> str:
    wish = "to become a voter" if request.join else "to update its address"
    return f"node {letter.source} asks node {letter.target} {wish}"


REQUESTS: dict[type[messages.Request], Callable[[Letter, Any], str]] = {
    messages.VoteRequest: _vote,
    messages.BeginQuorumEpochRequest: _begin_epoch,
    messages.EndQuorumEpochRequest: _end_epoch,
    messages.FetchRequest: _fetch,
    messages.FetchSnapshotRequest: _fetch_snapshot,
    messages.UpdateVoterRequest: _update_voter,
}


# Responses, with the request that each one answers


def _refusal(letter: Letter, response: messages.Response) -> str:
    names = f"epoch {response.epoch}"
    if response.leader_id != NO_NODE:
        names += f" with leader {response.leader_id}"
    error = ErrorCode.of(response.error).name
    return f"node {letter.source} answers node {letter.target} with {error} and names {names}"


def _voted(letter: Letter, request: messages.VoteRequest, response: messages.VoteResponse) -> str:
    kind = "pre-vote" if request.pre_vote else "vote"
    verb = "grants" if response.granted else "refuses"
    text = f"node {letter.source} {verb} node {letter.target} the {kind} in epoch {request.epoch}"
    if not response.granted and response.leader_id != NO_NODE:
        return f"{text}, and names leader {response.leader_id} of epoch {response.epoch}"
    return text


def _fetched(
    letter: Letter, request: messages.FetchRequest, response: messages.FetchResponse
) -> str:
    sends = f"node {letter.source} sends node {letter.target}"
    if response.diverging is not None:
        epoch, end = response.diverging.epoch, response.diverging.offset
        return f"{sends} the divergence: its epoch {epoch} ends at offset {end}"
    if response.snapshot is not None:
        return f"{sends} the name of {snapshot_name(response.snapshot)} instead of records"
    sent = offsets_of(bytes(response.records))
    news = [f"{sent}"] if sent else []
    if response.high_watermark > request.high_watermark:
        news.append(f"high watermark {response.high_watermark}")
    return f"{sends} {' and '.join(news)}" if news else ""


def _fetched_snapshot(
    letter: Letter,
    request: messages.FetchSnapshotRequest,
    response: messages.FetchSnapshotResponse,
) -> str:
    whole = request.position + len(response.data) >= response.size_bytes
    part = "all" if whole and request.position == 0 else "a part"
    name = snapshot_name(request.snapshot)
    return f"node {letter.source} sends node {letter.target} {part} of {name}"


RESPONSES: dict[type[messages.Request], Callable[[Letter, Any, Any], str]] = {
    messages.VoteRequest: _voted,
    messages.FetchRequest: _fetched,
    messages.FetchSnapshotRequest: _fetched_snapshot,
}


def request_text(letter: Letter) -> str:
    """Return the sentence of a request that arrives or is lost."""
    return REQUESTS[type(letter.message)](letter, letter.message)  # type: ignore[index]


def response_text(letter: Letter, request: messages.Request) -> str:
    """Return the sentence of a response, or an empty text if it only acknowledges the request."""
    response = letter.message
    assert not isinstance(response, messages.Request)
    if response.error:
        return _refusal(letter, response)
    tell = RESPONSES.get(type(request))
    return tell(letter, request, response) if tell else ""


# Effects


def saved_text(node_id: int, election: Election) -> str:
    """Return the sentence of an election that has become durable."""
    parts = [f"node {node_id} saves epoch {election.epoch}"]
    if election.voted is not None:
        parts.append(f"its vote for node {election.voted.id}")
    if election.leader_id != NO_NODE:
        parts.append(f"leader {election.leader_id}")
    return parts[0] + (" with " + " and ".join(parts[1:]) if parts[1:] else "")


def _role(effect: effects.RoleChanged) -> str:
    match effect.role:
        case Role.LEADER:
            return f"leads epoch {effect.epoch}"
        case Role.FOLLOWER:
            return f"follows node {effect.leader_id} in epoch {effect.epoch}"
        case role:
            return f"is {role.value} in epoch {effect.epoch}"


def _voter_change(effect: effects.VoterChangeResult) -> str:
    if effect.error == ErrorCode.NONE:
        return "answers that the change of voters is committed"
    return f"refuses the change of voters with {ErrorCode.of(effect.error).name}"


def effect_text(effect: Effect) -> str:
    """Return the predicate of a sentence about the node that emits the effect."""
    match effect:
        case effects.RoleChanged():
            return _role(effect)
        case effects.Committed(high_watermark):
            return f"raises its high watermark to {high_watermark}"
        case effects.Truncated(offset):
            return f"truncates its log to offset {offset}"
        case effects.SnapshotInstalled(snapshot):
            return f"replaces its log with {snapshot_name(snapshot)}"
        case effects.VotersChanged(version, voters) if version:
            return f"has the voter set {', '.join(str(each.voter_id) for each in voters)}"
        case effects.ProbeVoter(_, voter):
            return f"probes the address of node {voter.voter_id}"
        case effects.VoterChangeResult():
            return _voter_change(effect)
        case effects.Resigned():
            return "may stop"
        case effects.CaughtUp():
            return "has caught up"
        case effects.PeerProblem(replica_id):
            return f"reports a problem with node {replica_id}"
        case _:
            return ""


# Logs


def offsets_of(data: bytes) -> str:
    """Return the offsets and epochs of the records in a slice of a log, or an empty text."""
    spans = [(each.base_offset, each.next_offset, each.leader_epoch) for _, each in batches(data)]
    if not spans:
        return ""
    first, end = spans[0][0], spans[-1][1]
    epochs = sorted({epoch for _, _, epoch in spans})
    named = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {', '.join(map(str, epochs))}"
    offsets = f"record {first}" if end == first + 1 else f"records {first} to {end - 1}"
    return f"{offsets} of {named}"


def records_text(batch: Batch) -> list[str]:
    """Return one word for each record of a batch."""
    control = dict(batch.control_records())
    return [
        _control(control[record.offset])
        if record.offset in control
        else bytes(record.value or b"").decode()
        for position, header in batches(batch.data)
        for record in records_of(batch.data, position, header)
    ]


def _control(record: object) -> str:
    match record:
        case LeaderChangeMessage(leader_id=leader_id):
            return f"leader={leader_id}"
        case KRaftVersionRecord(k_raft_version=version):
            return f"kraft.version={version}"
        case VotersRecord(voters=voters):
            return "voters=" + ",".join(str(each.voter_id) for each in voters)
        case _:
            return type(record).__name__
