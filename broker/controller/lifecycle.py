"""The states of a broker towards the controller: registration, heartbeats, unfencing, controlled
shutdown.

It follows Kafka's BrokerLifecycleManager (KIP-631), as a state machine over a clock and the
controller channel. One request is in flight at a time. If the next heartbeat becomes due meanwhile,
it follows a good answer immediately. After an error or no answer, it follows after a backoff. Every
error of a heartbeat is retried like this, also STALE_BROKER_EPOCH.

Invariants:

- The broker epoch is set once in an incarnation.
- A heartbeat reports only a metadata offset that the broker has replayed into its image.
- Heartbeats ask to stay fenced (`want_fence`) until the logs are open and the metadata has reached
  this broker's own registration (KAFKA-13959). During a controlled shutdown they set
  `want_shut_down` instead of `want_fence`.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.broker.controller.controller_channel import ControllerChannel
from quorate.quorum.controller.state.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock, Random, Timer

BACKOFF_FIRST_MS = 100
"""The first backoff. It doubles with each failure in a row, up to a quarter of the session
timeout."""
BACKOFF_JITTER = 0.02
"""The random part of a backoff, as a fraction of it in either direction."""
SHUTDOWN_HEARTBEAT_MS = 50
"""The interval of heartbeats during a controlled shutdown. It is short because the controller
permits the shutdown in the answer to a heartbeat."""

logger = logging.getLogger("quorate.broker.lifecycle")


class State(enum.Enum):
    """The states of a broker, with the names of Kafka's BrokerState.

    A broker in RECOVERY has replayed its own registration and opens its logs. A running broker that
    is fenced later stays RUNNING."""

    NOT_RUNNING = "not running"
    STARTING = "starting"
    RECOVERY = "recovering"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    SHUTTING_DOWN = "shutting down"


FIRST_STATE = State.NOT_RUNNING
"""The state before `BrokerLifecycle.start`."""

TRANSITIONS: dict[tuple[State, State], str] = {
    (State.NOT_RUNNING, State.STARTING): "the broker starts",
    (State.NOT_RUNNING, State.SHUTTING_DOWN): "a stop before the start",
    (State.STARTING, State.RECOVERY): "registered, and the registration is replayed",
    (State.STARTING, State.SHUTTING_DOWN): "a stop",
    (State.STARTING, State.NOT_RUNNING): "closed",
    (State.RECOVERY, State.RUNNING): "the logs are loaded, and the controller unfences the broker",
    (State.RECOVERY, State.PENDING_CONTROLLED_SHUTDOWN): "a stop",
    (State.RECOVERY, State.NOT_RUNNING): "closed",
    (State.RUNNING, State.PENDING_CONTROLLED_SHUTDOWN): "a stop",
    (State.RUNNING, State.NOT_RUNNING): "closed",
    (State.PENDING_CONTROLLED_SHUTDOWN, State.SHUTTING_DOWN): "the controller permits it",
    (State.PENDING_CONTROLLED_SHUTDOWN, State.NOT_RUNNING): "closed",
    (State.SHUTTING_DOWN, State.NOT_RUNNING): "closed",
}
"""The allowed transitions, each with its reason. `make docs` draws the diagram in
docs/protocol/broker-sessions-and-hints.md from this table."""


class DirectoryFailureUnreported(Exception):
    """The controller has not taken note of a failed log directory in time. The broker stops,
    because it may lead partitions whose logs it has lost (KAFKA-15649)."""

    for_operator = True


class BrokerUnregistered(Exception):
    """An administrator has removed the registration of this broker while it ran."""

    for_operator = True

    def __init__(self, broker_id: int, epoch: int) -> None:
        super().__init__(
            f"broker {broker_id} was removed from the cluster: its registration of epoch {epoch} "
            "is gone (`quorate cluster unregister` or `decommission`). Its data stays on its "
            "disks. Start it again if it is to return: it then registers anew"
        )


class RegistrationRefused(Exception):
    """The registration failed, and the message has the reason.

    Either the controller refused it and a retry cannot help, or no active controller accepted it
    within the registration timeout."""

    for_operator = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleSettings:
    """The intervals and timeouts of a broker's lifecycle, in ms."""

    heartbeat_interval_ms: int = 2000
    """The time from the answer of one heartbeat to the next heartbeat."""
    session_timeout_ms: int = 9000
    """The session timeout of the controller. A request waits half of it for its answer. A backoff
    lasts at most a quarter of it, before the jitter."""
    registration_timeout_ms: int = 60_000
    """The time after `start` in which the registration is retried
    (initial.broker.registration.timeout.ms)."""
    directory_failure_timeout_ms: int = 30_000
    """The time in which the controller must take note of a failed log directory
    (log.dir.failure.timeout.ms)."""

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> LifecycleSettings:
        """Return the settings of a node's typed configuration."""
        return cls(
            heartbeat_interval_ms=node["broker.heartbeat.interval.ms"],
            session_timeout_ms=node["broker.session.timeout.ms"],
            registration_timeout_ms=node["initial.broker.registration.timeout.ms"],
            directory_failure_timeout_ms=node["log.dir.failure.timeout.ms"],
        )


