"""Logins of users with SCRAM, while an administrator adds and removes their credentials.

A broker that has replayed an acknowledged credential admits its user. A broker that has replayed an
acknowledged removal serves the user no more, not even on open connections. Each user has one
credential for all time, because a request of the administrator that the network holds back may
arrive late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.sasl.scram_client import ScramClient
from quorate.quorum.sasl.scram_mechanisms import BY_NAME
from quorate.quorum.seams import Address, TransportError
from tests.sim.clients.clients import CONNECT_TIMEOUT_MS, REQUEST_TIMEOUT_MS, Unreachable
from tests.sim.workloads.workload import BACKOFF_S, Workload, require
from tests.sim.world.cluster import Machine
from tests.sim.world.shape import SASL_PORT

MECHANISM = BY_NAME["SCRAM-SHA-256"]
ITERATIONS, SALT, PASSWORD = 4096, b"salt of the simulation", "pencil"
SALTED = MECHANISM.salted_password(PASSWORD, SALT, ITERATIONS)
MAX_SESSIONS = 6
MIN_USERS = 3
REMOVED_ONE_IN = 2
"""One of so many steps removes a user."""
REAUTH_MS = 1500
"""The session of a user ends after this time, because these clients do not authenticate again."""
REPLAY_S = 0.5
"""A broker that has replayed the removal of a credential closes its connections within this
time."""
CATCH_UP_S = 5.0
"""A broker whose link to the leader was broken has replayed all credentials within this time."""
LATE_S = 0.5


@dataclass(slots=True)
class Session:
    """An open connection of a user.

    `since_s` is the time of its authentication. At `gone_since_s` the broker was last seen with the
    credential."""

    user: str
    broker_id: int
    client: KafkaClient
    since_s: float
    gone_since_s: float


class Credentials(Workload):
    name_of = "credentials"
    keys: ClassVar[Mapping[str, str]] = {"connections.max.reauth.ms": str(REAUTH_MS)}
    logs_in = True

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._number = 0
        self.users: list[str] = []
        """The users with an acknowledged credential that is not removed."""
        self.removed: list[str] = []
        """The users whose removal is acknowledged."""
        self.sessions: list[Session] = []

    async def step(self) -> None:
        self._number += 1
        user = f"user-{self._number}"
        if len(self.users) < MAX_SESSIONS and await self._alter(upsertion=user):
            self.users.append(user)
            self.count("credentials")
        if self.users and len(self.sessions) < MAX_SESSIONS:
            await self._begin_session(self.random.choice(self.users))
        await self._use_sessions()
        if len(self.users) > MIN_USERS and self.random.randrange(0, REMOVED_ONE_IN) == 0:
            user = self.users.pop(self.random.randrange(0, len(self.users)))
            if await self._alter(deletion=user):
                self.removed.append(user)
                self.count("removals")
        await self._use_sessions()

    async def _alter(self, *, upsertion: str = "", deletion: str = "") -> bool:
        """Add or remove a credential. Return True if the cluster has acknowledged it."""
        added = ScramCredentialUpsertion(
            name=upsertion,
            mechanism=MECHANISM.number,
            iterations=ITERATIONS,
            salt=SALT,
            salted_password=SALTED,
        )
        gone = ScramCredentialDeletion(name=deletion, mechanism=MECHANISM.number)
        request = AlterUserScramCredentialsRequest(
            deletions=(gone,) if deletion else (), upsertions=(added,) if upsertion else ()
        )
        try:
            answer = await self.ask_any(request)
        except Unreachable:
            return False
        return bool(answer.results[0].error_code == ErrorCode.NONE)

    async def _log_in(self, user: str, broker_id: int) -> KafkaClient | None:
        """Return an authenticated connection, or None if the broker refused the user. Raise
        Unreachable."""
        address = Address(self._broker(broker_id).name, SASL_PORT)
        settings = ClientSettings(
            request_timeout_ms=REQUEST_TIMEOUT_MS, connect_timeout_ms=CONNECT_TIMEOUT_MS
        )
        scram = ScramClient(MECHANISM, user, PASSWORD, f"nonce{self.random.getrandbits(64)}")
        try:
            client = await KafkaClient.connect(self._transport, self._clock, address, settings)
            await client.call(SaslHandshakeRequest(mechanism=MECHANISM.name), 1)
            first: Any = await client.call(SaslAuthenticateRequest(auth_bytes=scram.first()), 2)
            final = scram.final(bytes(first.auth_bytes))
            last: Any = await client.call(SaslAuthenticateRequest(auth_bytes=final), 2)
        except (ClientError, TransportError) as error:
            raise Unreachable(str(error)) from error
        if last.error_code != ErrorCode.NONE:
            client.close()
            return None
        return client

    async def _begin_session(self, user: str) -> None:
        broker_id = self.random.choice(sorted(self._addresses))
        client = await self._log_in(user, broker_id)
        if client is None:
            self.count("too early")
            return
        self.count("logins")
        now_s = self.stage.loop.time()
        self.sessions.append(Session(user, broker_id, client, now_s, now_s))

    async def _use_sessions(self) -> None:
        """Send a request on each session. No broker may serve it after the end of the session, or
        after it has replayed the removal of the credential."""
        for session in list(self.sessions):
            gone = self._gone_for_s(session) > REPLAY_S
            ended_s = session.since_s + REAUTH_MS / 1000 + LATE_S
            ended = self.stage.loop.time() > ended_s
            try:
                await session.client.call(ListGroupsRequest(), 3)
            except ClientError:
                self.sessions.remove(session)
                self.count("closed by removals" if session.user in self.removed else "other ends")
                continue
            where = f"broker {session.broker_id} served {session.user}"
            require(not gone, f"{where} after it had replayed the removal of the credential")
            require(not ended, f"{where} after the end of the session")

    def _broker(self, broker_id: int) -> Machine:
        return next(each for each in self.stage.cluster.brokers if each.id == broker_id)

    def _gone_for_s(self, session: Session) -> float:
        """Return the time for which the broker has had no credential of the user."""
        process = self._broker(session.broker_id).process
        if process is None or process.host.paused:
            return 0.0
        now_s = self.stage.loop.time()
        if (session.user, MECHANISM.number) in process.core.image.scram_credentials:
            session.gone_since_s = now_s
        return now_s - session.gone_since_s

    async def check(self) -> None:
        for machine in self.stage.cluster.brokers:
            for users, expected in ((self.users, True), (self.removed, False)):
                for user in users[-2:]:
                    until_s = self.stage.loop.time() + CATCH_UP_S
                    while await self._is_admitted(user, machine.id) != expected:
                        require(
                            self.stage.loop.time() < until_s,
                            f"{machine.name}: {user} is {'not ' * expected}admitted",
                        )
                        await self.pause(BACKOFF_S)

    async def _is_admitted(self, user: str, broker_id: int) -> bool:
        """Return True if the user can log in. A broker that found damage restarts."""
        while True:
            try:
                return await self._log_in(user, broker_id) is not None
            except Unreachable:
                await self.pause(BACKOFF_S)
