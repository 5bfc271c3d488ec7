"""The rules of `promtool check metrics`, for machines without promtool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

CAMEL_CASE = re.compile("[a-z][A-Z]")
ABBREVIATIONS = {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"}
OTHER_UNITS = {
    *("minutes", "hours", "days", "weeks", "kelvins", "fahrenheit", "rankine", "inches", "yards"),
    *("miles", "bits", "calories", "pounds", "ounces"),
}
PREFIXES = (
    *("pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega"),
    *("mibi", "giga", "gibi", "tera", "tebi", "peta", "pebi"),
)
BASE_UNITS = (
    *("amperes", "bytes", "celsius", "grams", "joules", "kelvin", "meters", "metres", "seconds"),
    "volts",
)
PREFIXED_UNITS = {prefix + unit for prefix in PREFIXES for unit in BASE_UNITS}
OF_HISTOGRAMS = ("_bucket", "_count", "_sum")


def problems(text: str) -> list[str]:
    """Return the problems of a scrape, sorted, each with the name of its metric."""
    heads = Counter(line.split()[2] for line in text.splitlines() if line.startswith("# HELP "))
    twice = [f"{name}: has two HELP lines" for name, count in heads.items() if count > 1]
    families = text_string_to_metric_families(text)
    return sorted({*twice, *(each for family in families for each in problems_of(family))})


def problems_of(family: Metric) -> Iterator[str]:
    """Yield the problems of one metric."""
    counter = family.type == "counter"
    name = family.name + ("_total" if counter else "")
    words = name.split("_")
    if not family.documentation:
        yield f"{name}: no help text"
    if family.name.endswith("_total"):
        yield f"{name}: only a counter ends with _total"
    if CAMEL_CASE.search(name):
        yield f"{name}: camelCase"
    if ABBREVIATIONS.intersection(words):
        yield f"{name}: an abbreviated unit"
    if (OTHER_UNITS | PREFIXED_UNITS).intersection(words):
        yield f"{name}: not a base unit"
    if family.type in words:
        yield f"{name}: contains its type"
    if ":" in name:
        yield f"{name}: a colon"
    if family.type not in ("histogram", "summary") and name.endswith(OF_HISTOGRAMS):
        yield f"{name}: ends like a sample of a histogram"
    for label in {label for sample in family.samples for label in sample.labels}:
        if CAMEL_CASE.search(label):
            yield f"{name}: label {label} is camelCase"
        if (label == "le") > (family.type == "histogram"):
            yield f"{name}: label le"
    samples = Counter((each.name, *sorted(each.labels.items())) for each in family.samples)
    if max(samples.values(), default=1) > 1:
        yield f"{name}: a sample is there twice"
