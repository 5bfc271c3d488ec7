"""Results as JUnit XML: one test suite for each run, and one test case for each check. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from quorate.cli.chaos.results.outcome import NotRun, Outcome, results_of


def junit(outcomes: Sequence[Outcome]) -> str:
    """Return the XML document, in the form that CI systems read.

    A check that is not good is a failure, with its text as the message. A check that is not judged,
    and a scenario that was refused, are skipped. The time of a run is that of its first test case,
    because the checks are computed at the end."""
    root = Xml.Element("testsuites", counts(outcomes))
    for refused in (each for each in outcomes if isinstance(each, NotRun)):
        name, of_class = f"quorate chaos {refused.scenario}", f"chaos.{refused.scenario}"
        suite = Xml.SubElement(root, "testsuite", {"name": name, **counts([refused])})
        case = Xml.SubElement(suite, "testcase", {"classname": of_class, "name": "run"})
        Xml.SubElement(case, "skipped", {"message": printable(f"refused: {refused.reason}")})
    for result in results_of(outcomes):
        suite = Xml.SubElement(
            root,
            "testsuite",
            {
                "name": f"quorate chaos {result.scenario}",
                "time": f"{result.duration_ms / 1000:.3f}",
                **counts([result]),
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
        for each in result.not_judged:
            case = Xml.SubElement(
                suite, "testcase", {"classname": f"chaos.{result.scenario}", "name": each.name}
            )
            Xml.SubElement(case, "skipped", {"message": f"not judged, because {each.reason}"})
    Xml.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
    )


def counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the attributes that count checks, failures, and what is skipped."""
    results = results_of(outcomes)
    good = [check.good for result in results for check in result.checks]
    skipped = sum(len(result.not_judged) for result in results) + len(outcomes) - len(results)
    return {
        "tests": str(len(good) + skipped),
        "failures": str(len(good) - sum(good)),
        "errors": "0",
        "skipped": str(skipped),
    }


def printable(text: str) -> str:
    """Return the text without the characters that XML 1.0 does not allow."""
    return "".join(each if each.isprintable() else " " for each in text)
