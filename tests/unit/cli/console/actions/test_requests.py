"""The actions on a real cluster: what they change, and the cluster's own refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import Refused
from quorate.cli.console.actions.fields import values_of
from quorate.cli.console.actions.table import ACTIONS
from quorate.cli.reassign.reassignments import current
from quorate.config.listeners import parse_servers
from quorate.testing import LocalCluster, ThreadedCluster

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


@contextmanager
def connected(cluster: ThreadedCluster) -> Iterator[Admin]:
    servers = parse_servers("-b", cluster.bootstrap.split(","))
    admin = Admin(AdminSettings(servers=servers, timeout_s=10.0))
    try:
        yield admin
    finally:
        admin.close()


def take(admin: Admin, action: str, **texts: str) -> str:
    """Take an action with the texts of its fields."""
    chosen = ACTIONS[action]
    return chosen.run(admin, values_of(chosen.fields, texts))


def test_the_actions_change_the_cluster() -> None:
    with LocalCluster(brokers=2) as cluster, connected(cluster) as admin:
        first, second = cluster.broker_ids
        one = {"topic": "orders", "partition": "0"}
        take(admin, "create-topic", topic="orders", partitions="2", replicas="2")
        assert {len(each) for each in current(admin, ["orders"]).values()} == {2}
        with pytest.raises(Refused, match="already exists"):
            take(admin, "create-topic", topic="orders")
        take(admin, "reassign", **one, brokers=f"{second},{first}")
        with pytest.raises(Refused, match=r"orders-0: .*reassign"):
            take(admin, "cancel-reassignment", **one)
        with pytest.raises(Refused, match="orders-0: "):
            take(admin, "reassign", **one, brokers="99")
        assert "new leader: " in take(admin, "elect-preferred", **one)
        assert "new leader: 0" in take(admin, "elect-preferred", **one)
        assert "new leader: " in take(admin, "elect-all-preferred")
        assert take(admin, "elect-unclean", **one, again="orders").endswith("need none: 1.")
        take(admin, "delete-topic", topic="orders", again="orders")
        assert current(admin, ["orders"]) == {}
        with pytest.raises(Refused, match="does not host"):
            take(admin, "delete-topic", topic="orders", again="orders")
        with pytest.raises(Refused, match="Failed: 1, first orders-0"):
            take(admin, "elect-preferred", **one)


def test_a_reassignment_that_cannot_end_is_cancelled() -> None:
    with LocalCluster(brokers=2) as cluster, connected(cluster) as admin:
        first, second = cluster.broker_ids
        take(admin, "create-topic", topic="orders", partitions="1", replicas="1")
        (before,) = current(admin, ["orders"]).values()
        other = second if before == (first,) else first
        cluster.kill_broker(other)
        cluster.wait_fenced(other)
        one = {"topic": "orders", "partition": "0"}
        take(admin, "reassign", **one, brokers=str(other))
        assert len(*current(admin, ["orders"]).values()) == 2
        take(admin, "cancel-reassignment", **one)
        assert current(admin, ["orders"]) == {("orders", 0): before}


def test_a_user_without_permissions_changes_nothing() -> None:
    with LocalCluster(config=AUTHORIZER) as cluster, connected(cluster) as admin:
        for action, texts in (
            ("create-topic", {"topic": "orders"}),
            ("delete-topic", {"topic": "orders", "again": "orders"}),
            ("reassign", {"topic": "orders", "partition": "0", "brokers": "2"}),
            ("cancel-reassignment", {"topic": "orders", "partition": "0"}),
            ("elect-preferred", {"topic": "orders", "partition": "0"}),
            ("elect-unclean", {"topic": "orders", "partition": "0", "again": "orders"}),
        ):
            with pytest.raises(Refused, match=r"(?i)authoriz"):
                take(admin, action, **texts)
