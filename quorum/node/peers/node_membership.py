"""The voters and their addresses that a node's configuration names.

At kraft.version 0, the voters in controller.quorum.voters are in effect. From kraft.version 1 on,
the log holds the voter set with its addresses (KIP-853). A node then needs the configuration only
to find the quorum at its start. The configuration names bootstrap servers without node ids, so
negative ids identify them here.
"""

from __future__ import annotations

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ZERO_UUID, ReplicaKey
from quorate.quorum.raft.control_records import SUPPORTED, Voter, VoterEndpoint
from quorate.quorum.raft.messages import LeaderAddress
from quorate.quorum.raft.voter_history import Membership, VoterHistory
from quorate.quorum.seams import Address

FIRST_BOOTSTRAP_ID = -2
"""The id of the first bootstrap server. The following ones have -3, -4 and so on, because -1 means
no node."""


def membership(config: NodeConfig, me: ReplicaKey, history: VoterHistory) -> Membership:
    """Return the voters and addresses with which the Raft core of the replica `me` starts.

    They are those of the configuration, together with `history`, the voters in this node's log. The
    Raft core uses the configured voters at kraft.version 0, and `history` from 1 on. A broker has
    no `own_voter`."""
    return Membership(
        configured=tuple(ReplicaKey(voter.id, ZERO_UUID) for voter in config.voters),
        history=history,
        addresses={
            voter.id: LeaderAddress(host=voter.host, port=voter.port) for voter in config.voters
        },
        bootstrap_ids=tuple(bootstrap_addresses(config)),
        own_voter=own_voter(config, me) if config.is_controller else None,
    )


def bootstrap_addresses(config: NodeConfig) -> dict[int, Address]:
    """Return the addresses of controller.quorum.bootstrap.servers by negative ids, which no node
    has. Only the handshake reveals the node id behind such an address."""
    return {
        FIRST_BOOTSTRAP_ID - number: Address(host, port)
        for number, (host, port) in enumerate(config.bootstrap_servers)
    }


def voter_addresses(config: NodeConfig) -> dict[int, Address]:
    """Return the configured addresses that the node connects to at its start, by node id.

    These are the voters of controller.quorum.voters and the bootstrap servers, which have the ids
    of `bootstrap_addresses`. From kraft.version 1 on, the addresses of the voters in the log are
    added later (`NodeCore.on_voters`).

    A process that is only a controller leaves out its own entry in controller.quorum.voters. A
    process that is also a broker includes it, because the broker sends its requests to the active
    controller over a link, even within one process."""
    skipped = () if config.is_broker else (config.node_id,)
    addresses = {
        voter.id: Address(voter.host, voter.port)
        for voter in config.voters
        if voter.id not in skipped
    }
    return {**addresses, **bootstrap_addresses(config)}


def own_voter(config: NodeConfig, me: ReplicaKey) -> Voter | None:
    """Return the entry of this controller in a voter set.

    Return None for a broker. Also return None if no listener of the controller has an advertised
    address with a port, because a voter without an address cannot be reached."""
    names = {each.name for each in config.listeners.controller}
    endpoints = tuple(
        VoterEndpoint(name=each.name, host=each.host, port=each.port)
        for each in config.listeners.advertised
        if each.name in names and each.port
    )
    if not endpoints:
        return None
    return Voter(
        voter_id=me.id,
        voter_directory_id=me.directory_id,
        endpoints=endpoints,
        k_raft_version_feature=SUPPORTED,
    )


def configured_voters(config: NodeConfig) -> list[Voter]:
    """Return controller.quorum.voters in the form of the voter entries of the log.

    The configuration has no directory ids, so each is ZERO_UUID. It has no listener name either.
    The name is that of the first listener of this controller, or CONTROLLER on a broker."""
    listener = config.listeners.controller[0].name if config.is_controller else "CONTROLLER"
    return [
        Voter(
            voter_id=voter.id,
            voter_directory_id=ZERO_UUID,
            endpoints=(VoterEndpoint(name=listener, host=voter.host, port=voter.port),),
            k_raft_version_feature=SUPPORTED,
        )
        for voter in config.voters
    ]
