"""The locks: written for the lowest Python that pyproject.toml admits, and checked against it offline.

`make locks` writes them; `make lint` runs the check in the virtual environment made from them.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name as canonical

RUNTIME = Path("requirements.lock")
DEV = Path("requirements-dev.lock")
REGRESS = Path("requirements-regress.lock")
# What `make dist` installs with, and what writes its bills of materials.
RELEASES = {Path("tools/packages/pip.lock"): "pip", Path("tools/packages/bom.lock"): "cyclonedx-bom"}
LOCKING = Path(".cache/locks")  # the virtual environment with uv that `make locks` makes


@dataclass(frozen=True)
class Dist:
    """The metadata of an installed package: its version, the Pythons it runs on, what it needs."""

    version: str
    pythons: str = ""
    needs: list[str] = field(default_factory=list)


def pins(lock: str) -> dict[str, list[Requirement]]:
    """Return the pinned requirements of a lock's text by package; markers choose where there are several."""
    found: dict[str, list[Requirement]] = {}
    for line in re.findall(r"^[A-Za-z0-9][^\\\n]*==[^\\\n]*", lock, re.MULTILINE):
        requirement = Requirement(line.strip())
        found.setdefault(canonical(requirement.name), []).append(requirement)
    return found


def versions(pinned: Mapping[str, list[Requirement]], name: str) -> set[str]:
    """Return the versions that a package is pinned to, whatever the markers."""
    return {str(pin.specifier) for pin in pinned.get(name, [])}


def environment(python: str, extra: str = "") -> dict[str, str]:
    """Return the markers' environment of this machine under the given full Python version ("3.11.0")."""
    short = ".".join(python.split(".")[:2])
    return {
        **cast("dict[str, str]", default_environment()),
        "python_full_version": python,
        "python_version": short,
        "extra": extra,
    }


def lowest(requires_python: str) -> str:
    """Return the lowest full version that ">=3.11" admits: "3.11.0"."""
    bound = re.fullmatch(r">=\s*(\d+\.\d+)(\.\d+)?", requires_python)
    if bound is None:
        raise ValueError(f"requires-python is {requires_python!r}: write a plain lower bound, as in >=3.11")
    return bound[1] + (bound[2] or ".0")


def problems(wanted: Iterable[str], lock: str, installed: Mapping[str, Dist], python: str) -> Iterator[str]:
    """Yield a sentence for each reason why the lock does not install what is wanted under this Python."""
    pinned = {
        name: str(pin.specifier).removeprefix("==")
        for name, pins_of_it in pins(lock).items()
        for pin in pins_of_it
        if pin.marker is None or pin.marker.evaluate(environment(python))
    }
    queue = [(Requirement(text), "", "pyproject.toml") for text in wanted]
    seen = set()
    while queue:
        need, extra, asker = queue.pop()
        if need.marker is not None and not need.marker.evaluate(environment(python, extra)):
            continue
        name = canonical(need.name)
        if name not in pinned:
            yield f"{asker} needs {need.name} under Python {python}, which is not locked"
            continue
        version = pinned[name]
        if not need.specifier.contains(version, prereleases=True):
            yield f"{asker} needs {need.name}{need.specifier}, but {version} is locked"
        dist = installed.get(name)
        if dist is None or dist.version != version:
            continue  # chosen for another Python than this one: an install there tells
        if name not in seen and not SpecifierSet(dist.pythons).contains(python):
            yield f"{name}=={version} needs Python {dist.pythons}, and {python} is promised"
        for more in {"", *need.extras}:
            if (name, more) not in seen:
                seen.update({name, (name, more)})
                queue += [(Requirement(text), more, name) for text in dist.needs]


def installed_dists() -> dict[str, Dist]:
    """Return the packages of the virtual environment that runs this."""
    return {
        canonical(dist.name): Dist(dist.version, dist.metadata["Requires-Python"] or "", dist.requires or [])
        for dist in metadata.distributions()
    }


def check(project: Mapping[str, Any]) -> list[str]:
    """Return the problems with the locks, one sentence each."""
    about, installed = project["project"], installed_dists()
    extras, python = about["optional-dependencies"], lowest(about["requires-python"])
    wanted = [*about["dependencies"], *project["build-system"]["requires"]]
    alone = {name: Dist(dist.version, dist.pythons) for name, dist in installed.items()}
    found = [
        f"{path}: {problem}"
        for path, roots, dists in (
            (RUNTIME, wanted, installed),
            (DEV, [*wanted, *extras["dev"]], installed),
            (REGRESS, extras["regress"], alone),  # is installed with --no-deps
        )
        for problem in problems(roots, path.read_text(), dists, python)
    ]
    runtime, dev = pins(RUNTIME.read_text()), pins(DEV.read_text())
    found += [
        f"{DEV}: {n} is not as in {RUNTIME}" for n in runtime if versions(dev, n) != versions(runtime, n)
    ]
    return sorted(set(found))


def write(project: Mapping[str, Any], options: list[str]) -> None:
    """Write all locks anew with uv and its options; without `--upgrade`, pins that still fit stay."""
    about = project["project"]
    resolve = [f"{LOCKING}/bin/uv", "pip", "compile", "-q", "--universal", "--generate-hashes", "--no-header"]
    resolve += ["--fork-strategy", "fewest", "--python-version", lowest(about["requires-python"]), *options]
    build, extra = LOCKING / "build.in", LOCKING / "regress.in"
    build.write_text("\n".join(project["build-system"]["requires"]))
    extra.write_text("\n".join(about["optional-dependencies"]["regress"]))
    sources = ["pyproject.toml", str(build)]
    subprocess.run([*resolve, *sources, "-o", str(RUNTIME)], check=True)
    subprocess.run([*resolve, *sources, "--extra", "dev", "-c", str(RUNTIME), "-o", str(DEV)], check=True)
    introduction = "".join(takewhile(lambda line: line.startswith("#"), REGRESS.open()))
    subprocess.run([*resolve, "--no-deps", "--no-annotate", str(extra), "-o", str(REGRESS)], check=True)
    REGRESS.write_text(introduction + REGRESS.read_text())
    for lock, package in RELEASES.items():
        wanted = LOCKING / "release.in"
        wanted.write_text(package)
        subprocess.run([*resolve, "--no-annotate", str(wanted), "-o", str(lock)], check=True)


def main() -> None:
    """Run `locks.py check` or `locks.py write [OPTIONS OF uv pip compile]` in the project's folder."""
    project = tomllib.loads(Path("pyproject.toml").read_text())
    if sys.argv[1:2] == ["write"]:
        write(project, sys.argv[2:])
    elif found := check(project):
        sys.exit("\n".join([*found, "Write them anew: make locks"]))


if __name__ == "__main__":
    main()
