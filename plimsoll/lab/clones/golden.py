"""The site that all clones are copies of: filled once on each machine, and kept between experiments."""

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from plimsoll.lab.clones.containers import containers
from plimsoll.lab.clones.sitescripts import site_down, site_up
from plimsoll.lab.disks.disk import PlainFolder
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.steps.step import Command, Remains, Step

_OF_THE_FILLING = {"size", "seed", "upgrade_zip"}  # a filled folder has them already
_ABOUT_BYTES = {"small": 1_400_000_000, "medium": 5_500_000_000}  # docs/site.md; large goes by the memory
_OF_MEMORY = 1.25
_FILL_S = 4 * 3600.0  # includes building the image; a large site is larger than memory


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
        return self.settings.data or f"{self._kept}/site"

    async def whole(self, machine: Machine) -> bool:
        """Return whether it is there. Raises MachineError."""
        files = [f"{self.folder}/site.json", *([] if self.settings.data else [f"{self._kept}/whole"])]
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
            Command("make a folder for the site to copy", ("mkdir", "-p", "--", self._kept)),
            Command("choose a free port", ("python3", "-c", FREE_PORT, "127.0.0.1"), capture="golden_port"),
            site_up(self.project, self._site, self.folder, filled, "fill it", _FILL_S),
            self._down(),
            Command("write it to the disk", ("sync",), timeout_s=600),
            Command("mark it as complete", ("touch", "--", f"{self._kept}/whole")),
        ]

    def forget(self) -> list[Step]:
        """Remove it: the next experiment fills it again."""
        if self.settings.data:
            return []
        return [
            Command("mark it as incomplete", ("rm", "-f", "--", f"{self._kept}/whole")),
            self._down(keep=False),
            Command("remove its folder", ("rmdir", "--", self._kept)),
        ]

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return the remains of one that was being filled. Its data stay, whole or not: they are a cache."""
        return [] if self.settings.data else await containers(machine, self._site, self.folder, backend)

    def describe(self) -> dict[str, Any]:
        """Return its description for `run.json`."""
        said = self.settings
        return {"data": said.data} if said.data else said.model_dump(exclude={"data"}, exclude_none=True)

    @property
    def _kept(self) -> str:
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
