"""The certificates of brokers in `quorate status`: how long they are valid.

The command reads a certificate from its own connection, so that it needs no permission and sees
what clients see."""

from __future__ import annotations

import time
from collections.abc import Iterable

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused

DAY_S = 86_400
SOON_DAYS = 30
"""A certificate with fewer days left is marked, because it must be renewed."""


def certificate_texts(
    admin: Admin, broker_ids: Iterable[int], now_s: float | None = None
) -> dict[int, str]:
    """Return the text about the certificate of each broker that shows one.

    `now_s` is the time in seconds since 1970 UTC, by default the present. The call connects to each
    broker."""
    now_s = time.time() if now_s is None else now_s
    found = {}
    for each in broker_ids:
        try:
            end_s = admin.certificate_end_s(each)
        except Refused as error:
            found[each] = error.message
            continue
        if end_s is not None:
            found[each] = validity((end_s - now_s) / DAY_S)
    return found


def validity(days: float) -> str:
    """Return the text about a certificate that is valid for `days` more days."""
    soon = "; renew it" if days < SOON_DAYS else ""
    return f"certificate valid for {max(0, int(days))} days{soon}"
