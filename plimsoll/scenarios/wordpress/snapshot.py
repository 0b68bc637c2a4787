"""A photograph as people put it into an article: small enough to be made in memory, in a moment."""

import io

import numpy as np
from PIL import Image


def snapshot(seed: int, number: int = 0, *, width: int = 1600, height: int = 1067) -> bytes:
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
