"""What authors bring, the same for each seed: articles with their photographs.

`python -m plimsoll.scenarios.wordpress.content FOLDER SEED NUMBER…` makes the large photographs it names.
"""

import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from plimsoll.common.errors import OutputError, PlimsollError
from plimsoll.common.files import open_replacement


def _split_list(text: str) -> list[str]:
    return text.split("|")


_ADJECTIVES = _split_list(
    "quiet|early|broad|narrow|careful|familiar|distant|modest|steady|bright|hollow|"
    "ordinary|northern|southern|wooden|damp|patient|sudden|gentle|heavy|plain|rough|"
    "recent|local|public|private|ancient|curious|practical|uneven|generous|reluctant|"
    "weathered|honest|foreign|seasonal|reliable|shallow|crowded|forgotten"
)
_NOUNS = _split_list(
    "harbour|keeper|market|kitchen|letter|valley|station|winter|library|machine|village|"
    "bridge|teacher|garden|river|workshop|evening|council|engine|window|orchard|ferry|"
    "neighbour|lighthouse|newspaper|railway|museum|farmer|captain|café|bakery|archive|"
    "theatre|factory|island|coast|meadow|photograph|recipe|journey|argument|promise|"
    "timetable|crew|cargo|tide|compass|ledger|warehouse|anchor"
)
_VERBS = _split_list(
    "opened|closed|crossed|described|followed|repaired|measured|remembered|counted|painted|"
    "carried|avoided|replaced|reached|changed|welcomed|improved|questioned|kept|left|"
    "served|watched|found|shared|borrowed|explained|ignored|noticed|planned|rebuilt|sold|"
    "supplied|taught|tested|visited"
)
_PLACES = _split_list(
    "behind the mill|near the old station|along the coast|above the market hall|"
    "in the north of the county|beside the canal|at the end of the pier|on the far bank|"
    "between the two wars|before the first snow|after the long winter|without much notice|"
    "for the better part of a year|against all advice"
)
_LINKS = _split_list("and|but|while|so|because|although|until|as soon as|even though|long before")
_OPENINGS = _split_list(
    "In the end,|By contrast,|Every morning,|According to the records,|For once,|That year,|"
    "Most of all,|As far as anybody knows,|On Tuesdays,|At first,|Seen from the road,|As a rule,"
)
_SMALLEST_BYTES = 500

# Twelve megapixels and up, as cameras and telephones take them.
_SHAPES = ((4000, 3000), (4032, 3024), (4608, 3456), (5184, 3456), (5472, 3648), (6000, 4000))
_QUALITY = 88
_SMALLEST_JPEG_BYTES = 100_000
_VERSION = 1  # of the photographs' content: a new version makes them again
_SAY_EACH_S = 10.0


@dataclass(frozen=True)
class Block:
    """One block of an article: its kind in the block editor, and its HTML with and without blocks' marks."""

    kind: str
    html: str
    inner: str
    attributes: str = ""  # JSON, with a blank before it

    @property
    def block(self) -> str:
        """The part as the block editor writes it."""
        return f"<!-- wp:{self.kind}{self.attributes} -->\n{self.inner}\n<!-- /wp:{self.kind} -->"

    @property
    def size_bytes(self) -> int:
        """The larger of its two forms, with what parts it from the next."""
        return len(self.block.encode()) + 2


@dataclass(frozen=True)
class Picture:
    """An image in the site's library; its address is the site's own word."""

    number: int
    address: str


