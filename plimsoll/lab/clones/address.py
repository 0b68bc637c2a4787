"""The address of a virtual machine: fixed, or the `${address}` that it was given. Pure."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError

from plimsoll.common.validation import problems_of
from plimsoll.lab.clones.clone import Target
from plimsoll.lab.steps.step import Serve, fill, no_reference
from plimsoll.scenarios.running.settings import BaseUrl, HostPort

ADDRESS = "${address}"
_ANY = "192.0.2.1"  # stands for the address while the rest is checked


def _with_address(kind: Any) -> Callable[[str], str]:
    adapter = TypeAdapter[str](kind)

    def check(value: str) -> str:
        before, address, after = value.partition(ADDRESS)
        no_reference(before + after)
        if address and (not before.endswith("//") if before else not after.startswith(":")):
            raise ValueError(
                "must have ${address} in place of the host: http://${address}:8080, ${address}:80"
            )
        try:
            checked = adapter.validate_python(value.replace(ADDRESS, _ANY) if address else value)
        except ValidationError as error:
            raise ValueError(problems_of(error)[0].text) from None
        return f"{before}{ADDRESS}{checked.removeprefix(before + _ANY)}" if address else checked

    return check


TargetUrl = Annotated[str, AfterValidator(_with_address(BaseUrl))]
TargetHost = Annotated[str, AfterValidator(_with_address(HostPort))]


def needs_address(url: str, connect_to: str | None) -> bool:
    """Return whether the machine has to be asked for its address."""
    return ADDRESS in url or ADDRESS in (connect_to or "")


def target(url: str, connect_to: str | None, captured: Mapping[str, str]) -> Target:
    """Return the target with its address. Raises KeyError where that is not known yet."""
    return Target(fill(url, captured), None if connect_to is None else fill(connect_to, captured))


def serves(url: str, connect_to: str | None, timeout_s: float) -> Serve:
    """Return the step that waits for the site."""
    return Serve("see that the site serves", url, connect_to, timeout_s)
