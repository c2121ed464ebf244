"""Small pictures: 256 colours are enough for a page, and make a tenth of the bytes.

The browser that drew the page also counts its colours; what is left is to write them down as a PNG with
a palette.
"""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

# Each pixel becomes the nearest of the 256 most frequent colours that are apart from each other.
REDUCE = """
async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const {width, height} = image;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const distance = ([r, g, b], [x, y, z]) => (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([pixel]) => parts(pixel));
  const palette = [];
  for (const apart of [48, 12, 0]) {
    for (const colour of frequent) {
      if (palette.length === 256) break;
      if (palette.every((other) => distance(colour, other) > apart)) palette.push(colour);
    }
  }
  const nearest = new Map();
  const indexOf = (pixel) => {
    const colour = parts(pixel);
    let best = 0;
    for (let i = 1; i < palette.length; i++) {
      if (distance(colour, palette[i]) < distance(colour, palette[best])) best = i;
    }
    nearest.set(pixel, best);
    return best;
  };
  const text = new Array(pixels.length);
  pixels.forEach((pixel, i) => {
    text[i] = String.fromCharCode(nearest.get(pixel) ?? indexOf(pixel));
  });
  return {width, height, palette: palette.flat(), indexes: btoa(text.join(""))};
}
"""


def take(page: Page, path: Path) -> None:
    """Write what the window shows to ``path``."""
    shown = base64.b64encode(page.screenshot(animations="disabled")).decode()
    # In a page of its own: the console's content policy allows no picture from data.
    with page.context.expect_page() as opened:
        page.context.new_page()
    drawing = opened.value
    reduced: dict[str, Any] = drawing.evaluate(REDUCE, shown)
    drawing.close()
    path.write_bytes(_png(reduced))


def _png(reduced: dict[str, Any]) -> bytes:
    width, height = reduced["width"], reduced["height"]
    indexes = base64.b64decode(reduced["indexes"])
    # Rows without a filter: neighbours in a palette are not alike, so none would help.
    rows = b"".join(b"\0" + indexes[y * width : (y + 1) * width] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", bytes(reduced["palette"])),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
