"""Pages of an installer as tests make them up, and a site that answers them one after another."""

from collections.abc import Callable, Iterable

from plimsoll.scenarios.running.client import Reply, StepFailedError
from plimsoll.scenarios.xenforo.installer import STAND_IN, Check, Form, Pages, read_pages

SITE = "http://clone.test/"
INSTALLER = "http://clone.test/forum/install/"
STAND_IN_PAGES = read_pages(STAND_IN)


def reply(body: str, status: int = 200, url: str = INSTALLER, **headers: str) -> Reply:
    return Reply(url, status, headers, body.encode(), 1000)


def hidden(**fields: object) -> str:
    return "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in fields.items())


def page(title: str, body: str) -> str:
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
    )


def login_page(problem: str = "") -> str:
    box = f'<div class="error-box">{problem}</div>' if problem else ""
    form = (
        f'{hidden(_xfToken="1,a", action="login")}<input name="account"><input name="secret" type="password">'
    )
    return page("Log in", f'{box}<form class="login" method="post" action="index.php">{form}</form>')


def start_page() -> str:
    return page(
        "Upgrade", f'<form class="start" method="post">{hidden(_xfToken="1,b", action="start")}</form>'
    )


def continue_page(title: str, cursor: int, token: str = "1,c") -> str:  # noqa: S107
    fields = hidden(_xfToken=token, action="run", cursor=cursor)
    return page(title, f'<p>{cursor} of 900</p><form class="continue" method="post">{fields}</form>')


def complete_page(text: str = "The upgrade is complete.") -> str:
    return page("Upgrade", f"<p>{text}</p>")


def box_page(text: str) -> str:
    return page("Upgrade", f'<div class="error-box">{text}</div>')


def redirect(to: str) -> Reply:
    return reply("", 303, location=to)


class FakeSite:
    """Answers each request with the next of its replies, and remembers what it was sent."""

    def __init__(self, replies: Iterable[Reply | str]) -> None:
        self._replies = iter([reply(r) if isinstance(r, str) else r for r in replies])
        self.sent: list[tuple[str, Form]] = []
        self.checked: list[str] = []

    def __call__(self, step: str, form: Form, check: Check) -> Reply:
        self.sent.append((step, form))
        answer = next(self._replies)
        if found := check(answer):
            self.checked.append(found.kind)
            raise StepFailedError(step, found.kind, found.detail)
        return answer

    @property
    def steps(self) -> list[str]:
        return [step for step, _ in self.sent]


def changed(**parts: object) -> Pages:
    """The stand-in's pages with some parts replaced."""
    return STAND_IN_PAGES.model_copy(update=parts)


Clock = Callable[[], float]
