"""The request by which a broker registers itself, from its configuration and its open ports."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.config.listeners import PROTOCOL_CODES, Listener, Listeners
from quorate.quorum.controller.state.messages import BrokerRegistrationRequest
from quorate.quorum.controller.state.settings import SUPPORTED_FEATURES
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import Endpoint
from quorate.quorum.node.feature_support import supported_ranges
from quorate.quorum.node.node_core import NodeCore


def registration_request(
    core: NodeCore,
    ports: Mapping[str, int],
    *,
    log_dirs: tuple[Uuid, ...],
    previous_broker_epoch: int,
) -> BrokerRegistrationRequest:
    """Return the request. `ports` has the actual port of each open listener. `log_dirs` are the ids
    of the online log directories."""
    config = core.config
    listeners = config.listeners
    assert listeners.replication is not None
    endpoints = tuple(
        endpoint(listeners, each, ports[each.name])
        for each in (*listeners.client, listeners.replication)
    )
    return BrokerRegistrationRequest(
        broker_id=config.node_id,
        cluster_id=core.cluster_id,
        incarnation_id=core.incarnation,
        endpoints=endpoints,
        features=supported_ranges(SUPPORTED_FEATURES),
        rack=config["broker.rack"],
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
        replication_address=(endpoints[-1].host, endpoints[-1].port),
    )


def endpoint(listeners: Listeners, listener: Listener, port: int) -> Endpoint:
    """Return the advertised endpoint of a listener that is bound to `port`."""
    advertised = listeners.advertisement(listener.name)
    assert advertised is not None
    return Endpoint(
        name=advertised.name,
        host=advertised.host,
        port=advertised.port or port,
        security_protocol=PROTOCOL_CODES[listeners.protocol(listener.name)],
    )
