"""Requests that the hostile client must not send, because the cluster has to carry them out.

Without authorization every client is an administrator. These requests are therefore no attacks, and
would rightly harm the good workload:

- delete a topic of the workload, its records or partitions, move its replicas, or change its
  configuration (`min.insync.replicas`, `unclean.leader.election.enable` and the like);
- elect leaders uncleanly for all topics (it does so for topics of its own);
- unregister a broker, remove a voter, change `kraft.version`;
- change the configuration of brokers;
- create a topic with fewer than two replicas, which loses data with one disk.

`values.Aims` names only topics of the adversary's own in the requests of `requests.CHANGING`. The
table below holds the other requests, in which the name of a topic does not decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.metadata.image import BROKER_RESOURCE
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.wire import Message
from quorate.quorum.raft.voter_changes import KRAFT_VERSION
from tests.sim.adversary.values import Aims

UNKNOWN_KEY = "x"
FEWEST_REPLICAS = 2


def _creates_frail_topic(request: Any, aims: Aims) -> bool:
    return any(0 < each.replication_factor < FEWEST_REPLICAS for each in request.topics)


def _elects_uncleanly(request: Any, aims: Aims) -> bool:
    return request.election_type != 0 and request.topic_partitions is None


def _configures_brokers(request: Any, aims: Aims) -> bool:
    """Return True if the request changes the configuration of all brokers. The legacy AlterConfigs
    resets every key that it does not name."""
    legacy = request.API_KEY == ApiKey.ALTER_CONFIGS
    return any(
        each.resource_type == BROKER_RESOURCE
        and each.resource_name == ""
        and (legacy or any(config.name != UNKNOWN_KEY for config in each.configs))
        for each in request.resources
    )


def _changes_features(request: Any, aims: Aims) -> bool:
    named = {each.feature for each in request.feature_updates}
    return bool(named & {KRAFT_VERSION, "metadata.version"}) and not request.validate_only


RIGHTS: dict[int, Callable[[Any, Aims], bool]] = {
    ApiKey.CREATE_TOPICS: _creates_frail_topic,
    ApiKey.ELECT_LEADERS: _elects_uncleanly,
    ApiKey.ALTER_CONFIGS: _configures_brokers,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configures_brokers,
    ApiKey.UPDATE_FEATURES: _changes_features,
    ApiKey.UNREGISTER_BROKER: lambda request, aims: request.broker_id in aims.node_ids,
}


def is_its_right(request: Message, aims: Aims) -> bool:
    """Return True if the cluster has to carry out the request although it harms the good
    workload."""
    rule = RIGHTS.get(request.API_KEY)
    return rule is not None and rule(request, aims)
