"""One request, as a scripted scenario or an import saw it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """One record of `requests.npy` with names in place of numbers; docs/run-format.md has the columns.

    `due_ns` counts from the start of the run; `total_us` and `ttfb_us` (0: no byte came) from the request's
    own start. `iteration` (from 1; 0: not part of one) goes into column `line`. `warmup` marks what is in no
    figure: also what sets a scenario up, and what cleans up after it.
    """

    due_ns: int
    total_us: int
    route: str
    status: int = 0
    bytes: int = 0
    ttfb_us: int = 0
    error: str = "none"
    iteration: int = 0
    client: int = 0
    lag_us: int = 0
    dns_us: int = 0
    connect_us: int = 0
    tls_us: int = 0
    reused: bool = False
    http2: bool = False
    tls: bool = False
    warmup: bool = False
    logged_bytes: int = -1
    logged_status: int = 0
