"""Writes articles: the same for each seed, of the size asked for, marked up as an author would. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape


def _listed(text: str) -> list[str]:
    return text.split("|")


_ADJECTIVES = _listed(
    "quiet|early|broad|narrow|careful|familiar|distant|modest|steady|bright|hollow|"
    "ordinary|northern|southern|wooden|damp|patient|sudden|gentle|heavy|plain|rough|"
    "recent|local|public|private|ancient|curious|practical|uneven|generous|reluctant|"
    "weathered|honest|foreign|seasonal|reliable|shallow|crowded|forgotten"
)
_NOUNS = _listed(
    "harbour|keeper|market|kitchen|letter|valley|station|winter|library|machine|village|"
    "bridge|teacher|garden|river|workshop|evening|council|engine|window|orchard|ferry|"
    "neighbour|lighthouse|newspaper|railway|museum|farmer|captain|café|bakery|archive|"
    "theatre|factory|island|coast|meadow|photograph|recipe|journey|argument|promise|"
    "timetable|crew|cargo|tide|compass|ledger|warehouse|anchor"
)
_VERBS = _listed(
    "opened|closed|crossed|described|followed|repaired|measured|remembered|counted|painted|"
    "carried|avoided|replaced|reached|changed|welcomed|improved|questioned|kept|left|"
    "served|watched|found|shared|borrowed|explained|ignored|noticed|planned|rebuilt|sold|"
    "supplied|taught|tested|visited"
)
_PLACES = _listed(
    "behind the mill|near the old station|along the coast|above the market hall|"
    "in the north of the county|beside the canal|at the end of the pier|on the far bank|"
    "between the two wars|before the first snow|after the long winter|without much notice|"
    "for the better part of a year|against all advice"
)
_LINKS = _listed("and|but|while|so|because|although|until|as soon as|even though|long before")
_OPENINGS = _listed(
    "In the end,|By contrast,|Every morning,|According to the records,|For once,|That year,|"
    "Most of all,|As far as anybody knows,|On Tuesdays,|At first,|Seen from the road,|As a rule,"
)
_SMALLEST_BYTES = 500


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

    def named(self, run: str) -> "Article":
        """The article with the name of a run at the end of its title, by which it is found on the site."""
        return replace(self, title=f"{self.title} {run}")

    def illustrated(self, picture: Picture) -> "Article":
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


def article(seed: int, number: int, most_bytes: int) -> Article:
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


def revised(before: Article, seed: int, number: int, version: int) -> Article:
    """Return the article as it is saved the `version`th time: one part is written anew, not longer."""
    chance = random.Random(f"revision {seed} {number} {version}")  # noqa: S311 no secret
    mark = _mark(seed, number, version)
    at = [index for index, part in enumerate(before.parts) if part.kind == "paragraph"]
    if not at:
        return replace(before, mark=mark)
    index = chance.choice(at)
    parts = list(before.parts)
    parts[index] = _paragraph(_filling(chance, len(parts[index].html.encode()) - len("<p></p>")))
    return replace(before, parts=tuple(parts), mark=mark)


def _mark(seed: int, number: int, version: int) -> str:
    return f"Printed in series {seed} as number {number}, version {version}."


def _parts(chance: random.Random) -> Iterator[Block]:
    """Yield sections without end: a heading now and then, paragraphs, lists, quotes."""
    while True:
        for _ in range(chance.randint(2, 5)):
            yield _paragraph(_sentences(chance, chance.randint(1, 5)))
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


def _sentences(chance: random.Random, count: int) -> str:
    return " ".join(_sentence(chance) for _ in range(count))


def _filling(chance: random.Random, most_bytes: int) -> str:
    """Return sentences of at most so many bytes; at least a word."""
    text = f"{chance.choice(_NOUNS)}."
    while len((longer := f"{text} {_sentence(chance)}").encode()) <= most_bytes:
        text = longer
    return text.partition(" ")[2] or text


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
