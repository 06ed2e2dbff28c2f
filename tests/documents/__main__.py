"""What the documents still ask for, and their pages.

python -m tests.documents open [DOCUMENT …] [--part-two]   what no test proves yet
python -m tests.documents write                            docs/documents, from the marks
"""

import argparse
import sys
from itertools import groupby

from tests.documents import pages
from tests.documents.inventory import inventories, open_units, wrong_quotes
from tests.documents.marks import collected
from tests.documents.reading import document


def main():
    """Do what was asked; the status is 1 if something is open or wrong."""
    known = inventories()
    parser = argparse.ArgumentParser(prog="python -m tests.documents")
    commands = parser.add_subparsers(dest="command", required=True)
    still = commands.add_parser("open", help="what no test proves yet")
    still.add_argument(
        "documents", nargs="*", metavar="DOCUMENT", default=list(known)
    )
    still.add_argument(
        "--part-two", action="store_true", help="of summaries and compaction"
    )
    commands.add_parser("write", help="write docs/documents from the marks")
    asked = parser.parse_args()
    if asked.command == "write":
        for page, text in pages.written().items():
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")
        return 0
    if unknown := set(asked.documents) - set(known):
        parser.error(
            f"no document {', '.join(sorted(unknown))}: there are {', '.join(known)}"
        )
    return max(
        _show(name, known[name], part_two=asked.part_two)
        for name in asked.documents
    )


def _show(name, inventory, *, part_two):
    """Print what is open of one document, in its order and by its sections."""
    text = document(name)
    if text is None:
        sys.exit(
            "the documents are not at hand: they belong into ../shared/specs"
        )
    marks = [mark for mark in collected() if mark.document == name]
    wrong = list(wrong_quotes(text, marks))
    left = open_units(text, inventory, marks, part_two=part_two)
    lines = [f"{name}: {len(left)} units to prove", *wrong]
    for section, units in groupby(left, key=lambda unit: unit.section):
        lines += [
            "",
            f"  {section}",
            *(f"  {unit.line:>6}  {unit.text}" for unit in units),
        ]
    sys.stdout.write("\n".join([*lines, "", ""]))
    return 1 if left or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
