"""Photographs are uploaded to a real site until all their sizes are there; what is refused is named."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from tests.support import scenario
from tests.support.scenario import Ran, ended, plugin, ran, started, wait_for_step
from tests.support.site import PASSWORD, Site

SIZES = {"thumbnail", "medium", "medium_large", "large", "1536x1536", "2048x2048"}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made photographs, shared by the tests."""
    return tmp_path_factory.mktemp("photographs")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder of two small pictures, where their size does not matter."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in (1, 2):
        Image.new("RGB", (400, 300), (40 * number, 80, 90)).save(folder / f"small-{number}.jpg")
    return folder


def upload(site: Site, tmp_path: Path, *args: str, user: str = "author") -> Ran:
    return ran("upload-images", site.url, tmp_path / "results", *args, user=user)


def attachments(site: Site, run: Ran) -> list[int]:
    """The attachments that a run made, from what it asked of the site."""
    started_at = run.facts["started_at"][:19].replace("T", " ")
    rows = site.sql(
        "SELECT ID FROM wp_posts WHERE post_type = 'attachment' AND post_title LIKE 'photograph-%'"  # noqa: S608
        f" AND post_date_gmt >= '{started_at}' ORDER BY ID"
    )
    return [int(row[0]) for row in rows]


def test_three_photographs_two_at_a_time_have_all_their_sizes(
    site_block: Site, tmp_path: Path, cache: Path
) -> None:
    site = site_block
    seed = ("--seed", "6")
    run = upload(
        site,
        tmp_path,
        "--iterations",
        "3",
        "--users",
        "2",
        "--cache",
        str(cache),
        *seed,
        "--clean-up",
        "never",
    )
    assert run.code == 0, run.said
    assert run.iterations == {1, 2, 3}
    assert run.steps["upload"] == 3
    assert len(run.steps) <= 10
    measures = run.summary["measures"]
    assert measures["image ready"]["count"] == 3
    assert measures["all images ready"]["count"] == 1
    assert measures["server cpu: upload"]["count"] == 3
    made = attachments(site, run)
    assert len(made) == 3
    uploads = site.folder / "wordpress" / "wp-content" / "uploads"
    for number in made:
        meta = site.sql(
            "SELECT meta_value FROM wp_postmeta WHERE meta_key = '_wp_attachment_metadata'"  # noqa: S608
            f" AND post_id = {number}"
        )[0][0]
        files = re.findall(r'"(photograph-6-[^"/]*\.jpg)"', meta)
        names = set(re.findall(r'"([a-z0-9_]+)";a:', meta)) & SIZES
        assert names == SIZES, f"attachment {number}"
        assert len(files) >= len(SIZES) + 1, "the sizes, and the original of what was scaled"
        for name in files:
            found = list(uploads.rglob(name))
            assert found, name
            with Image.open(found[0]) as picture:
                picture.load()


@pytest.mark.parametrize("fixture", ["site_block", "site_classic"])
def test_clean_up_takes_images_and_files_away(
    request: pytest.FixtureRequest, fixture: str, tmp_path: Path, small: Path
) -> None:
    site: Site = request.getfixturevalue(fixture)
    run = upload(site, tmp_path, "--images", str(small), "--iterations", "3", "--clean-up", "always")
    assert run.code == 0, run.said
    assert run.steps["clean up"] == 3
    assert run.facts["scenario_settings"]["own_images"] is True
    assert str(small) not in (run.directory / "run.json").read_text().replace(json.dumps(str(small)), "")
    uploads = site.folder / "wordpress" / "wp-content" / "uploads"
    assert not list(uploads.rglob("small-1*.jpg"))


def test_what_is_no_image_is_refused_and_named(site_block: Site, tmp_path: Path, small: Path) -> None:
    (small / "small-1.jpg").write_text("a text that calls itself a photograph")
    run = upload(site_block, tmp_path, "--images", str(small), "--iterations", "4", "--clean-up", "always")
    assert run.code == 1
    assert run.facts["status"] == "complete", "the other images were uploaded"
    assert run.errors == [("upload", "upload_refused")] * 2
    assert "not allowed to upload this file type" in run.details


def test_a_plugin_that_refuses_is_quoted(site_block: Site, tmp_path: Path, small: Path) -> None:
    refusing = (
        "add_filter( 'wp_handle_upload_prefilter',"
        " function ( $f ) { $f['error'] = 'Quota of the house.'; return $f; } );"
    )
    with plugin(site_block.folder, refusing):
        run = upload(site_block, tmp_path, "--images", str(small), "--iterations", "2")
    assert run.facts["status"] == "failed"
    assert run.errors == [("upload", "upload_refused")] * 2
    assert "Quota of the house." in run.details


