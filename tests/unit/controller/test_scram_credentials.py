"""AlterUserScramCredentials: what is stored, and each refusal (KIP-554)."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from quorate.config.dynamic_broker_keys import SCRAM_SECRET
from quorate.quorum.controller.clients import scram_credentials as rules
from quorate.quorum.controller.configs.alter_configs import DELETE, SET
from quorate.quorum.metadata.difference import difference
from quorate.quorum.metadata.image import MetadataImage, ScramKey
from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.unit.controller.harness import Driver

SALT, SALTED = b"salt", b"salted password"


def upsertion(
    name: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = SALT, key: bytes = SALTED
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=key
    )


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    driver: Driver, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, int]:
    response = driver.handle(
        AlterUserScramCredentialsRequest(
            deletions=tuple(each for each in changes if isinstance(each, ScramCredentialDeletion)),
            upsertions=tuple(
                each for each in changes if isinstance(each, ScramCredentialUpsertion)
            ),
        )
    )
    assert isinstance(response, AlterUserScramCredentialsResponse)
    return {each.user: each.error_code for each in response.results}


def stored(driver: Driver) -> set[ScramKey]:
    return set(driver.image.scram_credentials)


def secret(driver: Driver) -> str | None:
    return driver.image.config(4, "").get(SCRAM_SECRET)


def change_config(driver: Driver, name: str, value: str | None) -> int:
    """Set a dynamic config of all brokers, or delete it."""
    operation = DELETE if value is None else SET
    change = IncrementalAlterableConfig(name=name, config_operation=operation, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=4, resource_name="", configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return int(driver.handle(request).responses[0].error_code)


def test_only_keys_made_of_the_salted_password_are_stored() -> None:
    driver = Driver()
    assert alter(driver, upsertion("a"), upsertion("a", 2), upsertion("b", 2, 8192)) == {
        "a": 0,
        "b": 0,
    }
    assert stored(driver) == {("a", 1), ("a", 2), ("b", 2)}
    credential = driver.image.scram_credentials["b", 2]
    assert (credential.salt, credential.iterations) == (SALT, 8192)
    client_key = hmac.digest(SALTED, b"Client Key", "sha512")
    assert credential.stored_key == hashlib.sha512(client_key).digest()
    assert credential.server_key == hmac.digest(SALTED, b"Server Key", "sha512")
    assert "salt" not in repr(credential)
    assert all(SALTED not in bytes(repr(each), "utf-8") for each in driver.log)


def test_a_credential_is_removed_and_the_other_one_stays() -> None:
    driver = Driver()
    alter(driver, upsertion("a"), upsertion("a", 2))
    assert alter(driver, deletion("a")) == {"a": 0}
    assert stored(driver) == {("a", 2)}
    assert alter(driver, deletion("a")) == {"a": ErrorCode.RESOURCE_NOT_FOUND}


def test_credentials_survive_a_snapshot() -> None:
    driver = Driver()
    alter(driver, upsertion("b"), upsertion("a", 2), upsertion("a", 1))
    image = driver.image
    loaded = image_of_snapshot(snapshot_records(image), image.last, image.last_timestamp_ms)
    assert loaded.scram_credentials == image.scram_credentials
    assert list(difference(MetadataImage(), loaded).scram_credentials) == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]
    assert not difference(image, loaded).scram_credentials


def test_the_secret_comes_with_the_first_credential_and_stays() -> None:
    driver = Driver()
    assert alter(driver, deletion("a")) == {"a": ErrorCode.RESOURCE_NOT_FOUND}
    assert secret(driver) is None
    alter(driver, upsertion("a"))
    first = secret(driver)
    assert first is not None
    assert len(first) == 64
    alter(driver, upsertion("b"))
    assert secret(driver) == first


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", key=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("u", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion("u", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (deletion("u"), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_a_change_is_refused_and_its_neighbour_is_made(
    change: ScramCredentialUpsertion | ScramCredentialDeletion, error: ErrorCode
) -> None:
    driver = Driver()
    assert alter(driver, change, upsertion("other")) == {change.name: error, "other": 0}
    assert stored(driver) == {("other", 1)}


def test_changes_of_configs_do_not_lose_the_secret() -> None:
    """AlterConfigs deletes all configs that it does not name, and clients cannot know the
    secret."""
    driver = Driver()
    alter(driver, upsertion("a"))
    before = secret(driver)
    fetchers = AlterableConfig(name="num.replica.fetchers", value="2")
    of_all = AlterConfigsResource(resource_type=4, resource_name="", configs=(fetchers,))
    request = AlterConfigsRequest(resources=(of_all,), validate_only=False)
    assert driver.handle(request).responses[0].error_code == 0
    assert driver.image.config(4, "")["num.replica.fetchers"] == "2"
    assert secret(driver) == before is not None
    assert change_config(driver, SCRAM_SECRET, None) == ErrorCode.INVALID_REQUEST
    assert change_config(driver, "num.replica.fetchers", None) == ErrorCode.NONE
    assert secret(driver) == before
    assert change_config(driver, SCRAM_SECRET, "x" * 40) == ErrorCode.NONE
    assert secret(driver) == "x" * 40
    alter(driver, deletion("a"))
    assert change_config(driver, SCRAM_SECRET, None) == ErrorCode.NONE
    assert secret(driver) is None


def test_no_credential_of_a_user_changes_if_one_is_refused() -> None:
    driver = Driver()
    twice = upsertion("a"), upsertion("a", iterations=8192)
    assert alter(driver, *twice, upsertion("a", 2)) == {"a": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(driver, upsertion("a"), deletion("a")) == {"a": ErrorCode.DUPLICATE_RESOURCE}
    assert stored(driver) == set()


def test_the_number_of_credentials_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(rules, "MAX_CREDENTIALS", 2)
    assert alter(driver, upsertion("a"), upsertion("b"), upsertion("c")) == {
        "a": 0,
        "b": 0,
        "c": ErrorCode.POLICY_VIOLATION,
    }
    assert alter(driver, upsertion("a", iterations=8192)) == {"a": 0}, "it replaces one"
    assert alter(driver, deletion("a"), upsertion("c")) == {"a": 0, "c": 0}


def test_too_many_changes_fail_as_a_whole() -> None:
    driver = Driver()
    outcome = alter(driver, *(upsertion(str(n)) for n in range(10_001)))
    assert set(outcome.values()) == {ErrorCode.POLICY_VIOLATION}
    assert len(outcome) == 10_001
    assert stored(driver) == set()
