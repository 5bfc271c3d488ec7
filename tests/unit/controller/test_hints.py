"""Hints: a dead connection and a refused probe fence a broker immediately, and nothing else
does."""

from __future__ import annotations

import random

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.result import ProbeBroker
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord
from quorate.quorum.seams import Address
from tests.unit.controller.harness import CLUSTER_ID, SESSION_MS, Driver, probes_of

UNCLEAN = {"unclean.leader.election.enable": "true"}


class Hinted(Driver):
    """A driver that also tracks connections. The test gives the results of probes."""

    def lose(self, broker_id: int) -> ProbeBroker:
        """Lose the broker's connection, and return the probe that follows."""
        self.effects.clear()
        self.take(self.controller.connection_lost(broker_id, self.broker(broker_id).epoch))
        (probe,) = self.effects
        return probe

    def answered(self) -> None:
        """Let every probe in flight succeed."""
        for probe in self.take_probes():
            self.take(self.controller.probe_succeeded(probe))

    def refused(self, probe: ProbeBroker) -> None:
        self.take(self.controller.probe_refused(probe, now_ms=self.now_ms))

    def take_probes(self) -> list[ProbeBroker]:
        probes, self.effects = self.effects, []
        return probes

    def start(self, *broker_ids: int, **changes: object) -> None:
        super().start(*broker_ids, **changes)
        for broker_id in broker_ids:
            self.connect(broker_id, f"10.0.0.{broker_id}")
        self.answered()


def started() -> Hinted:
    driver = Hinted()
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    assert driver.take_probes() == []
    return driver


def test_a_dead_connection_and_a_refused_probe_fence_at_once() -> None:
    driver = started()
    driver.now_ms = 100
    probe = driver.lose(1)
    assert probe.delay_ms == 0
    driver.refused(probe)
    assert driver.broker(1).fenced
    assert driver.leader_and_isr("t") == (2, (2, 3))
    record = driver.log[-1]
    assert isinstance(record, BrokerRegistrationChangeRecord)
    assert record.cause == Cause.CONNECTION_LOST


def test_the_probe_goes_to_the_host_that_the_connection_came_from() -> None:
    driver = started()
    assert driver.lose(1).address == Address("10.0.0.1", 9094)


def test_a_refusal_does_not_count_where_no_probe_ever_succeeded() -> None:
    driver = Hinted()
    Driver.start(driver, 1)
    driver.connect(1)
    for probe in driver.take_probes():
        driver.refused(probe)
    driver.refused(driver.lose(1))
    assert not driver.broker(1).fenced


def test_a_success_at_another_host_does_not_count_either() -> None:
    driver = started()
    driver.lose(1)
    driver.connect(1, "192.168.0.1")
    driver.take_probes()
    driver.refused(driver.lose(1))
    assert not driver.broker(1).fenced


def test_a_success_in_an_earlier_session_does_not_count() -> None:
    driver = started()
    driver.lose(1)
    driver.register(1, 2)
    driver.heartbeat(1)
    driver.connect(1)
    driver.take_probes()
    driver.refused(driver.lose(1))
    assert not driver.broker(1).fenced


def test_a_refusal_that_comes_after_the_broker_is_back_does_not_count() -> None:
    driver = started()
    probe = driver.lose(1)
    driver.connect(1, probe.address.host)
    driver.refused(probe)
    assert not driver.broker(1).fenced


def test_a_link_that_closes_after_its_successor_opened_is_no_loss() -> None:
    driver = started()
    driver.connect(1, "10.0.0.1")
    driver.take(driver.controller.connection_lost(1, driver.broker(1).epoch))
    assert driver.take_probes() == []
    assert driver.lose(1).delay_ms == 0


def test_a_late_refusal_of_an_older_probe_does_not_count() -> None:
    driver = started()
    old = driver.lose(1)
    driver.connect(1, old.address.host)
    driver.lose(1)
    driver.refused(old)
    assert not driver.broker(1).fenced


def test_a_refusal_for_a_replaced_incarnation_does_not_count() -> None:
    driver = started()
    probe = driver.lose(1)
    driver.register(1, 2)
    driver.heartbeat(1)
    driver.refused(probe)
    assert not driver.broker(1).fenced


def test_a_process_that_is_still_dying_is_probed_again_ever_slower() -> None:
    driver = started()
    probe = driver.lose(1)
    delays = []
    for _ in range(7):
        driver.take_probes()
        driver.take(driver.controller.probe_succeeded(probe))
        (probe,) = driver.take_probes()
        delays.append(probe.delay_ms)
    assert delays == [20, 40, 80, 160, 320, 500, 500]
    driver.refused(probe)
    assert driver.broker(1).fenced


def test_no_answer_is_no_evidence_and_the_session_times_out_as_ever() -> None:
    driver = started()
    probe = driver.lose(1)
    for _ in range(3):
        driver.take_probes()
        driver.take(driver.controller.probe_failed(probe))
        (probe,) = driver.take_probes()
    driver.run_until(SESSION_MS - 1)
    assert not driver.broker(1).fenced
    driver.heartbeat(2)
    driver.run_until(SESSION_MS)
    assert driver.broker(1).fenced
    driver.take_probes()
    driver.take(driver.controller.probe_failed(probe))
    assert driver.take_probes() == []


