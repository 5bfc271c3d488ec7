"""Every attack in its small form, on real processes: no node stops, and honest clients see nothing.

`make attack` runs them in full, and bounds the clients' latency, too: here other tests share the
machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.attacks.bystanders import Bystanders, bystanders
from tests.attacks.nodes import MAX_GROWTH_BYTES, dead, memories, settled_growth
from tests.attacks.registry import Attack, attacks
from tests.attacks.run import QUICK_LEAST_SHARE, Site, fresh, now_standing, struck
from tests.attacks.target import reached

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

ITEMS = sorted({each.item for each in attacks().values()})
TOPIC = "bystanders"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with fresh(tmp_path_factory.mktemp("attacked"), "--faults") as started:
        yield started


@pytest.fixture(scope="module")
def clients(site: Site) -> Iterator[Bystanders]:
    with bystanders(site.bootstrap, site.directory, TOPIC) as both:
        yield both


def of_item(item: int) -> list[Attack]:
    return [each for each in attacks().values() if each.item == item]


@pytest.mark.parametrize("item", ITEMS)
def test_no_node_stops_and_honest_clients_see_no_error(
    site: Site, clients: Bystanders, item: int
) -> None:
    assert not dead(site.pids), "a node died before this attack"
    names = [each.name for each in of_item(item)]
    before, before_bytes = now_standing(site, TOPIC), memories(site.pids)
    began_s = time.monotonic()
    reports = struck(names, site, quick=True)
    beside = clients.window(began_s, time.monotonic())
    assert [each["name"] for each in reports] == names
    assert not dead(site.pids)
    assert not [each for each in reports if each["error"]]
    assert not beside.errors
    assert not beside.silent(QUICK_LEAST_SHARE)
    assert not [each["name"] for each in reports if not reached(each["outcome"])]
    assert before is not None
    assert now_standing(site, TOPIC) == before, "leadership changed"
    growth = settled_growth(site.pids, before_bytes)
    assert max(growth.values()) <= MAX_GROWTH_BYTES, growth


def test_honest_clients_have_lost_nothing(site: Site, clients: Bystanders) -> None:
    """This test is the last one, because it stops the clients."""
    assert clients.stop() == []
