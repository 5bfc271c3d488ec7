"""The configs whose values may be shown, found for many records in one step."""

from __future__ import annotations

import numpy as np

from quorate.config.sensitive import is_secret
from quorate.quorum.analytics.spark.arrays import texts
from quorate.quorum.analytics.spark.vectors import Bytes, Ints, Mask, Spans


def public_configs(data: Bytes, resource_type: Ints, name: Spans) -> Mask:
    """Return a mask that is false for the configs whose values are secret.

    Each distinct config is looked up once, because there are few of them. Raise pa.ArrowInvalid if
    a name is not valid UTF-8."""
    encoded = texts(data, name).dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    codes = resource_type * len(names) + encoded.indices.to_numpy()
    pairs = ((code, *divmod(code, len(names))) for code in np.unique(codes).tolist())
    secret = [code for code, kind, index in pairs if is_secret(kind, names[index])]
    mask: Mask = ~np.isin(codes, secret)
    return mask
