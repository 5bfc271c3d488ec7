"""ApiVersions (18): the APIs and versions of a port, and the finalized features of the cluster
(KIP-584).

A request with an unknown later version never reaches this module: the server answers it in version
0 (KIP-511).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from quorate.quorum.rpc.kafka.server import RequestContext

NAMED_SINCE = 3
"""The first version in which a client names its software (KIP-511)."""
LEVEL_0_SINCE = 4
"""The first version whose clients accept a feature with the lowest level 0. Older clients fail to
decode it, so it is left out (KAFKA-17011, KAFKA-17492)."""
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of the cluster. `supported` maps a feature to its lowest and highest level.
    `epoch` is the metadata offset at which `finalized` holds."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]
    epoch: int


def advertised(api_keys: tuple[int, ...]) -> tuple[ApiVersion, ...]:
    """Return the version ranges of `api_keys` in ascending order of the keys."""
    return tuple(
        ApiVersion(
            api_key=key, min_version=APIS[key].advertised_min, max_version=APIS[key].max_version
        )
        for key in sorted(api_keys)
    )


def names_its_software(version: int, request: ApiVersionsRequest) -> bool:
    """Return False if a request of NAMED_SINCE or later does not name its software correctly."""
    names = (request.client_software_name, request.client_software_version)
    return version < NAMED_SINCE or all(map(SOFTWARE_NAME.fullmatch, names))


@dataclass(frozen=True, slots=True)
class ApiVersionsHandler:
    """Answers ApiVersions for one port. `api_keys` are the APIs that the port serves."""

    api_keys: tuple[int, ...]
    features: Callable[[], Features]

    def handle(self, context: RequestContext, request: ApiVersionsRequest) -> None:
        """Answer with the versions and features. From NAMED_SINCE on, answer INVALID_REQUEST if the
        client's software name or version is malformed or empty."""
        if not names_its_software(context.version, request):
            context.respond(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=()))
            return
        features = self.features()
        context.respond(
            ApiVersionsResponse(
                api_keys=advertised(self.api_keys),
                supported_features=tuple(
                    SupportedFeatureKey(name=name, min_version=low, max_version=high)
                    for name, (low, high) in sorted(features.supported.items())
                    if low > 0 or context.version >= LEVEL_0_SINCE
                ),
                finalized_features_epoch=features.epoch,
                finalized_features=tuple(
                    FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                    for name, level in sorted(features.finalized.items())
                ),
            )
        )
