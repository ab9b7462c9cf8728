"""Take the README's pictures of the running page anew: docs/writer.png and docs/writing.gif.

python -m tests.support.readme_pictures
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image

from tests.support import browser as browsers
from tests.support.browser import Visit

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "After a long walk along the river, she sat down"
STILL = {"width": 1280, "height": 800}
MOVING = {"width": 1024, "height": 640}
TYPED_MS, SETTLED_MS, POINTED_MS, CHOSEN_MS, LAST_MS = 220, 1600, 900, 700, 3300
"""How long the frames of the animation are seen: while typing, with new rows, before a click, after it, at the end."""
CLICKS = ((1, 2), (0, 3), (2, 2))
"""Row and token of each click."""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        browsers.app(Path(folder) / "log", *browsers.model_arguments()) as app,
        browsers.chromium() as chromium,
    ):
        with browsers.visit(chromium, app.url, odds="words", viewport=STILL) as visit:
            visit.wait_for_status("ready")
            visit.type(TEXT)
            for row, token in CLICKS[:2]:
                _choose(visit, row, token)
            visit.wait_until_settled()
            visit.page.mouse.move(0, 0)
            visit.page.wait_for_selector("#branches .token[data-ahead]")
            (DOCS / "writer.png").write_bytes(visit.page.screenshot())
        with browsers.visit(chromium, app.url, odds="words", viewport=MOVING) as visit:
            visit.wait_for_status("ready")
            _save(_frames(visit), DOCS / "writing.gif")


def _frames(visit: Visit) -> list[tuple[bytes, int]]:
    """Return screenshots of typing and of some clicks, each with the milliseconds that it is seen."""
    frames = [(visit.page.screenshot(), POINTED_MS)]
    words = TEXT.split()
    for end in range(2, len(words) + 1, 2):
        visit.type(" ".join(words[:end])[len(visit.text) :])
        frames.append((visit.page.screenshot(), TYPED_MS))
    visit.wait_until_settled()
    frames.append((visit.page.screenshot(), SETTLED_MS))
    for row, token in CLICKS:
        visit.token(row, token).hover()
        frames.append((visit.page.screenshot(), POINTED_MS))
        _choose(visit, row, token)
        frames.append((visit.page.screenshot(), CHOSEN_MS))
        visit.wait_until_settled()
        frames.append((visit.page.screenshot(), SETTLED_MS))
    return [*frames[:-1], (frames[-1][0], LAST_MS)]


def _choose(visit: Visit, row: int, token: int) -> None:
    visit.wait_until_settled()
    visit.token(row, token).click()


def _save(frames: list[tuple[bytes, int]], file: Path) -> None:
    first, *others = [Image.open(io.BytesIO(picture)).convert("RGB").quantize(64, dither=0) for picture, _ in frames]
    durations = [duration for _, duration in frames]
    first.save(file, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


if __name__ == "__main__":
    main()
