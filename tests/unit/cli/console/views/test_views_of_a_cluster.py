"""The views of a real cluster in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.config_changes import alter_configs
from quorate.cli.client.groups import Groups
from quorate.cli.client.membership import Membership
from quorate.cli.client.producer import Producer
from quorate.cli.console.views import configs as configs_module
from quorate.cli.console.views import groups as groups_module
from quorate.cli.console.views import reassignments as reassignments_module
from quorate.cli.console.views import replicas as replicas_module
from quorate.cli.console.views import timeline as timeline_module
from quorate.cli.console.views.changes import ChangesView
from quorate.cli.console.views.configs import ConfigsView
from quorate.cli.console.views.groups import GroupsView
from quorate.cli.console.views.reassignments import ReassignmentsView
from quorate.cli.console.views.replicas import ReplicasView
from quorate.cli.console.views.table import Table
from quorate.cli.console.views.timeline import TimelineView
from quorate.cli.console.views.views import View
from quorate.cli.reassign.reassignments import reassign
from quorate.cli.status.cluster_status import read_status, read_topics
from quorate.cli.status.explanations import Explanations
from quorate.config.listeners import parse_servers
from quorate.quorum.protocol.schemas import configs
from quorate.testing import LocalCluster, ThreadedCluster

RECORDS = 7


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with LocalCluster(brokers=2) as running:
        running.create_topic("orders", partitions=1, replication_factor=2)
        running.create_topic("alone", partitions=1, replication_factor=1)
        yield running


@pytest.fixture
def admin(cluster: ThreadedCluster) -> Iterator[Admin]:
    servers = parse_servers("-b", cluster.bootstrap.split(","))
    made = Admin(AdminSettings(servers=servers, timeout_s=10.0))
    yield made
    made.close()


def read(view: View, admin: Admin) -> Mapping[str, Table]:
    topics = read_topics(admin)
    return view.read(admin, read_status(admin, Explanations(), topics=topics), topics)


def test_a_group_has_its_members_and_the_lag_of_each_partition(admin: Admin) -> None:
    Producer(admin, "orders").send([(None, b"v")] * RECORDS)
    member = Membership(admin, "billing", "orders")
    member.join()
    member.commit({0: RECORDS - 3})
    tables = read(GroupsView(), admin)
    (row,) = tables["groups"].rows
    assert row[:5] == ("billing", "Stable", 3, 1, 1)
    assert row[6] == "range"
    (lag,) = tables["lags"].rows
    assert lag[:7] == ("billing", "orders", 0, 3, RECORDS - 3, RECORDS, "quorate-cli")
    assert tables["groups"].note == ""
    member.leave()
    tables = read(GroupsView(), admin)
    assert tables["groups"].rows[0][:5] == ("billing", "Empty", 3, 1, 0)
    assert tables["lags"].rows[0][6] == "", "nobody owns it"


def test_each_replica_has_its_own_log_end(cluster: ThreadedCluster, admin: Admin) -> None:
    Producer(admin, "orders").send([(None, b"v")])
    (table,) = read(ReplicasView(), admin).values()
    rows = [row for row in table.rows if row[0] == "orders"]
    assert {row[2] for row in rows} == set(cluster.broker_ids)
    assert {row[3] for row in rows} == {"leader", "in sync"}
    assert [row[4] for row in rows] == [0, 0], "acks=all: both have every record"
    assert rows[0][5] == rows[1][5] != 0
    assert table.note == ""


def test_the_changes_have_their_stages_on_all_nodes(cluster: ThreadedCluster, admin: Admin) -> None:
    leader = cluster.leader("orders")
    other = next(each for each in cluster.broker_ids if each != leader)
    reassign(admin, {("orders", 0): (other, leader)})
    tables = read(ChangesView(), admin)
    changed = [row for row in tables["changes"].rows if row[1:3] == ("orders", 0)]
    assert changed and {row[3] for row in tables["changes"].rows} <= {"in flight", "complete"}
    states = {row[0]: row[1] for row in tables["nodes"].rows}
    assert states == {1: "active", **dict.fromkeys(cluster.broker_ids, "ok")}
    assert "acted" in str(tables["nodes"].rows[-1][2])


def test_the_configs_of_brokers_and_topics(cluster: ThreadedCluster, admin: Admin) -> None:
    change = configs.IncrementalAlterableConfig(
        name="max.message.bytes", config_operation=0, value="12345"
    )
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=2, resource_name="alone", configs=(change,)
    )
    alter_configs(admin, resource)
    (table,) = read(ConfigsView(), admin).values()
    assert table.note == ""
    rows = {row[:3]: row[3:] for row in table.rows}
    set_in_topic = ("12345", "DYNAMIC_TOPIC_CONFIG", "message.max.bytes=1048588")
    assert rows["topic", "alone", "max.message.bytes"] == set_in_topic
    assert rows["topic", "orders", "max.message.bytes"][1] == "DEFAULT_CONFIG"
    for broker in cluster.broker_ids:
        found = rows["broker", str(broker), "node.id"]
        assert found[:2] == (str(broker), "STATIC_BROKER_CONFIG")
    defaults = [row[4] == "DEFAULT_CONFIG" for row in table.rows]
    assert defaults == sorted(defaults), "what differs from the default comes first"


def test_a_reassignment_that_cannot_end_names_its_reason(
    cluster: ThreadedCluster, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    Producer(admin, "alone").send([(None, b"v" * 500)])
    holder = cluster.leader("alone")
    target = next(each for each in cluster.broker_ids if each != holder)
    other = Admin(AdminSettings(servers=servers_of(cluster, holder), timeout_s=1.0))
    cluster.pause(target)
    try:
        assert reassign(other, {("alone", 0): (target,)}) == {}
        (table,) = read(ReassignmentsView(), other).values()
        (row,) = table.rows
        assert row[:6] == ("alone", 0, "moving", 0, (target,), (holder,))
        assert f"broker {target}" in str(row[6])
        monkeypatch.setattr(reassignments_module, "MAX_MOVING", 0)
        (table,) = read(ReassignmentsView(), other).values()
        assert (table.rows, table.note) == ([], "the first 0 of 1 reassignments are shown")
    finally:
        other.close()
        cluster.resume(target)
    cluster.wait_ready()


def servers_of(cluster: ThreadedCluster, broker: int) -> tuple[tuple[str, int], ...]:
    """Return the address of one broker."""
    address = cluster.bootstrap.split(",")[cluster.broker_ids.index(broker)]
    return tuple(parse_servers("-b", [address]))


def test_the_timeline_tells_what_happened_and_why() -> None:
    with LocalCluster(brokers=2) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=2)
        first = cluster.leader("orders")
        cluster_ids = sorted(cluster.broker_ids)
        (second,) = [each for each in cluster_ids if each != first]
        admin, view = Admin(AdminSettings(servers=servers_of(cluster, second))), TimelineView()
        before = read(view, admin)["timeline"]
        assert before.rows[0][2] == "orders-0"
        assert before.rows[-1][2:5] == (
            "quorum",
            "",
            "Node 1 became the active controller, epoch 1.",
        )
        assert before.note == "since offset 0"
        cluster.kill_broker(first)
        cluster.wait_fenced(first)
        after = read(view, admin)["timeline"]
        new = after.rows[: len(after.rows) - len(before.rows)]
        moved = next(row for row in new if row[2] == "orders-0")
        assert moved[3] == second
        assert str(moved[4]).startswith(f"Broker {second} leads instead of broker {first}, ")
        assert "[connection-lost]" in str(moved[5])
        assert moved[6] == tuple(cluster_ids)
        assert any(row[2] == f"broker {first}" and row[4] == "It was fenced." for row in new)
        admin.close()


def test_each_view_is_bounded_and_says_what_is_missing(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = Groups(admin)
    for name in ("audit", "billing", "stock"):
        groups.commit(name, {("orders", 0): 1})
    monkeypatch.setattr(groups_module, "GROUPS_PER_READING", 1)
    monkeypatch.setattr(groups_module, "MAX_GROUPS", 2)
    view = GroupsView()
    table = read(view, admin)["groups"]
    assert {row[0] for row in table.rows} == {"audit", "billing"}
    assert "3 groups exist" in table.note and "1 groups are not described" in table.note
    assert "not described" not in read(view, admin)["groups"].note
    monkeypatch.setattr(groups_module, "MAX_OFFSETS", 1)
    assert "the lags of 1 groups are left out" in read(view, admin)["groups"].note

    monkeypatch.setattr(replicas_module, "MAX_PARTITIONS", 2)
    monkeypatch.setattr(replicas_module, "PARTITIONS_PER_READING", 1)
    replicas = ReplicasView()
    (table,) = read(replicas, admin).values()
    assert len({row[:2] for row in table.rows}) == 1
    assert "the first 2 of" in table.note and "1 partitions are not read yet" in table.note
    for _ in range(3):
        (table,) = read(replicas, admin).values()
    assert len({row[:2] for row in table.rows}) == 2

    monkeypatch.setattr(configs_module, "MAX_TOPICS", 1)
    monkeypatch.setattr(configs_module, "MAX_ROWS", 7)
    (table,) = read(ConfigsView(), admin).values()
    assert len(table.rows) == 7
    assert "the first 1 of" in table.note and "rows are left out" in table.note

    monkeypatch.setattr(timeline_module, "LOOK_BACK", 3)
    (table,) = read(TimelineView(), admin).values()
    assert table.note.startswith("since offset ") and table.note != "since offset 0"
    monkeypatch.setattr(timeline_module, "LOOK_BACK", 50_000)
    monkeypatch.setattr(timeline_module, "MAX_EVENTS", 2)
    (table,) = read(TimelineView(), admin).values()
    assert len(table.rows) == 2 and "older ones are left out" in table.note
