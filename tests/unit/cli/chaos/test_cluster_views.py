"""Events and states from the answers of brokers, where the metadata log is out of reach."""

from __future__ import annotations

from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.timeline.cluster_views import (
    ClusterView,
    PartitionView,
    differences,
    merged,
)
from quorate.cli.chaos.timeline.timeline import FENCED, SERVING
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.schemas.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

BROKERS = (1, 2, 3)


def answer(
    leader: int = 1,
    epoch: int = 0,
    isr: tuple[int, ...] = BROKERS,
    brokers: tuple[int, ...] = BROKERS,
    error: int = 0,
) -> MetadataResponse:
    """Return a broker's answer about partition 0 of the topic "t"."""
    partition = MetadataResponsePartition(
        partition_index=0,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=BROKERS,
        isr_nodes=isr,
        offline_replicas=(),
    )
    topic = MetadataResponseTopic(
        error_code=error, name="t", topic_id=ZERO_UUID, partitions=(partition,)
    )
    nodes = tuple(MetadataResponseBroker(node_id=each, host="h", port=1) for each in brokers)
    return MetadataResponse(brokers=nodes, topics=(topic,))


def states() -> ClusterStates:
    """Return states in which all brokers serve and broker 1 leads."""
    found = ClusterStates(ZERO_UUID, 0)
    found.begin(BROKERS, active=1)
    assert said(found, answer()) == []
    return found


def said(found: ClusterStates, *answers: MetadataResponse, ms: int = 0) -> list[str]:
    """Apply the view of the answers, and return the events as texts."""
    view = merged(answers, "t")
    assert view is not None
    events = differences(found, view, BROKERS, ms)
    return [f"{'' if each.node is None else each.node} {each.what}".strip() for each in events]


def test_without_an_answer_nothing_is_known() -> None:
    assert merged([], "t") is None


def test_the_newest_leader_epoch_counts() -> None:
    view = merged([answer(1, 0), answer(2, 1, (2, 3)), answer(1, 0)], "t")
    assert view is not None
    assert view.partitions == {0: PartitionView(2, 1, (2, 3))}


def test_a_broker_is_unfenced_if_all_answers_list_it() -> None:
    view = merged([answer(), answer(brokers=(2, 3))], "t")
    assert view == ClusterView({0: PartitionView(1, 0, BROKERS)}, frozenset({2, 3}))


def test_a_broker_is_in_the_isr_if_all_answers_of_the_epoch_have_it() -> None:
    view = merged([answer(isr=(1, 2, 3)), answer(isr=(3, 1))], "t")
    assert view is not None
    assert view.partitions[0].isr == (1, 3)


def test_a_topic_with_an_error_shows_no_partitions() -> None:
    view = merged([answer(error=3)], "t")
    assert view is not None
    assert view.partitions == {}


def test_a_broker_is_fenced_and_another_leads() -> None:
    found = states()
    events = said(found, answer(2, 1, (2, 3), (2, 3)), ms=300)
    assert events == ["1 is fenced", "new leaders: broker 2 for partition 0"]
    assert (found.state(1), found.led_by(2), found.isr_shrinks) == (FENCED, [0], 1)
    intervals = [(each.leader, each.epoch, each.end_ms) for each in found.leadership.close(900)]
    assert intervals == [(1, 0, 300), (2, 1, 900)]
    assert [each.ms for each in found.fences] == [300]


def test_it_returns() -> None:
    found = states()
    said(found, answer(2, 1, (2, 3), (2, 3)), ms=300)
    assert said(found, answer(2, 1), ms=400) == ["1 is unfenced", "ISR of partition 0 is 1, 2, 3"]
    assert found.state(1) == SERVING
    assert said(found, answer(2, 1), ms=500) == []


def test_a_stale_answer_changes_no_leader() -> None:
    found = states()
    said(found, answer(2, 5, (2, 3), (2, 3)), ms=300)
    assert said(found, answer(1, 0, BROKERS, (2, 3)), ms=400) == []
    assert found.isr == {0: (2, 3)}


def test_epochs_that_no_answer_has_shown_are_skipped() -> None:
    found = states()
    said(found, answer(1, 4), ms=200)
    now = found.leadership.now(0)
    assert now is not None
    assert (now.leader, now.epoch) == (1, 4)


def test_a_partition_without_a_leader() -> None:
    found = states()
    assert said(found, answer(-1, 1, ()), ms=200) == ["new leaders: no leader for partition 0"]
    assert [each.what for each in found.leadership.close(300)] == ["led", "leaderless"]
