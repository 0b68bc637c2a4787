"""The names of `routes.json`, collected while a run lasts."""

_LARGEST = 64
OTHER = "other"


class RouteNames:
    """Gives each name its number; after 64 names every further one is `other`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> tuple[int, bool]:
        """Return the number of `name`, and whether it is new."""
        if name in self._numbers:
            return self._numbers[name], False
        if len(self.names) >= _LARGEST:
            name = OTHER
            if name in self._numbers:
                return self._numbers[name], False
        self._numbers[name] = len(self.names)
        self.names.append(name)
        return self._numbers[name], True
