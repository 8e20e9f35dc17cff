"""`python -m tests.docs.reprint [PAGE…]`: run the commands of pages again and write what they print into them.

Prose beside an output is not touched: read the diff."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.pages import Block, Page, all_pages
from tests.docs.running import as_shown, prepare, run, same, write_file


def reprint(page: Page) -> int:
    """Rewrite the outputs of a page that changed; how many."""
    text, changed = page.text, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(folder)
        for block in page.blocks:
            if block.file:
                write_file(block, folder)
            for old, new in _outputs(page, block, folder):
                text, changed = text.replace(old, new, 1), changed + 1
    if changed:
        page.path.write_text(text, encoding="utf-8")
    return changed


def _outputs(page: Page, block: Block, folder: Path) -> list[tuple[str, str]]:
    """Old and new text of each command of a block whose output is no longer what is shown."""
    out = []
    for shown in block.commands:
        status, printed = run(shown.command, folder)
        if shown.output is None:
            if status:
                print(f"{page.name}:{shown.line}: exit status {status}\n{printed}", file=sys.stderr)
        elif not same(shown.output, printed):
            typed = "$ " + shown.command.replace("\n", "\n> ") + "\n"
            out.append((typed + shown.output, typed + as_shown(shown.output, printed)))
    return out


def main() -> None:
    wanted = sys.argv[1:]
    for page in all_pages():
        if not wanted or page.name in wanted:
            print(f"{page.name}: {reprint(page)} outputs rewritten", flush=True)


if __name__ == "__main__":
    main()