@dataclass(frozen=True)
class Article:
    """A title, its parts, a sentence that only this version of it has, and its categories (none: unsaid)."""

    title: str
    parts: tuple[Block, ...]
    mark: str
    categories: tuple[int, ...] = ()

    def with_run_name(self, run: str) -> "Article":
        """The article with the name of a run at the end of its title, by which it is found on the site."""
        return replace(self, title=f"{self.title} {run}")

    def with_picture(self, picture: Picture) -> "Article":
        """The article with an image above its text, as the block editor puts it in."""
        image = f'<img src="{escape(picture.address)}" alt="" class="wp-image-{picture.number}"/>'
        figure = f'<figure class="wp-block-image size-full">{image}</figure>'
        attributes = f' {{"id":{picture.number},"sizeSlug":"full","linkDestination":"none"}}'
        return replace(self, parts=(Block("image", figure, figure, attributes), *self.parts))

    def html(self) -> str:
        """The article as the classic editor sends it."""
        return "\n\n".join(part.html for part in (*self.parts, _paragraph(self.mark)))

    def blocks(self) -> str:
        """The article as the block editor sends it."""
        return "\n\n".join(part.block for part in (*self.parts, _paragraph(self.mark)))


def make_article(seed: int, number: int, most_bytes: int) -> Article:
    """Return article `number` of `seed`; its size is drawn up to `most_bytes`, small ones more often.

    Two articles differ when their seeds or numbers do.
    """
    chance = random.Random(f"article {seed} {number}")  # noqa: S311 no secret
    low, high = min(_SMALLEST_BYTES, most_bytes), most_bytes
    size_bytes = round(low * (high / low) ** chance.random())
    title = " ".join(f"the {chance.choice(_ADJECTIVES)} {chance.choice(_NOUNS)}" for _ in range(2))
    title = f"{title[0].upper()}{title[1:].replace(' the ', ' and the ', 1)}"
    mark = _mark(seed, number, 0)
    left = size_bytes - _paragraph(mark).size_bytes
    parts: list[Block] = []
    for part in _parts(chance):
        if part.size_bytes > left:
            break
        parts.append(part)
        left -= part.size_bytes
    return Article(title, tuple(parts), mark)


def revise_article(before: Article, seed: int, number: int, version: int) -> Article:
    """Return the article as it is saved the `version`th time: one part is rewritten, not longer."""
    chance = random.Random(f"revision {seed} {number} {version}")  # noqa: S311 no secret
    mark = _mark(seed, number, version)
    at = [index for index, part in enumerate(before.parts) if part.kind == "paragraph"]
    if not at:
        return replace(before, mark=mark)
    index = chance.choice(at)
    parts = list(before.parts)
    # Sentences of at most so many bytes; at least a word.
    most_bytes = len(parts[index].html.encode()) - len("<p></p>")
    text = f"{chance.choice(_NOUNS)}."
    while len((longer := f"{text} {_sentence(chance)}").encode()) <= most_bytes:
        text = longer
    parts[index] = _paragraph(text.partition(" ")[2] or text)
    return replace(before, parts=tuple(parts), mark=mark)


def _mark(seed: int, number: int, version: int) -> str:
    return f"Printed in series {seed} as number {number}, version {version}."


def _parts(chance: random.Random) -> Iterator[Block]:
    """Yield sections without end: a heading now and then, paragraphs, lists, quotes."""
    while True:
        for _ in range(chance.randint(2, 5)):
            yield _paragraph(" ".join(_sentence(chance) for _ in range(chance.randint(1, 5))))
        kind = chance.random()
        if kind < 0.45:
            words = f"{chance.choice(_ADJECTIVES)} {chance.choice(_NOUNS)} {chance.choice(_PLACES)}"
            text = f"<h2>{words[0].upper()}{words[1:]}</h2>"
            yield Block("heading", text, text)
        elif kind < 0.75:
            yield _list([_sentence(chance) for _ in range(chance.randint(3, 7))])
        else:
            quoted = _sentence(chance)
            cite = f"<cite>{chance.choice(_NOUNS).capitalize()} keeper</cite>"
            open_quote = '<blockquote class="wp-block-quote">'
            yield Block(
                "quote",
                f"<blockquote><p>{quoted}</p>{cite}</blockquote>",
                f"{open_quote}{_paragraph(quoted).block}{cite}</blockquote>",
            )


def _paragraph(text: str) -> Block:
    return Block("paragraph", f"<p>{text}</p>", f"<p>{text}</p>")


