"""What the block editor requests in addition to the article, by its profile for a version of WordPress.

None of it is the article: what fails of it is recorded, and the article goes on, as it does in a browser. A
profile is a YAML file (docs/block-editor.md).
"""

import random
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urljoin

import gevent
from gevent.event import Event
from gevent.pool import Pool
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from plimsoll.common.validation import read_model
from plimsoll.scenarios.running.client import (
    Reply,
    SiteClient,
    StepFailedError,
    StepFailure,
    find_failure,
    visible_text,
)
from plimsoll.scenarios.running.settings import SiteSettings, origin
from plimsoll.scenarios.wordpress.account import Rest, attachment_number, is_object
from plimsoll.scenarios.wordpress.content import Article, Picture
from plimsoll.scenarios.wordpress.editor import Editor, heartbeat_nonce

PROFILES = Path(__file__).with_name("profiles")
_MANUAL = "docs/block-editor.md"
_ASK = re.compile(r"(GET|OPTIONS) +(/?[\w{}./-]*(?:\?\S*)?)")
_NAMES = ("post", "media")  # what a path may leave to the article
_FOR_ARTICLE = re.compile(r"\{([^{}]*)\}")
_BRANCH = re.compile(r"\bbranch-(\d+)-(\d+)\b")
_FILE = re.compile(r"wordpress-(\d+)\.(\d+)\.yml")
_LIST = re.compile(r"wp/v2/categories(?:\?|$)")
CONNECTIONS = 6  # as a browser has to one host
_AJAX = "wp-admin/admin-ajax.php"
_LOCK = re.compile(r'"activePostLock":"(\d+:\d+)"')
_UNLOCK = re.compile(r'"unlockNonce":"(\w+)"')
_FILES = "//link[contains(@rel, 'stylesheet')]/@href | //script/@src | //img/@src"
_REFUSED = (401, 403, 404)
_CATEGORIES = "wp/v2/categories?"
NoteCreated = Callable[[int, str], None]  # number and kind of what was created


@dataclass(frozen=True)
class EditorRequest:
    """One request that changes nothing: its method, and its path below the REST interface."""

    method: str
    path: str

    def of(self, post: int | None, media: int | None = None) -> str:
        """Return the path for this article, and for this image in it."""
        return self.path.replace("{post}", str(post)).replace("{media}", str(media))


def _ask(value: object) -> EditorRequest:
    if isinstance(value, EditorRequest):
        return value
    found = _ASK.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be GET or OPTIONS and a path below the REST interface: GET wp/v2/blocks")
    if unknown := sorted(set(_FOR_ARTICLE.findall(found[2])) - set(_NAMES)):
        raise ValueError(f"knows no {{{unknown[0]}}}: only {{post}} and {{media}} stand for something")
    return EditorRequest(found[1], found[2].strip("/"))


def _refuse_media(asks: tuple[EditorRequest, ...]) -> tuple[EditorRequest, ...]:
    if any("{media}" in ask.path for ask in asks):
        raise ValueError("{media} stands for an image: only under image")
    return asks


