"""The same requests to Apache Kafka 4.1.1 and to ours, in the same state: the same answers.

`comparison.py` lists the known differences with their reasons. A line there that no answer needs
any more is an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quorate.quorum.protocol.schemas.group_offsets import OffsetFetchResponse
from quorate.quorum.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from quorate.quorum.protocol.schemas.produce import ProduceResponse
from quorate.quorum.protocol.wire import Message
from tests.clients.cluster import wait_for
from tests.golden.nodes import KAFKA, QUORATE
from tests.kafka.comparison import DIFFERENCES, SOMETIMES, differing, normal
from tests.kafka.one_node import Connection, OneNode
from tests.kafka.tools import missing
from tests.ports.requests import BUILDERS, CONTROLLERS, MORE, READ, WRITTEN, World, preparation

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
SIDES = ("kafka", "quorate")

LOADING = 14  # COORDINATOR_LOAD_IN_PROGRESS: producer ids of a Kafka that has just started
MAX_TRIES = 50


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OneNode]]:
    if reason := missing():
        pytest.skip(reason)
    root: Path = tmp_path_factory.mktemp("answers")
    with (
        OneNode(root / "kafka", KAFKA).running() as kafka,
        OneNode(root / "quorate", QUORATE).running() as ours,
    ):
        yield {"kafka": kafka, "quorate": ours}


def prepared(node: OneNode) -> World:
    connection = node.connect()
    world = prepare(connection, node.program.name)
    connection.close()
    return world


def prepare(connection: Connection, name: str) -> World:
    """Create what the requests name. `name` is that of the program."""
    for request, version in preparation():
        carried = partial(carried_out, connection, request, version)
        wait_for(carried, f"{name} is ready")
    wait_for(lambda: coordinated(connection), "the group has a coordinator")
    return World(1, topic_id=topic_id(connection, WRITTEN), read_id=topic_id(connection, READ))


def topic_id(connection: Connection, name: str) -> Any:
    answer = connection.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 12)
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0].topic_id


def carried_out(connection: Connection, request: Message, version: int) -> bool:
    """A partition that was just created may not be led yet."""
    answer = connection.ask(request, version)
    if isinstance(answer, ProduceResponse):
        return answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return answer is not None


def coordinated(connection: Connection) -> bool:
    answer = connection.ask(BUILDERS[ApiKey.OFFSET_FETCH](World(1), 9), 9)
    assert isinstance(answer, OffsetFetchResponse)
    return not any(each.error_code for each in answer.groups)


def advertised(connection: Connection) -> dict[int, range]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = connection.ask(request, 3)
    assert isinstance(answer, ApiVersionsResponse)
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}


def answered(connection: Connection, request: Message, version: int) -> Message:
    tries = 0
    while True:
        answer = connection.ask(request, version)
        tries += 1
        assert answer is not None, f"{type(request).__name__} v{version} closed the connection"
        if getattr(answer, "error_code", 0) != LOADING or tries == MAX_TRIES:
            return answer
        time.sleep(0.1)


@pytest.fixture(scope="module")
def worlds(nodes: dict[str, OneNode]) -> dict[str, World]:
    return {side: prepared(node) for side, node in nodes.items()}


def connected(nodes: dict[str, OneNode], *, controller: bool) -> dict[str, Connection]:
    return {side: nodes[side].connect(controller=controller) for side in SIDES}


def differences(
    nodes: dict[str, OneNode], worlds: dict[str, World], *, controller: bool
) -> Iterator[tuple[str, int, str, Any, Any]]:
    """(API, version, path, Kafka's, ours) of everything that both advertise."""
    open_ = connected(nodes, controller=controller)
    served = {side: advertised(open_[side]) for side in SIDES}
    if controller:
        worlds = {side: replace(worlds[side], endpoint_type=CONTROLLERS) for side in SIDES}
    for key in sorted(served["kafka"].keys() & served["quorate"].keys()):
        api = APIS[key]
        for build in (BUILDERS[key], *(each for other, each in MORE if other == key)):
            for version in served["quorate"][key]:
                if version not in served["kafka"][key] or not api.serves(version):
                    continue
                kafka, ours = (
                    normal(answered(open_[side], build(worlds[side], version), version))
                    for side in SIDES
                )
                for path, theirs, mine in differing(kafka, ours):
                    yield api.name, version, path, theirs, mine
    for connection in open_.values():
        connection.close()


def test_the_same_answers(nodes: dict[str, OneNode], worlds: dict[str, World]) -> None:
    needed = set()
    unexpected = []
    for controller in (False, True):
        for name, version, path, *both in differences(nodes, worlds, controller=controller):
            place = (name, re.sub(r"\[\d+\]", "", path))
            needed.add(place)
            if place not in DIFFERENCES and place not in SOMETIMES:
                port = "controller" if controller else "broker"
                unexpected.append(
                    f"{port} {name} v{version} {path}: Kafka {both[0]}, ours {both[1]}"
                )
    assert not unexpected, "\n".join(unexpected)
    assert needed - SOMETIMES.keys() == DIFFERENCES.keys()


def test_nothing_is_advertised_that_kafka_does_not_have(nodes: dict[str, OneNode]) -> None:
    """But for versions that 4.1 has and does not tell yet."""
    beyond = set()
    for controller in (False, True):
        open_ = connected(nodes, controller=controller)
        kafka, ours = (advertised(open_[side]) for side in SIDES)
        for connection in open_.values():
            connection.close()
        beyond |= {
            (APIS[key].name, version)
            for key, versions in ours.items()
            for version in versions
            if version not in kafka.get(key, ())
        }
    assert beyond == {("OffsetCommit", 10), ("OffsetFetch", 10)}
