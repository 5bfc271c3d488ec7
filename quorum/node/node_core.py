"""The parts of a node that do not depend on its roles.

They are the node's identity, its data directory, its copy of the metadata log, the committed image,
and the links to the voters. A process that is both a broker and a controller has one `NodeCore`.

`NodeCore(...)` opens the directory, `start` connects to the voters, `close` stops, and `release`
closes the files. `fail` stops the node after a failure that it cannot survive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quorate.config.node_config import NodeConfig
from quorate.quorum.controller.state.settings import SUPPORTED_FEATURES
from quorate.quorum.ids import NO_NODE, EpochOffset, ReplicaKey, Uuid, random_uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles
from quorate.quorum.metadata.checked_batches import CheckedBatches
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import SnapshotContents
from quorate.quorum.node.feature_support import supported
from quorate.quorum.node.node_listeners import NodeListeners
from quorate.quorum.node.opening.data_directory import require_formatted
from quorate.quorum.node.opening.directory_lock import lock_directories
from quorate.quorum.node.opening.metadata_opening import open_metadata
from quorate.quorum.node.opening.raft_creation import create_raft
from quorate.quorum.node.peers.generations import Generations
from quorate.quorum.node.peers.node_membership import configured_voters, voter_addresses
from quorate.quorum.node.peers.node_requests import RAFT_REQUESTS, NodeRequests, affordable
from quorate.quorum.node.peers.node_tls import NodeTls
from quorate.quorum.node.peers.quorum_links import QuorumLinks
from quorate.quorum.node.peers.voter_probes import VoterProbes
from quorate.quorum.node.replica.committed_image import CommittedImage, InstallImage, prepare_all
from quorate.quorum.node.replica.metadata_replica import MetadataReplica
from quorate.quorum.node.replica.node_settings import snapshot_settings
from quorate.quorum.node.replica.snapshot_generator import SnapshotGenerator
from quorate.quorum.node.waiting_log import WaitingLog
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.effects import LeaderFound, Role, RoleChanged, VotersChanged
from quorate.quorum.raft.generation import LocalQuorumState, Rebuilds
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.voter_changes import KRAFT_VERSION, KRAFT_VERSIONS
from quorate.quorum.rpc.channel import Channel, Handler, Reply
from quorate.quorum.rpc.connector import ConnectorSettings
from quorate.quorum.rpc.handshake import LinkCounts, NodeSettings
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.kafka.api_versions import Features
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.seams import Address, Clock, Seams
from quorate.quorum.watch.endpoints import HttpEndpoints


class NodeCore:
    """One running node, without its roles. Owned by the process's event loop.

    It implements `ReplicaListener` and `LinksListener` (the effects of Raft and the events of
    links), and `NodeView`, which the HTTP interface reads. `listeners` passes changes on to the
    roles. A role adds its handlers of controllers' requests to `link_handlers`.

    Invariant: after `fail` or `close`, the node starts nothing new and accepts no effect."""

    def __init__(
        self, config: NodeConfig, seams: Seams, on_failed: Callable[[BaseException], None]
    ) -> None:
        """Lock and open the node's directory. Blocks. Send nothing.

        `on_failed` is called at most once, with the failure that stopped the node. Raise
        StorageError or NodeRefused if this node must not use the directory, ConfigError if a
        certificate cannot be used, and CorruptLog or another error if a file is damaged."""
        self.config = config
        self.seams = seams
        self.listeners = NodeListeners()
        self.resources = NodeResources.of(seams.clock, config)
        self.failed = False
        self.requests = NodeRequests(seams.clock, self.fail)
        self.failed_requests: Mapping[str, int] = self.requests.failures
        self.link_counts = LinkCounts()
        self._on_failed = on_failed
        self._lock = lock_directories(config, seams)
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise

    def _open(self) -> None:
        config, seams = self.config, self.seams
        self.directories = require_formatted(seams.disk, config, offline=self._lock.offline)
        self.cluster_id = self.directories.metadata.cluster_id
        self.me = ReplicaKey(config.node_id, self.directories.metadata.directory_id)
        self.incarnation = random_uuid(seams.random)
        self.tls = NodeTls(config, self.cluster_id, seams.clock)
        self.seams = seams = self.tls.dialing(seams)
        opened = open_metadata(seams.disk, config, self.me, seams.clock.wall_ms())
        self.storage = opened.storage
        self.lost = opened.lost  # the loss that keeps this controller from voting for now
        self.log = self.storage.log
        self._election_file = opened.election_file
        self.generations = Generations(
            seams.clock,
            seams.disk,
            self.log.directory,
            self._local_state,
            followed=lambda: self.links.renew(),
            superseded=lambda: self.replica.superseded(),
            on_failed=self.fail,
        )
        self.link_handlers: dict[type, Handler] = {}
        node = self.node_settings(self.link_handlers)
        addresses = voter_addresses(config)
        self._configured = frozenset(addresses.values())
        self.links = QuorumLinks(seams, addresses, ConnectorSettings(node=node), self)
        self.failure_at = self.links.failure_at
        self._probes = VoterProbes(seams.clock, self.links, self._prune_links)
        checked = CheckedBatches(lambda: self.log.generation)
        raft = create_raft(seams, config, self.cluster_id, self.me, opened, checked)
        file, mark = self._election_file, opened.mark
        self.replica = MetadataReplica(seams, raft, self.storage, file, self.links, self, mark)
        self.committed_image = CommittedImage(
            seams.clock,
            self.log,
            self._image_changed,
            self._prepare_load,
            self.fail,
            checked.take,
        )
        self.http_endpoints = HttpEndpoints(self)
        self.tokens = self.http_endpoints.tokens
        self.tls.report_to(self.http_endpoints)
        self.listeners.image.append(self.tls.image_changed)
        self._waiting = WaitingLog(seams.clock, self.http_endpoints.reasons)
        self.listeners.role.append(self.http_endpoints.measures.on_role)
        self.listeners.image.append(self.http_endpoints.on_image)
        self.listeners.committed += self.http_endpoints.on_committed
        self._snapshots = SnapshotGenerator(
            seams,
            self.storage,
            snapshot_settings(config),
            self.committed_image.between_batches,
            raft.voters_at,
            self.fail,
        )

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the image of the latest snapshot, connect to the voters, and start Raft.
        A large image is loaded in steps, after the return. The log after the snapshot is replayed
        when this node knows a high watermark."""
        self.committed_image.load(self.storage.beginning.image)
        self.links.start()
        for part in (self.replica, self._snapshots, self._waiting, self.tls, self.tokens):
            part.start()

    def close(self) -> None:
        """Stop immediately. The files stay open until `release`."""
        for part in (self.replica, self.committed_image, self._snapshots, self._waiting):
            part.close()
        for link in (self._probes, self.links, self.tls, self.tokens):
            link.close()

    def release(self) -> None:
        """Make everything durable, close the files and give up the lock. Blocks. Call `close`
        first. Do not call this method after a failure: the process ends instead."""
        self.storage.close()
        self._lock.release()

    def fail(self, error: BaseException) -> None:
        """Notify the roles, close, then call `on_failed`. Only the first call has an effect. If a
        role survives the error, do nothing."""
        if not self.failed and not any(each(error) for each in self.listeners.survives):
            self.failed = True
            for each in self.listeners.failed:
                each(error)
            self.close()
            self._on_failed(error)

    # -- what others read ------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """Return the clock."""
        return self.seams.clock

    @property
    def raft(self) -> Raft:
        """Return the Raft core, to read its state. Inputs go through `replica`."""
        return self.replica.raft

    @property
    def image(self) -> MetadataImage:
        """Return the committed metadata image. It may be behind the high watermark."""
        return self.committed_image.image

    @property
    def replayed_offset(self) -> int:
        """Return the offset of the next record that the image needs."""
        return self.committed_image.position

    @property
    def snapshots(self) -> SnapshotFiles:
        """Return the snapshots of the metadata log."""
        return self.storage.snapshots

    @property
    def end_offset(self) -> int:
        """Return the log end offset of the metadata log."""
        return self.log.end_offset

    @property
    def voters(self) -> Sequence[Voter]:
        """Return the voters with their addresses: those at the end of the log, committed or not, or
        the configured ones at kraft.version 0."""
        quorum = self.raft.voters_at(self.end_offset)
        return quorum.voters if quorum.kraft_version else configured_voters(self.config)

    def is_connected(self, voter_id: int) -> bool:
        """Return True if there is a link to this voter with a completed handshake."""
        return self.links.channel(voter_id) is not None

    def features(self) -> Features:
        """Return the features for ApiVersions: the controller's, and Raft's kraft.version."""
        level = self.raft.voters_at(self.end_offset).kraft_version
        finalized = {**self.image.features, **({KRAFT_VERSION: level} if level else {})}
        ranges = {**SUPPORTED_FEATURES, KRAFT_VERSION: KRAFT_VERSIONS}
        return Features(supported=ranges, finalized=finalized, epoch=self.image.last.offset)

    # -- links with other nodes ------------------------------------------------------------------

    def hello(self) -> Hello:
        """Return what this node says about itself in a handshake."""
        return Hello(
            versions=VERSIONS,
            cluster_id=self.cluster_id,
            node_id=self.me.id,
            directory_id=self.me.directory_id,
            roles=self.config.roles,
            incarnation_id=self.incarnation,
            generation=len(self.generations.rebuilds),
            rebuilds=self.generations.rebuilds,
        )

    def node_settings(self, handlers: Mapping[type, Handler]) -> NodeSettings:
        """Return the settings of links on which other nodes may send the requests of `handlers`."""
        return NodeSettings(
            clock=self.seams.clock,
            hello=self.hello,
            handlers=handlers,
            on_newer=self._meet_newer,
            proof=self.tls.proof,
            counts=self.link_counts,
            memory=self.resources.memory,
        )

    def raft_handlers(self) -> Mapping[type, Handler]:
        """Return the handlers of Raft's requests, behind the boundary of `node_requests.py`."""

        def handle(peer: Peer, message: Any, reply: Reply) -> None:
            self.replica.request(affordable(message, self.resources.memory.nodes), reply)

        return {request: self.requests.guarded(handle) for request in RAFT_REQUESTS}

    def _meet_newer(self, hello: Hello, address: Address) -> None:
        """Accept a later generation of the quorum only from an address of a controller.

        The configuration and the metadata log name these addresses. Any other address is only a
        claim of a peer."""
        voters = self.raft.voters_at(self.end_offset).voters
        logged = (Address(each.host, each.port) for voter in voters for each in voter.endpoints)
        if address in self._configured or address in logged:
            self.generations.met(hello)

    def _local_state(self, rebuilds: Rebuilds) -> LocalQuorumState:
        raft, log = self.raft, self.log
        return LocalQuorumState(
            rebuilds=rebuilds,
            end=EpochOffset(max(log.last_epoch, 0), log.end_offset),
            is_controller=self.config.is_controller,
            voted=raft.voted_id != NO_NODE,
            leader_id=raft.leader_id if self.is_connected(raft.leader_id) else NO_NODE,
            directory=log.directory,
        )

    def on_voter_up(self, voter_id: int) -> None:
        """Report a completed handshake to Raft, to a probe, and to the listeners. Ignore a
        bootstrap server (a negative id), which is only asked for the leader."""
        channel = self.links.channel(voter_id)
        assert channel is not None, "a link is up before its event"
        if voter_id < 0:
            return
        self._probes.came_up(channel.peer)
        key = ReplicaKey(channel.peer.node_id, Uuid(channel.peer.hello.directory_id))
        self.replica.put(self.raft.voter_connected, key)
        self.listeners.links_changed()

    def on_voter_lost(self, voter_id: int) -> None:
        """Report a lost link to Raft and to the listeners. Ignore bootstrap servers."""
        if voter_id >= 0:
            self.replica.put(self.raft.link_lost, voter_id)
            self.listeners.links_changed()

    def on_voter_refused(self, voter_id: int) -> None:
        """Report a refused connection to Raft, as a hint of death. Ignore bootstrap servers."""
        if voter_id >= 0:
            self.replica.put(self.raft.link_refused, voter_id)

    def on_peer(self, channel: Channel) -> None:
        """End a backoff of the connector to the node that has connected, because it evidently runs.
        Do nothing if there is no connector to it, or a link."""
        self.links.sign_of_life(channel.peer.node_id)

    # -- effects of Raft (ReplicaListener) -------------------------------------------------------

    def on_appended(self, last_offset: int, count: int) -> None:
        """Count the records that this node appended as the leader."""
        self.http_endpoints.measures.on_appended(last_offset, count)

    def on_role(self, effect: RoleChanged) -> None:
        """Pass the new role on to the listeners. If there is a leader, also close the links to
        nodes that are neither voters nor the leader."""
        for each in self.listeners.role:
            each(effect)
        if effect.leader_id != NO_NODE:
            self._prune_links()

    def on_committed(self, high_watermark: int) -> None:
        """Pass the high watermark on to the listeners, then begin to replay up to it. A standby
        controller that is no broker begins some ms later (`CommittedImage.committed`)."""
        for each in self.listeners.committed:
            each(high_watermark)
        at_once = self.config.is_broker or self.raft.role is Role.LEADER
        self.committed_image.committed(high_watermark, at_once=at_once)

    def on_loaded(self, contents: SnapshotContents) -> None:
        """Begin to load the image of the snapshot that has replaced the log."""
        self.http_endpoints.measures.snapshots_loaded += 1
        self.committed_image.load(contents.image)

    def on_voters(self, effect: VotersChanged) -> None:
        """Connect to the voters of the new set, and close the links to removed voters.

        The links to the leader and to the configured bootstrap servers stay. Do nothing at
        kraft.version 0, where the configuration names the voters."""
        if effect.kraft_version == 0:
            return
        self._election_file.kraft_version = effect.kraft_version
        for voter in effect.voters:
            self._know(voter.voter_id, voter.endpoints[0].host, voter.endpoints[0].port)
        self._prune_links()

    def on_leader_found(self, effect: LeaderFound) -> None:
        """Connect to the leader that another node has named."""
        self._know(effect.leader_id, effect.host, effect.port)

    def probe_voter(self, voter: Voter, done: Callable[[bool], None]) -> None:
        """Check that this replica answers at its first endpoint. `done` gets the result later
        (`VoterProbes.probe`)."""
        endpoint = voter.endpoints[0]
        self._probes.probe(voter, Address(endpoint.host, endpoint.port), done)

    def on_resigned(self) -> None:
        """Pass the completed resignation on to the listeners."""
        for each in self.listeners.resigned:
            each()

    def on_failed(self, error: BaseException) -> None:
        """Stop the node because its disk has failed."""
        self.fail(error)

    def _prune_links(self) -> None:
        """Close the links to nodes that are neither voters nor the leader. A leader that was
        removed from the voters leads until its removal is committed."""
        raft = self.raft
        quorum = raft.voters_at(self.end_offset)
        if quorum.kraft_version > 0:
            needed = {voter.voter_id for voter in quorum.voters} | {raft.leader_id}
            for voter_id in self.links.known_ids:
                if voter_id >= 0 and voter_id not in needed:
                    self.links.forget(voter_id)

    def _know(self, voter_id: int, host: str, port: int) -> None:
        if voter_id != self.me.id or self.config.is_broker:
            self.links.know(voter_id, Address(host, port))

    # -- the committed image ---------------------------------------------------------------------

    def _image_changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        if delta.features and not supported(image.features, SUPPORTED_FEATURES, self.fail):
            return
        for each in self.listeners.image:
            each(image, delta)

    def _prepare_load(self, image: MetadataImage) -> IncrementalWork[InstallImage]:
        goes_on = supported(image.features, SUPPORTED_FEATURES, self.fail)
        return prepare_all(self.listeners.prepare_load if goes_on else (), image)
