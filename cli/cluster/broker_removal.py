"""The removal of a broker's registration, and the facts that make it dangerous."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.cli.client.admin import CONTROLLER_ENDPOINT, Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import Refused
from quorate.cli.client.quorum import require_controller
from quorate.cli.cluster.description import describe_cluster
from quorate.quorum.protocol.schemas.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from quorate.quorum.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

NAMED = 3
"""The number of topics that a message names."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A registered broker: True if it is alive (not fenced), and the number of partitions that it
    leads."""

    alive: bool
    leads: int


def standing_of(admin: Admin, broker_id: int) -> Standing | None:
    """Return the standing of a broker, or None if it is not registered. `admin` must be connected
    to brokers."""
    cluster = describe_cluster(admin, fenced=True)
    found = next((each for each in cluster.brokers if each.broker_id == broker_id), None)
    if found is None:
        return None
    leads = sum(
        partition.leader_id == broker_id
        for topic in admin.metadata(None).topics
        for partition in topic.partitions
    )
    return Standing(alive=not found.is_fenced, leads=leads)


def require_dead(admin: Admin, broker_id: int) -> None:
    """Raise Refused if the broker is alive or leads partitions, or if that is not known."""
    if admin.endpoint_type == CONTROLLER_ENDPOINT:
        raise Refused(
            f"a controller does not tell whether broker {broker_id} is alive: use "
            "--bootstrap-server, or repeat the command with --force"
        )
    standing = standing_of(admin, broker_id)
    if standing is None or not (standing.alive or standing.leads):
        return
    facts = "is alive" if standing.alive else "is fenced"
    if standing.leads:
        facts += f" and leads {standing.leads} partitions"
    raise Refused(
        f"broker {broker_id} {facts}. Move its replicas first with `quorate cluster decommission "
        f"{broker_id}`, or stop it, or repeat the command with --force: the broker then stops, and "
        "its replicas stay assigned to it"
    )


def require_visible_replicas(admin: Admin, broker_id: int) -> None:
    """Raise Refused if the broker has replicas of topics that are not shown to this client. They
    would stay on the broker that is removed. A broker that is down cannot be asked."""
    request = DescribeLogDirsRequest(topics=None)
    try:
        answer = admin.ask_node(broker_id, request, DescribeLogDirsResponse)
    except ConnectionLost:
        return
    check(answer.error_code, None, f"broker {broker_id}")
    hosted = {topic.name for directory in answer.results for topic in directory.topics}
    hidden = sorted(hosted.difference(topic.name for topic in admin.metadata(None).topics))
    if hidden:
        raise Refused(
            f"broker {broker_id} has replicas of {len(hidden)} topics that this client cannot "
            f"describe: {', '.join(hidden[:NAMED])}. They would stay there. Repeat the command as "
            "a user with DESCRIBE on all topics, or later if these topics were just deleted"
        )


def unregister_broker(admin: Admin, broker_id: int) -> None:
    """Remove the registration. Raise Refused on an error, or if there is no active controller."""
    require_controller(admin, f"broker {broker_id} was not unregistered")
    answer = admin.change(
        UnregisterBrokerRequest(broker_id=broker_id),
        UnregisterBrokerResponse,
        lambda answer: [answer.error_code],
    )
    check(answer.error_code, answer.error_message)