def _list(items: list[str]) -> Block:
    plain = "".join(f"<li>{item}</li>" for item in items)
    blocks = "\n\n".join(f"<!-- wp:list-item -->\n<li>{item}</li>\n<!-- /wp:list-item -->" for item in items)
    return Block("list", f"<ul>{plain}</ul>", f"<ul>{blocks}</ul>")


def _sentence(chance: random.Random) -> str:
    text = _clause(chance)
    if chance.random() < 0.5:
        text += f" {chance.choice(_LINKS)} {_clause(chance)}"
    if chance.random() < 0.2:
        return f"{chance.choice(_OPENINGS)} {text}."
    return f"{text[0].upper()}{text[1:]}."


def _clause(chance: random.Random) -> str:
    subject, thing = _thing(chance), _thing(chance)
    place = f" {chance.choice(_PLACES)}" if chance.random() < 0.4 else ""
    return f"{subject} {chance.choice(_VERBS)} {thing}{place}"


def _thing(chance: random.Random) -> str:
    noun = chance.choice(_NOUNS)
    adjective = f"{chance.choice(_ADJECTIVES)} " if chance.random() < 0.5 else ""
    text = f"{adjective}{noun}"
    kind = chance.random()
    if kind < 0.04:
        address = f"https://www.example.org/{noun.replace('é', 'e')}/{chance.randint(1900, 2026)}"
        text = f'<a href="{address}">{text}</a>'
    elif kind < 0.08:
        text = f"<strong>{text}</strong>"
    elif kind < 0.12:
        text = f"<em>{text}</em>"
    return f"the {text}"


