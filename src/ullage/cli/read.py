"""``ullage read REF``: open what was set aside."""

from __future__ import annotations

import sys

import click

from ullage.cli._options import json_option, open_kept, print_json, store_options
from ullage.notices import Words
from ullage.recall.read import by_line

__all__ = ["command"]


@click.command("read")
@click.argument("ref")
@click.option("--lines", is_flag=True, help="Number the lines, and print a page of them.")
@click.option("--offset", default=0, show_default=True, help="With --lines: lines to skip.")
@click.option("--limit", default=200, show_default=True, help="With --lines: lines to print.")
@store_options
@json_option
def command(
    ref: str, lines: bool, offset: int, limit: int, store: str | None, tenant: str, as_json: bool
) -> None:
    """Print the original kept under REF, byte for byte."""
    kept = open_kept(store)
    try:
        output = kept.get(tenant, ref)
    finally:
        kept.close()
    text = output.text
    if lines:
        text = by_line(text, ref, offset, limit, Words(recall=False)) + "\n"
    if as_json:
        print_json({"ref": ref, "kind": output.kind, "characters": len(output.text), "text": text})
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
