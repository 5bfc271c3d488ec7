"""AlterClientQuotas: what is stored, and each refusal (KIP-546)."""

from __future__ import annotations

import math

import pytest

from quorate.quorum.controller.clients import client_quotas as rules
from quorate.quorum.metadata.difference import difference
from quorate.quorum.metadata.image import ClientQuotaEntity, MetadataImage
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.client_quotas import (
    AlterationData,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntityData,
    OpData,
)
from tests.unit.controller.harness import Driver

Parts = tuple[tuple[str, str | None], ...]
USER: Parts = (("user", "u"),)


def entry(parts: Parts, *changes: tuple[str, float | None]) -> AlterationData:
    return AlterationData(
        entity=tuple(AlteredEntityData(entity_type=k, entity_name=n) for k, n in parts),
        ops=tuple(
            OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes
        ),
    )


def alter(driver: Driver, *entries: AlterationData, validate_only: bool = False) -> list[int]:
    request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    response = driver.handle(request)
    assert isinstance(response, AlterClientQuotasResponse)
    assert [each.entity for each in response.entries] != [()] or not entries[0].entity
    return [each.error_code for each in response.entries]


def stored(driver: Driver) -> dict[ClientQuotaEntity, dict[str, float]]:
    return {entity: dict(each) for entity, each in driver.image.client_quotas.items()}


def test_a_quota_is_set_changed_and_removed() -> None:
    """KAFKA-9942, KAFKA-9980: the default entity has a null name, not a text."""
    driver = Driver()
    pair: Parts = (("user", None), ("client-id", "c"))
    assert alter(
        driver,
        entry(USER, ("producer_byte_rate", 10.0), ("request_percentage", 0.5)),
        entry(pair, ("controller_mutation_rate", 2.5)),
        entry((("ip", None),), ("connection_creation_rate", 3.0)),
    ) == [0, 0, 0]
    sorted_pair = (("client-id", "c"), ("user", None))
    assert stored(driver) == {
        USER: {"producer_byte_rate": 10.0, "request_percentage": 0.5},
        sorted_pair: {"controller_mutation_rate": 2.5},
        (("ip", None),): {"connection_creation_rate": 3.0},
    }
    before = len(driver.log)
    assert alter(driver, entry(USER, ("producer_byte_rate", 10.0), ("consumer_byte_rate", None)))
    assert len(driver.log) == before, "neither changes anything"
    alter(driver, entry(USER, ("producer_byte_rate", 11.0), ("request_percentage", None)))
    assert stored(driver)[USER] == {"producer_byte_rate": 11.0}
    alter(driver, entry(USER, ("producer_byte_rate", None)))
    assert USER not in stored(driver), "no entity is kept without a quota"


def test_quotas_survive_a_snapshot() -> None:
    driver = Driver()
    alter(driver, entry(USER, ("producer_byte_rate", 10.0)))
    alter(driver, entry((("user", None), ("client-id", "c")), ("consumer_byte_rate", 7.0)))
    image = driver.image
    loaded = image_of_snapshot(snapshot_records(image), image.last, image.last_timestamp_ms)
    assert loaded.client_quotas == image.client_quotas
    assert difference(MetadataImage(), loaded).client_quotas == (
        (("client-id", "c"), ("user", None)),
        USER,
    )
    assert difference(image, loaded).client_quotas == ()


def test_nothing_is_stored_by_validate_only() -> None:
    driver = Driver()
    assert alter(driver, entry(USER, ("producer_byte_rate", 1.0)), validate_only=True) == [0]
    assert alter(driver, entry(USER, ("nonsense", 1.0)), validate_only=True) != [0]
    assert stored(driver) == {}


@pytest.mark.parametrize(
    ("parts", "key", "value"),
    [
        (USER, "bytes_rate", 1.0),
        (USER, "connection_creation_rate", 1.0),
        ((("ip", "10.0.0.1"),), "producer_byte_rate", 1.0),
        (USER, "producer_byte_rate", 0.0),
        (USER, "producer_byte_rate", -1.0),
        (USER, "producer_byte_rate", 1.5),
        (USER, "producer_byte_rate", 2.0**64),
        (USER, "request_percentage", math.nan),
        (USER, "request_percentage", math.inf),
        (USER, "producer_byte_rate", math.nan),
        ((("ip", None),), "connection_creation_rate", 2.0**31),
        ((("ip", None),), "connection_creation_rate", 0.5),
        ((), "producer_byte_rate", 1.0),
        ((("pet", "cat"),), "producer_byte_rate", 1.0),
        ((("user", ""),), "producer_byte_rate", 1.0),
        ((("user", "a"), ("user", "b")), "producer_byte_rate", 1.0),
        ((("ip", "10.0.0.1"), ("user", "u")), "connection_creation_rate", 1.0),
        ((("ip", "no.such.host.example"),), "connection_creation_rate", 1.0),
    ],
)
def test_a_change_is_refused_and_its_neighbour_is_made(
    parts: Parts, key: str, value: float
) -> None:
    """KAFKA-14943."""
    driver = Driver()
    good = entry((("client-id", "good"),), ("producer_byte_rate", 5.0))
    assert alter(driver, entry(parts, (key, value)), good) == [ErrorCode.INVALID_REQUEST, 0]
    assert stored(driver) == {(("client-id", "good"),): {"producer_byte_rate": 5.0}}


def test_one_bad_quota_refuses_the_whole_entity() -> None:
    driver = Driver()
    changes = (("producer_byte_rate", 5.0), ("consumer_byte_rate", 0.0))
    assert alter(driver, entry(USER, *changes)) == [ErrorCode.INVALID_REQUEST]
    twice = entry(USER, ("producer_byte_rate", 5.0), ("producer_byte_rate", 6.0))
    assert alter(driver, twice) == [ErrorCode.INVALID_REQUEST]
    same = entry(USER, ("producer_byte_rate", 5.0))
    assert alter(driver, same, same) == [ErrorCode.INVALID_REQUEST] * 2
    assert stored(driver) == {}


def test_the_number_of_entities_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_ENTITIES", 2)
    driver = Driver()
    entries = [entry((("user", str(n)),), ("producer_byte_rate", 5.0)) for n in range(3)]
    assert alter(driver, *entries) == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert alter(driver, entries[2]) == [ErrorCode.POLICY_VIOLATION]
    assert alter(driver, entry((("user", "0"),), ("producer_byte_rate", None))) == [0]
    assert alter(driver, entries[2]) == [0]
    assert PersistentMap(driver.image.client_quotas).keys() == {(("user", "1"),), (("user", "2"),)}


def test_too_many_records_fail_the_whole_request() -> None:
    driver = Driver()
    keys = [(key, 1.0) for key in rules.CLIENT_KEYS]
    entries = [entry((("user", str(n)),), *keys) for n in range(2_501)]
    assert set(alter(driver, *entries)) == {ErrorCode.POLICY_VIOLATION}
    assert stored(driver) == {}
