"""The status of a cluster whose brokers do not answer, or whose quorum is lost: the nodes are asked
for /readyz.

The controllers are those of cluster.json or of --bootstrap-controller. If some broker answers, its
configs name them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.node_http import NodeHttp
from quorate.cli.client.quorum import Quorum, QuorumLost, describe_quorum
from quorate.cli.nodes.cluster_dir import ClusterEntry
from quorate.cli.status.cluster_status import (
    QUORUM_WAIT_S,
    BrokerLine,
    Selection,
    Status,
    addresses_of,
    quorum_fields,
    read_status,
)
from quorate.cli.status.explanations import Explanations, get_from
from quorate.cli.status.node_answers import READY, SILENT, NodeAnswer, Place, ask_nodes
from quorate.cli.status.unclean_elections import UncleanElections
from quorate.config.key import ConfigError
from quorate.config.listeners import parse_servers, parse_voters
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quorate.quorum.watch.quorum_reach import LOST

BROKER_RESOURCE = 4
VOTERS, SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
BROKER, CONTROLLER = "broker", "controller"
ASK_CONTROLLERS = "With --bootstrap-controller the command shows what the controllers know"
MAX_TARGETS = 1000
"""The most nodes of GET /v1/targets that are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNodes:
    """The nodes that the command knows without asking the cluster."""

    controllers: tuple[Place, ...] = ()
    brokers: tuple[Place, ...] = ()


def read_in_outages(
    admin: Admin,
    known: KnownNodes,
    explanations: Explanations,
    selection: Selection,
    elections: UncleanElections,
) -> Status:
    """Return the status as `read_status` does, with the answers of the controllers if the quorum is
    lost, and from the controllers alone if no broker answers.

    Raise Refused as `read_status` does, and NotReachable if no node that is known answers."""
    try:
        found = read_status(admin, explanations, selection, elections)
    except NotReachable as error:
        if not known.controllers:
            raise NotReachable(f"{error.message}. {ASK_CONTROLLERS}") from None
        return status_from_controllers(admin, known, error.message, explanations)
    if not found.quorum_lost:
        return found
    up = [each.id for each in found.brokers if each.state == "up"]
    places = known.controllers or configured_controllers(admin, up)
    return replace(found, nodes=tuple(ask_nodes(admin.http, places)))


def named_controllers(text: str | None) -> KnownNodes:
    """Return the controllers of --bootstrap-controller. Raise UsageError for an invalid address."""
    if text is None:
        return KnownNodes()
    try:
        servers = parse_servers(
            "--bootstrap-controller", [each.strip() for each in text.split(",")]
        )
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    return KnownNodes(controllers=tuple(Place(CONTROLLER, *each) for each in servers))


def nodes_of(entry: ClusterEntry) -> KnownNodes:
    """Return the nodes in a cluster.json."""
    return KnownNodes(
        controllers=tuple(
            Place(CONTROLLER, each["host"], each["port"], each["id"])
            for each in entry["controllers"]
        ),
        brokers=tuple(
            Place(BROKER, each["host"], each["port"], each["id"]) for each in entry["brokers"]
        ),
    )


def configured_controllers(admin: Admin, brokers: Sequence[int]) -> tuple[Place, ...]:
    """Return the controllers in the configs of the first broker that describes them, or none."""
    for broker in brokers:
        wanted = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE,
            resource_name=str(broker),
            configuration_keys=(VOTERS, SERVERS),
        )
        request = DescribeConfigsRequest(resources=(wanted,))
        try:
            answer = admin.ask_node(broker, request, DescribeConfigsResponse, QUORUM_WAIT_S)
        except (ConnectionLost, Refused, NotReachable):
            continue
        found = {each.name: each.value for result in answer.results for each in result.configs}
        places = places_in(found.get(VOTERS), found.get(SERVERS))
        if places:
            return places
    return ()


def places_in(voters: str | None, servers: str | None) -> tuple[Place, ...]:
    """Return the controllers in the values of both keys, none for a value of another form."""
    try:
        if voters:
            found = parse_voters(VOTERS, [each.strip() for each in voters.split(",")])
            return tuple(Place(CONTROLLER, each.host, each.port, each.id) for each in found)
        if servers:
            listed = parse_servers(SERVERS, [each.strip() for each in servers.split(",")])
            return tuple(Place(CONTROLLER, *each) for each in listed)
    except ConfigError:
        pass
    return ()


