"""The controllers that ask to become voters (controller.quorum.auto.join.enable), as their requests
reach the leader.

Such a controller ignores the outcome, so each request is a change with an unknown outcome. The
leader adds the controller, or first removes the voter with its id and a lost directory.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.node.replica.metadata_replica import MetadataReplica
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.messages import Request, Response, UpdateVoterRequest
from quorate.quorum.raft.voter_history import key_of
from tests.sim.checks.linearizability import NEVER
from tests.sim.checks.quorum_history import Change, QuorumHistory, added, removed
from tests.sim.clients.answers import attempted


def watch(replica: MetadataReplica, history: QuorumHistory, now_s: Callable[[], float]) -> None:
    request = replica.request

    def seen(message: Request, reply: Callable[[Response], None]) -> None:
        change = None
        if isinstance(message, UpdateVoterRequest) and message.join:
            change = _change(replica, key_of(message.voter), now_s())
        if change is None:
            request(message, reply)
            return
        history.changes.append(change)

        def answered(response: Response) -> None:
            if response.error != ErrorCode.NONE and change in history.changes:
                history.changes.remove(change)  # nothing was done
            reply(response)

        request(message, answered)

    replica.request = seen  # type: ignore[method-assign]


def _change(replica: MetadataReplica, key: ReplicaKey, now_s: float) -> Change | None:
    """Return the change that the leader will make with its present log, or None."""
    voters = [key_of(each) for each in replica.raft.voters_at(replica.log.end_offset).voters]
    old = next((each for each in voters if each.id == key.id), None)
    if old is None:
        return Change(f"{key} joins?", key, now_s, NEVER, attempted(added(key)))
    if old != key:
        return Change(f"{old} makes room?", old, now_s, NEVER, attempted(removed(old)))
    return None