def small_photograph(seed: int, number: int = 0, *, width: int = 1600, height: int = 1067) -> bytes:
    """Return a JPEG of a seeded landscape with the grain of a photograph: about half a megabyte. Pure."""
    chance = np.random.default_rng([seed, number] if number else seed)
    rows = np.linspace(0.0, 1.0, height)[:, None]
    columns = np.linspace(0.0, 1.0, width)[None, :]
    hills = (
        0.5 + 0.1 * np.sin(columns * chance.uniform(4, 12)) + 0.05 * np.sin(columns * chance.uniform(20, 40))
    )
    land = rows > hills
    colours = [
        np.where(land, base_land, base_sky + 60 * rows)
        for base_sky, base_land in ((90, 60), (140, 110), (200, 50))
    ]
    picture = np.stack([np.broadcast_to(colour, (height, width)) for colour in colours], axis=2)
    grained = picture + chance.normal(0, 12, picture.shape)
    file = io.BytesIO()
    Image.fromarray(np.clip(grained, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=88)
    return file.getvalue()


def make_missing(
    folder: Path, seed: int, total: int, say: Callable[[str], None], before: Callable[[], None] = lambda: None
) -> None:
    """Make photographs 1 … `total` of `seed` that `folder` lacks, on all processors.

    `before` is called first where some are missing: it may refuse. Raises OutputError when the disk is full.
    """
    missing = [
        number for number in range(1, total + 1) if not is_whole_jpeg(photograph_path(folder, seed, number))
    ]
    if not missing:
        return
    before()
    say(f"Making {len(missing)} photographs in {folder} (once; some 5 MB and up to a second each) …")
    processors = os.cpu_count() or 1
    shares = [share for index in range(processors) if (share := missing[index::processors])]
    makers = [_start(folder, seed, share) for share in shares]
    try:
        reported_s = time.monotonic()
        while any(maker.poll() is None for maker in makers):
            time.sleep(0.05)
            if time.monotonic() - reported_s >= _SAY_EACH_S:
                reported_s = time.monotonic()
                made = sum(photograph_path(folder, seed, number).exists() for number in missing)
                say(f"… {made} of {len(missing)}")
        said = [maker.communicate()[1].strip() for maker in makers]
    finally:
        for maker in makers:
            if maker.poll() is None:
                maker.terminate()
            maker.wait()
    failed = next((text for maker, text in zip(makers, said, strict=True) if maker.returncode), None)
    if failed is not None:
        why = failed.splitlines()[-1] if failed else "the program that makes them ended"
        raise OutputError(f"photographs cannot be made: {why}; choose another folder with --cache")
    if not all(is_whole_jpeg(photograph_path(folder, seed, number)) for number in missing):
        raise PlimsollError(f"{folder}: photographs are missing although they have just been made")


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for photographs below the XDG cache folder."""
    base = environment.get("XDG_CACHE_HOME") or ""
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "plimsoll" / "images"


def _start(folder: Path, seed: int, numbers: list[int]) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "plimsoll.scenarios.wordpress.content",
        str(folder),
        str(seed),
        *map(str, numbers),
    ]
    here = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(  # noqa: S603 this very package
        command,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def shape(seed: int, number: int) -> tuple[int, int]:
    """Return width and height in pixels of a photograph; one in four stands upright. Pure."""
    chance = random.Random(f"shape {seed} {number}")  # noqa: S311 no secret
    width, height = chance.choice(_SHAPES)
    return (height, width) if chance.random() < 0.25 else (width, height)


def photograph(seed: int, number: int) -> Image.Image:
    """Return photograph `number` of `seed`: soft light, a few shapes, the grain of a sensor. Pure."""
    width, height = shape(seed, number)
    chance = np.random.default_rng([_VERSION, seed, number])
    places = (max(height // 500, 2), max(width // 500, 2))
    light = chance.uniform(40, 215, (*places, 1)) + chance.normal(0, 18, (*places, 3))
    soft = Image.fromarray(np.clip(light, 0, 255).astype(np.uint8))
    picture = soft.resize((width, height), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(picture)
    for _ in range(40):
        left, top = int(chance.integers(0, width)), int(chance.integers(0, height))
        reach = int(chance.integers(40, width // 6))
        grey = chance.uniform(30, 225)
        colour = tuple(int(value) for value in np.clip(grey + chance.normal(0, 25, 3), 0, 255))
        outline = [left, top, left + reach, top + int(reach * chance.uniform(0.4, 1.4))]
        (draw.ellipse if chance.random() < 0.6 else draw.rectangle)(outline, fill=colour)
    return _add_grain(picture, chance)


def _add_grain(picture: Image.Image, chance: np.random.Generator) -> Image.Image:
    """Add noise: one tile of it, moved about, since a whole frame's would take longer than all the rest."""
    width, height = picture.size
    tile = np.clip(chance.normal(128, chance.uniform(4, 8), (1024, 1024)), 0, 255).astype(np.uint8)
    bands = []
    for band in picture.split():
        moved = np.roll(tile, tuple(int(by) for by in chance.integers(0, 1024, 2)), axis=(0, 1))
        noise = np.tile(moved, (-(-height // 1024), -(-width // 1024)))[:height, :width]
        grain = Image.fromarray(np.ascontiguousarray(noise))
        bands.append(ImageChops.add(band, grain, scale=1.0, offset=-128))
    return Image.merge("RGB", bands)


def photograph_path(folder: Path, seed: int, number: int) -> Path:
    """Return the path of photograph `number` of `seed`. Pure."""
    return folder / f"v{_VERSION}-seed{seed}" / f"photograph-{seed}-{number}.jpg"


def is_whole_jpeg(path: Path) -> bool:
    """Return True if `path` is a JPEG from its first marker to its last."""
    try:
        with path.open("rb") as file:
            begins = file.read(2)
            length = file.seek(-2, os.SEEK_END) + 2
            return begins == b"\xff\xd8" and file.read() == b"\xff\xd9" and length > _SMALLEST_JPEG_BYTES
    except OSError:
        return False


def make_photograph(folder: Path, seed: int, number: int) -> Path:
    """Write one photograph by rename, so that it is there whole or not at all. Raises OSError."""
    path = photograph_path(folder, seed, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_replacement(path) as file:
        photograph(seed, number).save(file, "JPEG", quality=_QUALITY)
    return path


def main(arguments: list[str]) -> int:
    """Make the photographs that the command line names; return the exit code."""
    folder, seed, *numbers = arguments
    try:
        for number in numbers:
            make_photograph(Path(folder), int(seed), int(number))
    except OSError as error:
        print(f"{folder}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
