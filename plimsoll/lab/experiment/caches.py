"""The key `cache` of lab.yml: where it can be brought about, and what run.json says of it. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from plimsoll.common.validation import Location
from plimsoll.lab.clones import driver_of
from plimsoll.lab.disks.caches import with_caches
from plimsoll.lab.disks.disk import Place

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Backend, Lab

_DEFAULT = "default"


def cache_problems(lab: "Lab") -> Iterator[tuple[Location, str]]:
    """Yield on which backends the caches cannot be brought into the state that lab.yml wants."""
    if lab.cache in (None, "as-is"):
        return
    for backend in lab.backends:
        driver = driver_of(backend.clone)
        if not driver.needs_disk:
            yield (
                ("cache",),
                f"{lab.cache} cannot be brought about on {backend.name}: the lab does not know which caches "
                f"a clone by {driver.name} has, nor who shares them: write as-is, or leave it out",
            )
        elif lab.cache == "warm" and not driver.has_files:
            yield (
                ("cache",),
                f"warm cannot be brought about on {backend.name}: only the guest itself can read the files "
                f"in its disk ({driver.name}): write cold or as-is, or leave it out",
            )


def cache_facts(lab: "Lab", backend: "Backend", place: Place | None, name: str) -> dict[str, Any]:
    """Return what `storage` in run.json says of the caches at the start of a run; nothing where nobody knows.

    `place` is that of the disk, `name` the clone's.
    """
    if not driver_of(backend.clone).needs_disk or place is None:
        return {"cache": {"state": lab.cache, "how": []}} if lab.cache else {}
    how = [step.says for step in with_caches(lab.cache, place, name).cold]
    return {"cache": {"state": lab.cache or _DEFAULT, "how": how}}
