"""The control experiment: one large file, again and again.

If this differs between two backends by more than a few percent, something other than the storage differs too.
"""

from plimsoll.scenarios.running.locustfile import ScenarioUser, locustfile, on_locust
from plimsoll.scenarios.settings import DownloadSettings

ABOUT = {
    "does": "fetches one large file again and again: the control experiment, since it should not differ",
    "needs": "a large file on the site",
    "changes": None,
}


class Download(ScenarioUser):
    """Fetches the file, and notes how many megabytes a second came."""

    scenario = "download"
    settings_type = DownloadSettings

    def iterate(self, number: int) -> None:
        """Fetch the file once."""
        size = 0

        def count(_: int, piece: bytes) -> None:
            nonlocal size
            size += len(piece)

        plain = {"Accept-Encoding": "identity"}
        reply = self.site.get("download", self.settings.path, on_chunk=count, headers=plain)
        self.measure("throughput", size / max(reply.total_us, 1), "MB/s")


run = on_locust(Download)
locustfile(Download)
