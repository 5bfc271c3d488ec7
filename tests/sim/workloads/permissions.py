"""Changes of a config of one topic by users, until an acknowledged DENY forbids them.

An administrator permits one user after the other to change the config, and then denies it. The
controllers decide, and the active one has replayed every acknowledged record. Until the DENY, the
user is therefore never refused. After it, no request of the user has an effect, whichever
controller is active. Each round has a user of its own, because a request of the administrator that
the network holds back may arrive in a later round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.principal import ANONYMOUS, USER, Principal
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import PeerIdentity
from tests.sim.clients.clients import Client, Unreachable
from tests.sim.workloads.workload import Workload, require

NAME, KEY = "vault", "retention.ms"
FIRST_VALUE = 10**9
ATTEMPTS = 4
"""The number of changes that a denied user tries in a round."""
ATTEMPT_PAUSE_S = 0.2
CLEAN_ONE_IN = 2
"""One of so many rounds ends with the removal of its ACLs."""
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Permissions(Workload):
    name_of = "permissions"
    keys: ClassVar[Mapping[str, str]] = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"{ANONYMOUS};User:root",
    }

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._administrator = Client(stage.cluster, "permissions administrator")
        stage.clients.append(self._administrator)
        self._round = 0
        self._value = FIRST_VALUE
        self.forbidden: set[str] = set()
        """The values in requests that a denied user has sent."""
        self.denied: list[str] = []
        """The users whose acknowledged ACLs are not removed."""

    async def prepare(self) -> None:
        while NAME not in self.topics:
            await self.create(NAME, 1)
            await self.refresh()

    async def step(self) -> None:
        self._round += 1
        user = Principal(USER, f"user-{self._round}")
        self._become(user)
        if not await self._acknowledged(user, PermissionType.ALLOW):
            return
        error, _ = await self._change()
        require(error != DENIED, f"{user} was refused what an acknowledged ACL permits")
        self.effects += error == ErrorCode.NONE
        if not await self._acknowledged(user, PermissionType.DENY):
            return
        for _ in range(ATTEMPTS):
            error, value = await self._change()
            self.forbidden.add(value)
            require(error != ErrorCode.NONE, f"{user} was denied, and changed a config")
            if error == DENIED:
                self.count("refusals")
            self._require_no_effect()
            await self.pause(ATTEMPT_PAUSE_S)
        if self.random.randrange(0, CLEAN_ONE_IN):
            self.denied.append(str(user))
        else:
            await self._administrate(DeleteAclsRequest(filters=(all_of(user),)))

    def _become(self, user: Principal) -> None:
        """Let the next connections of this client have the identity of the user."""
        self.close()
        self._links.clear()
        self.host.identity = PeerIdentity(user, verified=True)

    async def _change(self) -> tuple[int | None, str]:
        """Set the config to a new value. Return the error, or None without an answer."""
        self._value += 1
        value = str(self._value)
        config = IncrementalAlterableConfig(name=KEY, config_operation=0, value=value)
        resource = IncrementalAlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=NAME, configs=(config,)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        try:
            answer = await self.ask_any(request)
        except Unreachable:
            return None, value
        return answer.responses[0].error_code, value

    async def _acknowledged(self, user: Principal, permission: PermissionType) -> bool:
        """Create an ACL. Return True if the cluster has acknowledged it."""
        creation = AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=NAME,
            resource_pattern_type=PatternType.LITERAL,
            principal=str(user),
            host="*",
            operation=Operation.ALTER_CONFIGS,
            permission_type=permission,
        )
        answer = await self._administrate(CreateAclsRequest(creations=(creation,)))
        done = answer is not None and answer.results[0].error_code == ErrorCode.NONE
        if done:
            self.count(f"acknowledged {permission.name}")
        return done

    async def _administrate(self, request: Message) -> Any:
        """Return the response to a request of the administrator, or None without an answer."""

        async def asked() -> Any:
            try:
                return await self._administrator.ask_any(request)
            except Unreachable:
                return None

        return await self._administrator.spawn(asked())

    def _require_no_effect(self) -> None:
        value = self.stage.cluster.newest_image().config(TOPIC_RESOURCE, NAME).get(KEY)
        require(value not in self.forbidden, f"a denied user has set {KEY}={value}")

    async def check(self) -> None:
        self._require_no_effect()
        acls = set(self.stage.cluster.newest_image().acls.by_id.values())
        for user in self.denied:
            found = {each.permission_type for each in acls if each.principal == user}
            wanted = {PermissionType.ALLOW, PermissionType.DENY}
            require(found == wanted, f"{user}: an acknowledged ACL is gone: {found}")


def all_of(user: Principal) -> DeleteAclsFilter:
    """Return the filter of all ACLs of a user."""
    return DeleteAclsFilter(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=str(user),
        host_filter=None,
        operation=Operation.ANY,
        permission_type=PermissionType.ANY,
    )
