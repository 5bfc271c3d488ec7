"""The UpdateFeatures messages (KIP-584, KIP-778): changes of the finalized feature levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    ERROR_TEXT,
    FEATURE_NAME,
    FEATURES,
    MAX_CONTROLLER_ELEMENTS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdateKey:
    """The new level of one feature. `upgrade_type` is 1 for upgrade, 2 for safe and 3 for unsafe
    downgrade."""

    feature: str = wire("string", bound=FEATURE_NAME)
    max_version_level: int = wire("int16")
    allow_downgrade: bool = wire("bool", versions="0", default=False)
    upgrade_type: int = wire("int8", versions="1+", default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesRequest(Message):
    """Changes feature levels. With `validate_only` nothing changes."""

    API_KEY: ClassVar[int] = 57
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    timeout_ms: int = wire("int32", default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = wire(count=FEATURES)
    validate_only: bool = wire("bool", versions="1+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatableFeatureResult:
    """The outcome for one feature, before version 2."""

    feature: str = wire("string")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponse(Message):
    """The outcome for all features."""

    API_KEY: ClassVar[int] = 57
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    results: tuple[UpdatableFeatureResult, ...] = wire(versions="0-1", default=())
