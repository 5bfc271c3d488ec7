"""A client with any wrong security setting fails soon, with a message, and harms no other client.

All rows of `wrong_settings.py` are tried by all families of clients at the same time. The tests
then look at the outcomes."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, Producer

from tests.clients.kafka_python import KafkaProducer
from tests.clients.librdkafka import SILENT
from tests.clients.wrong_settings import (
    PASSWORD,
    ROWS,
    WRONG_PASSWORD,
    Refusing,
    Wrong,
    refusing_node,
)

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of aiokafka and kafka-python
]
BOUND_S = 15.0
"""The time in which a client must fail."""


def librdkafka(node: Refusing, row: Wrong) -> str:
    """Return the first error of librdkafka."""
    own = None if row.own is None else node.certificates[row.own]
    config: dict[str, Any] = {
        "bootstrap.servers": node.bootstrap(row.listener),
        "security.protocol": row.used_protocol,
        "log_level": 0,
    }
    if "SSL" in row.used_protocol:
        config["ssl.ca.location"] = str(node.authorities[row.trusts])
        if own is not None:
            config["ssl.certificate.location"] = str(own.certificate)
            config["ssl.key.location"] = str(own.key)
    if "SASL" in row.used_protocol:
        config["sasl.mechanism"] = row.mechanism
        config["sasl.username"], config["sasl.password"] = row.user, row.password
    errors: list[KafkaError] = []
    producer = Producer({**config, "error_cb": errors.append}, logger=SILENT)
    end_s = time.monotonic() + BOUND_S
    while not errors and time.monotonic() < end_s:
        producer.poll(0.1)
    return errors[0].str() if errors else ""


def of_python(node: Refusing, row: Wrong) -> dict[str, Any]:
    """Return the options that aiokafka and kafka-python share."""
    found: dict[str, Any] = {
        "bootstrap_servers": node.bootstrap(row.listener),
        "security_protocol": row.used_protocol,
    }
    if "SSL" in row.used_protocol:
        context = ssl.create_default_context(cafile=str(node.authorities[row.trusts]))
        if row.own is not None:
            context.load_cert_chain(node.certificates[row.own].keystore)
        found["ssl_context"] = context
    if "SASL" in row.used_protocol:
        found["sasl_mechanism"] = row.mechanism
        found["sasl_plain_username"] = row.user
        found["sasl_plain_password"] = row.password
    return found


def aiokafka(node: Refusing, row: Wrong) -> str:
    """Return the exception with which a producer of aiokafka fails to start."""

    async def start() -> str:
        producer = AIOKafkaProducer(**of_python(node, row), request_timeout_ms=3000)
        try:
            async with asyncio.timeout(BOUND_S):
                await producer.start()
        except TimeoutError:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await producer.stop()
        return ""

    return asyncio.run(start())


def kafka_python(node: Refusing, row: Wrong) -> str:
    """Return the exception with which a producer of kafka-python fails to start."""
    try:
        KafkaProducer(**of_python(node, row), bootstrap_timeout_ms=1000).close()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


FAMILIES: tuple[Callable[[Refusing, Wrong], str], ...] = (librdkafka, aiokafka, kafka_python)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The message and the duration in s of each attempt, by row and family, and the errors of a
    right client that has worked meanwhile."""

    node: Refusing
    attempts: dict[tuple[Wrong, str], tuple[str, float]]
    sent: int
    errors: list[Any]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with refusing_node(tmp_path_factory.mktemp("wrong")) as node:

        def attempt(row: Wrong, family: Callable[[Refusing, Wrong], str]) -> tuple[str, float]:
            begin_s = time.monotonic()
            return family(node, row), time.monotonic() - begin_s

        errors: list[Any] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)

        right = Producer(
            {
                "bootstrap.servers": node.bootstrap("LOGIN"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": PASSWORD,
                "error_cb": errors.append,
            },
            logger=SILENT,
        )
        sent = 0
        with ThreadPoolExecutor(len(ROWS)) as pool:
            running = {
                (row, family.__name__): pool.submit(attempt, row, family)
                for family in FAMILIES
                for row in ROWS
            }
            while not sent or not all(each.done() for each in running.values()):
                right.produce("right", b"x", on_delivery=delivered)
                sent += 1
                right.poll(0.05)
        assert right.flush(10) == 0
        attempts = {key: each.result() for key, each in running.items()}
        yield Outcomes(node, attempts, sent, errors)
    gc.collect()


@pytest.mark.parametrize("family", [each.__name__ for each in FAMILIES])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_wrong_setting_fails_soon_with_a_message(
    outcomes: Outcomes, row: Wrong, family: str
) -> None:
    message, taken_s = outcomes.attempts[row, family]
    assert message
    assert taken_s < BOUND_S
    assert WRONG_PASSWORD not in message


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_node_writes_a_line_about_it(outcomes: Outcomes, row: Wrong) -> None:
    """Equal ones of several clients may be counted in one line."""
    lines = outcomes.node.lines(row.log)
    assert 1 <= len(lines) <= len(FAMILIES)
    assert not any(WRONG_PASSWORD in line for line in lines)


def test_a_right_client_notices_nothing(outcomes: Outcomes) -> None:
    assert outcomes.sent > 5 and not outcomes.errors
    assert not outcomes.node.lines("Traceback| ERROR ")
