"""The parts of a broker that the handlers of its client listeners use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.kafka.admin.tls_changes import TryOut
from quorate.broker.kafka.broker_quotas import BrokerQuotas
from quorate.broker.kafka.cluster.suspects import Suspects
from quorate.broker.kafka.records.log_lookups import LogLookups
from quorate.broker.kafka.records.producer_ids import ProducerIds
from quorate.broker.kafka.shared.forwarding import Forwarder
from quorate.broker.kafka.shared.replicas import Replicas
from quorate.config.node_config import NodeConfig
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.rpc.kafka.api_versions import Features
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from quorate.quorum.sasl.bearer_token import Verify
from quorate.quorum.sasl.unknown_users import UnknownUsers
from quorate.quorum.seams import Clock, Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a broker that the handlers of all its listeners share."""

    config: NodeConfig
    clock: Clock
    cluster_id: str
    image: Callable[[], MetadataImage]
    replicas: Replicas
    forwarder: Forwarder
    producer_ids: ProducerIds
    suspects: Suspects
    quotas: BrokerQuotas
    groups: GroupCoordinator
    connections: ConnectionQuotas
    resources: NodeResources
    features: Callable[[], Features]
    lost_quorum: Callable[[], str | None]
    random: Random
    unknown_users: UnknownUsers
    try_tls: TryOut
    verify: Mapping[str, Verify] = field(default_factory=dict)
    """The check of bearer tokens of each listener with OAUTHBEARER."""
    gates: list[SaslGate] = field(default_factory=list)
    """The SASL of each listener that has it. Bounded by the number of listeners."""
    lookups: LogLookups = field(default_factory=LogLookups)
    authorizer: PortAuthorizer | None = None
