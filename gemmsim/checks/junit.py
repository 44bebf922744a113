"""Writes outcomes of checks as JUnit XML, which most CI systems read: a suite a launch, a test case an expectation."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from gemmsim.checks.outcome import Checked

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(checked: Checked) -> str:
    counts = {"tests": str(len(checked.outcomes)), "failures": str(len(checked.failed)), "errors": "0", "skipped": "0"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": _plain(f"gemmsim check {checked.launch}"), **counts})
    for outcome in checked.outcomes:
        line = checked.line_of(outcome)
        where = {"file": _plain(line.file), "line": str(line.line)}
        names = {"classname": f"gemmsim.{outcome.rule.replace(' ', '-')}", "name": _plain(outcome.expected)}
        case = ElementTree.SubElement(suite, "testcase", {**names, **where, "time": "0"})
        if not outcome.ok:
            failure = ElementTree.SubElement(case, "failure", {"message": _plain(outcome.message)})
            failure.text = _plain("\n".join((f"{line.file}:{line.line}", outcome.message, *outcome.details)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _plain(text: str) -> str:
    """Return `text` without the characters that XML does not have."""
    return _NOT_IN_XML.sub("?", text)
