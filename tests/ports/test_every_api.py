"""A port answers every API and version that it advertises, and it advertises no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quorate.quorum.seams import Address
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster
from tests.ports.requests import BUILDERS, CONTROLLERS, MORE, World

PORTS = {"broker": BROKER_PORT, "controller": CONTROLLERS_PORT}


def advertised(node: PortCluster, port: Address) -> dict[int, range]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = node.ask(node.connect(port), request, 3)
    assert isinstance(answer, ApiVersionsResponse)
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}


@pytest.mark.parametrize("name", PORTS)
def test_older_clients_see_no_feature_with_the_lowest_level_0(
    prepared: tuple[PortCluster, World], name: str
) -> None:
    """KAFKA-17011: a client before version 4 cannot decode such a feature, and fails to connect."""
    node, _ = prepared
    raw = node.connect(PORTS[name])
    lowest = {}
    for version in (3, 4):
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = node.ask(raw, request, version)
        assert isinstance(answer, ApiVersionsResponse)
        lowest[version] = {each.name: each.min_version for each in answer.supported_features}
    assert lowest[4]["eligible.leader.replicas.version"] == 0
    assert lowest[3] == {name: low for name, low in lowest[4].items() if low > 0} != {}


@pytest.mark.parametrize("name", PORTS)
def test_every_advertised_version_is_answered(
    prepared: tuple[PortCluster, World], name: str
) -> None:
    node, world = prepared
    port = PORTS[name]
    if name == "controller":
        world = replace(world, endpoint_type=CONTROLLERS)
    raw = node.connect(port)
    for key, versions in sorted(advertised(node, port).items()):
        api = APIS[key]
        assert versions == range(api.advertised_min, api.max_version + 1)
        for version in versions:
            if not api.serves(version):
                assert (api.key, version) in {(ApiKey.PRODUCE, each) for each in (0, 1, 2)}
                continue
            for build in (BUILDERS[key], *(each for other, each in MORE if other == key)):
                answer = node.ask(raw, build(world, version), version)
                assert encode(answer, version), f"{api.name} v{version}"


def test_what_is_declared_is_served_by_a_port(prepared: tuple[PortCluster, World]) -> None:
    node, _ = prepared
    served = {key for port in PORTS.values() for key in advertised(node, port)}
    assert served == set(APIS) == set(BUILDERS)
