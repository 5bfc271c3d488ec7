"""Safeguards of partitions: the ISR, high watermarks, leader epochs, producers, and the
controller's rules about ISR members and leaders."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from quorate.broker.partition import isr_states as isr
from quorate.broker.partition import leadership, local_replica, partition, producer_state
from quorate.broker.partition.replica_state import ReplicaState
from quorate.broker.replication.fetches import consumer_fetches as fetches
from quorate.broker.replication.fetches import reading, replica_session
from quorate.quorum.controller.brokers import registration
from quorate.quorum.controller.configs import alter_configs as configs
from quorate.quorum.controller.partitions import alter_partition, partition_change, unclean_recovery
from quorate.quorum.controller.partitions.partition_change import Ids
from quorate.quorum.controller.partitions.unclean_elections import Strategy, UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.hints import Hints
from quorate.quorum.controller.state.replica_log_queries import Longest
from quorate.quorum.metadata.image import Partition
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.node.controller.uncommitted_decisions import UncommittedDecisions
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.effects import Role
from tests.sim.ablations import partition_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import PartitionWalk, Scene, Script
from tests.sim.scripts import scenarios
from tests.unit.controller import test_hints, test_unclean_recovery
from tests.unit.partition import test_producers, test_truncation

LOST = "lost"
TWICE = "committed at"
"""A part of the violation that two different batches were committed at the same offset."""


def any_offset(replica: ReplicaState, high_watermark: int, epoch_start_offset: int) -> bool:
    return True


def the_watermark_alone(
    replica: ReplicaState, high_watermark: int, epoch_start_offset: int
) -> bool:
    return replica.end_offset >= high_watermark


def shrink_alone(self: leadership.Leadership, end_offset: int, now_ms: int) -> None:
    lag_ms = self.settings.replica_lag_time_max_ms
    self.isr = isr.Committed(
        tuple(
            each
            for each in self.isr.committed
            if each not in self.replicas
            or self.replicas[each].caught_up(end_offset, now_ms, lag_ms)
        )
    )


def acknowledge_at_once(self: partition.Partition, required_offset: int) -> ErrorCode:
    return ErrorCode.NONE


def an_error_means_refused(error: int) -> isr.Outcome:
    return isr.Outcome.COMMIT if error == ErrorCode.NONE else isr.Outcome.REVERT


def any_epoch(self: partition.Partition, offset: int, last_fetched_epoch: int) -> None:
    """Serve every Fetch from inside of the log, whatever the follower's log holds before it."""


def take_any_watermark(self: partition.Partition, high_watermark: int) -> None:
    self.high_watermark = min(high_watermark, self.log.end_offset)


def read_to_log_end(*arguments: Any, to_log_end: bool) -> Any:
    return reading.read(*arguments, to_log_end=True)


def follower_to_log_end(
    registry: Any, wanted: Any, max_bytes: int, from_follower: bool, *, to_log_end: bool
) -> Any:
    hosted = registry.find(wanted.topic, wanted.topic_id, wanted.partition)
    follows = hosted is not None and hosted.partition.leadership is None
    return reading.read(
        registry, wanted, max_bytes, from_follower, to_log_end=to_log_end or follows
    )


def forget_producers(self: producer_state.ProducerStates, headers: Any) -> None:
    """Do nothing, so that a new leader has no state of the producers that wrote to the old one."""


def leave_no_isr(*arguments: Any, **named: Any) -> Generator[Any, None, list[Any]]:
    yield from ()
    return []


def answer_at_once(self: UncommittedDecisions) -> None:
    while self._waiting:
        each = self._waiting.popleft()
        each.answer(each.response)


def activate_at_once(self: ControllerNode) -> None:
    raft, replayed = self.core.replica.raft, self.core.committed_image
    if raft.role is Role.LEADER and not (self._stopped or self.shell.active):
        self.shell.activate(self.core.image, raft.epoch, in_transaction=replayed.in_transaction)


def any_leader_epoch(self: partition.Partition, current_leader_epoch: int = -1) -> ErrorCode:
    return ErrorCode.NONE if self.leadership is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER


def eligible_whatever_the_isr(
    before: Partition, isr: Ids, replicas: Ids, min_isr: int | None, stopped_uncleanly: int
) -> Ids:
    return tuple(sorted({*before.elr, *before.isr} - {*isr, stopped_uncleanly}))


