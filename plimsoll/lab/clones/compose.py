"""Driver `compose`: the site of docker-compose.yml, its data copied onto the backend's disk."""

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver, Target
from plimsoll.lab.clones.golden import FREE_PORT, Golden, containers, site_down, site_up
from plimsoll.lab.clones.sitedata import SiteData
from plimsoll.lab.disks.disk import DataLocation, Place, PlainFolder
from plimsoll.lab.disks.limits import join_containers
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import explained_in
from plimsoll.lab.steps.step import Check, Command, Remains, Serve, Step, fill, is_file, port_is_free

_SIZE = r"^[1-9][0-9]{0,5}[KMG]$"


def _address(value: str) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        raise ValueError("must be an IPv4 address of that machine, such as 10.0.0.7") from None


class ComposeSettings(CloneSettings):
    """The site of `make site`, in containers, its data copied or snapshot-cloned onto the disk."""

    model_config = explained_in("docs/disks.md")

    driver: Literal["compose"] = Field(description="`compose`: the site of `make site`, in containers.")
    port: int | None = Field(
        None, ge=1, le=65535, description="Port to listen on. Default: a port that is free before each run."
    )
    address: Annotated[str, AfterValidator(_address)] = Field(
        "127.0.0.1",
        description="Address of the backend's machine to listen on. The site's passwords are public.",
    )
    buffer_pool: str = Field(
        "256M",
        pattern=_SIZE,
        examples=["256M"],
        description="Size of MariaDB's buffer pool. Keep it smaller than the data, so that MariaDB reads "
        "from the disk.",
    )
    php_children: int = Field(8, ge=1, le=1000, description="Number of PHP worker processes.")
    varnish_storage: str = Field(
        "128M",
        pattern=_SIZE,
        examples=["128M"],
        description="Memory for the Varnish cache in front of the site.",
    )
    project: PlainFolder | None = Field(
        None,
        description="Plimsoll's own folder on the backend's machine. Default: the same path as on this "
        "machine.",
    )
    timeout_s: float = Field(900.0, gt=0, description="Seconds to wait for the site to start.")


class Compose:
    """A Clone: containers called `name`-front and so on, and their data on `place`."""

    driver = "compose"

    def __init__(
        self,
        settings: ComposeSettings,
        name: str,
        place: Place,
        golden: Golden,
        parts: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """`golden` is the site that is copied; it knows where Plimsoll lies on that machine.

        `parts`: see CloneContext.
        """
        self._settings, self._name, self._place, self._golden = settings, name, place, golden
        self._site = SiteData(place, name, golden.folder, parts=parts or {})

    def create(self) -> list[Step]:
        """Copy the site."""
        busy = ("sh", "-c", _AT_REST, "sh", self._golden.folder)
        return [Command("check that the site to copy does not run", busy), *self._site.make()]

    def reset(self, restore: bool) -> list[Step]:
        """End it, bring its data back, empty caches and start it; then its disk is made slow."""
        said = self._settings
        settings = {
            "SITE_PORT": self._port,
            "SITE_BIND": said.address,
            "SITE_EDITOR": self._golden.settings.editor,
            "DB_BUFFER_POOL": said.buffer_pool,
            "PHP_CHILDREN": str(said.php_children),
            "VARNISH_STORAGE": said.varnish_storage,
        }
        probe = ("python3", "-c", FREE_PORT, said.address)
        group = self._place.group
        return [
            *self.stop(),
            *(self._site.restore() if restore else []),
            *self._place.cold,
            *([] if said.port else [Command("choose a free port", probe, capture="site_port")]),
            site_up(
                self._golden.project, self._name, self._site.folder, settings, "start it", said.timeout_s
            ),
            *([join_containers(group, f"plimsoll.site={self._name}")] if group else []),
            *self._place.limit,
            Serve(
                "see that it serves",
                f"http://{said.address}/",
                f"{said.address}:{self._port}",
                said.timeout_s,
            ),
        ]

    def stop(self) -> list[Step]:
        """End its containers; the data stay. What they still have to write is soon written."""
        says = "stop it, and keep its data"
        return [*self._place.unlimit, site_down(self._golden.project, self._name, self._site.folder, says)]

    def destroy(self) -> list[Step]:
        """Remove containers and data."""
        return [*self.stop(), *self._site.remove()]

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target at which it is reached. Raises KeyError before a port was chosen."""
        return Target(fill(f"http://{self._settings.address}:{self._port}", captured))

    def data(self) -> DataLocation:
        """Return the location of its data."""
        return self._site.data

    def describe(self) -> dict[str, Any]:
        """Return a description of how it was made."""
        said = self._settings
        how = {"zfs": "copied, then rolled back to a snapshot", "btrfs": "copied, then taken from a snapshot"}
        return {
            "driver": self.driver,
            "folder": self._site.folder,
            "data": how.get(self._place.filesystem, "copied"),
            "dataset": self._site.data.dataset,
            "emulated": self._place.emulated,
            "site": self._golden.describe(),
            "buffer_pool": said.buffer_pool,
            "php_children": said.php_children,
            "varnish_storage": said.varnish_storage,
        }

    async def find(self, machine: Machine) -> list[Remains]:
        """Look for containers and networks with its name, then for its data.

        Of the site that is copied, what runs is found too: it ends when that is filled.
        """
        backend = self._name.partition("--")[2]
        running = await containers(machine, self._name, self._site.folder, backend)
        filling = await self._golden.find(machine, backend)
        return [*running, *filling, *await self._site.find(machine, backend)]

    @property
    def _port(self) -> str:
        return str(self._settings.port or "${site_port}")


_AT_REST = """used=$(docker ps -q --filter "label=plimsoll.backend=$(realpath -m -- "$1")") || exit
[ -z "$used" ] || {
    echo "a site runs on $1: stop it with make site-down KEEP=1 BACKEND_DIR=$1" >&2
    exit 1
}"""


async def _prepare(settings: ComposeSettings, around: CloneContext) -> CloneKit:
    golden = Golden(around.site, around.work, settings.project or around.project)
    return CloneKit(Compose(settings, around.name, around.disk, golden, around.parts), golden=golden)


def _checks(settings: ComposeSettings, around: CloneContext) -> list[Check]:
    golden = Golden(around.site, around.work, settings.project or around.project)
    docker = ("sh", "-c", "docker info >/dev/null 2>&1")
    compose = ("sh", "-c", "docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null")
    script = ("test", "-x", f"{golden.project}/site/up")
    return [
        Check("clone: Docker does not answer: start it (systemctl start docker)", docker),
        Check("clone: docker compose is missing: install Docker's plugin compose", compose),
        Check(f"clone.project: {golden.project} is not Plimsoll's folder on that machine: name it", script),
        *([port_is_free("clone.port", settings.address, settings.port)] if settings.port else []),
        *([is_file("site.upgrade_zip", around.site.upgrade_zip)] if around.site.upgrade_zip else []),
        *([is_file("site.data", f"{around.site.data}/site.json")] if around.site.data else []),
    ]


COMPOSE = Driver(
    "compose",
    ComposeSettings,
    _prepare,
    has_own_site=True,
    checks=_checks,
    at_start=frozenset({"buffer_pool", "php_children", "varnish_storage"}),
    has_parts=True,
    has_files=True,
)
