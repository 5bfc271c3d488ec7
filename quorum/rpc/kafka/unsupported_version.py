"""The response to an ApiVersions request of a version that is not supported (KIP-511)."""

from __future__ import annotations

from quorate.quorum.protocol.apis import Api
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.api_versions import ApiVersion, ApiVersionsResponse
from quorate.quorum.protocol.wire import Message


def unsupported_api_versions(api: Api) -> Message:
    """Return the version 0 response that names the versions of `api`, for a client with a later
    version."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(
            ApiVersion(
                api_key=api.key, min_version=api.advertised_min, max_version=api.max_version
            ),
        ),
    )


def unsupported(api: Api, version: int) -> str:
    """Return the reason why a request of this version closes its connection."""
    return (
        f"{api.name} version {version} is not supported, only {api.min_version} to "
        f"{api.max_version}"
    )
