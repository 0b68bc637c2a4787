"""The upgrade of a forum: through its installer's pages until the last, or by its command over SSH.

XenForo is proprietary: users bring their own copy. A YAML file describes its pages (docs/xenforo.md); the
default one describes the stand-in of `site/forum`.
"""

import time
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import gevent
from locust.exception import StopUser
from pydantic import AfterValidator, Field, model_validator

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.redaction import redacted
from plimsoll.common.ssh import Access
from plimsoll.scenarios.running.client import Reply, StepFailedError
from plimsoll.scenarios.running.clonelist import credentials
from plimsoll.scenarios.running.locustfile import ScenarioUser, locustfile, runs
from plimsoll.scenarios.running.settings import ChangingSettings, IdleKeys, never
from plimsoll.scenarios.running.visits import ProbedSettings, Visits
from plimsoll.scenarios.xenforo.frontpages import front_pages
from plimsoll.scenarios.xenforo.installer import (
    STAND_IN,
    Check,
    Form,
    Pages,
    UpgradeStopped,
    Walk,
    read_pages,
)
from plimsoll.scenarios.xenforo.remote_upgrade import RemoteUpgrade

ABOUT = {
    "does": "walks through the pages of a forum's upgrade until the last, or runs it over SSH",
    "needs": "an administrator's account on a forum that waits for its upgrade",
    "changes": "upgrades the forum: once a clone",
}


def _readable(path: Path) -> Path:
    try:
        read_pages(path)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return path


def _remote(text: str) -> str:
    return str(Access.parse(text))


class Settings(ProbedSettings, ChangingSettings):
    """Settings of the upgrade of a forum."""

    idle_keys: ClassVar[IdleKeys] = [
        (key, lambda its: its.ssh, "nobody logs in to the site: take --ssh out")
        for key in ("user", "password_file")
    ]

    iterations: int = Field(1, ge=1, le=1, description="Always 1: a clone is upgraded once.")
    users: int = Field(1, ge=1, le=1, description="Always 1.")
    duration_s: Annotated[float | None, AfterValidator(never)] = Field(
        None, description="Not available: an upgrade runs to its end."
    )
    timeout_s: float = Field(
        3600.0, gt=0, le=86400, description="Seconds of silence after which a page, or the command, fails."
    )
    installer: Annotated[Path, AfterValidator(_readable)] = Field(
        STAND_IN, description="YAML file of the installer's pages; default: scenarios/xenforo/stand-in.yml."
    )
    ssh: Annotated[str, AfterValidator(_remote)] | None = Field(
        None, description="USER@HOST[:PORT] on which to run the upgrade's command, in place of the pages."
    )
    ssh_command: str | None = Field(
        None,
        description="The command, such as 'cd /var/www/forum && php cmd.php xf:upgrade --no-interaction'.",
    )
    ssh_key: Path | None = Field(
        None, description="Private key; default: the agent's keys, then those of ~/.ssh."
    )
    ssh_known_hosts: Path | None = Field(
        None, description="File of known host keys; default: ~/.ssh/known_hosts."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.ssh is None and (self.ssh_command or self.ssh_key or self.ssh_known_hosts):
            raise ValueError("--ssh: is missing: name user@host, on which the command runs")
        if self.ssh is not None and not self.ssh_command:
            raise ValueError("--ssh-command: is missing: name the command that upgrades the forum")
        if self.ssh is not None and self.pages.command is None:
            raise ValueError("--installer: the file has no key command, which --ssh needs (docs/xenforo.md)")
        return self

    @property
    def pages(self) -> Pages:
        """The description of the pages in the file `installer`."""
        return read_pages(self.installer)

    @property
    def needs_account(self) -> bool:
        """True if these settings log in; the command over SSH does not."""
        return self.ssh is None

    def kept(self) -> dict[str, Any]:
        """Return the settings for `run.json`, with the pages' description in place of its file."""
        kept = super().kept()
        for name in ("installer", "ssh_key", "ssh_known_hosts"):
            kept.pop(name, None)
        if self.ssh_command:
            kept["ssh_command"] = redacted(self.ssh_command)
        return kept | {"installer": self.pages.model_dump(mode="json", by_alias=True)}


class UpgradeXenforo(ScenarioUser):
    """Upgrades the forum once."""

    scenario = "upgrade-xenforo"
    settings_type = Settings

    def iterate(self, number: int) -> None:
        """Do the whole upgrade. The next run continues an interrupted one."""
        writer, installer = self.session.writer, self.settings.pages.path
        try:
            with Visits(
                self.settings, writer, lambda site: front_pages(site, installer), closed_before=True
            ) as visits:
                self._started_ns = time.monotonic_ns()
                self._by_command() if self.settings.ssh else self._by_pages()
                visits.await_good(self._started_ns, lambda name, ms, at: self.measure(name, ms, ended_ns=at))
        except UpgradeStopped:
            raise StopUser from None
        except StepFailedError as error:
            raise StepFailedError(error.step, error.kind, error.detail, hopeless=True) from None

    def _by_pages(self) -> None:
        def fetch(step: str, form: Form, check: Check) -> Reply:
            where = "data" if form.method == "POST" else "params"
            body: dict[str, Any] = {where: list(form.fields)}
            if step == "start":
                self._started_ns = time.monotonic_ns()
            return self.site.send(step, form.method, form.address, check=check, **body)

        walk = Walk(self.settings.pages, self.site.base, fetch, stopped=self._stopped, pause=gevent.sleep)
        times = walk.upgrade(credentials(self.settings))
        self.measure("upgrade_total", times.total_s, "s")
        self.measure("pages", times.pages, "pages")
        if times.lock_wait_s:
            self.measure("lock_wait", times.lock_wait_s, "s")
        self._measure_phases(times.phases_s)

    def _by_command(self) -> None:
        settings, writer = self.settings, self.session.writer
        upgrade = RemoteUpgrade(
            Access.parse(settings.ssh, settings.ssh_key, settings.ssh_known_hosts),
            settings.ssh_command,
            settings.pages.command,
            settings.pages.texts,
            settings.timeout_s,
            report=self._sent,
            line=lambda t_ns, text: writer.event(
                "output", t_ns=writer.since_start_ns(t_ns), line=printable(redacted(text))
            ),
            stopped=self._stopped,
        )
        upgrade.run()
        self.measure("upgrade_total", upgrade.total_s, "s")
        self.measure("lines", upgrade.lines, "lines")
        self._measure_phases(upgrade.phases_s)

    def _measure_phases(self, phases_s: dict[str, float]) -> None:
        """Record the phases, each where it lay: they follow one another, and the last has just ended."""
        now_ns, left_s = time.monotonic_ns(), sum(phases_s.values())
        for name, seconds in phases_s.items():
            left_s -= seconds
            self.measure(f"phase: {name}", seconds, "s", ended_ns=now_ns - int(left_s * 1e9))

    def _stopped(self) -> bool:
        return self.session.work.ended


run = runs(UpgradeXenforo)
locustfile(UpgradeXenforo)