AskText = Annotated[EditorRequest, BeforeValidator(_ask, json_schema_input_type=str)]
Asks = Annotated[tuple[AskText, ...], AfterValidator(_refuse_media)]
Seconds = Annotated[float, Field(ge=1, le=3600)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Categories(_Part):
    """The author chooses categories."""

    share: Share = Field(0.0, description="Share of the articles that get categories, drawn by the seed.")
    most: int = Field(1, ge=1, le=20, description="How many an article gets at most.")
    asks: Asks = Field((), validate_default=True, description="What is asked for to choose.")

    @field_validator("asks")
    @classmethod
    def _has_list(cls, asks: tuple[EditorRequest, ...]) -> tuple[EditorRequest, ...]:
        if asks and not any(ask.method == "GET" and _LIST.match(ask.path) for ask in asks):
            raise ValueError("must have GET wp/v2/categories: from its answer the categories are chosen")
        return asks


class Image(_Part):
    """The author puts an image into the article."""

    share: Share = Field(0.0, description="Share of the articles that get an image, drawn by the seed.")
    asks: tuple[AskText, ...] = Field((), description="What is asked for once it is uploaded.")


class Profile(_Part):
    """What the editor asks for, by when. Without a key nothing of the kind is done."""

    files: Literal["never", "first", "always"] = Field(
        "never",
        description="Styles, scripts and images of its page: `first`: once a user, as a browser keeps them; "
        "`always`: for each article.",
    )
    opening: Asks = Field((), description="Once the page is there, up to six at a time.")
    heartbeat_s: Seconds | None = Field(
        None, description="Seconds from the answer to a heartbeat, which renews the lock, to the next."
    )
    autosave_s: Seconds | None = Field(
        None, description="Seconds from autosave to autosave while the author writes (`--think-s`)."
    )
    categories: Categories = Categories()
    image: Image = Image()
    panel: Asks = Field((), description="As the panel opens that asks whether to publish.")
    published: Asks = Field((), description="Once the article is published.")
    saved: Asks = Field((), description="Once it is saved again, each time.")
    leaving: bool = Field(False, description="Whether the lock is released as the editor is left.")


def read_profile(path: Path) -> Profile:
    """Read and check `path`. Raises SettingsError with all problems, each with its line and remedy."""
    return read_model(path, Profile, _MANUAL)


@cache
def recorded_profiles() -> dict[tuple[int, int], Profile]:
    """Return the profiles that come with Plimsoll, by the version of WordPress that each was recorded on."""
    found = {}
    for path in PROFILES.iterdir():
        if named := _FILE.fullmatch(path.name):
            found[int(named[1]), int(named[2])] = read_profile(path)
    return dict(sorted(found.items()))


def wordpress_branch(page: str) -> tuple[int, int] | None:
    """Return the branch of WordPress that a page of the admin side names, such as (6, 8). Pure."""
    found = _BRANCH.search(page)
    return (int(found[1]), int(found[2])) if found else None


def nearest_profile(version: tuple[int, int] | None, recorded: dict[tuple[int, int], Profile]) -> Profile:
    """Return the newest profile that is not newer than `version`, else the oldest. Pure.

    Of an unknown version the newest.
    """
    fitting = [one for one in recorded if version is None or one <= version]
    return recorded[max(fitting, default=min(recorded))]


class BackgroundClient(SiteClient):
    """A further client of the visitor `first`, whose cookies it has at each request: for what is beside."""

    def __init__(self, settings: SiteSettings, report: Callable[..., None], first: SiteClient) -> None:
        super().__init__(settings, report, CONNECTIONS)
        self._first = first

    def send(self, step: str, method: str, path: str, **further: Any) -> Reply:
        """Send one request; see `SiteClient.send`."""
        self.take_cookies(self._first)
        return super().send(step, method, path, **further)


class EditorTraffic:
    """The editor's own requests for one article, from its opening to the end of the block."""

    def __init__(
        self,
        profile: Profile,
        editor: Editor,
        page: Reply,
        rest: Rest,
        background: BackgroundClient,
        chance: str,
    ) -> None:
        """Begin on the editor's `page`; `chance` is the seed of what is drawn for this article."""
        self._profile, self._editor, self._page = profile, editor, page
        self._rest, self._background = rest, background
        self._chance = random.Random(chance)  # noqa: S311 no secret
        self._over = Event()
        self._loops: list[Any] = []
        self._draft: Article | None = None
        self._lock, self._beat = _find_text(_LOCK, page), heartbeat_nonce(page)
        self._kept = False  # whether this draft has been autosaved
        self._asked: set[EditorRequest] = set()

    def __enter__(self) -> Self:
        opened_ns = time.monotonic_ns()
        if (every_s := self._profile.heartbeat_s) and self._beat:
            self._loops.append(gevent.spawn(self._heartbeats, opened_ns, round(every_s * 1e9)))
        if every_s := self._profile.autosave_s:
            self._loops.append(gevent.spawn(self._autosaves, opened_ns, round(every_s * 1e9)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; what is under way is waited for, unless all of it is to end at once."""
        self._over.set()
        if error is None or isinstance(error, StepFailedError):
            gevent.joinall(self._loops)
        else:
            gevent.killall(self._loops)
        if broken := next((loop.exception for loop in self._loops if loop.exception), None):
            raise broken

    def open(self, *, files: bool) -> None:
        """Ask for what the opened editor wants; `files`: those of its page too."""
        if files:
            self._run_together(
                [
                    partial(self._try_site, "open editor: files", "GET", path)
                    for path in _page_files(self._page)
                ]
            )
        self._send_all("open editor: more", self._profile.opening)

    def categories(self) -> tuple[int, ...]:
        """Return the categories that the author chooses, from those that the site lists."""
        wanted = self._profile.categories
        if self._chance.random() >= wanted.share:
            return ()
        answers = self._send_all("choose categories", wanted.asks)
        listed = next((r for ask, r in answers if ask.path.startswith(_CATEGORIES)), None)
        there = _numbers(listed.data if listed else None)
        most = min(wanted.most, len(there))
        return tuple(sorted(self._chance.sample(there, self._chance.randint(1, most)))) if most else ()

    def picture(self, name: str, photograph: Callable[[], bytes], created: NoteCreated) -> Picture | None:
        """Upload a photograph called `name` for the article, and return it; None where there is none."""
        if self._chance.random() >= self._profile.image.share:
            return None
        file = {"file": (name, photograph(), "image/jpeg")}

        def check(reply: Reply) -> StepFailure | None:
            if (number := attachment_number(reply)) is not None:
                created(number, "media")
            return is_object(reply)

        sent = {"post": str(self._editor.post)}
        reply = self._try("upload image", "POST", "wp/v2/media", check=check, data=sent, files=file)
        number = reply.data.get("id") if reply else None
        if reply is None or type(number) is not int:
            return None
        created(number, "media")
        self._send_all("show image", self._profile.image.asks, number)
        return Picture(number, str(reply.data.get("source_url") or ""))

    def writing(self, draft: Article) -> None:
        """Note what the author is writing from now on, which autosaves keep."""
        self._draft, self._kept = draft, False

    def note_written(self) -> bool:
        """Note that the author has written it; return whether an autosave has kept some of it."""
        self._draft = None
        return self._kept

    def before_publishing(self) -> None:
        """Ask for what the panel wants that asks whether to publish, and the editor does not have yet."""
        self._send_all("ask to publish", [ask for ask in self._profile.panel if ask not in self._asked])

    def note_saved(self, *, first: bool) -> None:
        """Ask for what the editor wants once the article is published, or saved again."""
        self._send_all("after saving", self._profile.published if first else self._profile.saved)

    def leave(self) -> None:
        """Release the lock, as a browser does that leaves the page."""
        unlock = _find_text(_UNLOCK, self._page)
        if not self._profile.leaving or not unlock:
            return
        form = {
            "action": "wp-remove-post-lock",
            "_wpnonce": unlock,
            "post_ID": str(self._editor.post),
            "active_post_lock": self._lock,
        }
        self._try_site("leave editor", "POST", _AJAX, files={name: (None, v) for name, v in form.items()})

    def _heartbeats(self, opened_ns: int, every_ns: int) -> None:
        """Send a heartbeat when it is due: the first after the opening, each further one after an answer."""
        due_ns = opened_ns + every_ns
        while self._wait(due_ns):
            form = {
                "data[wp-refresh-post-lock][lock]": self._lock,
                "data[wp-refresh-post-lock][post_id]": str(self._editor.post),
                "interval": str(every_ns // 1_000_000_000),
                "_nonce": self._beat,
                "action": "heartbeat",
                "screen_id": "post",
                "has_focus": "true",
            }
            reply = self._try_site(
                "heartbeat", "POST", _AJAX, data=form, check=self._check_beat, due_ns=due_ns
            )
            if reply:
                lock = reply.data.get("wp-refresh-post-lock")
                self._lock = str(lock.get("new_lock") or self._lock) if isinstance(lock, dict) else self._lock
            due_ns = time.monotonic_ns() + every_ns

    def _check_beat(self, reply: Reply) -> StepFailure | None:
        if found := find_failure(reply):
            return found
        data = reply.data if isinstance(reply.data, dict) else {}
        if data.get("nonces_expired"):
            self._beat = str(data.get("heartbeat_nonce") or self._beat)
            return StepFailure("nonce_expired", "the heartbeat's nonce has expired")
        if data.get("wp-auth-check") is False:
            return StepFailure("login_failed", "the heartbeat says that nobody is logged in")
        return (
            None
            if "server_time" in data
            else StepFailure("check_failed", f"no heartbeat: {visible_text(reply.text)}")
        )

    def _autosaves(self, opened_ns: int, every_ns: int) -> None:
        """Keep what the author is writing when it is due: a multiple of the interval after the opening."""
        due_ns = opened_ns + every_ns
        while self._wait(due_ns):
            if draft := self._draft:
                self._kept = True
                with suppress(StepFailedError):  # recorded
                    self._editor.autosave(draft, client=self._background, due_ns=due_ns)
            while due_ns <= time.monotonic_ns():
                due_ns += every_ns

    def _wait(self, due_ns: int) -> bool:
        """Wait until an instant; return False if the editor was left before."""
        return not self._over.wait(max(due_ns - time.monotonic_ns(), 0) / 1e9)

    def _send_all(
        self, step: str, asks: Iterable[EditorRequest], media: int | None = None
    ) -> list[tuple[EditorRequest, Reply]]:
        """Ask for all of `asks`, up to six at a time, and return what was answered."""
        asks = tuple(asks)
        self._asked.update(asks)
        post = self._editor.post
        replies = self._run_together(
            [partial(self._try, step, ask.method, ask.of(post, media), check=_check_answer) for ask in asks]
        )
        return [(ask, reply) for ask, reply in zip(asks, replies, strict=True) if reply]

    def _run_together(self, acts: list[Callable[[], Reply | None]]) -> list[Reply | None]:
        replies: list[Reply | None] = Pool(CONNECTIONS).map(lambda act: act(), acts)
        return replies

    def _try(self, step: str, method: str, path: str, **further: Any) -> Reply | None:
        try:
            return self._rest.send(step, method, path, client=self._background, **further)
        except StepFailedError:
            return None  # recorded

    def _try_site(self, step: str, method: str, path: str, **further: Any) -> Reply | None:
        try:
            return self._background.send(step, method, path, **further)
        except StepFailedError:
            return None  # recorded


def _find_text(pattern: re.Pattern[str], page: Reply) -> str:
    found = pattern.search(page.text)
    return found[1] if found else ""


def _numbers(listed: Any) -> list[int]:
    items = listed if isinstance(listed, list) else []
    return [one["id"] for one in items if isinstance(one, dict) and type(one.get("id")) is int]


def _check_answer(reply: Reply) -> StepFailure | None:
    """Return the failure in an answer of the REST interface, or None.

    The editor also asks for what this account, or this version, does not have: a refusal in the interface's
    own words is an answer.
    """
    found = find_failure(reply)
    if found and found.kind not in ("no_permission", "http_error"):
        return found
    code = reply.data.get("code") if isinstance(reply.data, dict) else None
    if found and (reply.status not in _REFUSED or not isinstance(code, str) or code == "rest_not_logged_in"):
        return found
    if reply.data is None:
        return StepFailure("check_failed", f"status {reply.status} and no JSON: {visible_text(reply.text)}")
    return None


def _page_files(page: Reply) -> list[str]:
    """Return the addresses of the files on the site that a page names, each once."""
    found: dict[str, None] = {}
    for address in page.page.xpath(_FILES):
        try:
            whole = urljoin(page.url, str(address).strip())
            if origin(whole) == origin(page.url):
                found[whole] = None
        except ValueError:  # not an address
            continue
    return list(found)
