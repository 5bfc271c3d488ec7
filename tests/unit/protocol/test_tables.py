"""Error codes and API keys against those of kio, and the cost of importing the tables."""

from __future__ import annotations

import subprocess
import sys

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map

from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.errors import ErrorCode, KafkaError


def test_error_codes_are_kafkas() -> None:
    ours = {int(each): (each.name, each.retriable) for each in ErrorCode}
    assert ours == {int(each): (each.name.upper(), each.retriable) for each in KioErrorCode}
    assert all(each.message.endswith(".") for each in ErrorCode)


def test_a_code_from_the_future_is_an_unknown_server_error() -> None:
    assert ErrorCode.of(41) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_kafka_error_says_its_code_and_why() -> None:
    error = KafkaError(ErrorCode.NOT_CONTROLLER, "ask node 2")
    assert str(error) == "NOT_CONTROLLER: ask node 2"
    assert error.retriable
    assert KafkaError(ErrorCode.INVALID_TXN_STATE).message == ErrorCode.INVALID_TXN_STATE.message


def test_api_keys_are_kafkas() -> None:
    ours = {int(each): each.name.lower() for each in ApiKey}
    assert {key: ours[key] for key in api_key_map} == dict(api_key_map)


def test_only_produce_is_advertised_below_what_is_served() -> None:
    """KAFKA-18659: if v0 is missing, an older librdkafka does not compress."""
    assert {
        api.key: api.advertised_min for api in APIS.values() if not api.serves(api.advertised_min)
    } == {ApiKey.PRODUCE: 0}


def test_importing_the_table_imports_no_schema() -> None:
    code = (
        "import sys, quorate.quorum.protocol.codec\n"
        "print([name for name in sys.modules if '.kafka.schemas.' in name])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert loaded.stdout == b"[]\n"
