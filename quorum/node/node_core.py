"""What every node has, whatever its roles: its identity and directory, its copy of the metadata
log, its links to the voters. A node that is both broker and controller has one.

`open` reads the directory and refuses what is not this node's; nothing is sent before `start`. A
failure that the node cannot survive (fsync, a log that contradicts itself, a broken invariant) goes
to `fail`, once, and the node ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quorate.config.node_config import NodeConfig
from quorate.quorum.controller.settings import SUPPORTED_FEATURES
from quorate.quorum.ids import NO_NODE, EpochOffset, ReplicaKey, Uuid, random_uuid
from quorate.quorum.metadata.batches import CheckedBatches
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import SnapshotContents
from quorate.quorum.node.committed_image import CommittedImage, InstallImage, PrepareLoad
from quorate.quorum.node.data_directory import LOCK_FILE, keep_private, require_formatted
from quorate.quorum.node.directory_replacement import finish_replacement
from quorate.quorum.node.generations import Generations
from quorate.quorum.node.metadata_opening import adopt, open_metadata
from quorate.quorum.node.metadata_replica import MetadataReplica
from quorate.quorum.node.node_membership import (
    bootstrap_addresses,
    configured_voters,
    membership,
)
from quorate.quorum.node.node_requests import RAFT_REQUESTS, NodeRequests, check_speaker
from quorate.quorum.node.node_settings import raft_settings, snapshot_settings
from quorate.quorum.node.quorum_links import QuorumLinks
from quorate.quorum.node.snapshot_generator import SnapshotGenerator
from quorate.quorum.node.voter_probes import VoterProbes
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.effects import LeaderFound, Role, RoleChanged, VotersChanged
from quorate.quorum.raft.generation import LocalQuorumState, Rebuilds
from quorate.quorum.raft.messages import FetchRequest
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.voter_changes import KRAFT_VERSION, KRAFT_VERSIONS
from quorate.quorum.rpc.channel import Channel, Handler, Reply
from quorate.quorum.rpc.connector import ConnectorSettings
from quorate.quorum.rpc.handshake import NodeSettings
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.kafka.api_versions import Features
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.rpc.node_link_memory import fetch_room
from quorate.quorum.seams import Address, DirectoryLock, Seams
from quorate.quorum.steps import Steps
from quorate.quorum.watch.watch import Watch

logger = logging.getLogger("quorate.node")


class NodeRefused(Exception):
    """The directory is not one that this node may use; the message says why and what to do."""

    for_operator = True


@dataclass(slots=True)
class NodeListeners:
    """Who acts on what the metadata replica goes through; called in order, after the state
    changed. `surveys` are what followers of the image do with one that no delta leads to."""

    image: list[Callable[[MetadataImage, ImageDelta], None]] = field(default_factory=list)
    prepare_load: list[PrepareLoad] = field(default_factory=list)
    role: list[Callable[[RoleChanged], None]] = field(default_factory=list)
    committed: list[Callable[[int], None]] = field(default_factory=list)
    resigned: list[Callable[[], None]] = field(default_factory=list)
    links: list[Callable[[], None]] = field(default_factory=list)
    failed: list[Callable[[BaseException], None]] = field(default_factory=list)
    """Told before the node is closed; may block, must not raise."""


class NodeCore:
    def __init__(
        self, config: NodeConfig, seams: Seams, on_failed: Callable[[BaseException], None]
    ) -> None:
        self.config = config
        self.seams = seams
        self.listeners = NodeListeners()
        self.resources = NodeResources.of(seams.clock, config)
        self.failed = False
        self.requests = NodeRequests(seams.clock, self.fail)
        self._on_failed = on_failed
        self._lock = lock_directory(config, seams)
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise

    def _open(self) -> None:
        config, seams = self.config, self.seams
        meta = require_formatted(seams.disk, config)
        self.cluster_id = meta.cluster_id
        self.me = ReplicaKey(config.node_id, meta.directory_id)
        self.incarnation = random_uuid(seams.random)
        opened = open_metadata(seams.disk, config, self.me, seams.clock.wall_ms())
        self.storage = opened.storage
        self.lost = opened.lost
        """Why this node may not vote until it has caught up; empty if it might at its start."""
        self.log = self.storage.log
        self._election_file = opened.election_file
        self.generations = Generations(
            seams.disk,
            self.log.directory,
            self._standing,
            followed=lambda: self.links.renew(),
            superseded=lambda: self.replica.superseded(),
            on_failed=self.fail,
        )
        node = self.node_settings({})
        # A broker asks its own controller too, where one process is both.
        skipped = () if config.is_broker else (config.node_id,)
        addresses = {
            voter.id: Address(voter.host, voter.port)
            for voter in config.voters
            if voter.id not in skipped
        }
        addresses.update(bootstrap_addresses(config))
        self._configured = frozenset(addresses.values())
        self.links = QuorumLinks(seams, addresses, ConnectorSettings(node=node), self)
        self._probes = VoterProbes(seams.clock, self.links, self._prune_links)
        raft = Raft(
            raft_settings(config),
            self.cluster_id,
            self.me,
            membership(config, self.me, self.storage.history),
            self.log,
            self.storage.snapshots,
            opened.election,
            seams.random,
            seams.clock.now_ms(),
            seams.clock.wall_ms(),
            lost_log=bool(opened.lost),
        )
        checked = CheckedBatches()
        raft.check_batches(checked.check)
        self.replica = MetadataReplica(
            seams, raft, self.storage, opened.election_file, self.links, self, opened.mark
        )
        self.committed_image = CommittedImage(
            seams.clock,
            self.log,
            self._image_changed,
            self._prepare_load,
            self.fail,
            checked.batches,
        )
        self.watch = Watch(self)
        self._snapshots = SnapshotGenerator(
            seams,
            self.storage,
            snapshot_settings(config),
            self.committed_image.between_batches,
            raft.voters_at,
            self.fail,
        )

    @property
    def image(self) -> MetadataImage:
        return self.committed_image.image

    def hello(self) -> Hello:
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
        """Of all links with other nodes."""
        return NodeSettings(
            clock=self.seams.clock,
            hello=self.hello,
            handlers=handlers,
            on_newer=self._meet_newer,
            memory=self.resources.memory,
        )

    def _meet_newer(self, hello: Hello, address: Address) -> None:
        """Believe a later generation only where a controller is known to be.

        The configuration and the metadata log say where. Other addresses are claims of peers."""
        voters = self.replica.raft.voters_at(self.end_offset).voters
        logged = (Address(each.host, each.port) for voter in voters for each in voter.endpoints)
        if address in self._configured or address in logged:
            self.generations.met(hello)

    def _standing(self, rebuilds: Rebuilds) -> LocalQuorumState:
        raft, log = self.replica.raft, self.log
        linked = self.links.channel(raft.leader_id) is not None
        return LocalQuorumState(
            rebuilds=rebuilds,
            end=EpochOffset(max(log.last_epoch, 0), log.end_offset),
            is_controller=self.config.is_controller,
            voted=raft.voted_id != NO_NODE,
            leader_id=raft.leader_id if linked else NO_NODE,
            directory=log.directory,
        )

    def features(self) -> Features:
        """What clients are told: the controllers' features, and Raft's own, kraft.version."""
        image = self.image
        level = self.replica.raft.voters_at(self.end_offset).kraft_version
        finalized = dict(image.features)
        if level:
            finalized[KRAFT_VERSION] = level
        supported = {**SUPPORTED_FEATURES, KRAFT_VERSION: KRAFT_VERSIONS}
        return Features(supported=supported, finalized=finalized, epoch=image.last.offset)

    @property
    def voters(self) -> Sequence[Voter]:
        """Who votes, and where each is reached, as this node has it now."""
        quorum = self.replica.raft.voters_at(self.end_offset)
        return quorum.voters if quorum.kraft_version else configured_voters(self.config)

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def append(self, values: list[bytes]) -> int:
        offset = self.replica.append(values)
        self.watch.measures.on_appended(offset, len(values))
        return offset

    def start(self) -> None:
        self.committed_image.load(self.storage.beginning.image)
        self.links.start()
        self.replica.start()
        self._snapshots.start()

    def close(self) -> None:
        """Stops at once; the log's files are closed by `release`."""
        self.replica.close()
        self.committed_image.close()
        self._snapshots.close()
        self._probes.close()
        self.links.close()

    def release(self) -> None:
        """Blocks: all durable, files closed, the directory free for another process."""
        self.storage.close()
        self._lock.release()

    def fail(self, error: BaseException) -> None:
        if not self.failed:
            self.failed = True
            for each in self.listeners.failed:
                each(error)
            self.close()
            self._on_failed(error)

    def raft_handlers(self) -> Mapping[type, Handler]:
        def handle(peer: Peer, message: Any, reply: Reply) -> None:
            check_speaker(peer, message)
            self.replica.request(self._affordable(message), reply)

        return {request: self.requests.guarded(handle) for request in RAFT_REQUESTS}

    def _affordable(self, message: Any) -> Any:
        """Return the request; if it is a fetch, for no more than there is memory for."""
        if isinstance(message, FetchRequest):
            room_bytes = fetch_room(self.resources.memory.nodes)
            if message.max_bytes > room_bytes:
                return replace(message, max_bytes=room_bytes)
        return message

    # LinksListener

    def on_voter_up(self, voter_id: int) -> None:
        channel = self.links.channel(voter_id)
        assert channel is not None
        if voter_id < 0:
            return  # a bootstrap server: whatever it is, it is asked for the leader only
        self._probes.came_up(channel.peer)
        hello = channel.peer.hello
        self.replica.voter_connected(ReplicaKey(hello.node_id, Uuid(hello.directory_id)))
        self._links_changed()

    def on_voter_lost(self, voter_id: int) -> None:
        if voter_id >= 0:
            self.replica.link_lost(voter_id)
            self._links_changed()

    def on_voter_refused(self, voter_id: int) -> None:
        if voter_id >= 0:
            self.replica.link_refused(voter_id)

    def on_peer(self, channel: Channel) -> None:
        """A node reached us: if it is a voter, reach it too without waiting out a backoff."""
        self.links.sign_of_life(channel.peer.node_id)

    def _links_changed(self) -> None:
        for each in self.listeners.links:
            each()

    # ReplicaListener

    def on_role(self, effect: RoleChanged) -> None:
        for each in self.listeners.role:
            each(effect)
        if effect.leader_id != NO_NODE:
            self._prune_links()

    def on_committed(self, high_watermark: int) -> None:
        for each in self.listeners.committed:
            each(high_watermark)
        acts_on_it = self.config.is_broker or self.replica.raft.role is Role.LEADER
        self.committed_image.committed(high_watermark, at_once=acts_on_it)

    def on_loaded(self, contents: SnapshotContents) -> None:
        self.watch.measures.snapshots_loaded += 1
        self.committed_image.load(contents.image)

    def on_voters(self, effect: VotersChanged) -> None:
        """Links follow the set; a broker's go to those that it was configured with, too."""
        if effect.kraft_version == 0:
            return
        self._election_file.kraft_version = effect.kraft_version
        for voter in effect.voters:
            self._know(voter.voter_id, voter.endpoints[0].host, voter.endpoints[0].port)
        self._prune_links()

    def _prune_links(self) -> None:
        """A leader that was removed leads on until that is committed, so it is still reached."""
        raft = self.replica.raft
        quorum = raft.voters_at(self.end_offset)
        if quorum.kraft_version > 0:
            needed = {voter.voter_id for voter in quorum.voters} | {raft.leader_id}
            for voter_id in self.links.known_ids:
                if voter_id >= 0 and voter_id not in needed:
                    self.links.forget(voter_id)

    def on_leader_found(self, effect: LeaderFound) -> None:
        self._know(effect.leader_id, effect.host, effect.port)

    def _know(self, voter_id: int, host: str, port: int) -> None:
        if voter_id != self.me.id or self.config.is_broker:
            self.links.know(voter_id, Address(host, port))

    def probe_voter(self, voter: Voter, done: Callable[[bool], None]) -> None:
        endpoint = voter.endpoints[0]
        self._probes.probe(voter, Address(endpoint.host, endpoint.port), done)

    def on_resigned(self) -> None:
        for each in self.listeners.resigned:
            each()

    def on_failed(self, error: BaseException) -> None:
        self.fail(error)

    def _image_changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        for each in self.listeners.image:
            each(image, delta)

    def _prepare_load(self, image: MetadataImage) -> Steps[InstallImage]:
        installs = []
        for each in self.listeners.prepare_load:
            install = yield from each(image)
            installs.append(install)

        def install_all() -> None:
            for each in installs:
                each()

        return install_all


def lock_directory(config: NodeConfig, seams: Seams) -> DirectoryLock:
    """Nothing is touched in a directory that is not formatted, or not this node's."""
    meta = require_formatted(seams.disk, config, repair=False)
    try:
        lock = seams.disk.lock(f"{config.log_dir}/{LOCK_FILE}")
    except BlockingIOError:
        raise NodeRefused(
            f"{config.log_dir} is in use by another process: stop that node first, or set "
            "log.dirs right"
        ) from None
    for path in dict.fromkeys((config.log_dir, config.metadata_log_dir)):
        keep_private(seams.disk, path)
    finish_replacement(seams.disk, config.metadata_log_dir)
    adopt(seams.disk, config, meta.directory_id)
    return lock
