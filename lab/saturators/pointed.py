"""Points a saturator at a clone: what its settings leave open is the clone's own. Pure."""

from lab.saturators.settings import CLONE, BtrfsSend, Fio, SaturatorSettings, ZfsSend


def lacks(
    settings: SaturatorSettings, dataset: str | None, subvolume: str | None, folder: str | None
) -> str | None:
    """Say what has to be given where a clone has no such thing; None where nothing is missing."""
    if isinstance(settings, ZfsSend) and settings.dataset == CLONE and not dataset:
        return "dataset: is missing: this clone is on no ZFS dataset that is known; name one"
    if (
        isinstance(settings, BtrfsSend)
        and CLONE in (settings.subvolume, settings.snapshots)
        and not subvolume
    ):
        return (
            "subvolume, snapshots: are missing: this clone is on no Btrfs subvolume that is known; name both"
        )
    if isinstance(settings, Fio) and settings.folder == CLONE and not folder:
        return "folder: is missing: this clone is in no folder that is known; name one"
    return None


def pointed(
    settings: SaturatorSettings, dataset: str | None, subvolume: str | None, folder: str | None
) -> SaturatorSettings:
    """Return `settings` with the clone's `dataset` or `subvolume`, and the disk's `folder`, where left open.

    Raises ValueError where `lacks` says so.
    """
    if what := lacks(settings, dataset, subvolume, folder):
        raise ValueError(what)
    if isinstance(settings, ZfsSend):
        return settings.model_copy(update={"dataset": dataset}) if settings.dataset == CLONE else settings
    if isinstance(settings, Fio):
        return settings.model_copy(update={"folder": folder}) if settings.folder == CLONE else settings
    update = {"subvolume": subvolume} if settings.subvolume == CLONE else {}
    update |= {"snapshots": folder} if settings.snapshots == CLONE else {}
    return settings.model_copy(update=update)
