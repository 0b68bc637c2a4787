"""JUnit XML, as Jenkins, GitLab and others read it. Every text is hostile until it is in here."""

import re
import xml.etree.ElementTree as ET
from typing import Literal

from plimsoll.common.hostile import printable

Kind = Literal["failure", "error", "skipped"]

# What XML 1.0 cannot hold, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS: tuple[Kind, ...] = ("failure", "error", "skipped")


class JUnit:
    """A document of suites; cases are added to its last one. A case without an outcome has passed."""

    def __init__(self, name: str) -> None:
        self._root = ET.Element("testsuites", name=name)
        self._class = ""

    def suite(self, name: str, classname: str, timestamp: str | None = None) -> None:
        """Begin a suite, whose cases are of the class `plimsoll.classname`."""
        suite = ET.SubElement(self._root, "testsuite", name=_text(name))
        if timestamp is not None:
            suite.set("timestamp", timestamp)
        suite.set("hostname", "localhost")
        self._class = f"plimsoll.{classname.replace('.', '_')}"

    def passed(self, name: str, says: str = "") -> None:
        """Add a case that passed, and what it prints."""
        case = self._case(name)
        if says:
            ET.SubElement(case, "system-out").text = _text(says)

    def outcome(self, name: str, kind: Kind, what: str, message: str) -> None:
        """Add a case that did not pass; one that was skipped has no type."""
        element = ET.SubElement(self._case(name), kind, message=_text(message))
        if kind != "skipped":
            element.set("type", what)
            element.text = _text(message)

    def document(self) -> bytes:
        """Return it, UTF-8, with its counts."""
        for suite in self._root:
            suite.set("tests", str(len(suite.findall("testcase"))))
            for kind in _KINDS:
                plural = kind if kind == "skipped" else f"{kind}s"
                suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
            suite.set("time", "0")
        for name in ("tests", "failures", "errors"):
            self._root.set(name, str(sum(int(suite.get(name, "0")) for suite in self._root)))
        return bytes(ET.tostring(self._root, encoding="utf-8", xml_declaration=True)) + b"\n"

    def _case(self, name: str) -> ET.Element:
        return ET.SubElement(
            self._root[-1], "testcase", name=_text(name), classname=_text(self._class), time="0"
        )


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", printable(text, 2000))
