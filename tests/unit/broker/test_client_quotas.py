"""DescribeClientQuotas: the filter's rules (KIP-546)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from quorate.broker.kafka.cluster.client_quotas import DescribeClientQuotasHandler
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.metadata.image import ClientQuotaEntity, MetadataImage
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

USER, OTHER, ANY_USER = (("user", "u"),), (("user", "v"),), (("user", None),)
CLIENT, PAIR = (("client-id", "c"),), (("client-id", "c"), ("user", "u"))
IP = (("ip", "10.0.0.1"),)
ALL: tuple[ClientQuotaEntity, ...] = (CLIENT, PAIR, IP, ANY_USER, USER, OTHER)
IMAGE = MetadataImage(
    client_quotas=PersistentMap(
        {each: PersistentMap({"b": 2.0, "a": float(index)}) for index, each in enumerate(ALL)}
    )
)
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


class Asked:
    answer: Any = None
    elements = 0

    def count_elements(self, elements: int) -> None:
        self.elements += elements

    def respond(self, response: object) -> None:
        self.answer = response

    def respond_steps(self, response: object) -> IncrementalWork[None]:
        self.respond(response)
        yield from ()


def describe(
    *components: tuple[str, int, str | None], strict: bool = False
) -> DescribeClientQuotasResponse:
    asked = Asked()
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ),
        strict=strict,
    )
    handler = DescribeClientQuotasHandler(lambda: IMAGE)
    finished(handler.handle(cast(RequestContext, asked), request))
    assert isinstance(asked.answer, DescribeClientQuotasResponse)
    return asked.answer


@pytest.mark.parametrize(
    ("components", "strict", "matching"),
    [
        ((), False, ALL),
        ((), True, ()),
        ((("user", EXACT, "u"),), False, (PAIR, USER)),
        ((("user", EXACT, "u"),), True, (USER,)),
        ((("user", DEFAULT, None),), False, (ANY_USER,)),
        ((("user", SPECIFIED, None),), True, (ANY_USER, USER, OTHER)),
        ((("user", SPECIFIED, None), ("client-id", EXACT, "c")), True, (PAIR,)),
        ((("ip", SPECIFIED, None),), False, (IP,)),
        ((("client-id", EXACT, "x"),), False, ()),
    ],
)
def test_a_filter_selects_entities(
    components: tuple[tuple[str, int, str | None], ...],
    strict: bool,
    matching: tuple[ClientQuotaEntity, ...],
) -> None:
    """KAFKA-9980: default entities are found and described as such."""
    entries = describe(*components, strict=strict).entries
    assert entries is not None
    found = [tuple((p.entity_type, p.entity_name) for p in each.entity) for each in entries]
    assert tuple(found) == matching
    for each, entity in zip(entries, found, strict=True):
        values = [(value.key, value.value) for value in each.values]
        assert values == [("a", float(ALL.index(entity))), ("b", 2.0)]


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ((("", EXACT, "x"),), ErrorCode.INVALID_REQUEST),
        ((("pet", EXACT, "x"),), ErrorCode.UNSUPPORTED_VERSION),
        ((("user", EXACT, None),), ErrorCode.INVALID_REQUEST),
        ((("user", DEFAULT, "u"),), ErrorCode.INVALID_REQUEST),
        ((("user", SPECIFIED, "u"),), ErrorCode.INVALID_REQUEST),
        ((("user", 3, None),), ErrorCode.INVALID_REQUEST),
        ((("user", EXACT, "u"), ("user", DEFAULT, None)), ErrorCode.INVALID_REQUEST),
        ((("ip", SPECIFIED, None), ("user", EXACT, "u")), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_filter_is_refused(
    components: tuple[tuple[str, int, str | None], ...], error: int
) -> None:
    answer = describe(*components)
    assert (answer.error_code, answer.entries) == (error, None)
    assert answer.error_message
