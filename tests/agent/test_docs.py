"""The Python example of docs/agent.md prints what stands there. Its commands are run with those of the other pages."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "agent.md").read_text(encoding="utf-8")


def test_python_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (graph,) = re.findall(r"<!-- file: block.rl -->\n```text\n(.*?)```", PAGE, re.DOTALL)
    Path("block.rl").write_text(graph, encoding="utf-8")
    (example,) = re.findall(r"<!-- python example: begin -->(.*?)<!-- python example: end -->", PAGE, re.DOTALL)
    (code,) = re.findall(r"```python\n(.*?)```", example, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", example, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "agent.md", "exec"), {})
    assert printed.getvalue() == shown
