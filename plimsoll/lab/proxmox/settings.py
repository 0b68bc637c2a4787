"""The settings of Proxmox's API: its address, and the certificate that proves it to be the right one."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from plimsoll.lab.names import StrictModel

_API = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(\d{1,5}))?")
_FINGERPRINT = re.compile(r"(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}")


def _api(value: str) -> str:
    found = _API.fullmatch(value)
    if not found or (found[1] and not 0 < int(found[1]) < 65536):
        raise ValueError(
            "must be HOST or HOST:PORT, such as pve1.lan or [2001:db8::1]:8006, without https://"
        )
    return value


def _fingerprint(value: str) -> str:
    if not _FINGERPRINT.fullmatch(value):
        raise ValueError("must be the SHA-256 fingerprint, 32 pairs of digits with colons: 5A:0C:…")
    return value


class ApiSettings(StrictModel):
    """The settings of the API of one Proxmox VE."""

    api: Annotated[str, AfterValidator(_api)] = Field(
        description="Host of the API, with its port unless that is 8006: pve1.lan."
    )
    token_file: Path | None = Field(
        None,
        description="File with USER@REALM!NAME=SECRET on its first line. Only its owner may read it (chmod "
        "600). "
        "Default: PLIMSOLL_PROXMOX_TOKEN_ID and PLIMSOLL_PROXMOX_TOKEN_SECRET.",
    )
    ca_file: Path | None = Field(
        None, description="Authority that signed the API's certificate: a copy of /etc/pve/pve-root-ca.pem."
    )
    fingerprint: Annotated[str, AfterValidator(_fingerprint)] | None = Field(
        None, description="SHA-256 fingerprint of the API's certificate, in place of an authority."
    )
    request_timeout_s: float = Field(
        30.0, gt=0, le=600, description="Seconds to wait for an answer to one request."
    )

    @model_validator(mode="after")
    def _one_proof(self) -> "ApiSettings":
        if self.ca_file and self.fingerprint:
            raise ValueError("give ca_file or fingerprint, not both")
        return self
