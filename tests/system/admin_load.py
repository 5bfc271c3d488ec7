"""An admin that creates, grows, configures and deletes topics, and the checks of the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.clients.librdkafka import (
    SILENT,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from tests.system.load import Client

ANSWER_S = 5.0
PAUSE_S = 0.03
MAX_LIVING = 20
SETTING = "retention.ms"
FIRST_VALUE = 1_000_000_000


@dataclass(slots=True)
class Told:
    """The admin's knowledge of one number (partitions, a config's value)."""

    acknowledged: int
    perhaps: set[int] = field(default_factory=set)

    def allows(self, value: int) -> bool:
        return value == self.acknowledged or value in self.perhaps


@dataclass(slots=True)
class Fate:
    """Of one topic, by its name, which is never used again."""

    partitions: Told
    setting: Told
    created: bool = False
    deleted: bool = False
    perhaps_created: bool = False
    perhaps_deleted: bool = False

    @property
    def must_exist(self) -> bool:
        return self.created and not self.deleted and not self.perhaps_deleted

    @property
    def must_be_gone(self) -> bool:
        return self.deleted and not self.perhaps_created


class Admin(Client):
    def __init__(self, name: str, bootstrap: str, seed: int) -> None:
        super().__init__(name)
        self.topics: dict[str, Fate] = {}
        self.done = self.refused = 0
        self._random = Random(seed)
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "socket.timeout.ms": int(ANSWER_S * 1000),
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 300,
            },
            logger=SILENT,
        )

    def work(self) -> None:
        while not self.stopping.is_set():
            living = [name for name, fate in self.topics.items() if fate.must_exist]
            if (len(living) < MAX_LIVING and self._random.random() < 0.4) or not living:
                self._create(f"{self.name}-{len(self.topics)}")
            else:
                name = self._random.choice(living)
                act = self._random.choice((self._configure, self._configure, self._grow))
                if self._random.random() < 0.25:
                    act = self._delete
                act(name, self.topics[name])
            time.sleep(PAUSE_S)

    def _create(self, name: str) -> None:
        partitions, value = self._random.randint(1, 4), FIRST_VALUE
        fate = self.topics[name] = Fate(Told(partitions), Told(value))
        topic = NewTopic(name, partitions, 3, config={SETTING: str(value)})
        code = self._ask(lambda: self._client.create_topics([topic], request_timeout=ANSWER_S))
        fate.created = code in (0, KafkaError.TOPIC_ALREADY_EXISTS)
        fate.perhaps_created = code != 0

    def _delete(self, name: str, fate: Fate) -> None:
        code = self._ask(lambda: self._client.delete_topics([name], request_timeout=ANSWER_S))
        fate.deleted = code == 0
        fate.perhaps_deleted = code != 0

    def _grow(self, name: str, fate: Fate) -> None:
        told = fate.partitions
        count = max(told.acknowledged, *told.perhaps, 0) + 1
        wanted = [NewPartitions(name, count)]
        self._change(
            told,
            count,
            lambda: self._client.create_partitions(wanted, request_timeout=ANSWER_S),
        )

    def _configure(self, name: str, fate: Fate) -> None:
        told = fate.setting
        value = max(told.acknowledged, *told.perhaps, 0) + 1
        entry = ConfigEntry(SETTING, str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        self._change(
            told,
            value,
            lambda: self._client.incremental_alter_configs([resource], request_timeout=ANSWER_S),
        )

    def _change(self, told: Told, value: int, ask: Callable[[], dict[Any, Future[Any]]]) -> None:
        if self._ask(ask) == 0:
            told.acknowledged = value
        else:
            told.perhaps.add(value)

    def _ask(self, ask: Callable[[], dict[Any, Future[Any]]]) -> int:
        """The error's code, 0 when it was done."""
        try:
            (answer,) = ask().values()
            answer.result(ANSWER_S * 2)
        except KafkaException as refused:
            self.refused += 1
            return int(refused.args[0].code())
        except TimeoutError:
            self.refused += 1
            return int(KafkaError._TIMED_OUT)
        self.done += 1
        return 0

    # -- afterwards ------------------------------------------------------------------------------

    def compare(self) -> None:
        """With what the cluster says now."""
        there = self._client.list_topics(timeout=ANSWER_S * 2).topics
        for name, fate in self.topics.items():
            assert name in there or not fate.must_exist, f"{name} was created and is not there"
            assert name not in there or not fate.must_be_gone, f"{name} was deleted and is there"
            if fate.must_exist:
                count = len(there[name].partitions)
                assert fate.partitions.allows(count), f"{name}: {count} partitions: {fate}"
                value = self._setting_of(name)
                assert fate.setting.allows(value), f"{name}: {SETTING} {value}: {fate}"

    def _setting_of(self, name: str) -> int:
        resource = ConfigResource(ResourceType.TOPIC, name)
        answers = self._client.describe_configs([resource], request_timeout=ANSWER_S)
        (answer,) = answers.values()
        return int(answer.result(ANSWER_S * 2)[SETTING].value)
