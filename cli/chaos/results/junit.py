"""Results as JUnit XML: one test suite for each run, and one test case for each check. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from quorate.cli.chaos.results.result import Result


def junit(results: Sequence[Result]) -> str:
    """Return the XML document, in the form that CI systems read.

    A check that is not good is a failure, with its text as the message. The time of a run is that
    of its first test case, because the checks are computed at the end."""
    root = Xml.Element("testsuites", counts([check.good for r in results for check in r.checks]))
    for result in results:
        suite = Xml.SubElement(
            root,
            "testsuite",
            {
                "name": f"quorate chaos {result.scenario}",
                "time": f"{result.duration_ms / 1000:.3f}",
                **counts([check.good for check in result.checks]),
            },
        )
        for number, check in enumerate(result.checks):
            case = Xml.SubElement(
                suite,
                "testcase",
                {
                    "classname": f"chaos.{result.scenario}",
                    "name": f"{number + 1} {check.name}",
                    "time": f"{0 if number else result.duration_ms / 1000:.3f}",
                },
            )
            if not check.good:
                Xml.SubElement(case, "failure", {"message": printable(check.text)})
    Xml.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
    )


def counts(good: Sequence[bool]) -> dict[str, str]:
    """Return the attributes that count checks and failures."""
    return {"tests": str(len(good)), "failures": str(len(good) - sum(good)), "errors": "0"}


def printable(text: str) -> str:
    """Return the text without the characters that XML 1.0 does not allow."""
    return "".join(each if each.isprintable() else " " for each in text)