@pytest.mark.parametrize("user", ["contributor", "subscriber"])
def test_an_account_that_may_not_upload_is_named(
    site_block: Site, tmp_path: Path, small: Path, user: str
) -> None:
    run = upload(site_block, tmp_path, "--images", str(small), "--iterations", "2", user=user)
    assert run.facts["status"] == "failed"
    assert run.errors == [("upload page", "no_permission")]


def test_an_upload_right_that_is_lost_in_mid_run_is_named(
    site_block: Site, tmp_path: Path, small: Path
) -> None:
    lost = (
        "add_filter( 'user_has_cap', function ( $c ) {"
        " if ( strpos( $_SERVER['REQUEST_URI'], 'async-upload' ) ) { unset( $c['upload_files'] ); }"
        " return $c; } );"
    )
    with plugin(site_block.folder, lost):
        run = upload(site_block, tmp_path, "--images", str(small), "--iterations", "3")
    assert run.facts["status"] == "failed"
    assert run.errors == [("upload", "no_permission")]


def test_a_nonce_that_expires_in_mid_run_is_counted_and_renewed(
    site_block: Site, tmp_path: Path, small: Path
) -> None:
    out = tmp_path / "results"
    args = ("--images", str(small), "--iterations", "60", "--clean-up", "always")
    process = started("upload-images", site_block.url, out, *args)
    wait_for_step(process, out, "upload")
    with scenario.other_nonces(site_block.folder):
        run = ended(process, out)
    assert ("upload", "nonce_expired") in run.errors
    assert run.facts["status"] == "complete"
    assert run.summary["measures"]["image ready"]["count"] == 60


def test_sizes_that_never_come_are_a_failure(site_block: Site, tmp_path: Path, small: Path) -> None:
    lazy = (
        "add_filter( 'wp_generate_attachment_metadata',"
        " function ( $m ) { $m['sizes'] = array(); return $m; }, 99 );"
    )
    with plugin(site_block.folder, lazy):
        run = upload(site_block, tmp_path, "--images", str(small), "--iterations", "1", "--ready-s", "1")
    assert run.code == 1
    assert run.errors == [("check sizes", "check_failed")]
    assert "thumbnail" in run.details
    assert run.steps["clean up"] == 1, "the image is taken away again"


def test_a_full_disk_is_named(site_block: Site, tmp_path: Path, cache: Path) -> None:
    full = (
        "add_filter( 'upload_dir', function ( $d ) {"
        " $d['path'] = '/dev/shm/full'; $d['basedir'] = '/dev/shm'; $d['subdir'] = '/full'; return $d; } );"
    )
    fill = "mkdir -p -m 777 /dev/shm/full; head -c 99999999 /dev/zero >/dev/shm/fill || :"
    site_block.on("php", "sh", "-c", fill)
    try:
        with plugin(site_block.folder, full):
            run = upload(site_block, tmp_path, "--iterations", "1", "--cache", str(cache), "--seed", "6")
    finally:
        site_block.on("php", "rm", "-rf", "/dev/shm/full", "/dev/shm/fill")
    assert run.facts["status"] == "failed"
    assert run.errors == [("upload", "out_of_disk")]


def test_a_fatal_error_while_sizes_are_made_is_named(site_block: Site, tmp_path: Path, small: Path) -> None:
    broken = (
        "add_filter( 'intermediate_image_sizes_advanced', function () { plimsoll_no_such_function(); } );"
    )
    with plugin(site_block.folder, broken):
        run = upload(site_block, tmp_path, "--images", str(small), "--iterations", "1")
    assert run.errors == [("upload", "php_fatal")]
    assert run.steps["clean up"] == 1, "the reply named the half-made attachment"


def test_ctrl_c_ends_the_run_and_the_password_is_nowhere(
    site_block: Site, tmp_path: Path, small: Path
) -> None:
    out = tmp_path / "results"
    args = ("--images", str(small), "--iterations", "1000", "--clean-up", "always")
    process = started("upload-images", site_block.url, out, *args)
    wait_for_step(process, out, "upload", 2)
    scenario.interrupt(process)
    run = ended(process, out)
    assert run.facts["status"] == "interrupted"
    assert run.steps["clean up"] == run.steps["upload"]
    assert scenario.files_with(out, PASSWORD) == []
    assert PASSWORD not in run.said