RETRIED_REGISTRATION = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
)
"""The errors after which the registration is retried, until the registration timeout. A duplicate
registration is usually refused only until the session of the earlier incarnation expires."""


class BrokerLifecycle:
    """The lifecycle of one broker process. The event loop owns it.

    `state` follows TRANSITIONS. `broker_epoch` is -1 before the registration. `heard_ms` is the
    monotonic time of the last good answer to a heartbeat, in ms.

    From SHUTTING_DOWN on, the lifecycle sends no more requests. The owner stops the broker and then
    calls `close`. Some methods send a heartbeat immediately. If a request is in flight, they send
    it after a good answer to that request, or after the backoff that follows another answer."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        controller: ControllerChannel,
        settings: LifecycleSettings,
        registration: BrokerRegistrationRequest,
        *,
        on_state: Callable[[State], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Begin in NOT_RUNNING. `registration` is the request to send.

        `on_state` gets the new state immediately after each transition. `on_failed` gets one of the
        exceptions of this module. The lifecycle then sends nothing more, and the process stops."""
        self.state = State.NOT_RUNNING
        self.broker_epoch = -1
        self.heard_ms = 0
        """Monotonic time, in ms, of the last answer without an error to a heartbeat; 0 before."""
        self._clock = clock
        self._random = random
        self._controller = controller
        self._settings = settings
        self._registration = registration
        self._on_state = on_state
        self._on_failed = on_failed
        self._metadata_offset = -1
        self._loaded = False
        self._in_flight = False
        self._due_at_once = False
        self._refusal = ""  # the newest one of a registration that is retried
        self._failures = 0
        self._give_up_ms = 0
        self._offline_dirs: dict[Uuid, bool] = {}
        """The log directories that have failed, and True for each that the controller knows."""
        self._reported: tuple[Uuid, ...] = ()
        """Those of the heartbeat in flight."""
        self._timer: Timer | None = None

    def start(self) -> None:
        """Enter STARTING and send the registration. Retry it until `registration_timeout_ms` is
        over. Send heartbeats once it has succeeded."""
        self._give_up_ms = self._clock.now_ms() + self._settings.registration_timeout_ms
        self._enter(State.STARTING)
        self._next(0)

    def metadata_replayed(self, offset: int) -> None:
        """Note that the broker's image has the metadata up to and including `offset`. The replicas
        may not have applied it yet.

        The registration need not be complete. The first time that `offset` reaches this broker's
        own registration, send a heartbeat immediately."""
        before, self._metadata_offset = self._metadata_offset, offset
        if self.state in (State.STARTING, State.RECOVERY) and before < self.broker_epoch <= offset:
            self._next(0)

    def logs_loaded(self) -> None:
        """Note that all logs of the first image are open. Heartbeats ask to be unfenced if the
        metadata has also reached this broker's own registration. In RECOVERY it has, so send a
        heartbeat immediately."""
        self._loaded = True
        if self.state is State.RECOVERY:
            self._next(0)

    def fenced(self) -> None:
        """Send a heartbeat immediately, because the metadata shows this broker as fenced. The
        heartbeat asks to be unfenced again. Do nothing in another state than RUNNING."""
        if self.state is State.RUNNING:
            self._next(0)

    def directory_failed(self, directory: Uuid) -> None:
        """Report a failed log directory in a heartbeat immediately, and in all later ones. Call
        `on_failed` if no answer confirms it within `directory_failure_timeout_ms`."""
        self._offline_dirs[directory] = False
        timeout_ms = self._settings.directory_failure_timeout_ms
        self._clock.call_later(timeout_ms, lambda: self._check_reported(directory))
        if self.broker_epoch >= 0:
            self._next(0)

    def _check_reported(self, directory: Uuid) -> None:
        if not self._offline_dirs[directory] and not self._over():
            self._on_failed(
                DirectoryFailureUnreported(
                    f"the controller has not taken note of the failed log directory "
                    f"{uuid_to_text(directory)} within "
                    f"{self._settings.directory_failure_timeout_ms} ms "
                    "(log.dir.failure.timeout.ms). Check that the quorum is up"
                )
            )

    def begin_shutdown(self) -> None:
        """Ask the controller for a controlled shutdown. Enter SHUTTING_DOWN when the controller
        permits it.

        The wait has no limit here, so the caller must set one. In another state than RECOVERY or
        RUNNING, enter SHUTTING_DOWN before the return. A second call therefore ends the wait."""
        if self.state in (State.RUNNING, State.RECOVERY):
            self._enter(State.PENDING_CONTROLLED_SHUTDOWN)
            self._next(0)
        else:
            self._enter(State.SHUTTING_DOWN)

    def close(self) -> None:
        """Enter NOT_RUNNING and send nothing more. The answer of a request in flight is
        ignored."""
        self._enter(State.NOT_RUNNING)
        if self._timer is not None:
            self._timer.cancel()

    def _enter(self, state: State) -> None:
        if state is not self.state:
            allowed = (self.state, state) in TRANSITIONS
            assert allowed, f"a broker must not change from {self.state} to {state}"
            broker_id = self._registration.broker_id
            logger.info("broker %d is %s", broker_id, state.value, extra={"event": "broker-state"})
            self.state = state
            self._on_state(state)

    def _next(self, delay_ms: float) -> None:
        """Send the next request after `delay_ms`, or after the answer of the one in flight."""
        if self._in_flight:
            self._due_at_once = self._due_at_once or delay_ms == 0
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_ms, self._send)

    def _send(self) -> None:
        self._timer = None
        if self._in_flight or self._over():
            return
        self._in_flight = True
        timeout_ms = self._settings.session_timeout_ms // 2
        if self.broker_epoch < 0:
            self._controller.send(self._registration, timeout_ms, self._registered)
            return
        stopping = self.state is State.PENDING_CONTROLLED_SHUTDOWN
        self._reported = tuple(self._offline_dirs)
        heartbeat = BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.broker_epoch,
            metadata_offset=self._metadata_offset,
            want_fence=not self._ready_to_unfence() and not stopping,
            want_shut_down=stopping,
            offline_log_dirs=self._reported,
        )
        self._controller.send(heartbeat, timeout_ms, self._answered)

    def _over(self) -> bool:
        return self.state in (State.NOT_RUNNING, State.SHUTTING_DOWN)

    def _ready_to_unfence(self) -> bool:
        return self._loaded and self._metadata_offset >= self.broker_epoch

    def _registered(self, response: BrokerRegistrationResponse | None) -> None:
        self._in_flight = False
        if self.state is not State.STARTING:
            return
        if response is not None and response.error == ErrorCode.NONE:
            self._failures = 0
            assert self.broker_epoch < 0, "the broker epoch is set once in an incarnation"
            self.broker_epoch = response.broker_epoch
            broker_id, made = self._registration.broker_id, {"event": "registered"}
            logger.info(
                "broker %d registered with epoch %d", broker_id, self.broker_epoch, extra=made
            )
            self._next(0)
            return
        if response is not None and response.error not in RETRIED_REGISTRATION:
            code = ErrorCode.of(response.error).name
            self._on_failed(RegistrationRefused(f"{code}: {response.message}"))
            return
        if response is not None:
            code = ErrorCode.of(response.error).name
            self._refusal = f"{code}: {response.message}" if response.message else code
        if self._clock.now_ms() >= self._give_up_ms:
            waited_ms = self._settings.registration_timeout_ms
            last = f"The last refusal was {self._refusal}" if self._refusal else "None answered"
            self._on_failed(
                RegistrationRefused(
                    f"no active controller registered this broker within {waited_ms} ms "
                    f"(initial.broker.registration.timeout.ms). {last}. Check that the quorum is up"
                )
            )
            return
        self._retry()

    def _answered(self, response: BrokerHeartbeatResponse | None) -> None:
        self._in_flight = False
        if self._over():
            return
        if response is not None and response.error == ErrorCode.BROKER_ID_NOT_REGISTERED:
            self._unregistered()
            return
        if response is None or response.error != ErrorCode.NONE:
            if response is not None and response.error != ErrorCode.NOT_CONTROLLER:
                logger.warning(
                    "the controller answered the heartbeat with %s; the broker sends it again",
                    ErrorCode.of(response.error).name,
                )
            self._retry()
            return
        self._failures = 0
        self._offline_dirs.update(dict.fromkeys(self._reported, True))
        self.heard_ms = self._clock.now_ms()
        self._advance(response)
        if self._over():
            return
        if self._due_at_once:
            self._due_at_once = False
            self._next(0)
        elif self.state is State.PENDING_CONTROLLED_SHUTDOWN:
            self._next(SHUTDOWN_HEARTBEAT_MS)
        else:
            self._next(self._settings.heartbeat_interval_ms)

    def _unregistered(self) -> None:
        """Fail, or go on with a controlled shutdown: it has nothing left to give up."""
        if self.state is State.PENDING_CONTROLLED_SHUTDOWN:
            self._enter(State.SHUTTING_DOWN)
        else:
            self._on_failed(BrokerUnregistered(self._registration.broker_id, self.broker_epoch))

    def _advance(self, response: BrokerHeartbeatResponse) -> None:
        if self.state is State.STARTING and response.caught_up:
            self._enter(State.RECOVERY)
            self._due_at_once = self._due_at_once or self._ready_to_unfence()
        if self.state is State.RECOVERY and not response.fenced:
            self._enter(State.RUNNING)
        if self.state is State.PENDING_CONTROLLED_SHUTDOWN and response.should_shut_down:
            self._enter(State.SHUTTING_DOWN)

    def _retry(self) -> None:
        """Send again after an exponential backoff of at most a quarter of the session timeout,
        because a lost controller is usually replaced soon."""
        self._due_at_once = False
        longest_ms = self._settings.session_timeout_ms / 4
        delay_ms = min(BACKOFF_FIRST_MS * 2.0 ** min(self._failures, 10), longest_ms)
        self._failures += 1
        self._next(delay_ms * (1 + BACKOFF_JITTER * (2 * self._random.random() - 1)))
