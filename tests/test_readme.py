"""The README's example runs as it stands there, and prints what stands there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def between(name: str) -> str:
    found = re.search(f"<!-- {name}: begin -->(.*?)<!-- {name}: end -->", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_language_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", between("language example"), re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", between("language example"), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown
