"""The watcher of the console, on a real cluster in this process."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from typing import Any

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import admin_settings
from quorate.cli.console import watcher as watcher_module
from quorate.cli.console.cluster_tables import NOT_KNOWN
from quorate.cli.console.views.table import Table
from quorate.cli.console.views.views import READING
from quorate.cli.console.watcher import (
    FROM_CONTROLLERS,
    MAX_SERVERS,
    Reading,
    Watcher,
    next_first,
    with_brokers,
)
from quorate.cli.status.cluster_status import Status, read_status, read_topics
from quorate.cli.status.explanations import Explanations
from quorate.cli.status.outage import ASK_CONTROLLERS, named_controllers
from quorate.cli.topics.topic_view import TopicView
from quorate.config.listeners import parse_servers
from quorate.testing import LocalCluster


def test_brokers_are_remembered_once_and_up_to_a_bound() -> None:
    servers = (("b1", 9092),)
    found = with_brokers(servers, ["b1:9092", "b2:9092"])
    assert found == (("b1", 9092), ("b2", 9092))
    assert with_brokers(servers, ["[::1]:9092", ":-1"]) == (*servers, ("::1", 9092))
    many = with_brokers(servers, [f"b{number}:1" for number in range(2 * MAX_SERVERS)])
    assert len(many) == MAX_SERVERS
    assert many[0] == servers[0]


def test_a_server_that_does_not_answer_is_asked_last() -> None:
    assert next_first((("a", 1), ("b", 2), ("c", 3))) == (("b", 2), ("c", 3), ("a", 1))


def test_the_console_goes_on_when_its_bootstrap_server_dies() -> None:
    with LocalCluster(brokers=2) as cluster:
        cluster.create_topic("orders", partitions=3, replication_factor=2)
        first, second = cluster.broker_ids
        address = cluster.bootstrap.split(",")[0]
        changes: list[int] = []
        settings = AdminSettings(servers=parse_servers("-b", [address]), timeout_s=3.0)
        watcher = Watcher(settings, lambda: changes.append(watcher.current.version))
        watcher.read_once()
        assert watcher.current.error == ""
        assert changes == [1]
        assert watcher.current.tables.overview["partitions"] >= 3
        cluster.kill_broker(first)
        cluster.wait_fenced(first)
        for _ in range(3):
            watcher.read_once()
            if not watcher.current.error:
                break
        assert watcher.current.error == ""
        brokers = watcher.current.tables.tables["brokers"].rows
        assert [row[:2] for row in brokers] == [(first, "fenced"), (second, "up")]
        rows = watcher.current.tables.tables["partitions"].rows
        assert rows[0][2] == "under-replicated"
        assert f"broker {first} is down" in str(rows[0][-1])
        watcher.close()


def test_controllers_are_asked_if_no_broker_answers() -> None:
    with LocalCluster(controllers=3) as cluster:
        cluster.create_topic("orders", partitions=3, replication_factor=1)
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        watcher = Watcher(settings, lambda: None)
        watcher.read_once()
        assert watcher.current.error == ""
        before = watcher.current.tables
        (broker,) = cluster.broker_ids
        cluster.kill_broker(broker)
        watcher.read_once()
        assert watcher.current.error.endswith(FROM_CONTROLLERS)
        tables = watcher.current.tables
        ((number, state, leads, *_),) = tables.tables["brokers"].rows
        assert (number, state, leads) == (broker, "does not answer", NOT_KNOWN)
        assert tables.overview["fenced"] == 1
        assert "3 of 3 voters answer" in tables.overview["quorum"]
        assert tables.overview["counts"] == before.overview["counts"]
        assert tables.tables["partitions"] is before.tables["partitions"]
        for each in cluster.controller_ids[1:]:
            cluster.kill_controller(each)
        watcher.read_once()
        assert watcher.current.tables.overview["lost"]
        assert "LOST" in watcher.current.tables.overview["quorum"]
        watcher.close()


def test_the_first_reading_after_an_outage_is_followed_by_another_one_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It shows brokers that are about to come back, and may have taken long."""
    real, fails = read_topics, [True, False, False]

    def read(admin: Admin) -> list[TopicView]:
        if fails.pop(0):
            raise Refused("not now")
        return real(admin)

    monkeypatch.setattr(watcher_module, "read_topics", read)
    with LocalCluster() as cluster:
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        watcher = Watcher(settings, lambda: None, itertools.count(0.0, 30.0).__next__)
        rests = []
        for _ in range(3):
            watcher.read_once()
            rests.append(watcher._rest_s)
        watcher.close()
    assert rests[:2] == [watcher_module.REST_S] * 2
    assert rests[2] >= watcher_module.REST_FACTOR * 30


