"""The page of pictures of the larger sites: how many there are, and their markup."""

import json
import re
import subprocess

from tests.support.programs import ROOT, need

SCRIPT = """
foreach (['Dice', 'Words', 'Article', 'Plan'] as $class) {
    require "%s/site/seed/$class.php";
}
$sizes = ['small', 'medium', 'large'];
$dice = new Dice(1, 'gallery');
$image = fn(int $id): array => [$id, "/wp-content/uploads/$id-300x225.jpg", "picture $id"];
echo json_encode([
    array_map(fn(string $size): int => Plan::of($size, 4_000_000_000)->gallery_images, $sizes),
    (new Article($dice, new Words($dice, 100)))->gallery(array_map($image, range(1, 100))),
]);
"""


def test_a_page_of_a_hundred_pictures() -> None:
    line = [need("php"), "-r", SCRIPT % ROOT]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    counts, markup = json.loads(done.stdout)
    assert counts == [0, 100, 100], "small, medium, large"
    shown = re.findall(r'<img src="([^"]*)" alt="([^"]*)" class="wp-image-(\d+)"/>', markup)
    assert shown == [
        (f"/wp-content/uploads/{id_}-300x225.jpg", f"picture {id_}", str(id_)) for id_ in range(1, 101)
    ]
    opened, closed = (re.findall(rf"<!-- {slash}wp:(\w+)", markup) for slash in ("", "/"))
    assert sorted(opened) == sorted(closed) == ["gallery", *["image"] * 100]
