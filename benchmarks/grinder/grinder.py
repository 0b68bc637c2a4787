# mypy: ignore-errors
"""The Grinder's script: as many requests as go, over connections that stay open.

The Grinder closes its connections at the end of a run, so one run here is many requests: that is the
arrangement in which it is fastest.
"""

from net.grinder.plugin.http import HTTPRequest
from net.grinder.script import Test
from net.grinder.script.Grinder import grinder

REQUESTS_A_RUN = 100000

url = grinder.properties.getProperty("peers.url")
request = HTTPRequest()
Test(1, "GET").record(request)


class TestRunner:
    def __call__(self):
        for _ in range(REQUESTS_A_RUN):
            request.GET(url)
