"""A running controller: the node core, the rules' shell, and the controller port.

The port serves two protocols (design, "What is promised"): nodes speak messages over WebSockets,
and admin clients (`--bootstrap-controller`) and forwarded requests speak Kafka's. Both end in the
same rules.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import topic_defaults
from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    EnvelopeRequest,
)
from quorate.quorum.controller.result import ProbeBroker, Result
from quorate.quorum.controller.settings import ControllerSettings
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.committed_image import InstallImage
from quorate.quorum.node.controller_port import ControllerPort
from quorate.quorum.node.controller_shell import ControllerShell, Refusal
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.node.node_requests import REFUSED, check_broker
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.effects import Role, RoleChanged
from quorate.quorum.raft.messages import FetchRequest
from quorate.quorum.rpc.channel import Channel, Handler, Reply
from quorate.quorum.rpc.connector import ProbeResult, probe
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.kafka.boundary import is_node_failure
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.seams import Address, Listener, Seams, Wire
from quorate.quorum.steps import Steps

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

PROBE_TIMEOUT_MS = 1000
RESIGN_TIMEOUT_MS = 2000
MAX_PROBES = 1000
"""The probes in flight. One more is dropped, and the broker is fenced by its session timeout."""
MAX_FRAME_BYTES = 32 << 20

LINE_INTERVAL_S = 1.0
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

logger = logging.getLogger("quorate.quorum.controller")

BROKER_REQUESTS = (
    BrokerRegistrationRequest,
    BrokerHeartbeatRequest,
    AlterPartitionRequest,
    AllocateProducerIdsRequest,
)
REFUSALS = {Refusal.FAILED: ErrorCode.UNKNOWN_SERVER_ERROR}
"""Everything else is NOT_CONTROLLER."""


class ControllerNode:
    def __init__(self, core: NodeCore) -> None:
        self.core = core
        config, seams = core.config, core.seams
        self.rules = Controller(controller_settings(config, core.cluster_id), seams.random)
        self.shell = ControllerShell(
            seams.clock,
            self.rules,
            core.replica,
            begin_anew=lambda: core.committed_image.prepare(self._prepare_load),
            carry_out=self._probe,
        )
        self.port = ControllerPort(core, self.shell)
        handlers: dict[type, Handler] = {**core.raft_handlers()}
        handlers[FetchRequest] = self._discarding_old_fetches(handlers[FetchRequest])
        for request in BROKER_REQUESTS:
            handlers[request] = core.requests.guarded(self._broker_request)
        handlers[EnvelopeRequest] = core.requests.guarded(self.port.envelope)
        self._server = NodeServer(core.node_settings(handlers), self)
        self._listeners: list[Listener] = []
        self._sessions: dict[Peer, tuple[int, int]] = {}  # (broker id, broker epoch) of a link
        self._probes: dict[asyncio.Task[None], None] = {}  # in order, for the simulator's sake
        self._log_limit = LogLimit(seams.clock)
        self._resigned = asyncio.Event()
        core.listeners.role.append(self._role_changed)
        core.listeners.committed.append(self._committed)
        core.listeners.image.append(self._image_changed)
        core.listeners.prepare_load.append(self._prepare_load)
        core.listeners.resigned.append(self._resigned.set)
        core.watch.not_ready.append(self._not_ready)
        core.watch.collectors.append(self._metrics)

    def _discarding_old_fetches(self, handle: Handler) -> Handler:
        """A replica that lost its log says so in its fetches. A fetch that its previous process
        sent before the loss acknowledges records that are gone. It must not be counted if it
        arrives later, over a link that lingers."""

        def handle_fetch(peer: Peer, message: Any, reply: Reply) -> None:
            if message.catching_up:
                self._server.close_older(peer)
            handle(peer, message, reply)

        return handle_fetch

    async def start(self) -> None:
        """Listening when it returns; the core is started by whoever made it."""
        accept = {
            Wire.NODE: self._server.accept,
            Wire.KAFKA: self.port.accept,
            Wire.HTTP: self.core.watch.accept,
        }
        config = self.core.config
        for listener in config.listeners.controller:
            address = Address(listener.host, listener.port)
            self._listeners.append(
                await self.core.seams.transport.listen(
                    address,
                    accept,
                    max_frame_bytes=max(MAX_FRAME_BYTES, config["socket.request.max.bytes"]),
                )
            )

    @property
    def addresses(self) -> list[Address]:
        return [each.address for each in self._listeners]

    async def stop(self) -> None:
        """Hand leadership over, then close the port."""
        self.core.replica.put(self.core.raft.resign)
        try:
            async with asyncio.timeout(RESIGN_TIMEOUT_MS / 1000):
                await self._resigned.wait()
        except TimeoutError:
            logger.warning("no voter took over within %d ms", RESIGN_TIMEOUT_MS)
        await self.close()

    async def close(self) -> None:
        self.shell.deactivate()
        for task in list(self._probes):
            task.cancel()
        for listener in self._listeners:
            await listener.close()

    def _not_ready(self) -> Iterator[str]:
        if self.core.replica.raft.role is Role.LEADER and not self.shell.active:
            yield "it leads the quorum and is not the active controller yet"

    def _metrics(self) -> Iterator[Metric]:
        from quorate.quorum.node.controller_metrics import controller_metrics

        return controller_metrics(self.core, self.rules, self.shell)

    # What the metadata replica goes through

    def _role_changed(self, effect: RoleChanged) -> None:
        if effect.role is not Role.LEADER:
            self.shell.deactivate()

    def _committed(self, high_watermark: int) -> None:
        image = self.shell.committed(high_watermark)
        if image is not None and not self.core.config.is_broker:
            self.core.committed_image.adopt(image)  # a broker in this process wants the deltas
        self._activate_when_ready()

    def _image_changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Only while not active: the active controller's own appends are adopted, not followed."""
        if not self.shell.active:
            for effect in self.rules.replayed(image, delta).effects:
                self._probe(effect)
            self._activate_when_ready()

    def _prepare_load(self, image: MetadataImage) -> Steps[InstallImage]:
        install = yield from self.rules.prepare_load(image)

        def install_image() -> None:
            index = self.rules.index
            self._carry_out(install())
            self._activate_when_ready()
            self.core.committed_image.release(index.emptied())

        return install_image

    def _activate_when_ready(self) -> None:
        """Traps, "Activation": own LeaderChange committed, everything inherited replayed."""
        raft, replayed = self.core.replica.raft, self.core.committed_image
        ready = raft.role is Role.LEADER and raft.high_watermark == self.core.log.end_offset
        if ready and not self.shell.active and replayed.caught_up_with(raft.high_watermark):
            self.shell.activate(self.core.image, raft.epoch, in_transaction=replayed.in_transaction)

    # What brokers say

    def _broker_request(self, peer: Peer, message: Any, reply: Reply) -> None:
        check_broker(peer, message)
        if isinstance(message, BrokerHeartbeatRequest):
            now_ms = self.core.seams.clock.now_ms()
            self.rules.contact(message.broker_id, message.broker_epoch, now_ms=now_ms)
            self._met(peer, message.broker_id, message.broker_epoch)

        def answer(response: Any) -> None:
            if isinstance(response, Refusal):
                error = REFUSALS.get(response, ErrorCode.NOT_CONTROLLER)
                reply(REFUSED[type(message)](error))
                return
            if isinstance(response, BrokerRegistrationResponse) and response.broker_epoch >= 0:
                self._met(peer, message.broker_id, response.broker_epoch)
            reply(response)

        self.shell.submit(message, answer)

    def _met(self, peer: Peer, broker_id: int, broker_epoch: int) -> None:
        """This link has proved to be that registration's."""
        session = (broker_id, broker_epoch)
        if peer.node_id == broker_id and self._sessions.get(peer) != session:
            self._sessions[peer] = session
            self._carry_out(self.rules.connected(*session, peer.address.host))

    def on_peer_up(self, channel: Channel) -> None:
        self.core.on_peer(channel)

    def on_peer_down(self, channel: Channel) -> None:
        session = self._sessions.pop(channel.peer, None)
        if session is not None and not self.core.failed:
            self._carry_out(self.rules.connection_lost(*session))

    # Hints

    def _carry_out(self, result: Result) -> None:
        for effect in result.effects:
            self._probe(effect)

    def _probe(self, effect: ProbeBroker) -> None:
        if effect.delay_ms:
            self.core.seams.clock.call_later(effect.delay_ms, lambda: self._probe_now(effect))
        else:
            self._probe_now(effect)

    def _probe_now(self, effect: ProbeBroker) -> None:
        if self.core.failed:
            return
        if len(self._probes) >= MAX_PROBES:
            more = self._log_limit.passes("dropped probe")
            if more is not None:
                logger.warning(
                    "broker %d is not probed because %d probes are in flight: if it is dead, it is "
                    "fenced when its session ends%s",
                    effect.broker_id,
                    MAX_PROBES,
                    more,
                )
            return
        task = asyncio.get_running_loop().create_task(self._evidence(effect))
        self._probes[task] = None
        task.add_done_callback(lambda done: self._probes.pop(done, None))
        task.add_done_callback(raise_failure)

    async def _evidence(self, effect: ProbeBroker) -> None:
        transport = self.core.seams.transport
        evidence = await probe(transport, effect.address, PROBE_TIMEOUT_MS)
        if evidence is ProbeResult.ALIVE:
            self._carry_out(self.rules.probe_succeeded(effect))
        elif evidence is ProbeResult.UNREACHABLE:
            self._carry_out(self.rules.probe_failed(effect))
        elif self.shell.active:
            self.shell.tell(lambda now_ms, _: self.rules.probe_refused(effect, now_ms=now_ms))


