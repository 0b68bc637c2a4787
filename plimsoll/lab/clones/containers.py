"""Finds the containers and networks of a site, by label."""

import shlex

from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains

_LABELS = ("plimsoll.site", "plimsoll.backend")
_PROJECT = "com.docker.compose.project"
# Lists again: a container that somebody removed meanwhile is no failure.
_REMOVE = {
    "container": 'docker ps -aq --no-trunc --filter "id=$1" | xargs -r docker rm -f -v',
    "network": 'docker network ls -q --no-trunc --filter "id=$1" | xargs -r docker network rm',
}


async def containers(machine: Machine, name: str, folder: str, backend: str) -> list[Remains]:
    """Return the remains of the site called `name` on `folder`; on another folder it is somebody else's.

    Raises MachineError where Docker is installed and does not answer.
    """
    if (await machine.run(["sh", "-c", "command -v docker"], check=False)).status:
        return []
    real = (await machine.run(["realpath", "-m", "--", folder])).out.removesuffix("\n")
    shown = "\t".join(["{{.ID}}", "{{.Names}}", *(f'{{{{.Label "{label}"}}}}' for label in _LABELS)])
    filtered = ["--filter", f"label={_LABELS[0]}={name}"]
    listed = await machine.run(["docker", "ps", "-a", "--no-trunc", *filtered, "--format", shown])
    rows = [line.split("\t") for line in listed.out.splitlines()]
    rows = [row for row in rows if len(row) == 4 and row[2] == name]
    found = [
        Remains(f"the container {row[1]}", backend, (_removal("container", row[0]),))
        for row in rows
        if row[3] == real
    ]
    if len(found) < len(rows):
        return found
    shown = f'{{{{.ID}}}}\t{{{{.Name}}}}\t{{{{.Label "{_PROJECT}"}}}}'
    filtered = ["--filter", f"label={_PROJECT}={name}"]
    listed = await machine.run(["docker", "network", "ls", "--no-trunc", *filtered, "--format", shown])
    rows = [line.split("\t") for line in listed.out.splitlines()]
    return [
        *found,
        *(
            Remains(f"the network {row[1]}", backend, (_removal("network", row[0]),))
            for row in rows
            if len(row) == 3 and row[2] == name
        ),
    ]


def _removal(kind: str, id_: str) -> Command:
    words = ("sh", "-c", _REMOVE[kind], "sh", id_)
    return Command(f"remove the {kind} {shlex.quote(id_[:12])}", words, timeout_s=180)
