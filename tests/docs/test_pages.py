"""Every command that README.md and docs/ show runs, and prints what is shown. `make reprint` writes what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Page, Shown, all_pages
from tests.docs.reprint import reprint
from tests.docs.running import as_shown, prepare, run, same, write_file


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.slow else []) for page in all_pages()],
)
def test_commands(page: Page, tmp_path: Path) -> None:
    prepare(tmp_path)
    for block in page.blocks:
        if block.file:
            write_file(block, tmp_path)
        for shown in block.commands:
            check(page, shown, tmp_path)


def check(page: Page, shown: Shown, folder: Path) -> None:
    status, printed = run(shown.command, folder)
    where = f"{page.name}:{shown.line}: {shown.command}"
    if shown.output is None:
        assert status == 0, f"{where}\n{printed}"
    else:
        assert same(shown.output, printed), f"{where}\nshown:\n{shown.output}\nprinted:\n{printed}"


def test_left_out_lines() -> None:
    assert same("a\n…\nd\n", "a\nb\nc\nd\n")
    assert not same("a\n…\nd\n", "a\nb\nc\n")
    assert not same("a\nd\n", "a\nb\nd\n")
    assert same("done after 3.1 s\n", "done after 12 s\n")
    assert same("done after 3.1 s\n", "done after 871.2 ms\n")
    assert not same("a step of 3.1 s\n", "a step of 12 s\n")
    assert as_shown("x\n…\ny\nz\n", "1\n2\n3\n4\n5\n") == "1\n…\n4\n5\n"
    assert as_shown("x\n…\ny\nz\n", "1\n2\n") == "1\n…\n2\n"


def test_pages_are_read(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "<!-- file: a.txt -->\n```text\nhello\n```\n\n```console\n$ cat \\\n> a.txt\nhello\n$ true\n```\n\n"
        "<!-- not run: no such thing -->\n```sh\nfalse\n```\n\n```sh\n# nothing\necho a \\\n  b\n```\n",
        encoding="utf-8",
    )
    page = Page.read(path)
    assert [block.file for block in page.blocks] == ["a.txt", "", ""]
    shown = [shown for block in page.blocks for shown in block.commands]
    assert [(s.line, s.command, s.output) for s in shown] == [
        (7, "cat \\\na.txt", "hello\n"),
        (10, "true", ""),
        (20, "echo a \\\n  b", None),
    ]
    write_file(page.blocks[0], tmp_path)
    assert [run(s.command, tmp_path) for s in shown] == [(0, "hello\n"), (0, ""), (0, "a b\n")]


def test_commands_that_are_typed_twice_keep_their_places(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    typed = "$ cat a\n{}$ echo x >> a\n$ cat a\n{}$ cat a\n{}"
    page = "<!-- not run: why -->\n```console\n$ cat a\n```\n<!-- file: a -->\n```\nx\n```\n```console\n{}```\n"
    path.write_text(page.format(typed.format("x\n", "x\n", "")), encoding="utf-8")
    found = Page.read(path)
    assert [shown.line for shown in found.blocks[1].commands] == [10, 12, 13, 15]
    assert reprint(found) == 2
    assert path.read_text(encoding="utf-8") == page.format(typed.format("x\n", "x\nx\n", "x\nx\n"))
