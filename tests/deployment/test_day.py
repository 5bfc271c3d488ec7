"""A day of an operator, with machines that run the shipped systemd units (`make test-long`).

Nodes are restarted, a controller dies and is replaced, one disk is wiped and one is full, a broker
leaves for good, the quorum is lost, and all brokers die. After each event the operator reads the
logs, `quorate status`, `/readyz`, `/metrics` and the console, and finds the sentences that the step
asserts. Clients write with acks=all from morning to evening, and every acknowledged record is there
at the end."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.console.watcher import FROM_CONTROLLERS
from tests.clients.cluster import wait_for
from tests.deployment.machines import Machine, run, status
from tests.deployment.rehearsed_cluster import Console, Day, replace_voter
from tests.system.load import Reader, Writer, working

pytestmark = [pytest.mark.long, pytest.mark.clients]
TOPIC, PARTITIONS = "orders", 6
PLACES = [(TOPIC, number) for number in range(PARTITIONS)]
SMALL_DISK = "64m"
NOT_REACHABLE = 3
"""The exit status of a command that reached no node."""
IMMEDIATELY_S = 10.0
"""An operator gets a status within this time, even on a loaded machine."""


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    found = Day(tmp_path)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "none", found.small.disk],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a full disk needs a mount, which is refused: {mounted.stderr.strip()}")
    try:
        yield found
    finally:
        for each in found.machines:
            each.end()
        subprocess.run(["umount", "--lazy", found.small.disk], check=False)


def test_the_day(day: Day) -> None:
    start(day)
    writer = Writer("writer", day.bootstrap, PLACES)
    reader = Reader("reader", day.bootstrap, PLACES)
    with contextlib.closing(Console(day.bootstrap)) as console, working([reader]):
        with working([writer]):
            rolling_restart(day, console)
            a_controller_dies_and_is_replaced(day, console)
            a_disk_is_wiped(day, console)
            a_disk_is_full(day, console)
            a_broker_leaves(day, console)
            the_quorum_is_lost(day, console)
            all_brokers_are_down(day, console)
        wait_for(lambda: has_read_all(writer, reader), "every acknowledged record is read", 60.0)
    for place in PLACES:
        writer.history.check(place, enumerate(reader.read[place]))
    assert writer.history.acknowledged > 1_000
    for each in (*day.brokers, *day.controllers):  # a controller lets a broker stop quickly
        each.stop()
        assert "Traceback" not in each.journal()


def has_read_all(writer: Writer, reader: Reader) -> bool:
    return sum(map(len, reader.read.values())) >= writer.history.acknowledged


def start(day: Day) -> None:
    """The first start of the cluster: a forgotten step is named, and the topics are safe."""
    forgotten = day.brokers[0]
    forgotten.start()
    assert forgotten.wait_until_ended() != 0
    assert "is not formatted. Run `quorate storage format" in forgotten.journal()
    for each in day.machines:
        each.format()
        each.start()
    for each in day.machines:
        each.wait_until_ready()
        assert "listening on " in each.journal()
    created = run(
        *("topics", "--bootstrap-server", day.bootstrap, "--create", "--topic", TOPIC),
        *("--partitions", str(PARTITIONS)),
    )
    assert created.returncode == 0, created.stderr
    described = run("topics", "--bootstrap-server", day.bootstrap, "--describe").stdout
    assert "ReplicationFactor: 3\t" in described
    assert "min.insync.replicas=2" in described
    code, text = status(day.bootstrap)
    assert code == 0
    assert "3 of 3 voters answer" in text


def rolling_restart(day: Day, console: Console) -> None:
    """Each node stops cleanly within TimeoutStopSec, and its absence is explained."""
    for broker in day.brokers:
        broker.stop()
        day.said(f"broker {broker.node_id} (epoch ")
        text = status(day.bootstrap)[1]
        assert f"Broker {broker.node_id}: fenced" in text
        assert "shutdown-complete: The broker had moved everything away and went down." in text
        assert "0 offline" in text
        shows(console, lambda seen: seen["fenced"] == 1)
        broker.start()
        broker.wait_until_ready()
        day.wait_until_whole()
    shows(console, lambda seen: seen["fenced"] == 0 and not seen["causes"])
    for controller in sorted(day.controllers, key=lambda each: each is day.active()):
        controller.stop()
        assert "received a signal to stop" in controller.journal()
        wait_for(
            lambda: "2 of 3 voters answer" in status(day.bootstrap)[1], "the status has the stop"
        )
        controller.start()
        controller.wait_until_ready()
        wait_for(lambda: "3 of 3 voters answer" in status(day.bootstrap)[1], "all voters are back")


def a_controller_dies_and_is_replaced(day: Day, console: Console) -> None:
    """The status says what is left. The new disk does not vote until the operator says so."""
    dead = day.active()
    before = {each.name: len(each.journal()) for each in day.controllers}
    dead.kill()
    wait_for(
        lambda: "one more loss ends the quorum" in status(day.bootstrap)[1], "the status has it"
    )
    assert f"{dead.node_id} (DEAD, " in status(day.bootstrap)[1]
    shows(console, lambda seen: f"{dead.node_id} (DEAD, " in seen["quorum"])
    news = "".join(each.journal(before[each.name]) for each in day.controllers)
    assert "does not answer or is gone" in news
    assert "won the election of epoch" in news
    assert "this node is the active controller of epoch" in news
    dead.wipe()
    dead.format()
    dead.start()
    wait_for(
        lambda: f"{dead.node_id} (DOES NOT VOTE, has another disk; " in status(day.bootstrap)[1],
        "the status explains the new disk",
    )
    day.said("its disk was replaced or its directory.id was changed")
    wait_for(
        lambda: "this controller does not vote: its directory id is " in dead.ready()[1],
        "a rolling restart stops here",
    )
    replace_voter(day, dead)
    wait_for(lambda: "3 of 3 voters answer" in status(day.bootstrap)[1], "the new disk votes")
    shows(console, lambda seen: "3 of 3 voters answer" in seen["quorum"])
    dead.wait_until_ready()


def a_disk_is_wiped(day: Day, console: Console) -> None:
    """A broker refuses an empty disk until it is formatted, and then says that it starts empty."""
    broker = day.brokers[1]
    broker.kill()
    broker.wipe()
    day.said(f"fenced broker {broker.node_id} ")
    assert "connection-lost: " in status(day.bootstrap)[1]
    down = f"broker {broker.node_id} is down"
    shows(console, lambda seen: any(down in each for each in seen["causes"]))
    before = len(broker.journal())
    broker.start()
    assert broker.wait_until_ended() != 0
    assert "is not formatted" in broker.journal(before)
    broker.format()
    broker.start()
    broker.wait_until_ready()
    assert "has a log on its disks: they are empty" in broker.journal(before)
    day.wait_until_whole()


def a_disk_is_full(day: Day, console: Console) -> None:
    """The broker stops. Its last line names the file, the topic and the remedy."""
    broker = day.small
    before = len(broker.journal())
    forgotten = broker.disk / "core"
    with open(forgotten, "wb") as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
            file.flush()
    assert broker.wait_until_ended(60.0) != 0
    last = broker.journal(before).splitlines()[-1]
    assert f"the node stops: {broker.disk}" in last
    assert "No space left on device. Free space on this disk, or add space to it." in last
    day.said(f"fenced broker {broker.node_id} ")
    code, text = status(day.bootstrap)
    assert code == 0, "min ISR holds, so there is no outage"
    down = f"broker {broker.node_id} is down"
    assert f"by cause: {down}" in text
    shows(console, lambda seen: any(down in each for each in seen["causes"]))
    forgotten.unlink()
    broker.start()
    broker.wait_until_ready()
    day.wait_until_whole()


def a_broker_leaves(day: Day, console: Console) -> None:
    """A new broker takes the replicas of another one, which then stops and says why."""
    new = Machine(day.root, day.addresses, "broker", 4)
    leaving = day.brokers.pop(0)
    day.brokers.append(new)
    new.format()
    new.start()
    new.wait_until_ready()
    command = ("cluster", "decommission", str(leaving.node_id), "--yes")
    done = run(*command, "--bootstrap-server", day.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"broker {leaving.node_id} has replicas of " in done.stdout
    assert "has no replicas and is no longer registered" in done.stdout
    leaving.wait_until_ended()
    assert "unregister" in leaving.journal().splitlines()[-1]
    day.said(f"broker {leaving.node_id} ")
    assert f"Broker {leaving.node_id}:" not in status(day.bootstrap)[1]
    shows(console, lambda seen: (seen["brokers"], seen["fenced"]) == (3, 0))
    day.wait_until_whole()


def the_quorum_is_lost(day: Day, console: Console) -> None:
    """Every node, the status and the console say so immediately. Afterwards everything is back."""
    assert console.overview()["lost"] is False
    *dead, alive = day.controllers
    for each in dead:
        each.kill()
    wait_for(lambda: "quorum is lost" in alive.ready()[1], "the controller knows it")
    wait_for(
        lambda: all("quorum is lost" in broker.ready()[1] for broker in day.brokers),
        "each broker knows it",
    )
    began_s = time.monotonic()
    code, text = status(day.bootstrap)
    assert time.monotonic() - began_s < IMMEDIATELY_S
    assert code == 1
    assert "Quorum: LOST: the metadata quorum is lost, as node " in text
    assert "it reaches 1 of 3 voters" in text
    none = "kafka_controller_kafkacontroller_activecontrollercount 0.0\n"
    wait_for(lambda: none in alive.get("/metrics")[1], "a leader without a majority has resigned")
    wait_for(lambda: console.overview()["lost"], "the console shows it")
    assert "LOST" in console.overview()["quorum"]
    wait_for(lambda: "not ready for 3 s: the metadata quorum is lost" in alive.journal(), "a line")
    for each in dead:
        each.start()
    for each in day.machines:
        each.wait_until_ready()
    wait_for(lambda: status(day.bootstrap)[0] == 0, "the status is good again")
    wait_for(lambda: not console.overview()["lost"], "the console, too")
    day.wait_until_whole()


def all_brokers_are_down(day: Day, console: Console) -> None:
    """The status points to the controllers, which know the brokers. The console asks them itself,
    and says why the rest of its page is old."""
    for each in day.brokers:
        each.kill()
    code, text = status(day.bootstrap)
    assert code == NOT_REACHABLE
    assert "With --bootstrap-controller the command shows what the controllers know" in text
    controllers = ",".join(each.node_address for each in day.controllers)
    text = status(day.bootstrap, "--bootstrap-controller", controllers)[1]
    assert "3 of 3 voters answer" in text, text
    assert [f"Broker {each.node_id}: up" in text for each in day.brokers] == [False] * 3
    assert all(f"Broker {each.node_id}: " in text for each in day.brokers)
    shows(console, lambda seen: seen["fenced"] == 3 and "3 of 3 voters" in seen["quorum"])
    assert FROM_CONTROLLERS in console.overview()["error"]
    for each in day.brokers:
        each.start()
    for each in day.brokers:
        each.wait_until_ready()
    shows(console, lambda seen: not seen["error"] and seen["fenced"] == 0)
    day.wait_until_whole()


def shows(console: Console, expected: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the values above the tables of the console are as expected."""
    wait_for(lambda: expected(console.overview()), "the console shows the event")
