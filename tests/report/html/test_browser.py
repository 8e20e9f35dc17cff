"""The page in a browser: headless Chromium, where there is one. Screenshots stay in `build/html`."""

from __future__ import annotations

import html as markup
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.html.conftest import HOSTILE

SHOTS = Path(__file__).parents[3] / "build" / "html"

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"no browser: none of {', '.join(_NAMES)}, no $CHROMIUM")

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr"),
)
DARK = "--blink-settings=preferredColorScheme=0"


def browse(tmp_path: Path, text: str, *flags: str, at: str = "") -> str:
    """Open the page and return what Chromium prints; the console has to stay empty."""
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    profile = tmp_path / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    command = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}", *flags, f"{path.as_uri()}{at}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not console, console
    return done.stdout


def test_every_part_is_drawn(tmp_path: Path, html: str) -> None:
    dom = browse(tmp_path, html, "--dump-dom", at="#point-3")
    assert 'data-ready="yes"' in dom
    for part in ("points", "why", "what-if", "block", "timeline", "memory", "bound", "assumptions", "again"):
        assert f'id="{part}"' in dom, part
    assert "Point 3 of 3" in dom and dom.count('role="radio"') == 3
    assert dom.count('class="span"') == 34  # 32 layers, the embedding and the head, on two stages
    assert "<img" not in dom and markup.escape(HOSTILE, quote=False) in dom


def test_it_tells_where_scripts_or_connections_are_refused(tmp_path: Path, html: str) -> None:
    """The test above can fail: a script that the policy does not know is reported."""
    with pytest.raises(AssertionError, match="CONSOLE"):
        browse(tmp_path, html.replace("</main>", "</main><script>document.title = 'x'</script>"), "--dump-dom")


def test_keys_walk_along_the_frontier(tmp_path: Path, html: str) -> None:
    keys = """<script>
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const told = [];
    document.querySelector(".dot").focus();
    for (const key of ["ArrowRight", "End", "Home", "ArrowDown", "ArrowDown"]) {
      press(key);
      told.push(document.querySelector("#summary h3").textContent + " " + !document.querySelector("#tip").hidden);
    }
    press("Escape");
    told.push(document.querySelector("#tip").hidden);
    document.querySelector("[role=tab][tabindex='0']").focus();
    press("Home");
    told.push(document.activeElement.textContent + " " + document.activeElement.getAttribute("aria-selected"));
    document.querySelector(".span[tabindex='0']").focus();
    press("End");
    told.push(document.querySelector("#tip").textContent.split("\\n")[0]);
    press("Enter");
    told.push(document.querySelector("[role=tab][aria-selected=true]").textContent);
    document.body.dataset.told = told.join("; ");
    </script></body>"""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html).replace("</body>", keys)
    dom = browse(tmp_path, text, "--dump-dom")
    (told,) = re.findall(r'data-told="([^"]*)"', dom)
    assert told.split("; ") == [
        *(f"Point {n} of 3 true" for n in (2, 3, 1, 2, 3)),
        "true",
        "embed true",
        "head",
        "head",
    ]


@pytest.mark.parametrize(("name", "size", "flags"), [("light", "1280,3000", ()), ("dark-narrow", "500,3000", (DARK,))])
def test_a_screenshot_is_kept(tmp_path: Path, html: str, name: str, size: str, flags: tuple[str, ...]) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    shot = SHOTS / f"report-{name}.png"
    shot.unlink(missing_ok=True)
    browse(tmp_path, html, f"--window-size={size}", f"--screenshot={shot}", *flags, at="#point-2")
    assert shot.read_bytes().startswith(b"\x89PNG") and shot.stat().st_size > 20_000