ABLATIONS = (
    Ablation(
        "maximal-isr-shrink",
        "a replica that the leader removes from the ISR counts until the controller agrees",
        isr.PendingShrink,
        "maximal",
        isr.PendingShrink.proposed,
        Scene(scenarios.shrink_unanswered, 5),
        "but the log of ISR member",
    ),
    Ablation(
        "maximal-isr-expand",
        "a replica that the leader adds to the ISR counts before the controller agrees",
        isr.PendingExpand,
        "maximal",
        property(lambda state: state.committed),
        PartitionWalk(211, 110),
        LOST,
    ),
    Ablation(
        "shrink-by-the-log",
        "the ISR changes only through the metadata log",
        leadership.Leadership,
        "maybe_shrink",
        shrink_alone,
        PartitionWalk(40, 11),
        LOST,
    ),
    Ablation(
        "caught-up-isr",
        "a replica joins the ISR only when it has everything below the high watermark",
        leadership,
        "has_caught_up",
        any_offset,
        PartitionWalk(40, 15),
        LOST,
    ),
    Ablation(
        "epoch-start",
        "a replica joins the ISR only with everything below the start of the leader's epoch "
        "(KIP-207)",
        leadership,
        "has_caught_up",
        the_watermark_alone,
        PartitionWalk(50, 147),
        LOST,
    ),
    Ablation(
        "unknown-outcome",
        "an ISR change with an unknown outcome may have been applied",
        leadership,
        "outcome_of",
        an_error_means_refused,
        PartitionWalk(7, 155),
        LOST,
    ),
    Ablation(
        "acks-all",
        "a leader answers acks=all only when the ISR has the records",
        partition.Partition,
        "acks_all_error",
        acknowledge_at_once,
        PartitionWalk(3, 2),
        LOST,
    ),
    Ablation(
        "log-matching",
        "a follower's Fetch names the epoch of the record before its offset, and the leader "
        "compares this epoch",
        partition.Partition,
        "diverging",
        any_epoch,
        Scene(scenarios.divergent_tail, 3),
        TWICE,
    ),
    Ablation(
        "fetch-incarnation",
        "a leader refuses a Fetch that an earlier incarnation of the follower has sent (KIP-903)",
        leadership.Leadership,
        "stale_fetch",
        lambda self, replica_id, broker_epoch: False,
        Script(scripts.fetch_of_an_earlier_incarnation),
        LOST,
    ),
    Ablation(
        "fetch-epoch",
        "a follower's Fetch names its leader epoch, and the leader refuses another epoch",
        partition.Partition,
        "leader_error",
        any_leader_epoch,
        Script(scripts.fetch_of_an_older_epoch),
        LOST,
    ),
    Ablation(
        "epoch-truncation",
        "a follower truncates to where its epochs differ from the leader's, not only to the "
        "offset in the leader's answer (KIP-279)",
        local_replica,
        "truncation_offset",
        lambda leader, epochs, end_offset: min(leader.offset, end_offset),
        PartitionWalk(1, 250),
        "contents[0] == contents[1] == contents[2]",
    ),
    Ablation(
        "high-watermark",
        "a follower's high watermark never falls, whatever its new leader knows (KIP-207)",
        partition.Partition,
        "leader_high_watermark",
        take_any_watermark,
        Script(
            test_truncation.test_follower_watermark_is_bounded_by_its_end_and_by_truncation_only
        ),
        "R61",
    ),
    Ablation(
        "min-isr",
        "acks=all needs an ISR of min.insync.replicas members",
        leadership.Leadership,
        "effective_min_isr",
        1,
        Scene(scenarios.alone_in_the_isr, 2),
        "ever had the records",
    ),
    Ablation(
        "sequence-check",
        "a leader appends no batch of a producer twice",
        producer_state.ProducerStates,
        "check",
        lambda self, header: None,
        Scene(scenarios.answers_lost),
        "stands twice",
    ),
    Ablation(
        "producer-state",
        "each replica derives the producer states from its log, so that the next leader has "
        "them, too",
        producer_state.ProducerStates,
        "append",
        forget_producers,
        Script(test_producers.test_follower_takes_over_what_the_leader_knew),
        "R59",
    ),
    Ablation(
        "read-committed",
        "consumers read only committed records",
        fetches,
        "read",
        read_to_log_end,
        Scene(scenarios.read_before_committed, 1),
        "the high watermark is",
    ),
    Ablation(
        "follower-read",
        "a follower serves consumers only below its own high watermark (KIP-392)",
        fetches,
        "read",
        follower_to_log_end,
        Script(scripts.read_from_a_follower_before_it_is_committed),
        "R60",
    ),
    Ablation(
        "throttle-exemption",
        "a replication throttle never delays a member of the ISR (KIP-73)",
        replica_session.ReplicaSession,
        "_is_held_back",
        lambda self, hosted: hosted.leader_throttled,
        Script(scripts.acks_all_while_a_throttle_is_exceeded),
        "acks=all was not answered",
    ),
    Ablation(
        "broker-epoch",
        "a replica joins the ISR only as the incarnation that caught up (KIP-903)",
        alter_partition,
        "is_ineligible",
        lambda context, partition, broker_id, broker_epoch: False,
        Scene(scenarios.joined_as_another, 1),
        "no leader asked",
    ),
    Ablation(
        "partition-epoch",
        "the controller refuses an ISR change that was decided on an older partition epoch",
        alter_partition,
        "is_outdated",
        lambda partition, change: False,
        Script(scripts.proposal_from_before_a_fence),
        LOST,
    ),
    Ablation(
        "unclean-restart",
        "a broker that restarts leaves every ISR",
        registration,
        "replace_incarnation",
        leave_no_isr,
        Scene(scenarios.power_lost_in_the_isr, 1),
        "has restarted, and is in the ISR",
    ),
    Ablation(
        "elr-min-isr",
        "a replica that leaves an ISR is not eligible if the leader commits with this ISR "
        "(KIP-966)",
        partition_change,
        "eligible",
        eligible_whatever_the_isr,
        Script(scripts.committed_by_the_leader_alone),
        LOST,
    ),
    Ablation(
        "elr-unclean-stop",
        "a replica that stopped uncleanly is no longer eligible (KIP-966)",
        registration,
        "is_clean",
        lambda request, old: True,
        Script(scripts.eligible_until_the_disk_is_lost),
        LOST,
    ),
    Ablation(
        "elr-leaders-min-isr",
        "the lower min.insync.replicas of controller and leader decides about the ELR (KIP-966)",
        alter_partition,
        "elr_min_isr",
        lambda controllers, leaders: controllers,
        Script(scripts.a_leader_that_does_not_know_the_min_isr),
        LOST,
    ),
    Ablation(
        "elr-cleared",
        "a change of min.insync.replicas clears the ELR (KIP-966)",
        configs,
        "clear_elr_records",
        lambda *arguments: [],
        Script(scripts.min_isr_lowered),
        LOST,
    ),
    Ablation(
        "fenced-leader",
        "the controller elects no fenced broker",
        Context,
        "is_active",
        lambda self, broker_id: True,
        Script(scripts.elected_while_fenced),
        "is led by",
    ),
    Ablation(
        "hints-hold",
        "a hint never leads to an unclean election before the broker's session would have ended",
        Hints,
        "holds_any",
        lambda self, broker_ids: False,
        Script(test_hints.test_the_broker_that_comes_back_in_time_leads_with_all_its_data),
        'leader_and_isr("u") == (-1, (1,))',
    ),
    Ablation(
        "unclean-election",
        "without unclean.leader.election.enable, the controller elects only members of the ISR",
        UncleanElections,
        "strategy",
        lambda self, topic_name: Strategy.AGGRESSIVE,
        Script(scripts.only_the_isr_is_elected),
        "is led by",
    ),
    Ablation(
        "longest-replica",
        "an unclean election chooses the longest log (KIP-966)",
        unclean_recovery,
        "longest",
        lambda logs, candidates: Longest(),
        Script(test_unclean_recovery.test_the_longest_log_leads_on_request),
        'leader_and_isr("t") == (3, (3,))',
    ),
    Ablation(
        "activation",
        "a controller decides only after its own LeaderChange is committed and everything "
        "before it is replayed",
        ControllerNode,
        "_activate_when_ready",
        activate_at_once,
        Scene(scenarios.all_killed),
        "has restarted, and is in the ISR",
    ),
    Ablation(
        "answer-when-committed",
        "the controller answers only when everything that its decision rests on is committed",
        UncommittedDecisions,
        "_answer_committed",
        answer_at_once,
        Scene(scenarios.leader_disk_slow),
        "no order explains",
    ),
)