def controller_settings(config: NodeConfig, cluster_id: str) -> ControllerSettings:
    return ControllerSettings(
        cluster_id=cluster_id,
        node_id=config.node_id,
        session_timeout_ms=config["broker.session.timeout.ms"],
        default_replication_factor=config["default.replication.factor"],
        default_partitions=config["num.partitions"],
        topic_deletion=config["delete.topic.enable"],
        auto_leader_rebalance=config["auto.leader.rebalance.enable"],
        imbalance_check_interval_ms=config["leader.imbalance.check.interval.seconds"] * 1000,
        unclean_election_interval_ms=config["unclean.leader.election.interval.ms"],
        max_idle_interval_ms=config["metadata.max.idle.interval.ms"],
        inter_broker_listener=config["inter.broker.listener.name"] or "REPLICATION",
        hints=config["quorate.hints.enable"],
        topic_defaults=topic_defaults(config),
    )


async def run(config: NodeConfig, seams: Seams, stop: asyncio.Event) -> None:
    """One controller until `stop`; raises what made it fail."""
    failure: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failure.append(error)
        stop.set()

    core = NodeCore(config, seams, failed)
    node = ControllerNode(core)
    asyncio.get_running_loop().set_exception_handler(partial(on_unhandled, core))
    try:
        await node.start()
        core.start()
        await stop.wait()
        if not failure:
            await node.stop()
    finally:
        core.close()
        await node.close()
    if failure:
        raise failure[0]
    core.release()


@dataclass(slots=True)
class _Line:
    next_s: float = 0.0


_connection_line = _Line()


def on_unhandled(core: NodeCore, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Stop the node, because an exception that no one caught is a broken invariant (idea 1).

    A failure of a connection does not stop it. asyncio reports a failed accept once for each place
    of the backlog, with its `socket`, and tries again after a second. It reports an exception of
    the code that cuts frames with its `transport`, which it closes. The handlers of frames answer
    for their own exceptions (`rpc/delivery.py`)."""
    error = context.get("exception")
    refused = isinstance(error, OSError) and error.errno in OUT_OF_RESOURCES and "socket" in context
    cut = isinstance(error, Exception) and "transport" in context and not is_node_failure(error)
    if refused or cut:
        if loop.time() >= _connection_line.next_s:
            _connection_line.next_s = loop.time() + LINE_INTERVAL_S
            what = "cannot accept a connection" if refused else "closing a connection"
            logger.warning("%s: %r", what, error, exc_info=None if refused else error)
    elif error is None:
        loop.default_exception_handler(context)
    else:
        core.fail(error)
