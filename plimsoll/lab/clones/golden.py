"""The site that all clones are copies of: filled by site/up, its containers found by their labels."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from plimsoll.lab.disks.disk import PlainFolder
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.steps.step import Command, Remains, Step

_OF_THE_FILLING = {"size", "seed", "upgrade_zip"}  # a filled folder has them already
_ABOUT_BYTES = {"small": 1_400_000_000, "medium": 5_500_000_000}  # docs/site.md; large goes by the memory
_OF_MEMORY = 1.25
_FILL_S = 4 * 3600.0  # includes building the image; a large site is larger than memory
_DOWN_S = 300.0
_LABELS = ("plimsoll.site", "plimsoll.backend")
_PROJECT = "com.docker.compose.project"


class SiteSettings(StrictModel):
    """The site that is cloned; docs/site.md says what is in it."""

    size: Literal["small", "medium", "large"] = Field(
        "small", description="Size of the site: small, medium or large."
    )
    seed: int = Field(
        1,
        ge=0,
        le=1 << 31,
        description="Seed of the content. Another number makes another site of the same size.",
    )
    editor: Literal["block", "classic"] = Field("block", description="WordPress's editor: block or classic.")
    upgrade_zip: PlainFolder | None = Field(
        None,
        description="Zip file, on the backend's machine, of the WordPress version to offer the site as an "
        "upgrade.",
    )
    data: PlainFolder | None = Field(
        None, description="Folder that `make site` filled. The lab copies it instead of making a new site."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "SiteSettings":
        if self.data and self.model_fields_set & _OF_THE_FILLING:
            raise ValueError(
                "data: the folder already has a size, a seed and an upgrade; leave those keys out"
            )
        return self

    @model_serializer(mode="wrap")
    def _readable(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what may not stand beside `data`: an experiment that resumes reads this again."""
        said: dict[str, Any] = dump(self)
        return {key: value for key, value in said.items() if not self.data or key not in _OF_THE_FILLING}


@dataclass(frozen=True)
class Golden:
    """The site that is cloned, on one machine. `project` is Plimsoll's own folder there, `work` the lab's."""

    settings: SiteSettings
    work: str
    project: str

    @property
    def name(self) -> str:
        """The name of its folder and, while it is filled, of its containers."""
        said = self.settings
        package = hashlib.sha256(said.upgrade_zip.encode()).hexdigest()[:8] if said.upgrade_zip else ""
        return "-".join(["golden", said.size, str(said.seed), said.editor, *([package] if package else [])])

    @property
    def folder(self) -> str:
        """The folder that clones copy."""
        return self.settings.data or f"{self._own_folder}/site"

    async def whole(self, machine: Machine) -> bool:
        """Return whether it is there. Raises MachineError."""
        files = [f"{self.folder}/site.json", *([] if self.settings.data else [f"{self._own_folder}/whole"])]
        return not any([(await machine.run(["test", "-f", file], check=False)).status for file in files])

    def about_bytes(self, memory_bytes: int) -> int:
        """Return what it takes about, once it is filled on a machine with that memory."""
        return _ABOUT_BYTES.get(self.settings.size) or int(_OF_MEMORY * memory_bytes)

    def make(self) -> list[Step]:
        """Fill it; a site filled in part is filled again, and a whole one is left as it is."""
        said = self.settings
        if said.data:
            why = f"{said.data} contains no site: fill it with make site BACKEND_DIR={said.data}"
            words = ("sh", "-c", _IS_SITE, "sh", said.data, why)
            return [Command("see that the folder holds a site", words)]
        filled = {
            "SITE_SIZE": said.size,
            "SITE_SEED": str(said.seed),
            "SITE_EDITOR": said.editor,
            "WP_UPGRADE_ZIP": said.upgrade_zip or "",
            "SITE_PORT": "${golden_port}",
        }
        return [
            Command("make a folder for the site to copy", ("mkdir", "-p", "--", self._own_folder)),
            Command("choose a free port", ("python3", "-c", FREE_PORT, "127.0.0.1"), capture="golden_port"),
            site_up(self.project, self._site, self.folder, filled, "fill it", _FILL_S),
            self._down(),
            Command("write it to the disk", ("sync",), timeout_s=600),
            Command("mark it as complete", ("touch", "--", f"{self._own_folder}/whole")),
        ]

    def forget(self) -> list[Step]:
        """Remove it: the next experiment fills it again."""
        if self.settings.data:
            return []
        return [
            Command("mark it as incomplete", ("rm", "-f", "--", f"{self._own_folder}/whole")),
            self._down(keep=False),
            Command("remove its folder", ("rmdir", "--", self._own_folder)),
        ]

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return the remains of one that was being filled. Its data stay, whole or not: they are a cache."""
        return [] if self.settings.data else await containers(machine, self._site, self.folder, backend)

    def describe(self) -> dict[str, Any]:
        """Return its description for `run.json`."""
        said = self.settings
        return {"data": said.data} if said.data else said.model_dump(exclude={"data"}, exclude_none=True)

    @property
    def _own_folder(self) -> str:
        return f"{self.work}/{self.name}"

    @property
    def _site(self) -> str:
        return f"plimsoll-{self.name}"

    def _down(self, keep: bool = True) -> Command:
        says = "stop it, and keep its data" if keep else "stop it, and remove its data"
        return site_down(self.project, self._site, self.folder, says, keep)


_IS_SITE = '[ -f "$1/site.json" ] || { echo "$2" >&2; exit 1; }'

FREE_PORT = """import socket, sys
with socket.socket() as probe:
    probe.bind((sys.argv[1], 0))
    print(probe.getsockname()[1])"""

# Empty means unset, so the caller's own environment never shows through.
_KNOWN = (
    *("SITE_NAME", "BACKEND_DIR", "SITE_PORT", "SITE_BIND", "SITE_SIZE", "SITE_SEED", "SITE_EDITOR"),
    *("SITE_LARGE_GIB", "SITE_WAIT_S", "SITE_CONFIG", "WP_UPGRADE_ZIP", "DB_BUFFER_POOL", "PHP_CHILDREN"),
    *("VARNISH_STORAGE", "KEEP", "IMAGES"),
)


def site_up(
    project: str, name: str, folder: str, settings: Mapping[str, str], says: str, timeout_s: float
) -> Command:
    """Return the step that starts the site called `name` on `folder`, and fills a new folder."""
    return _call_script(
        f"{project}/site/up", {"SITE_NAME": name, "BACKEND_DIR": folder, **settings}, says, timeout_s
    )


def site_down(project: str, name: str, folder: str, says: str, keep: bool = True) -> Command:
    """Return the step that ends it, whether it runs or not; its data stay with `keep`."""
    settings = {"SITE_NAME": name, "BACKEND_DIR": folder, "KEEP": "1" if keep else ""}
    return _call_script(f"{project}/site/down", settings, says, _DOWN_S)


def _call_script(script: str, settings: Mapping[str, str], says: str, timeout_s: float) -> Command:
    assigned = [f"{key}={settings.get(key, '')}" for key in _KNOWN if settings.get(key)]
    unset = [word for key in _KNOWN if not settings.get(key) for word in ("-u", key)]
    return Command(says, ("env", *unset, *assigned, script), timeout_s=timeout_s)


# Lists again: a container that somebody removed meanwhile is not a failure.
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
