"""`python -m tests.docs.reprint [PAGE…]`: run the commands of pages again and write what they print into them.

Prose beside an output is not touched: read the diff."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import Block, Page, Shown, all_pages
from tests.docs.running import as_shown, prepare, run, same, write_file


def reprint(page: Page) -> int:
    """Rewrite the outputs of a page that changed; how many."""
    rewritten: list[tuple[Shown, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(folder)
        for block in page.blocks:
            if block.file:
                write_file(block, folder)
            rewritten.extend(_outputs(page, block, folder))
    text = page.text
    for shown, new in reversed(rewritten):  # from the end, so that the places before stay where they are
        start, end = shown.span
        text = text[:start] + new + text[end:]
    if rewritten:
        page.path.write_text(text, encoding="utf-8")
    return len(rewritten)


def _outputs(page: Page, block: Block, folder: Path) -> Iterator[tuple[Shown, str]]:
    """Each command of a block whose output is no longer what is shown, with what to show."""
    for shown in block.commands:
        status, printed = run(shown.command, folder)
        if shown.output is None:
            if status:
                print(f"{page.name}:{shown.line}: exit status {status}\n{printed}", file=sys.stderr)
        elif not same(shown.output, printed):
            yield shown, as_shown(shown.output, printed)


def main() -> None:
    wanted = sys.argv[1:]
    for page in all_pages():
        if not wanted or page.name in wanted:
            print(f"{page.name}: {reprint(page)} outputs rewritten", flush=True)


if __name__ == "__main__":
    main()
