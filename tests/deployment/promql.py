"""The metrics and the labels that a PromQL expression names. It covers the part of the language
that our rules and dashboards use."""

from __future__ import annotations

import re

WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\w)(?!\s*\()")
MATCHER = re.compile(r'(\w+)="([^"]*)"')


def metrics(expression: str) -> set[str]:
    """Return the names of the metrics in `expression`."""
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", expression)
    text = GROUPING.sub("", text)
    return {each for each in NAME.findall(text) if each not in WORDS}


def matchers(expression: str) -> set[tuple[str, str, str]]:
    """Return (metric, label, value) of each matcher in `expression`, all of which compare for
    equality."""
    return {
        (name, label, value)
        for name, selector in SELECTOR.findall(expression)
        for label, value in MATCHER.findall(selector)
    }


def labels(expression: str) -> set[str]:
    """Return the labels by which `expression` groups or joins."""
    lists = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression)
    return {each.strip() for each in ",".join(lists).split(",")} - {""}
