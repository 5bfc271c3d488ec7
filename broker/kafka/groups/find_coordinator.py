"""Handles FindCoordinator (API key 10): names the leader of a group's partition of
__consumer_offsets.

The first request for a group creates __consumer_offsets, even if auto.create.topics.enable is
false. Transactional ids have no coordinator, because Quorate has no transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.broker.groups.partition_of import partition_of
from quorate.broker.kafka.cluster.auto_create import AutoCreation
from quorate.broker.kafka.cluster.suspects import Suspects
from quorate.quorum.clipped import shown
from quorate.quorum.ids import NO_NODE
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

logger = logging.getLogger("quorate.kafka")
GROUP, TRANSACTION = 0, 1
"""The key types."""
SEVERAL_KEYS_SINCE = 4
"""The first version that names several groups (KIP-699)."""
NO_TRANSACTIONS = (
    "transactions are not offered. Produce without transactional.id, and switch off exactly-once "
    "support in Connect and Streams"
)
KEY_ENTRIES, CHARS_PER_ENTRY = 4, 16
"""The weight of a key, in entries of a step (`Pace`), and the number of characters whose hash
weighs one entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorHandler:
    """Handles FindCoordinator on one listener of a broker, on the broker's event loop."""

    listener: str
    image: Callable[[], MetadataImage]
    creation: AutoCreation
    suspects: Suspects
    refusals: LogLimit
    """Limits the lines about transactional ids."""

    def handle(
        self, context: RequestContext, request: FindCoordinatorRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the coordinator of each key, or with an error for it.

        The errors are COORDINATOR_NOT_AVAILABLE, that of `no_transactions` for a transactional id,
        and INVALID_REQUEST for another key type. COORDINATOR_NOT_AVAILABLE means
        that the partition has no live leader with this listener, or that __consumer_offsets could
        not be created or is not in this broker's image yet.

        The response waits for the creation of __consumer_offsets. If the topic exists, it waits
        while a broker is suspected (`suspects.py`). Return the steps that are left, or None.
        """

        def answer() -> None:
            context.run(self._answer(context, request))

        if request.key_type == GROUP and self.image().topic(OFFSETS_TOPIC) is None:
            self.creation.create([OFFSETS_TOPIC], lambda errors: answer())
            return None
        if self.suspects.hold(answer):
            return None
        return begun(self._answer(context, request))

    def _answer(
        self, context: RequestContext, request: FindCoordinatorRequest
    ) -> IncrementalWork[None]:
        several, pace = context.version >= SEVERAL_KEYS_SINCE, Pace()
        keys = request.coordinator_keys if several else (request.key,)
        if request.key_type == TRANSACTION:
            self._log_transaction(context, keys)
        found = []
        for key in keys:
            found.append(self._find(key, request.key_type, context.version))
            if pace.is_time(KEY_ENTRIES + len(key) // CHARS_PER_ENTRY):
                yield
        if several:
            response = FindCoordinatorResponse(coordinators=tuple(found))
            yield from context.respond_steps(response)
            return
        context.respond(
            FindCoordinatorResponse(
                error_code=found[0].error_code,
                error_message=found[0].error_message,
                node_id=found[0].node_id,
                host=found[0].host,
                port=found[0].port,
            )
        )

    def _log_transaction(self, context: RequestContext, keys: Sequence[str]) -> None:
        """Log that a client has asked for transactions. Some clients, such as a Connect worker with
        exactly-once support, only repeat the request, so their users look here."""
        client = context.client_id or ""
        left_out = self.refusals.passes(client)
        if left_out is not None:
            logger.warning(
                "refused the transactional id %s of client %s at %s: %s.%s",
                shown(next(iter(keys), "")),
                shown(client),
                context.peer,
                NO_TRANSACTIONS,
                left_out,
            )

    def _find(self, key: str, key_type: int, version: int) -> Coordinator:
        if key_type == TRANSACTION:
            return without_coordinator(key, no_transactions(version), NO_TRANSACTIONS)
        if key_type != GROUP:
            return without_coordinator(
                key, ErrorCode.INVALID_REQUEST, f"key type {key_type} is not known"
            )
        image = self.image()
        topic = image.topic(OFFSETS_TOPIC)
        if topic is None:
            return without_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partition = topic.partitions[partition_of(key, len(topic.partitions))]
        leader = image.brokers.get(partition.leader)
        endpoint = None if leader is None else leader.endpoint(self.listener)
        if leader is None or leader.fenced or endpoint is None:
            return without_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port)


def without_coordinator(key: str, error: ErrorCode, message: str | None = None) -> Coordinator:
    """Return the result of a key without a coordinator."""
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        host="",
        port=-1,
        error_code=error,
        error_message=error.message if message is None else message,
    )


def no_transactions(version: int) -> ErrorCode:
    """Return the error for a transactional id, which must end the client's attempt immediately.

    Java's clients stop at INVALID_REQUEST, and show the message. librdkafka, which sends versions
    below SEVERAL_KEYS_SINCE, repeats the request after every error but one. It shows the message
    behind the name of that error."""
    if version >= SEVERAL_KEYS_SINCE:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