def status_from_controllers(
    admin: Admin, known: KnownNodes, failure: str, explanations: Explanations
) -> Status:
    """Return the state of a cluster of which no broker answers, as its controllers see it.

    `failure` says why no broker answers. Raise NotReachable if no controller answers either."""
    first = ask_nodes(admin.http, known.controllers)
    answering = [each for each in first if each.state != SILENT]
    if not answering:
        silent = "; ".join(f"{each.address}: {each.why()}" for each in first)
        raise NotReachable(f"{failure}. No controller answers either: {silent}")
    listed = listed_places(admin.http, answering)
    nodes = ask_nodes(admin.http, listed) if listed else first
    controllers = [each for each in nodes if each.role == CONTROLLER]
    brokers = [each for each in nodes if each.role == BROKER] or [
        NodeAnswer(role=BROKER, id=each.id, address=each.address, state=SILENT)
        for each in known.brokers
    ]
    lost, quorum = lost_quorum(controllers, are_voters=bool(listed)), None
    if not lost and any(each.state == READY for each in controllers):
        quorum, lost = asked_quorum(admin, [each.address for each in answering])
    found = Status(
        cluster_id=answering[0].cluster_id,
        **quorum_fields(quorum),
        quorum_lost=lost,
        brokers=tuple(broker_line(each) for each in brokers if each.id is not None),
        topics=0,
        partitions=0,
        problems=(),
        nodes=tuple(controllers),
        brokers_silent=failure.removeprefix("no server answers: "),
    )
    return found if quorum is None else explained_brokers(found, quorum, explanations, admin.http)


def asked_quorum(admin: Admin, controllers: Sequence[str]) -> tuple[Quorum | None, str]:
    """Return the quorum as the controllers describe it, and the reason if it is lost. Return None
    and no reason if they do not accept this client."""
    other = admin.of_controllers(parse_servers("--bootstrap-controller", controllers))
    try:
        return describe_quorum(other, QUORUM_WAIT_S), ""
    except QuorumLost as error:
        return None, error.reason
    except (Refused, NotReachable):
        return None, ""
    finally:
        other.close()


def lost_quorum(controllers: Sequence[NodeAnswer], *, are_voters: bool) -> str:
    """Return the reason if the quorum is lost, or an empty string. If the controllers are the
    voters, a majority of them must answer."""
    reasons = (why for each in controllers for why in each.reasons)
    lost = next((why for why in reasons if why.startswith(LOST)), "")
    answering = sum(each.state != SILENT for each in controllers)
    majority = len(controllers) // 2 + 1
    if lost or not are_voters or answering >= majority:
        return lost
    return f"{answering} of {len(controllers)} voters answer, and the quorum needs {majority}"


def listed_places(http: NodeHttp, controllers: Sequence[NodeAnswer]) -> list[Place]:
    """Return the voters and the registered brokers that the first controller lists at /v1/targets,
    or none if no controller does."""
    for each in controllers:
        ((host, port),) = parse_servers("", [each.address])
        answer = http.get((host, port), "/v1/targets")
        if answer is None or answer.status != 200:
            continue
        try:
            return [
                Place(
                    str(target["labels"]["role"]),
                    *parse_servers("", [target["targets"][0]])[0],
                    int(target["labels"]["node_id"]),
                )
                for target in json.loads(answer.body)[:MAX_TARGETS]
            ]
        except (ValueError, LookupError, TypeError, RecursionError, ConfigError):
            continue
    return []


def broker_line(answer: NodeAnswer) -> BrokerLine:
    """Return the state of a broker that no client reaches."""
    assert answer.id is not None, "a broker has the id of its registration"
    return BrokerLine(
        id=answer.id, address=answer.address, state=answer.state, rack=None, why=answer.why()
    )


def explained_brokers(
    status: Status, quorum: Quorum, explanations: Explanations, http: NodeHttp
) -> Status:
    """Return the status with the newest change of each broker in the metadata log."""
    known = explanations.of(
        [("broker", "", each.id) for each in status.brokers],
        status.high_watermark,
        partial(get_from, http, addresses_of(quorum)),
    )
    brokers = []
    for each in status.brokers:
        found = known.get(("broker", "", each.id))
        why = "; ".join(filter(None, (each.why, str(found) if found else "")))
        brokers.append(replace(each, why=why, cause=found.name if found else ""))
    return replace(status, brokers=tuple(brokers))
