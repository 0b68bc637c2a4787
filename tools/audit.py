"""Name known vulnerabilities of what is pinned: govulncheck for Go modules, pip-audit for Python's lock.

`make audit`: exit code 1 where there is one, or where a program fails. Both ask a database; where that cannot
be reached, what was not audited is named, and is not called clean. GO_ADVISORIES names another copy of Go's
database (https://go.dev/doc/security/vuln/database, also file:///…), OSV_URL another service that answers as
https://api.osv.dev/v1/query does.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.common.units import counted

# What is looked at in each: where there is no code of ours, the program that it pins.
GO_MODULES = {
    "replay": ["./..."],
    "replay/k6": ["./..."],
    "benchmarks/go": ["./..."],
    "plimsoll/scenarios/k6": ["go.k6.io/k6"],
    "tests/real/operator": ["-test", "./..."],
    "tools/cyclonedx": ["github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"],
    "tools/gomutants": ["./..."],
    "tools/govulncheck": ["golang.org/x/vuln/cmd/govulncheck"],
    "tools/staticcheck": ["honnef.co/go/tools/cmd/staticcheck"],
}
LOCKS = ("uv.lock",)
_FOUND = 3  # govulncheck's exit code
# As Go and Python's requests say it.
_UNREACHABLE = r"dial tcp|no such host|i/o timeout|ConnectionError|Timeout"


@dataclass
class Audit:
    """What was found in one part; `not_asked` says why nothing was asked, or of which packages.

    Where the database was there, and the program failed, it `broke`.
    """

    part: str
    found: list[str] = field(default_factory=list)
    not_asked: str = ""
    asked: bool = True
    broke: bool = False

    def __str__(self) -> str:
        """Say it in a line, and a line for each vulnerability."""
        if self.found:
            said = counted(len(self.found), "known vulnerability", "known vulnerabilities")
        else:
            said = "no known vulnerability" if self.asked else "NOT AUDITED"
        if self.not_asked:
            said += f"; not audited: {self.not_asked}" if self.asked else f": {self.not_asked}"
        return "\n  ".join([f"{self.part}: {said}", *self.found])


def of_go(part: str, code: int, out: str, err: str) -> Audit:
    """Return what govulncheck reported on a module, by its exit code and its text. Pure."""
    if code == 0:
        return Audit(part)
    if code == _FOUND:
        starts = ("Vulnerability #", "Found in:", "Fixed in:")
        lines = [line.strip() for line in out.splitlines()]
        reports = "\n".join(line for line in lines if line.startswith(starts)).split("Vulnerability #")[1:]
        return Audit(part, [", ".join(one.split(": ", 1)[1].splitlines()) for one in reports])
    return _not_asked(part, err or out)


def of_python(part: str, out: str, err: str) -> Audit:
    """Return what pip-audit reported on a lock, by its JSON. Pure.

    A package that the database does not know is skipped by pip-audit, which then says that nothing is known.
    """
    try:
        packages: list[dict[str, Any]] = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return _not_asked(part, err)
    asked = [one for one in packages if "vulns" in one]
    skipped = [one["name"] for one in packages if "vulns" not in one]
    found = [
        f"{vuln['id']}, Found in: {one['name']}@{one['version']}, "
        f"Fixed in: {', '.join(vuln['fix_versions']) or 'none'}"
        for one in asked
        for vuln in one["vulns"]
    ]
    if not asked:
        return Audit(part, not_asked=f"the database has none of its {len(skipped)} packages", asked=False)
    return Audit(part, found, ", ".join(skipped))


def _not_asked(part: str, err: str) -> Audit:
    broke = re.search(_UNREACHABLE, err) is None
    return Audit(part, not_asked=_last(err), asked=False, broke=broke)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines or ["it printed nothing"])[-1]


def audits(go: str, environment: dict[str, str]) -> Iterator[Audit]:
    """Yield the audit of each Go module and each lock of the folder, as it is done."""
    program = Path(".cache/govulncheck").absolute()
    build = [go, "-C", "tools/govulncheck", "build", "-o", str(program), "golang.org/x/vuln/cmd/govulncheck"]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    advisories = environment.get("GO_ADVISORIES")
    words = [str(program), *(["-db", advisories] if advisories else [])]
    settings = environment
    if "/" in go:  # govulncheck asks the `go` of the PATH
        settings = {**environment, "PATH": f"{Path(go).parent.absolute()}:{environment['PATH']}"}
    for module, looked_at in GO_MODULES.items():
        if built.returncode != 0:
            yield Audit(module, not_asked=f"govulncheck: {_last(built.stderr)}", asked=False, broke=True)
            continue
        done = subprocess.run(
            [*words, *looked_at], cwd=module, env=settings, capture_output=True, text=True, check=False
        )
        yield of_go(module, done.returncode, done.stdout, done.stderr)
    service = environment.get("OSV_URL")
    audit = [str(Path(sys.executable).with_name("pip-audit")), "--disable-pip", "--require-hashes"]
    audit += ["--progress-spinner", "off", "--format", "json"]
    audit += ["--vulnerability-service", "osv", "--osv-url", service] if service else []
    for lock in LOCKS:
        pins = exported(lock) if lock == "uv.lock" else lock
        done = subprocess.run([*audit, "--requirement", pins], capture_output=True, text=True, check=False)
        yield of_python(lock, done.stdout, done.stderr)


def exported(lock: str) -> str:
    """Write all that uv.lock pins as pip-audit reads it, and return the name of that file."""
    pins = f".cache/{lock}"
    words = [str(Path(sys.executable).with_name("uv")), "export", "--quiet", "--frozen", "--no-emit-project"]
    subprocess.run([*words, "--all-extras", "--all-groups", "--output-file", pins], check=True)
    return pins


def main() -> int:
    """Audit the project, and print what is known."""
    no = False
    for audit in audits(os.environ.get("GO") or "go", dict(os.environ)):
        print(audit, flush=True)
        no = no or bool(audit.found) or audit.broke
    return int(no)


if __name__ == "__main__":
    sys.exit(main())
