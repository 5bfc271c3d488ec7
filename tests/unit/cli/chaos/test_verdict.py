"""Each check alone turns the verdict and says why. A run that proves nothing is bad, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from quorate.cli.chaos.checks.availability import Availability, Outage
from quorate.cli.chaos.checks.faults import (
    ACTIVE_CONTROLLER,
    BOTH,
    BOTH_ACTIVE,
    CONTROLLER,
    ISOLATE,
    KILL,
    PAUSE,
    SLOW_DISK,
    STOP,
    Fault,
)
from quorate.cli.chaos.checks.observations import (
    ANSWERED,
    CHANGE,
    NO_ANSWER,
    NOT_CONTROLLER,
    READ,
    AdminWait,
    AdminWaits,
    Expiry,
    GroupReads,
    MetadataAnswer,
    MetadataWrites,
    Reassignment,
    Rebalance,
    Resignation,
)
from quorate.cli.chaos.checks.pinned_client import Pinned, Refusal
from quorate.cli.chaos.checks.table import FAMILIES
from quorate.cli.chaos.results.junit import junit
from quorate.cli.chaos.results.page import render
from quorate.cli.chaos.results.view import verdict_lines
from quorate.cli.chaos.timeline.timeline import ACTIVE, FENCED, SERVING, StateInterval
from quorate.cli.chaos.workload.comparison import Verdict, Violations
from tests.unit.cli.chaos.histories import (
    EXPECTED,
    compared,
    evidence,
    intervals,
    killed,
    result,
    times,
)


def bad(**changed: Any) -> dict[str, str]:
    """Return the failed checks of a result with changed evidence: their texts by name."""
    found = result(**changed)
    assert found.verdict == ("good" if found.good else "bad")
    return {check.name: check.text for check in found.checks if not check.good}


def expiry(fenced_ms: int) -> Expiry:
    """Return the end of a session whose last heartbeat was at 1,000 ms."""
    return Expiry(node=4, timeout_ms=3_000, last_heartbeat_ms=1_000, fenced_ms=fenced_ms, cause="x")


def pinned(
    successes: list[tuple[int, int]], error: str = "NOT_LEADER_OR_FOLLOWER", at_ms: int = 5_300
) -> Pinned:
    """Return the results of a pinned client of broker 4 that got one error, or none for ""."""
    found = Pinned(node=4, from_ms=0, successes=successes)
    if error:
        found.refused = Counter({error: 1})
        found.refusals = [Refusal(0, at_ms, error)]
    return found


def violated(kind: str) -> Verdict:
    """Return a comparison with one violation of a kind."""
    changed: dict[str, Any] = {kind: Violations(1, ["partition 0 offset 1: an example"])}
    return replace(compared(), **changed)


def batches(*moments_ms: int, idle: int | None = None) -> Availability:
    """Return 30 batches of 12 partitions after each moment, without the partition `idle`."""
    done = times(12, *moments_ms)
    if idle is not None:
        done[idle] = []
    return Availability(done=done)


def waited(duration_ms: int) -> Availability:
    """Return a workload that was served and once waited."""
    return Availability(done=times(12, 100, 5_000, 9_000), outages=[Outage(7, 0, duration_ms)])


def changes(*moments_ms: int, asked: Sequence[MetadataAnswer] = ()) -> MetadataWrites:
    """Return changes of metadata after each moment, 10 ms apart."""
    done = times(1, *moments_ms)
    return MetadataWrites(availability=Availability(done=done), asked=asked)


def answer(
    error: str = NOT_CONTROLLER, sent_ms: int = 3_000, ms: int = 3_100, what: str = CHANGE
) -> MetadataAnswer:
    """Return the answer of controller 3, or of an isolated controller 1 to a read."""
    return MetadataAnswer(3, what, sent_ms, ms, error)


def isolated(*answers: MetadataAnswer) -> dict[str, Any]:
    """Return the evidence of controller 1 that resigns, with its answers to requests."""
    of_it = [each._replace(node=1) for each in answers]
    return {"resignations": (SOON,), "metadata": changes(100, 5_000, 9_000, asked=of_it)}


def controller(node: int = 1, role: str = ACTIVE_CONTROLLER, **changed: Any) -> Fault:
    """Return the kill of a controller from 2,000 to 8,000 ms."""
    return killed(**{"kind": KILL, "node": node, "role": role, "led": (), **changed})


def terms(*began: tuple[int, int]) -> list[StateInterval]:
    """Return the terms of active controllers, given as (node, begin)."""
    return [StateInterval(node, ACTIVE, ms, ms + 1_000) for node, ms in began]


def moving(end_ms: int | None) -> Reassignment:
    """Return a reassignment that began at 1,000 ms."""
    return Reassignment(targets={0: (5, 6), 1: (5, 6)}, start_ms=1_000, end_ms=end_ms)


OTHERS = (StateInterval(5, FENCED, 2_500, 9_000), StateInterval(4, SERVING, 3_000, 9_000))
"""Another broker is fenced during the fault, and broker 4 is not."""


def kept(partition: int) -> list[StateInterval]:
    """Return the leadership of 12 partitions, of which broker 4 leads one until its fault ends."""
    return [
        *(each for each in intervals(12) if each.subject != partition),
        StateInterval(partition, "led", 0, 8_001, "topic-created", 4, 0),
        StateInterval(partition, "led", 8_001, 10_000, "elected", 5, 1),
    ]


LOST_QUORUM = {
    "faults": (controller(), controller(2, CONTROLLER, start_ms=2_500)),
    "controllers": terms((1, 0), (1, 8_400)),
}
NEVER = Resignation(node=1, isolated_ms=2_000, resigned_ms=None, answers=9)
SOON = Resignation(node=1, isolated_ms=2_000, resigned_ms=5_500, answers=9)
REFUSED = (answer(), answer(what=READ))
LATE = Resignation(node=1, isolated_ms=2_000, resigned_ms=5_501, answers=9)
UNREAD = {0: "the reading failed"}
UNVERIFIED = replace(compared(2), unverified=2)

GROUP = GroupReads(records=9, commits=3, joins=2, kills_members=True)
GROUP = replace(GROUP, rebalances=(Rebalance(1_000, 4_000), Rebalance(9_000, None)))
ADMIN = AdminWaits(
    operations=("create", "delete"),
    requests=(AdminWait("create", 1_000, 2_000), AdminWait("delete", 9_000, None)),
)
DELETED = AdminWait("delete", 1_000, 1_500)


WAIT = [Outage(0, 0, 100)]
BETWEEN = batches(100, 5_500, 9_000)
"""Writes before and after the faults, and between two of them from 5,000 to 6,000 ms."""

HARM: list[tuple[dict[str, Any], str, str]] = [
    ({"failed_steps": ["not within 5 ms: x"]}, "steps", "not within 5 ms: x"),
    (
        {"group": replace(GROUP, missing={3: 17})},
        "group records",
        "partition 3: none from offset 17 on",
    ),
    ({"group": replace(GROUP, records=0)}, "group records", "the group read nothing"),
    (
        {"group": replace(GROUP, went_back=("partition 0: a member found 3 after 5",))},
        "group offsets",
        "partition 0: a member found 3 after 5",
    ),
    ({"group": replace(GROUP, commits=0)}, "group offsets", "no offset was committed"),
    (
        {"group": replace(GROUP, rebalances=(Rebalance(1_000, 4_501),))},
        "group rebalances",
        "partitions had no member for 3,501 ms (allowed: 3,500 ms)",
    ),
    (
        {"group": replace(GROUP, rebalances=(Rebalance(6_000, None),))},
        "group rebalances",
        "partitions had no member for 4,000 ms",
    ),
    ({"group": replace(GROUP, rebalances=())}, "group rebalances", "no member was killed"),
    ({"admin": ADMIN}, "admin", "no request succeeded: delete"),
    (
        {"admin": replace(ADMIN, requests=(*ADMIN.requests, DELETED._replace(done_ms=4_501)))},
        "admin",
        "delete waited 3,501 ms (allowed: 3,500 ms)",
    ),
    ({"admin": replace(ADMIN, requests=(DELETED,))}, "admin", "never requested: create"),
    (
        {"acks_one": True, "compared": replace(violated("lost"), lost_in=frozenset({77}))},
        "lost",
        "partitions 77 lost some without a change of their leader",
    ),
    ({"problems": ["every ISR is full: not within 5 s"]}, "end", "every ISR is full: not within"),
    (
        {"faults": (killed(affected=0, effect="0 frames affected"),)},
        "effect",
        "the mute of node 4 had no complete effect: 0 frames affected",
    ),
    ({"faults": ()}, "effect", "no fault was injected, so nothing was tested"),
    (
        {"faults": (killed(kind=PAUSE, end_ms=5_999),)},
        "pauses",
        "node 4 stood still for 3,999 ms (expected: 4,000 or more)",
    ),
    (
        {"faults": (killed(kind=KILL),), "brokers": (StateInterval(4, SERVING, 0, 10_000),)},
        "fenced",
        "broker 4 was not fenced after the kill",
    ),
    (
        {"faults": (killed(kind=STOP),), "brokers": (StateInterval(4, FENCED, 0, 1_999),)},
        "fenced",
        "broker 4 was not fenced after the stop",
    ),
    (
        {"faults": (killed(kind=KILL),), "brokers": (StateInterval(4, FENCED, 8_001, 8_300),)},
        "fenced",
        "broker 4 was fenced 6,001 ms after the kill began, only because it registered again",
    ),
    (
        {"faults": (killed(led=(0, 1, 99)),)},
        "leaders",
        "broker 4 was fenced and still led partitions 99",
    ),
    (
        {"faults": (killed(kind=KILL),), "brokers": OTHERS},
        "fenced",
        "broker 4 was not fenced after the kill",
    ),
    (
        {"leadership": kept(1)},
        "leaders",
        "broker 4 was fenced and still led partitions 1",
    ),
    (
        {"faults": (controller(),)},
        "failover",
        "no other controller became active during the kill of 1",
    ),
    (
        {"faults": (controller(),), "controllers": terms((1, 0), (1, 3_000), (2, 8_001))},
        "failover",
        "no other controller became active",
    ),
    (
        {"faults": (controller(),), "controllers": terms((1, 0), (2, 8_001))},
        "failover",
        "no other controller became active during the kill of 1",
    ),
    (
        {
            **LOST_QUORUM,
            "controllers": terms((1, 0)),
            "metadata": changes(100, 9_000, asked=REFUSED),
        },
        "failover",
        "no controller became active after the kill of 1",
    ),
    (
        {**isolated(*REFUSED), "resignations": (NEVER,)},
        "resigned",
        "controller 1 did not resign in 9 answers",
    ),
    (
        {**isolated(*REFUSED), "resignations": (LATE,)},
        "resigned",
        "not active 3,501 ms after its isolation",
    ),
    (
        isolated(*REFUSED, answer(ANSWERED, 3_200, 3_250, READ)),
        "stale answers",
        "controller 1 answered a read of metadata as the active controller 1,250 ms after its",
    ),
    (
        isolated(answer(ANSWERED), *REFUSED),
        "stale answers",
        "controller 1 answered a change of metadata as the active controller 1,100 ms after",
    ),
    (
        isolated(answer(), answer("REQUEST_TIMED_OUT", what=READ)),
        "stale answers",
        "controller 1 refused 1 changes and 0 reads of metadata as not the active controller",
    ),
    (
        isolated(answer(NO_ANSWER), answer(what=READ)),
        "stale answers",
        "refused 0 changes and 1 reads",
    ),
    (
        isolated(*(each._replace(sent_ms=1_999) for each in REFUSED)),
        "stale answers",
        "refused 0 changes and 0 reads",
    ),
    ({"unread": UNREAD}, "read back", "1 partitions could not be read at the end: partition 0"),
    ({"compared": compared(3, missing=1)}, "lost", "3 records acknowledged, 1 lost: line 2"),
    ({"compared": replace(compared(), acknowledged=0)}, "lost", "0 records acknowledged"),
    ({"compared": UNVERIFIED}, "lost", "2 records acknowledged, 0 lost, 2 in partitions that"),
    ({"compared": violated("doubled")}, "duplicated", "1 duplicated: partition 0 offset 1"),
    ({"compared": violated("reordered")}, "out of order", "1 out of order: partition 0"),
    ({"compared": violated("changed")}, "changed", "1 changed: partition 0 offset 1"),
    ({"compared": violated("moved")}, "at another offset", "1 at another offset: partition 0"),
    ({"different_replicas": [3]}, "replicas", "replicas differ: partitions 3"),
    ({"replicas_compared": False}, "replicas", "could not be compared"),
    ({"sent": 0}, "producers", "no producer sent anything"),
    ({"failures": ["p 1: OUT_OF_ORDER_SEQUENCE_NUMBER"]}, "producers", "p 1: OUT_OF_ORDER"),
    ({"writes": batches(5_000, 9_000)}, "writes", "0 batches before the faults, fewer than 20"),
    ({"writes": batches(100, 9_000)}, "writes", "0 batches during the faults, fewer than 20"),
    (
        {"faults": (killed(end_ms=5_000), killed(start_ms=6_000)), "writes": BETWEEN},
        "writes",
        "0 batches during the faults, fewer than 20",
    ),
    ({"writes": batches(100, 5_000)}, "writes", "0 batches after the faults, fewer than 20"),
    (
        {"writes": batches(100, 5_000, 9_000, idle=3)},
        "writes",
        "none before the faults in partitions 3; none after the faults in partitions 3",
    ),
    ({"writes": Availability(outages=WAIT)}, "writes", "no batch was acknowledged"),
    ({"writes": waited(2_001)}, "availability", "longer than 2,001 ms (allowed: 2,000 ms)"),
    ({"taken_back": 1}, "taken back", "3 records read during the run, 1 of them changed"),
    ({"read_along": 0}, "taken back", "0 records read during the run"),
    ({"reads": Availability()}, "consumer", "no consumer read, so it is not known how long"),
    ({"unread_along": 5}, "consumer", "5 acknowledged records were not read during the run"),
    (
        {"reads": waited(2_501)},
        "consumer",
        "record of partition 7 was not read for 2,501 ms (allowed: 2,500 ms)",
    ),
    ({"metadata": changes(5_000, 9_000)}, "metadata", "no change of metadata was committed before"),
    ({"metadata": changes(100, 5_000)}, "metadata", "no change of metadata was committed after"),
    (
        {"metadata": MetadataWrites(availability=waited(3_001))},
        "metadata",
        "a change of metadata waited 3,001 ms (allowed: 3,000 ms)",
    ),
    (
        {**LOST_QUORUM, "metadata": changes(100, 5_000, 9_000, asked=REFUSED)},
        "no majority",
        "30 changes of metadata committed without a majority of the controllers, from 2,500 to",
    ),
    (
        {**LOST_QUORUM, "metadata": changes(100, 9_000)},
        "no majority",
        "8,000 ms; 0 of 0 refused as not the active controller; controllers that refused none: 3",
    ),
    # An answer before the loss of the majority, or after its return, proves nothing.
    (
        {**LOST_QUORUM, "metadata": changes(100, 9_000, asked=[answer(sent_ms=2_499)])},
        "no majority",
        "0 of 0 refused as not the active controller; controllers that refused none: 3",
    ),
    (
        {**LOST_QUORUM, "metadata": changes(100, 9_000, asked=[answer(ms=8_001)])},
        "no majority",
        "0 of 0 refused as not the active controller; controllers that refused none: 3",
    ),
    # A timeout is no refusal, and neither is a lost connection, a read, or another controller.
    *(
        ({**LOST_QUORUM, "metadata": changes(100, 9_000, asked=[each])}, "no majority", "none: 3")
        for each in (
            answer("REQUEST_TIMED_OUT"),
            answer(NO_ANSWER),
            answer(what=READ),
            answer()._replace(node=2),
        )
    ),
    (
        {**LOST_QUORUM, "metadata": changes(100, 9_000, asked=[*REFUSED, answer(ANSWERED)])},
        "no majority",
        "1 changes of metadata committed without a majority of the controllers, from 2,500 to",
    ),
    (
        {"controllers": terms((1, 0), (2, 3_000), (1, 4_000), (1, 5_000))},
        "controller moves",
        "3 times a controller became active (expected: 0 to 2)",
    ),
    (
        {
            **LOST_QUORUM,
            "voters": (1, 2, 3, 9),
            "metadata": changes(100, 5_000, 9_000, asked=[*REFUSED, answer()._replace(node=9)]),
        },
        "no majority",
        "30 changes of metadata committed without a majority",
    ),
    ({"leadership": intervals(14)}, "leader moves", "14 partitions got another leader, or none"),
    (
        {"controllers": ()},
        "controller moves",
        "the metadata was not read: it is not known how many times a controller became active",
    ),
    ({"isr_shrinks": 4}, "isr moves", "4 times an ISR lost a replica (expected: 0 to 3)"),
    ({"reassignment": moving(None)}, "reassigned", "the replicas of 2 partitions have not moved"),
    (
        {"reassignment": moving(1_999)},
        "reassigned",
        "the replicas of 2 partitions moved in 999 ms, but without any fault meanwhile",
    ),
    ({"expiries": [expiry(4_501)]}, "session", "fenced 3,501 ms after its last heartbeat"),
    ({"expiries": [expiry(3_499)]}, "session", "fenced 2,499 ms after its last heartbeat"),
    ({"pinned": [pinned([(0, 5_251)])]}, "refused", "acknowledged 1 batches of the client"),
    (
        {"pinned": [pinned([])], "leadership": kept(0), "faults": (killed(led=(1,)),)},
        "refused",
        "refused 0 as not the leader",
    ),
    ({"pinned": [pinned([], "")]}, "refused", "refused 0 as not the leader (all its errors: none)"),
    (
        {"pinned": [pinned([], "REQUEST_TIMED_OUT")]},
        "refused",
        "refused 0 as not the leader (all its errors: 1 x REQUEST_TIMED_OUT)",
    ),
    ({"pinned": [pinned([], "NETWORK_EXCEPTION")]}, "refused", "refused 0 as not the leader"),
    ({"pinned": [pinned([], at_ms=4_999)]}, "refused", "refused 0 as not the leader"),
]


def test_as_it_should_be() -> None:
    assert bad() == {}


@pytest.mark.parametrize(
    ("changed", "name", "why"), HARM, ids=[f"{name}-{n}" for n, (_, name, _) in enumerate(HARM)]
)
def test_this_check_alone_turns_the_verdict(changed: dict[str, Any], name: str, why: str) -> None:
    found = bad(**changed)
    assert list(found) == [name]
    assert why in found[name]


UNMEASURED: list[tuple[dict[str, Any], set[str]]] = [
    ({"writes": Availability()}, {"writes", "availability"}),
    (
        {"compared": replace(compared(), read=0)},
        {"duplicated", "out of order", "changed", "at another offset"},
    ),
    ({"leadership": (), "faults": (killed(led=()),)}, {"leader moves", "isr moves", "refused"}),
]
"""Observations that several checks lack."""


@pytest.mark.parametrize(("changed", "names"), UNMEASURED)
def test_a_check_without_its_observations_is_not_good(
    changed: dict[str, Any], names: set[str]
) -> None:
    found = bad(**changed)
    assert set(found) == names
    assert "known" in " ".join(found.values())


def test_a_group_and_an_admin_client_without_harm() -> None:
    requests = (*ADMIN.requests, DELETED)
    assert bad(group=GROUP, admin=replace(ADMIN, requests=requests)) == {}
    assert bad(group=replace(GROUP, kills_members=False, rebalances=())) == {}


def test_acks_1_may_lose_records_with_their_leader() -> None:
    lost = replace(violated("lost"), lost_in=frozenset({3}))
    assert "lost" in bad(compared=lost)
    found = result(compared=lost, acks_one=True)
    assert found.good, "partition 3 got another leader"
    (text,) = [each.text for each in found.checks if each.name == "lost"]
    assert "1 lost; acks=1 promises a record only as long as its leader leads" in text


def test_every_check_has_such_a_case() -> None:
    assert {name for _, name, _ in HARM} == {name for family in FAMILIES for name in family.names}


def test_the_table_of_checks_names_what_they_yield() -> None:
    """`chaos describe` shows the names of the table, and scenario files may name them."""
    for changed, _, _ in HARM:
        found = evidence(**changed)
        for family in FAMILIES:
            yielded = {check.name for check in family.yields(found, EXPECTED)}
            assert yielded <= set(family.names)


@pytest.mark.parametrize(
    "changed",
    [
        {"expiries": [expiry(4_500)]},
        {"writes": waited(2_000)},
        {"reads": waited(2_500)},
        # Followers that did not know the new leader yet confirmed it, so the new leader has it.
        {"pinned": [pinned([(0, 5_250)])]},
        # The other error with which a broker says that it does not lead.
        {"pinned": [pinned([(0, 4_900)], "FENCED_LEADER_EPOCH")]},
        # The broker started again before the cluster missed it. Its registration fences it.
        {
            "faults": (killed(kind=KILL, end_ms=2_050),),
            "brokers": (StateInterval(4, FENCED, 4_000, 4_300),),
            "writes": batches(100, 2_020, 9_000),
        },
        # The fault was too short for a fencing, so the broker may lead on.
        {"faults": (killed(led=(0, 99), end_ms=4_999),), "writes": batches(100, 2_100, 9_000)},
        {"faults": (controller(),), "controllers": terms((1, 0), (2, 2_300))},
        # The controller ran again before the election ended.
        {
            "faults": (killed(), controller(kind=STOP, end_ms=2_050)),
            "controllers": terms((1, 0), (2, 2_300)),
        },
        # Without a majority, the same controller may be active again after its return.
        {**LOST_QUORUM, "metadata": changes(100, 9_000, asked=REFUSED)},
        # The listeners of the controllers are not known, as on the nodes of a nodes.toml.
        {**LOST_QUORUM, "metadata": replace(changes(100, 9_000), asks_controllers=False)},
        # No controller is left to refuse anything.
        {
            "faults": tuple(
                controller(each, CONTROLLER if each > 1 else ACTIVE_CONTROLLER)
                for each in (1, 2, 3)
            ),
            "controllers": terms((1, 0), (1, 8_400)),
            "metadata": changes(100, 9_000),
        },
        isolated(*REFUSED),
        # One of three controllers is down at a time.
        {
            "faults": (
                controller(2, CONTROLLER, end_ms=4_000),
                controller(3, CONTROLLER, start_ms=4_000),
            ),
        },
        # A slow controller may stay active.
        {"faults": (killed(), controller(kind=SLOW_DISK)), "controllers": terms((1, 0))},
        {"reassignment": moving(2_000)},
        {"faults": (killed(kind=PAUSE, end_ms=6_000),)},
        {"faults": (killed(kind=ISOLATE),), "brokers": (StateInterval(4, SERVING, 0, 10_000),)},
    ],
)
def test_what_is_allowed(changed: dict[str, Any]) -> None:
    assert bad(**changed) == {}


def test_what_was_truncated_is_told() -> None:
    zombie = pinned([])
    zombie.diverged = 42
    (told,) = [each for each in result(pinned=[zombie]).checks if each.name == "replicas"]
    assert told.text == "all replicas are equal; broker 4 truncated 42 records that only it had"


def test_the_verdict_names_what_was_tested() -> None:
    texts = {each.name: each.text for each in result().checks}
    assert texts["effect"] == "mute of broker 4 (12 frames and connects affected)"
    assert texts["leaders"] == "2 partitions that broker 4 led got another leader"
    assert texts["writes"] == "batches acknowledged: 360 before, 360 during, 360 after the faults"


def test_json_has_what_scripts_ask_for() -> None:
    told = result().as_json()
    assert told["schema_version"] == 5
    assert told["verdict"] == "good"
    assert (told["acknowledged"], told["lost"], told["duplicated"]) == (3, 0, 0)
    assert told["unavailable_ms"]["0"] == 900
    assert told["unavailable_ms"]["1"] == 0
    assert list(told["unavailable_ms"]) == [str(number) for number in range(12)]
    assert told["timeline"][1] == {
        "ms": 5_000,
        "what": "is fenced",
        "node": 4,
        "cause": "session-expired",
    }
    assert told["sessions"][0]["after_ms"] == 3_010
    assert told["refused"] == {"NOT_LEADER_OR_FOLLOWER": 17}
    assert told["batches"] == {"before": 360, "during": 360, "after": 360}
    assert told["availability"]["longest_write_ms"] == 900
    assert (told["faults"][0]["kind"], told["faults"][0]["led"]) == ("mute", 2)


def test_a_check_without_evidence_is_listed_and_not_judged() -> None:
    reason = {"replicas": "the files are out of reach", "resigned": "nothing is isolated"}
    without = result(replicas_compared=False)
    assert "replicas" in {each.name for each in without.checks if not each.good}
    told = result(replicas_compared=False, not_judged=reason)
    assert told.good
    assert "replicas" not in {each.name for each in told.checks}
    assert told.as_json()["not_judged"] == [
        {"name": "replicas", "reason": "the files are out of reach"}
    ], "a check that concerns nothing in the run is not listed"
    assert "replicas: not judged, because the files are out of reach" in "\n".join(
        verdict_lines(told)
    )
    suite = junit([told])
    assert suite.count("<skipped") == 1
    assert 'skipped="1"' in suite
    assert "not judged, because the files are out of reach" in render(told)


@pytest.mark.parametrize("role", [BOTH, BOTH_ACTIVE])
def test_a_combined_node_is_checked_as_a_broker(role: str) -> None:
    fault = replace(killed(), role=role, kind=KILL)
    names = {each.name: each.good for each in result(faults=(fault,), brokers=()).checks}
    assert not names["fenced"]
    assert ("failover" in names) == (role == BOTH_ACTIVE)