def test_a_connected_but_silent_broker_is_the_timeouts() -> None:
    driver = started()
    driver.run_until(SESSION_MS - 1)
    assert not driver.broker(1).fenced and driver.take_probes() == []


def test_one_setting_turns_hints_off() -> None:
    settings = ControllerSettings(cluster_id=CLUSTER_ID, node_id=3000, hints=False)
    driver = Hinted(settings)
    driver.start(1)
    driver.take(driver.controller.connection_lost(1, driver.broker(1).epoch))
    assert driver.take_probes() == []


# --------------------------------------------------------------------------- unclean elections wait


def after_a_hint() -> Hinted:
    """Return a driver in which broker 1, the only ISR of `u`, died at 1000 ms and was fenced on a
    hint. Broker 2 lags."""
    driver = Hinted()
    driver.start(1, 2)
    driver.create("u", (1, 2), configs=UNCLEAN)
    driver.propose_isr("u", (1,))
    driver.run_until(1000)
    for broker_id in (1, 2):
        driver.heartbeat(broker_id)
    driver.refused(driver.lose(1))
    assert driver.broker(1).fenced
    return driver


def test_a_hint_leads_to_no_unclean_election_before_the_session_would_have_ended() -> None:
    driver = after_a_hint()
    assert driver.leader_and_isr("u") == (-1, (1,))
    driver.heartbeat(2, want_fence=True)
    driver.heartbeat(2)  # unfenced again: leaderless partitions are looked at
    assert driver.leader_and_isr("u") == (-1, (1,))
    driver.run_until(1000 + SESSION_MS - 1)
    driver.heartbeat(2)
    assert driver.leader_and_isr("u") == (-1, (1,))
    driver.run_until(1000 + SESSION_MS)
    assert driver.leader_and_isr("u") == (2, (2,))


def test_the_broker_that_comes_back_in_time_leads_with_all_its_data() -> None:
    driver = after_a_hint()
    driver.register(1, 2)
    assert driver.leader_and_isr("u") == (-1, (1,))
    driver.heartbeat(1)
    assert driver.leader_and_isr("u") == (1, (1,))


def test_a_session_that_is_replaced_early_makes_no_unclean_election_either() -> None:
    driver = Hinted()
    driver.start(1, 2)
    driver.create("u", (1, 2), configs=UNCLEAN)
    driver.propose_isr("u", (1,))
    driver.lose(1)
    driver.register(1, 2)
    assert driver.leader_and_isr("u") == (-1, (1,))


def test_after_a_takeover_unclean_elections_wait_a_whole_session() -> None:
    """The old controller may have fenced a broker on a hint. The new one cannot know that, so it
    holds unclean elections for every fenced broker."""
    driver = after_a_hint()
    driver.activate(Controller(driver.settings, random.Random(2)))
    until_ms = driver.now_ms + driver.settings.session_timeout_ms
    driver.heartbeat(2, want_fence=True)
    driver.heartbeat(2)
    assert driver.leader_and_isr("u") == (-1, (1,))
    driver.run_until(until_ms - 1)
    driver.heartbeat(2)
    assert driver.leader_and_isr("u") == (-1, (1,))
    driver.run_until(until_ms)
    assert driver.leader_and_isr("u") == (2, (2,))


# --------------------------------------------------------------------------------------- takeover


def test_a_broker_that_died_together_with_the_controller_is_found_by_the_next_one() -> None:
    driver = started()
    standby = Controller(driver.settings, random.Random(2))
    for probe in probes_of(standby.loaded(driver.image)):
        standby.probe_succeeded(probe)
    for broker_id in (2, 3):
        standby.connected(broker_id, driver.broker(broker_id).epoch, f"b{broker_id}")
    driver.activate(standby)
    (probe,) = driver.take_probes()
    assert (probe.broker_id, probe.delay_ms) == (1, 300)
    assert probe.address == Address("b1", 9094)
    driver.now_ms = 300
    driver.refused(probe)
    assert driver.broker(1).fenced
    assert driver.leader_and_isr("t") == (2, (2, 3))


def test_a_broker_that_connects_in_time_after_a_takeover_is_left_alone() -> None:
    driver = started()
    standby = Controller(driver.settings, random.Random(2))
    for probe in probes_of(standby.loaded(driver.image)):
        standby.probe_succeeded(probe)
    driver.activate(standby)
    probes = driver.take_probes()
    assert [probe.broker_id for probe in probes] == [1, 2, 3]
    driver.connect(1)
    driver.refused(probes[0])
    assert not driver.broker(1).fenced


def test_a_controller_that_saw_no_probe_succeed_waits_for_the_timeout_after_a_takeover() -> None:
    driver = started()
    driver.activate(Controller(driver.settings, random.Random(2)))
    for probe in driver.take_probes():
        driver.refused(probe)
    assert not any(driver.broker(broker_id).fenced for broker_id in (1, 2, 3))
