"""The voters and their addresses that a node's configuration names."""

from __future__ import annotations

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ZERO_UUID, ReplicaKey
from quorate.quorum.raft.control_records import SUPPORTED, Voter, VoterEndpoint
from quorate.quorum.raft.messages import LeaderAddress
from quorate.quorum.raft.voter_history import Membership, VoterHistory
from quorate.quorum.seams import Address

FIRST_BOOTSTRAP_ID = -2
"""The id of the first bootstrap server; the next ones count down. -1 means no node."""


def membership(config: NodeConfig, me: ReplicaKey, history: VoterHistory) -> Membership:
    """Return the membership with which the Raft core of the replica `me` starts."""
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
    """Return controller.quorum.bootstrap.servers by negative ids, which no node has.

    The handshake shows which node listens at such an address."""
    return {
        FIRST_BOOTSTRAP_ID - number: Address(host, port)
        for number, (host, port) in enumerate(config.bootstrap_servers)
    }


def voter_addresses(config: NodeConfig) -> dict[int, Address]:
    """Return the configured addresses to connect to at the start, by voter id. The addresses of a
    dynamic quorum come from the log (`NodeCore.on_voters`).

    Bootstrap servers have the ids of `bootstrap_addresses`. A controller does not connect to
    itself, unless the process is also a broker, whose requests go to its own controller too."""
    skipped = () if config.is_broker else (config.node_id,)
    addresses = {
        voter.id: Address(voter.host, voter.port)
        for voter in config.voters
        if voter.id not in skipped
    }
    return {**addresses, **bootstrap_addresses(config)}


def own_voter(config: NodeConfig, me: ReplicaKey) -> Voter | None:
    """Return this controller as a voter, or None if no advertised listener names its address."""
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
    """Return controller.quorum.voters as voters of the log. Their directory ids are unknown."""
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
