"""Makes photographs: large, each different, the same for each seed, kept in a folder.

As a program (`python -m plimsoll.scenarios.wordpress.images FOLDER SEED NUMBER…`) it makes those named.
"""

import os
import random
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from plimsoll.common.atomic import replacing

# Twelve megapixels and up, as cameras and telephones take them.
_SHAPES = ((4000, 3000), (4032, 3024), (4608, 3456), (5184, 3456), (5472, 3648), (6000, 4000))
_QUALITY = 88
_SMALLEST_BYTES = 100_000
_VERSION = 1  # of their content: a new version makes them again


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
    return _grained(picture, chance)


def _grained(picture: Image.Image, chance: np.random.Generator) -> Image.Image:
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


def file_of(folder: Path, seed: int, number: int) -> Path:
    """Return the path of photograph `number` of `seed`. Pure."""
    return folder / f"v{_VERSION}-seed{seed}" / f"photograph-{seed}-{number}.jpg"


def is_whole(path: Path) -> bool:
    """Return True if `path` is a JPEG from its first marker to its last."""
    try:
        with path.open("rb") as file:
            begins = file.read(2)
            length = file.seek(-2, os.SEEK_END) + 2
            return begins == b"\xff\xd8" and file.read() == b"\xff\xd9" and length > _SMALLEST_BYTES
    except OSError:
        return False


def make(folder: Path, seed: int, number: int) -> Path:
    """Write one photograph by rename, so that it is there whole or not at all. Raises OSError."""
    path = file_of(folder, seed, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        photograph(seed, number).save(file, "JPEG", quality=_QUALITY)
    return path


def main(arguments: list[str]) -> int:
    """Make the photographs that the command line names; return the exit code."""
    folder, seed, *numbers = arguments
    try:
        for number in numbers:
            make(Path(folder), int(seed), int(number))
    except OSError as error:
        print(f"{folder}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
