"""Safeguards of client quotas: the usage of a client is bounded even if it ignores its throttle
times."""

from __future__ import annotations

from quorate.quorum.quotas.mutation_quotas import BoundedQuota
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.metered_context import MeteredContext
from quorate.quorum.rpc.kafka.reading_pause import ReadingPause
from quorate.quorum.seams import Buffer
from tests.sim.ablations import quota_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script


def answer_only(self: MeteredContext, *parts: Buffer) -> None:
    RequestContext._answered(self, *parts)


def accept_all(self: BoundedQuota, partitions: int) -> bool:
    self._tokens.take(partitions, self._rate, self._now_ms)
    return True


ABLATIONS = (
    Ablation(
        "quota-muting",
        "a broker does not read the connection of a throttled client (KIP-219)",
        MeteredContext,
        "_answered",
        answer_only,
        Script(scripts.a_producer_that_ignores_its_throttle_time),
        "the client used more than its quota",
    ),
    Ablation(
        "quota-longest-pause",
        "of overlapping throttle times, the one that ends last counts",
        ReadingPause,
        "extend",
        lambda self, delay_ms: None,
        Script(scripts.two_throttle_times_overlap),
        "the connection is read before its throttle time is over",
    ),
    Ablation(
        "mutation-debt",
        "the controller refuses a change of partitions while the client has a debt (KIP-599)",
        BoundedQuota,
        "accepts",
        accept_all,
        Script(scripts.a_client_creates_topics_without_end),
        "the client created more than its quota",
    ),
)
