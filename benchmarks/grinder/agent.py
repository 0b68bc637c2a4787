# mypy: ignore-errors
"""Start The Grinder's agent under Jython, on a Java that it does not know.

Grinder 3.11 wants "Java 1.6 or later" and reads 17.0.1 as 17.0, whose second number is below 6. Everything
else in it works, so the agent (not the worker, which never asks) is told a version that it can read.
"""

import sys

from java.lang import System

System.setProperty("java.version", "1.8.0")
from net.grinder import Grinder  # noqa: E402 (it reads the version when loaded)

Grinder.main(sys.argv[1:])
