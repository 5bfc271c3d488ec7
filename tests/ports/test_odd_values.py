"""Requests that decode, but make no sense: extreme numbers, nulls, duplicates, unknown names.

No handler may raise, and each request is answered or waits. The values come from the schemas. A
seed always gives the same values.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, Api, ApiKey
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.layout import Field, layout
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.seams import Address
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster, running
from tests.ports.requests import READ, WRITTEN

SEEDS = 54
"""Three for each of TEXTS."""
BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
SMALL = (0, 1, 2, 2, 3, 4, 4, 8, 16, 32)
NAMES = ("", READ, WRITTEN, "g", "2", "-1", ".", "..", "a b", "x" * 250, "range", "consumer")
TEXTS = (*NAMES, "retention.ms", "9" * 5000, "\u00b2", "1" * 400, "\x00", "__consumer_offsets")
BYTES = (b"", b"\x00", b"\x00" * 4, b"\x7f" * 100, b"\xff" * 200)
SPARED = (ApiKey.UNREGISTER_BROKER, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)
"""They change the cluster that answers; tests of their own send them odd values."""
PORTS = pytest.mark.parametrize("port", [BROKER_PORT, CONTROLLERS_PORT], ids=["broker", "direct"])


@pytest.fixture(scope="module")
def node() -> Iterator[PortCluster]:
    with running() as started:
        started.prepared()
        yield started


def odd(cls: type, version: int, flexible: bool, chance: random.Random, favourite: str) -> Any:
    """Return a message with random values. Half of its strings are the `favourite`."""
    plan = layout(cls, version, flexible)
    values = dict(plan.defaults)
    for field in (*plan.plain, *plan.tagged):
        if field.nullable and chance.random() < 0.3:
            values[field.name] = None
        elif field.array:
            values[field.name] = _many(field, version, flexible, chance, favourite)
        else:
            values[field.name] = _one(field, version, flexible, chance, favourite)
    return cls(**values)


def _many(field: Field, version: int, flexible: bool, chance: random.Random, favourite: str) -> Any:
    """Return the elements of an array. An outer array gets many of them, because they fail one by
    one."""
    outer = field.struct is not None and any(
        each.array for each in layout(field.struct, version, flexible).plain
    )
    count = chance.choice((1, 12, 12) if outer else (0, 1, 1, 2))
    items = tuple(_one(field, version, flexible, chance, favourite) for _ in range(count))
    return chance.choice((items, items, items, items, (*items, *items)))


def _one(field: Field, version: int, flexible: bool, chance: random.Random, favourite: str) -> Any:
    if field.struct is not None:
        return odd(field.struct, version, flexible, chance, favourite)
    if field.kind in BITS:
        return _number(field.kind, chance)
    if field.kind == "string":
        text = chance.choice((*NAMES, *[favourite] * len(NAMES)))
        return text if field.bound is None else text[: field.bound.limit]
    if field.kind == "float64":
        return chance.choice((0.0, -1.0, float("nan"), float("inf")))
    if field.kind == "bool":
        return chance.random() < 0.5
    return chance.randbytes(16) if field.kind == "uuid" else chance.choice(BYTES)


def _number(kind: str, chance: random.Random) -> int:
    bits, signed = BITS[kind], not kind.startswith("u")
    high = (1 << (bits - signed)) - 1
    low = -high - 1 if signed else 0
    edges = (low, -1 if signed else 0, -2 if signed else 0, high - 1, high)
    return chance.choice((*SMALL, *edges))


def failures(node: PortCluster) -> dict[str, int]:
    """Return the number of unexpected failures by API, and of the controller's rules and the
    groups' shards."""
    (broker,), (controller,) = node.cluster.brokers, node.cluster.controllers
    assert broker.process is not None and broker.process.broker is not None
    assert controller.process is not None and controller.process.controller is not None
    serving, port = broker.process.broker, controller.process.controller.port
    failed = {
        route.api.name: route.failures
        for server in (*serving.client_ports, port._server)
        for route in server.routes.values()
    }
    failed["rules"] = controller.process.controller.shell.failed_requests
    failed["shards"] = serving.services.groups.rebuilt_shards
    return {name: count for name, count in failed.items() if count}


@PORTS
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_no_handler_raises(
    node: PortCluster, port: Address, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    if api.key in SPARED:
        return
    caplog.set_level(logging.CRITICAL)
    raw = node.connect(port)
    edge = api.flexible_since
    versions = {api.min_version, edge - 1, edge, api.max_version}
    for version in sorted(each for each in versions if api.serves(each)):
        flexible = version >= api.flexible_since
        head = headers.request_header(
            api.key, version, 1, "odd", api.request_header_version(version)
        )
        for seed in range(SEEDS):
            chance = random.Random(f"{api.name}-{seed}")
            request = odd(api.request, version, flexible, chance, TEXTS[seed % len(TEXTS)])
            if raw.closed:
                raw = node.connect(port)
            raw.link.send(head, encode(request, version))
            node.run(0.01)
            assert not failures(node), (version, seed, request)
    raw.link.abort()
    node.ask(node.connect(BROKER_PORT), MetadataRequest(topics=()), 9)
