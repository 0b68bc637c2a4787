"""What the fields of `run.json` and `summary.json` share. Unknown keys are fine; wrong types are not."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer

FORMAT = 1
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


def _is_format(value: object) -> object:
    if value != FORMAT or isinstance(value, bool):
        raise ValueError(f"must be {FORMAT}")
    return value


def _instant(value: datetime | None) -> str | None:
    """Instants are in UTC with six decimals (docs/run-format.md)."""
    return None if value is None else f"{value:%Y-%m-%dT%H:%M:%S.%fZ}"


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise ValueError(f"is in the year {value.year}, when no run was")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Format = Annotated[int, BeforeValidator(_is_format)]
Instant = Annotated[datetime | None, AfterValidator(_utc), PlainSerializer(_instant)]
Count = Annotated[int, Field(ge=0, le=1 << 62)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
UNKNOWN_IS_FINE = ConfigDict(extra="ignore", frozen=True)  # of every object
