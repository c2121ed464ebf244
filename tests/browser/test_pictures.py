"""The pictures of the documentation: small, like the page, and one of every page that they name."""

from __future__ import annotations

import base64
from pathlib import Path

from django.urls import get_resolver
from playwright.sync_api import Page

from tests.browser.conftest import OpenWindow
from tests.screenshots.__main__ import FOLDER, PAGES, THEMES
from tests.screenshots.pictures import take

# How far a pixel of one picture may be from the other's in red, green or blue, of 255.
FURTHEST = """
async ([one, other]) => {
  const pixels = async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height).data;
  };
  const [a, b] = [await pixels(one), await pixels(other)];
  if (a.length !== b.length) return 256;
  return a.reduce((most, part, i) => Math.max(most, Math.abs(part - b[i])), 0);
}
"""


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def furthest(drawing: Page, one: bytes, other: bytes) -> int:
    difference: int = drawing.evaluate(FURTHEST, [in_base64(one), in_base64(other)])
    return difference


def test_a_picture_is_small_and_looks_like_the_page(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    page = open_window(None).page
    page.goto("/accounts/login/")
    page.wait_for_load_state("networkidle")
    shown = page.screenshot(animations="disabled", caret="hide")
    take(page, tmp_path / "login.png")

    picture = (tmp_path / "login.png").read_bytes()
    assert len(picture) < 0.8 * len(shown)
    assert furthest(page.context.new_page(), shown, picture) < 32


def test_every_page_that_is_to_be_drawn_exists_and_was_drawn_small() -> None:
    known = set(get_resolver().reverse_dict)
    assert not set(PAGES) - known
    for name in PAGES:
        for theme in THEMES:
            picture = FOLDER / f"{name}-{theme}.png"
            assert picture.exists(), f"{picture.name} is missing: run `make screenshots`"
            assert picture.stat().st_size < 100_000
