"""Clients whose action an acknowledged DENY forbids, while the active controller changes.

Each history runs a cluster with an authorizer on virtual time.
"""

from __future__ import annotations

from typing import Any

from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import fetch, topics
from tests.ports.requests import READ, create
from tests.ports.secured import ALICE, ROOT, TOPIC, Secured, secured_cluster
from tests.sim.world.cluster import Machine

ROUNDS = 3
CREATE_VERSION, DELETE_VERSION, FETCH_VERSION = 5, 6, 12
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def active_controller(secured: Secured) -> Machine | None:
    """Return the machine of the active controller, or None if there is none now."""
    for machine in secured.node.cluster.controllers:
        process = machine.process
        controller = None if process is None else process.controller
        if controller is not None and controller.shell.active:
            return machine
    return None


def another_leads(secured: Secured, killed: Machine) -> bool:
    leader = active_controller(secured)
    return leader is not None and leader is not killed


def a_denied_client_deletes_topics_while_leaders_die() -> None:
    """Delete topics as a denied client. The broker forwards each deletion to the controller that is
    active then."""
    with secured_cluster(controllers=3) as secured:
        for number in range(ROUNDS):
            name = f"kept-{number}"
            secured.ask(ROOT, create(name), CREATE_VERSION)
            secured.allow((TOPIC, Operation.DELETE))
            secured.allow((TOPIC, Operation.DELETE), deny=True)
            killed = active_controller(secured)
            assert killed is not None
            secured.node.cluster.kill(killed)
            secured.node.until(lambda killed=killed: another_leads(secured, killed))
            request = topics.DeleteTopicsRequest(
                topics=(topics.DeleteTopicState(name=name),), timeout_ms=10_000
            )
            answer: Any = secured.ask(ALICE, request, DELETE_VERSION)
            errors = [each.error_code for each in answer.responses]
            assert errors == [DENIED], f"a denied client deleted a topic: {errors}"
            secured.node.cluster.start(killed)
            secured.node.run(2.0)
            secured.forget()


def a_denied_client_continues_its_fetch_session() -> None:
    """Continue a fetch session that began while the client was allowed to read."""
    with secured_cluster() as secured:
        secured.allow((TOPIC, Operation.READ))
        raw = secured.connect(ALICE)
        partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        wanted = (fetch.FetchTopic(topic=READ, partitions=(partition,)),)
        first = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=wanted)
        answer: Any = secured.node.ask(raw, first, FETCH_VERSION)
        assert answer.responses[0].partitions[0].records
        secured.allow((TOPIC, Operation.READ), deny=True)
        again = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=answer.session_id,
            session_epoch=1,
            topics=wanted,
        )
        answer = secured.node.ask(raw, again, FETCH_VERSION)
        (result,) = answer.responses[0].partitions
        assert result.error_code == DENIED and not result.records, "a denied client read records"
