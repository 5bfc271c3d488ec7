"""The authorizer of a node, as its configuration describes it."""

from __future__ import annotations

from collections.abc import Callable

from quorate.config.authorizer_keys import ALLOW_EVERYONE, CLASS_NAME, SUPER_USERS, principals
from quorate.config.node_config import NodeConfig
from quorate.quorum.authorization.authorizer import Authorizer, AuthorizerSettings
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.rpc.kafka.audit_log import AuditLog
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.seams import Clock


def node_authorizer(
    config: NodeConfig, clock: Clock, image: Callable[[], MetadataImage]
) -> PortAuthorizer | None:
    """Return the authorizer for the ports of one role of the node, or None if none is configured.

    `image` returns the image by which it decides."""
    if not config[CLASS_NAME]:
        return None
    settings = AuthorizerSettings(
        super_users=principals(config[SUPER_USERS]), allow_everyone=config[ALLOW_EVERYONE]
    )
    return PortAuthorizer(Authorizer(settings), image, AuditLog(clock))