def test_a_console_that_starts_in_the_outage_asks_the_given_controllers() -> None:
    with LocalCluster() as cluster:
        cluster.kill_broker(cluster.broker_ids[0])
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        blind = Watcher(settings, lambda: None)
        blind.read_once()
        assert blind.current.error.endswith(ASK_CONTROLLERS)
        assert not blind.current.tables.overview
        blind.close()
        known = named_controllers(cluster.bootstrap_controllers)
        watcher = Watcher(settings, lambda: None, known=known)
        watcher.read_once()
        assert watcher.current.error.endswith(FROM_CONTROLLERS)
        assert "1 of 1 voters answer" in watcher.current.tables.overview["quorum"]
        watcher.close()


def test_the_controllers_of_another_cluster_are_not_shown() -> None:
    with LocalCluster() as cluster, LocalCluster() as other:
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        known = named_controllers(other.bootstrap_controllers)
        watcher = Watcher(settings, lambda: None, known=known)
        watcher.read_once()
        before = watcher.current.tables
        cluster.kill_broker(cluster.broker_ids[0])
        watcher.read_once()
        assert "The controllers belong to cluster" in watcher.current.error
        assert watcher.current.tables is before
        watcher.close()


def test_an_error_is_shown_and_the_last_tables_stay() -> None:
    with LocalCluster() as cluster:
        settings = AdminSettings(
            servers=parse_servers("-b", cluster.bootstrap.split(",")), timeout_s=0.2
        )
        watcher = Watcher(settings, lambda: None, itertools.count(0.0, 30.0).__next__)
        watcher.read_once()
        assert watcher._rest_s >= watcher_module.REST_FACTOR * 30
        before = watcher.current.tables
        cluster.kill_broker(cluster.broker_ids[0])
        cluster.kill_controller()
        watcher.read_once()
        assert "no server answers" in watcher.current.error
        assert watcher.current.tables is before
        assert watcher._rest_s == watcher_module.REST_S, "the console sees soon that it is over"
        watcher.close()


def test_a_table_that_a_page_begins_to_show_is_read_without_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher_module, "REST_S", 3600.0)
    news = threading.Event()
    with LocalCluster() as cluster:
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        watcher = Watcher(settings, news.set)
        watcher.start()
        assert news.wait(30)
        assert watcher.current.tables.tables["groups"].note == READING
        news.clear()
        watcher.look("groups")
        assert news.wait(30)
        assert watcher.current.tables.tables["groups"].note == ""
        watcher.stop()


def test_a_slow_view_delays_neither_the_tables_nor_the_next_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with a broker that hangs: each request to it costs the time limit."""
    now_s, published = [1000.0], list[Reading]()
    with LocalCluster() as cluster:
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        watcher = Watcher(settings, lambda: published.append(watcher.current), lambda: now_s[0])
        reads = []

        def slow(*_: object) -> dict[str, Table]:
            reads.append(len(published))
            now_s[0] += 50
            return {"groups": Table(("group",), [("billing",)])}

        monkeypatch.setattr(watcher._views, "read", slow)
        watcher.read_once()
        assert reads == [1], "the tables were published before"
        assert watcher.current.tables.tables["groups"].rows == [("billing",)]
        assert watcher._rest_s == watcher_module.REST_S
        watcher.read_once()
        assert reads == [1], "the view rests"
        now_s[0] += watcher_module.REST_FACTOR * 50
        watcher.read_once()
        assert len(reads) == 2
        watcher.close()


def test_another_cluster_at_the_same_address_begins_with_an_empty_timeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, used = read_status, list[Explanations]()

    def other(admin: Admin, explanations: Explanations, **rest: Any) -> Status:
        used.append(explanations)
        return replace(real(admin, explanations, **rest), cluster_id="another")

    with LocalCluster() as cluster:
        settings = AdminSettings(servers=parse_servers("-b", [cluster.bootstrap]), timeout_s=5.0)
        watcher = Watcher(settings, lambda: None, lambda: 0.0)
        watcher.look("timeline")
        watcher.read_once()
        assert watcher.current.tables.tables["timeline"].rows
        watcher.read_once()
        assert watcher.current.tables.tables["timeline"].rows, "it is the same cluster"
        monkeypatch.setattr(watcher_module, "read_status", other)
        watcher.read_once()
        assert watcher.current.tables.tables["timeline"].note == READING
        assert used[0] is not used[1], "the causes are read again"
        watcher.read_once()
        assert used[1:] == [used[1]] * 2, "once"
        watcher.close()


def test_a_cluster_with_tls_and_sasl_is_read_with_the_settings_of_the_command_config() -> None:
    with LocalCluster(secure=True) as cluster:
        settings = admin_settings(cluster.bootstrap, None, cluster.client_properties, 5.0)
        watcher = Watcher(settings, lambda: None)
        watcher.read_once()
        assert watcher.current.error == ""
        assert watcher.current.tables.overview["brokers"] == 1
        watcher.close()
        plain = admin_settings(cluster.bootstrap, None, None, 0.2)
        refused = Watcher(plain, lambda: None)
        refused.read_once()
        assert refused.current.error, "the settings are needed"
        refused.close()
