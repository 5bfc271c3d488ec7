"""Admin requests about the voters: AddRaftVoter, RemoveRaftVoter, UpdateFeatures of kraft.version.

Raft decides these requests, not the controller's rules, because the voters are in Raft's own
records (KIP-853). An answer waits until the new voter set has committed the change, at most for
CHANGE_TIMEOUT_MS. An AddRaftVoter may name a shorter timeout. The change continues after the
timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from quorate.quorum.clipped import shown
from quorate.quorum.controller.state.settings import SUPPORTED_FEATURES
from quorate.quorum.ids import ReplicaKey
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.peers.node_membership import configured_voters
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.wire import Message
from quorate.quorum.raft.control_records import SUPPORTED, Voter, VoterEndpoint
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.voter_changes import KRAFT_VERSION, VoterChangeRefused, require_upgrade

if TYPE_CHECKING:
    from quorate.quorum.node.node_core import NodeCore
    from quorate.quorum.protocol.schemas.raft_voters import AddRaftVoterRequest
    from quorate.quorum.protocol.schemas.update_features import UpdateFeaturesRequest

NOT_IN_TIME = (
    "the change was not committed in time, and may still be committed: describe the quorum before "
    "you try again"
)
"""The error message if the outcome of a change is unknown. The simulation recognizes it."""
CHANGE_TIMEOUT_MS = 30_000
"""Maximum time, in ms, that an answer waits. Then the error is REQUEST_TIMED_OUT."""
MAX_LISTENERS = 16
"""The largest number of listeners of a voter."""
MAX_NAME_BYTES = 255
"""The longest host name or listener name of a voter, in bytes of UTF-8."""
Answer = Callable[[object], None]
"""A callback that receives the response message, or a Refusal."""


class VoterAdmin:
    """The handler of these requests on one controller. Owned by the node's event loop."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core

    def handles(self, request: Message) -> bool:
        """Return True if Raft decides this request. An UpdateFeatures counts if it changes
        kraft.version, or names no other feature. Kafka's tools name all features of a release."""
        if request.API_KEY == ApiKey.UPDATE_FEATURES:
            from quorate.quorum.protocol.schemas.update_features import UpdateFeaturesRequest

            assert isinstance(request, UpdateFeaturesRequest)
            level = self._core.raft.voters_at(self._core.end_offset).kraft_version
            named = [each for each in request.feature_updates if each.feature == KRAFT_VERSION]
            changed = any(each.max_version_level != level for each in named)
            return bool(named) and (changed or len(request.feature_updates) == len(named))
        return request.API_KEY in (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)

    def ask(self, request: Message, answer: Answer) -> None:
        """Carry out a request that `handles` accepts.

        `answer` gets one response message, now or later, or Refusal.NOT_CONTROLLER if this node
        does not lead the quorum. An UpdateFeatures that also names other features is refused."""
        if self._core.raft.role is not Role.LEADER:
            answer(Refusal.NOT_CONTROLLER)
        elif request.API_KEY == ApiKey.ADD_RAFT_VOTER:
            self._add(request, answer)
        elif request.API_KEY == ApiKey.REMOVE_RAFT_VOTER:
            self._remove(request, answer)
        else:
            self._upgrade(request, answer)

    def _add(self, request: Message, answer: Answer) -> None:
        from quorate.quorum.protocol.schemas import raft_voters

        assert isinstance(request, raft_voters.AddRaftVoterRequest)

        def respond(error: int, message: str) -> None:
            answer(
                raft_voters.AddRaftVoterResponse(error_code=error, error_message=message or None)
            )

        if self._elsewhere(request.cluster_id, respond):
            return
        if problem := implausible(request):
            respond(ErrorCode.INVALID_REQUEST, problem)
            return
        voter = Voter(
            voter_id=request.voter_id,
            voter_directory_id=request.voter_directory_id,
            endpoints=tuple(
                VoterEndpoint(name=each.name, host=each.host, port=each.port)
                for each in request.listeners
            ),
            k_raft_version_feature=SUPPORTED,
        )
        done = self._in_time(respond, request.timeout_ms)
        self._core.replica.change_voters(done, self._core.raft.add_voter, voter)

    def _remove(self, request: Message, answer: Answer) -> None:
        from quorate.quorum.protocol.schemas import raft_voters

        assert isinstance(request, raft_voters.RemoveRaftVoterRequest)

        def respond(error: int, message: str) -> None:
            text = message or None
            answer(raft_voters.RemoveRaftVoterResponse(error_code=error, error_message=text))

        if self._elsewhere(request.cluster_id, respond):
            return
        voter = ReplicaKey(request.voter_id, request.voter_directory_id)
        done = self._in_time(respond, CHANGE_TIMEOUT_MS)
        self._core.replica.change_voters(done, self._core.raft.remove_voter, voter)

    def _upgrade(self, request: Message, answer: Answer) -> None:
        from quorate.quorum.protocol.schemas import update_features as schema

        assert isinstance(request, schema.UpdateFeaturesRequest)

        def respond(error: int, message: str) -> None:
            results = () if error else (schema.UpdatableFeatureResult(feature=KRAFT_VERSION),)
            answer(
                schema.UpdateFeaturesResponse(
                    error_code=error, error_message=message or None, results=results
                )
            )

        if len(request.feature_updates) != 1:
            respond(ErrorCode.INVALID_UPDATE_VERSION, why_not_together(request))
            return
        (update,) = request.feature_updates
        raft = self._core.raft
        if request.validate_only:
            current = raft.voters_at(self._core.end_offset).kraft_version
            try:
                require_upgrade(current, update.max_version_level)
            except VoterChangeRefused as refused:
                respond(refused.error, str(refused))
            else:
                respond(ErrorCode.NONE, "")
            return
        self._core.replica.change_voters(
            self._in_time(respond, CHANGE_TIMEOUT_MS),
            self._core.raft.upgrade,
            update.max_version_level,
            configured_voters(self._core.config),
        )

    def _elsewhere(self, cluster_id: str | None, respond: Callable[[int, str], None]) -> bool:
        """Return True if the request names another cluster. It is refused then."""
        if cluster_id in (None, self._core.cluster_id):
            return False
        text = f"the cluster id is {self._core.cluster_id}, not {cluster_id}"
        respond(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
        return True

    def _in_time(
        self, respond: Callable[[int, str], None], timeout_ms: int
    ) -> Callable[[int, str], None]:
        """Return a callback that responds once: with the result, or with a timeout before it."""
        waiting = [respond]

        def once(error: int, message: str) -> None:
            if waiting:
                timer.cancel()
                waiting.pop()(error, message)

        timer = self._core.seams.clock.call_later(
            max(1, min(timeout_ms, CHANGE_TIMEOUT_MS)),
            partial(once, ErrorCode.REQUEST_TIMED_OUT, NOT_IN_TIME),
        )
        return once


def why_not_together(request: UpdateFeaturesRequest) -> str:
    """Return why a request cannot change kraft.version and other features, and what to do."""
    names = {each.feature for each in request.feature_updates}
    unknown = sorted(names - {KRAFT_VERSION, *SUPPORTED_FEATURES})
    if unknown:
        return (
            f"these features do not exist here: {shown(', '.join(unknown))}. Name the others one "
            "by one, such as --feature metadata.version=N, instead of a whole release"
        )
    return (
        f"{KRAFT_VERSION} is a feature of Raft: change it in a request of its own "
        f"(--feature {KRAFT_VERSION}=N), then repeat this one"
    )


def implausible(request: AddRaftVoterRequest) -> str:
    """Return what is wrong with the described voter, or an empty string.

    The bounds matter because every node stores the description in its log and connects to its first
    endpoint."""
    if request.voter_id < 0:
        return f"the voter id {request.voter_id} is negative"
    if not 1 <= len(request.listeners) <= MAX_LISTENERS:
        return f"{len(request.listeners)} listeners are described, 1 to {MAX_LISTENERS} are allowed"
    for each in request.listeners:
        if not 1 <= len(each.host.encode()) <= MAX_NAME_BYTES or not each.port:
            return f"the host must have 1 to {MAX_NAME_BYTES} bytes and the port must not be 0"
        if not 1 <= len(each.name.encode()) <= MAX_NAME_BYTES:
            return f"the name of a listener must have 1 to {MAX_NAME_BYTES} bytes"
    return ""
