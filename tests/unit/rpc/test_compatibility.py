"""Node messages remain readable for nodes of earlier versions, as in a rolling upgrade.

A row is an array of values in order of declaration. A node ignores values that it does not know at
the end, and gives missing ones their defaults. A message may therefore only grow at its end, by
optional fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.shapes import Shape, shape_of

FIRST_FIELDS = {
    "AllocateProducerIdsRequest": "broker_id broker_epoch",
    "AllocateProducerIdsResponse": "error first_producer_id count",
    "AlterPartitionRequest": "broker_id broker_epoch changes",
    "AlterPartitionResponse": "error results",
    "BeginQuorumEpochRequest": "cluster_id voter leader_id epoch leader",
    "BeginQuorumEpochResponse": "error epoch leader_id",
    "BrokerHeartbeatRequest": "broker_id broker_epoch metadata_offset want_fence want_shut_down",
    "BrokerHeartbeatResponse": "error caught_up fenced should_shut_down",
    "BrokerRegistrationRequest": (
        "broker_id cluster_id incarnation_id endpoints features rack log_dirs "
        "previous_broker_epoch replication_address"
    ),
    "BrokerRegistrationResponse": "error message broker_epoch",
    "EndQuorumEpochRequest": "cluster_id leader_id epoch preferred_candidates",
    "EndQuorumEpochResponse": "error epoch leader_id",
    "Endpoint": "name host port security_protocol",
    "EnvelopeRequest": "api_key version client_id body",
    "EnvelopeResponse": "error body",
    "EpochOffset": "epoch offset",
    "FeatureRange": "name min_supported_version max_supported_version",
    "FetchRequest": (
        "cluster_id replica epoch offset last_fetched_epoch max_wait_ms max_bytes high_watermark"
    ),
    "FetchResponse": "error epoch leader_id high_watermark diverging records snapshot leader",
    "FetchSnapshotRequest": "cluster_id replica epoch snapshot position max_bytes",
    "FetchSnapshotResponse": "error epoch leader_id size_bytes data leader",
    "Hello": (
        "protocol_min protocol_max versions cluster_id node_id directory_id roles "
        "incarnation_id generation rebuilds"
    ),
    "HelloReply": "hello refusal",
    "IsrChange": (
        "topic_id partition_id leader_epoch partition_epoch isr leader_recovery_state cause"
    ),
    "IsrChangeResult": (
        "topic_id partition_id error leader leader_epoch partition_epoch isr leader_recovery_state"
    ),
    "KRaftVersionFeature": "min_supported_version max_supported_version",
    "LeaderAddress": "host port",
    "Rebuild": "id epoch offset",
    "ReplicaKey": "id directory_id",
    "Unsupported": "reason",
    "UpdateVoterRequest": "cluster_id replica epoch voter join",
    "UpdateVoterResponse": "error epoch leader_id",
    "VersionRange": "rpc minimum maximum",
    "VoteRequest": "cluster_id voter candidate epoch last pre_vote",
    "VoteResponse": "error epoch leader_id granted",
    "Voter": "voter_id voter_directory_id endpoints k_raft_version_feature",
    "VoterEndpoint": "name host port",
}
"""The fields of every message and of its parts in the first version, in the order of their rows."""


def structs(shape: Shape) -> Iterator[type]:
    if shape.cls is not None:
        yield shape.cls
    for _, part in shape.parts:
        yield from structs(part)


CLASSES = {each.__name__: each for cls in BY_CLASS for each in structs(shape_of(cls))}


@pytest.mark.parametrize("name", FIRST_FIELDS)
def test_a_message_only_grew_at_its_end_by_optional_fields(name: str) -> None:
    first = FIRST_FIELDS[name].split()
    fields = dataclasses.fields(CLASSES[name])
    assert [each.name for each in fields][: len(first)] == first
    assert all(each.default is not dataclasses.MISSING for each in fields[len(first) :])
