"""What a node answers to plain HTTP GETs on its listening port: health, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpResponse:
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


HttpHandler = Callable[[Mapping[str, str]], HttpResponse]  # given the query parameters
Routes = Mapping[str, HttpHandler]  # by path
