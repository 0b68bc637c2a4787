"""The upgrade of a forum: through its installer's pages until the last, or by its command over SSH.

XenForo is not ours to ship: users bring their own copy. What its pages look like is said by a YAML file
(docs/xenforo.md); the default one fits the stand-in of `site/forum`.
"""

from pathlib import Path
from typing import Annotated, Any, Self

import gevent
from locust.exception import StopUser
from pydantic import AfterValidator, Field, model_validator

from analysis.hostile import printable
from analysis.recording.redact import redacted
from scenarios.credentials import credentials
from scenarios.errors import SettingsError, StepFailedError
from scenarios.hooks import locustfile, runs
from scenarios.reply import Reply
from scenarios.settings import ChangingSettings, never
from scenarios.user import ScenarioUser
from scenarios.xenforo.form import Form
from scenarios.xenforo.pages import Pages
from scenarios.xenforo.pagesfile import STAND_IN, read_pages
from scenarios.xenforo.remote import Remote
from scenarios.xenforo.remotely import RemoteUpgrade
from scenarios.xenforo.ssh import Access
from scenarios.xenforo.walk import Check, Stopped, Walk


def _readable(path: Path) -> Path:
    try:
        read_pages(path)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return path


def _remote(text: str) -> str:
    return str(Remote.parse(text))


class Settings(ChangingSettings):
    """What the upgrade can be told."""

    iterations: int = Field(1, ge=1, le=1, description="Always 1: an upgrade is done once a clone.")
    users: int = Field(1, ge=1, le=1, description="Always 1: nobody upgrades a forum twice at a time.")
    duration_s: Annotated[float | None, AfterValidator(never)] = Field(
        None, description="Never: an upgrade takes the time that it takes."
    )
    timeout_s: float = Field(
        3600.0, gt=0, le=86400, description="Seconds until a silent page, or a silent command, has failed."
    )
    installer: Annotated[Path, AfterValidator(_readable)] = Field(
        STAND_IN, description="YAML file of the installer's pages; default: those of the stand-in."
    )
    ssh: Annotated[str, AfterValidator(_remote)] | None = Field(
        None, description="USER@HOST[:PORT] to run the upgrade's command on, instead of the pages."
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
            raise ValueError("--ssh: is missing: say user@host, where the command is to be run")
        if self.ssh is not None and not self.ssh_command:
            raise ValueError("--ssh-command: is missing: say what upgrades the forum there")
        if self.ssh is not None and self.pages.command is None:
            raise ValueError("--installer: the file has no key command, which --ssh needs (docs/xenforo.md)")
        return self

    @property
    def pages(self) -> Pages:
        """What the file of `installer` says."""
        return read_pages(self.installer)

    @property
    def needs_account(self) -> bool:
        """Whether these settings log in: the command over SSH does not."""
        return self.ssh is None

    def kept(self) -> dict[str, Any]:
        """Return what `run.json` keeps: the pages' description in place of the file it was read from."""
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
        """Do the whole upgrade. An interrupted one is gone on with by the next run."""
        try:
            self._by_command() if self.settings.ssh else self._by_pages()
        except Stopped:
            raise StopUser from None
        except StepFailedError as error:
            raise StepFailedError(error.step, error.kind, error.detail, hopeless=True) from None

    def _by_pages(self) -> None:
        def fetch(step: str, form: Form, check: Check) -> Reply:
            where = "data" if form.method == "POST" else "params"
            body: dict[str, Any] = {where: list(form.fields)}
            return self.site.send(step, form.method, form.address, check=check, **body)

        walk = Walk(self.settings.pages, self.site.base, fetch, stopped=self._stopped, pause=gevent.sleep)
        walked = walk.upgrade(credentials(self.settings))
        self.measure("upgrade_total", walked.total_s, "s")
        self.measure("pages", walked.pages, "pages")
        if walked.lock_wait_s:
            self.measure("lock_wait", walked.lock_wait_s, "s")
        self._measure_phases(walked.phases_s)

    def _by_command(self) -> None:
        settings, writer = self.settings, self.session.writer
        upgrade = RemoteUpgrade(
            Access(Remote.parse(settings.ssh), settings.ssh_key, settings.ssh_known_hosts),
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
        for name, seconds in phases_s.items():
            self.measure(f"phase: {name}", seconds, "s")

    def _stopped(self) -> bool:
        return self.session.work.ended


run = runs(UpgradeXenforo)
locustfile(UpgradeXenforo)
