"""Prometheus' text exposition format 0.0.4: samples with labels, written down. Pure.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from plimsoll.common.hostile import printable

Labels = Mapping[str, str]


@dataclass
class MetricFamily:
    """All samples of one name. Those that have no value are left out."""

    name: str
    help: str
    kind: Literal["gauge", "histogram"] = "gauge"
    samples: list[str] = field(default_factory=list)

    def add(self, value: float | None, labels: Labels, suffix: str = "") -> None:
        """Add a sample."""
        if value is not None:
            shown = ",".join(f'{name}="{_label(text)}"' for name, text in labels.items())
            self.samples.append(f"{self.name}{suffix}{{{shown}}} {_number(value)}\n")

    def text(self) -> str:
        """Return the metric's lines; none where it has no sample."""
        if not self.samples:
            return ""
        head = f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"
        return head + "".join(self.samples)


def _label(text: str) -> str:
    """Return a label's value: control characters spelled out, then the format's own three escaped."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
