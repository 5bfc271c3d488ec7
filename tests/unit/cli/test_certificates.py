"""The texts of `quorate status` about certificates."""

from __future__ import annotations

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.client_properties import ClientSecurity, client_security
from quorate.cli.client.errors import Refused
from quorate.cli.status.certificates import DAY_S, certificate_texts, validity


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (365.9, "certificate valid for 365 days"),
        (30.0, "certificate valid for 30 days"),
        (29.9, "certificate valid for 29 days; renew it"),
        (0.5, "certificate valid for 0 days; renew it"),
        (-1.0, "certificate valid for 0 days; renew it"),
    ],
)
def test_the_days_that_are_left(days: float, text: str) -> None:
    assert validity(days) == text


class Brokers(Admin):
    """Brokers whose certificates end at these times. A refused one is an exception."""

    def __init__(self, ends: dict[int, float | Refused | None]) -> None:
        self._ends = ends

    def certificate_end_s(self, node_id: int) -> float | None:
        end = self._ends[node_id]
        if isinstance(end, Refused):
            raise end
        return end


def test_a_refused_certificate_is_shown_and_the_others_too() -> None:
    admin = Brokers({4: 40 * DAY_S, 5: Refused("TLS failed: certificate has expired"), 6: None})
    assert certificate_texts(admin, [4, 5, 6], now_s=0) == {
        4: "certificate valid for 40 days",
        5: "TLS failed: certificate has expired",
    }


def test_without_tls_no_broker_is_asked() -> None:
    security = client_security({})
    assert security == ClientSecurity()
    admin = Admin(AdminSettings(servers=(("127.0.0.1", 1),), security=security))
    assert admin.certificate_end_s(4) is None
