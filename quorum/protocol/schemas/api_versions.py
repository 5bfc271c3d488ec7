"""The ApiVersions messages (KIP-35): the APIs that a node serves, and the features of its cluster
(KIP-584).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import SOFTWARE_NAME
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest(Message):
    """Asks for the served APIs. The client names its software since version 3 (KIP-511)."""

    API_KEY: ClassVar[int] = 18
    client_software_name: str = wire("string", versions="3+", bound=SOFTWARE_NAME, default="")
    client_software_version: str = wire("string", versions="3+", bound=SOFTWARE_NAME, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    """The version range of one API."""

    api_key: int = wire("int16")
    min_version: int = wire("int16")
    max_version: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeatureKey:
    """The levels of a feature that the node supports."""

    name: str = wire("string", versions="3+", default="")
    min_version: int = wire("int16", versions="3+", default=0)
    max_version: int = wire("int16", versions="3+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeatureKey:
    """The levels of a feature that the cluster has finalized."""

    name: str = wire("string", versions="3+", default="")
    max_version_level: int = wire("int16", versions="3+", default=0)
    min_version_level: int = wire("int16", versions="3+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse(Message):
    """The served APIs and the features. `finalized_features_epoch` is -1 if the node does not know
    them."""

    API_KEY: ClassVar[int] = 18
    error_code: int = wire("int16", default=0)
    api_keys: tuple[ApiVersion, ...] = wire()
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    supported_features: tuple[SupportedFeatureKey, ...] = wire(versions="3+", tag=0, default=())
    finalized_features_epoch: int = wire("int64", versions="3+", tag=1, default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = wire(versions="3+", tag=2, default=())
    zk_migration_ready: bool = wire("bool", versions="3+", tag=3, default=False)
