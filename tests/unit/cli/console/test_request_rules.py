"""The requests that the console refuses."""

from __future__ import annotations

import pytest

from quorate.cli.console.access.request_rules import (
    TOKEN_HEADER,
    RequestRefused,
    check_sender,
    check_token,
)
from quorate.config.listeners import is_loopback

OWN = {"Host": "127.0.0.1:8787"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"Host": "evil.example"}, 421),
        ({**OWN, "Origin": "http://evil.example"}, 403),
        ({**OWN, "Origin": "http://127.0.0.1:9999"}, 403),
        ({**OWN, "Origin": "null"}, 403),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**OWN, "Sec-Fetch-Site": "same-site"}, 403),
    ],
    ids=str,
)
def test_a_request_of_another_site_is_refused(headers: dict[str, str], status: int) -> None:
    with pytest.raises(RequestRefused) as refused:
        check_sender(headers, "127.0.0.1")
    assert refused.value.status == status


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"Host": "localhost:8787"},
        {"Host": "Console.example:8787"},
        {**OWN, "Origin": "http://127.0.0.1:8787", "Sec-Fetch-Site": "same-origin"},
        {**OWN, "Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
def test_a_request_of_the_page_is_accepted(headers: dict[str, str]) -> None:
    check_sender(headers, "console.example")


@pytest.mark.parametrize("given", [{}, {TOKEN_HEADER: "wrong"}, {TOKEN_HEADER: "é"}], ids=str)
def test_a_request_without_the_token_is_refused(given: dict[str, str]) -> None:
    check_token({TOKEN_HEADER: "secret"}, "secret")
    with pytest.raises(RequestRefused):
        check_token(given, "secret")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("b1", False)],
)
def test_loopback_addresses(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
