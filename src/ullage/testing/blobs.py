"""The proof of `ullage.stores.Blobs`: every promise is a test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ullage.errors import RefNotFound, StoreError
from ullage.history.canon import ref_of
from ullage.stores import Blobs
from ullage.testing._samples import HUGE, ODD, Opened, expect, fails_with, in_threads, output
from ullage.values.effects import Output

__all__ = ["BlobsContract"]


class BlobsContract(Opened):
    """Inherit from it and say how one is opened."""

    def test_every_text_comes_back_as_it_was(self) -> None:
        """Lone surrogates, NUL, nothing at all: a str is a str."""
        for kind in ("text", "block"):
            for text in ODD:
                with self.opened() as blobs:
                    blobs.put("t", [output(text, kind)])
                    expect(blobs.get("t", ref_of(text, kind)), output(text, kind), "it comes back")

    def test_its_chunks_join_to_the_text_and_are_what_the_shape_says(self) -> None:
        """Recall pages by these counts, and never reads the whole."""
        for text in (*ODD, HUGE):
            with self.opened() as blobs:
                blobs.put("t", [output(text)])
                _check_chunks(blobs, text)

    def test_an_unknown_ref_is_not_found_whatever_it_looks_like(self) -> None:
        """A ref comes from a model."""
        with self.opened() as blobs:
            blobs.put("t", [output("kept")])
            for ref in ("", "../../etc/passwd", "a\x00b", "\ud800", "x" * 300, "Ａ"):
                for read in _reads(blobs):
                    error = fails_with(RefNotFound, partial(read, "t", ref), "it is not there")
                    expect(error.ref, ref, "the error names the ref")

    def test_what_a_tenant_put_no_other_reads(self) -> None:
        """A ref opens for who put it, even where two put the same."""
        shared, own = output("both hold this"), output("only one holds this")
        with self.opened() as blobs:
            blobs.put("one", [shared, own])
            blobs.put("two", [shared])
            expect(blobs.get("two", shared.ref), shared, "both may read it")
            for read in _reads(blobs):
                fails_with(RefNotFound, partial(read, "two", own.ref), "it is not theirs")

    def test_putting_twice_is_putting_once(self) -> None:
        """A put is done again after any failure."""
        with self.opened() as blobs:
            for _ in range(3):
                blobs.put("t", [output("x"), output("y"), output("x")])
            expect(blobs.get("t", output("x").ref), output("x"), "it comes back")

    def test_a_ref_taken_by_other_content_is_refused(self) -> None:
        """What was kept first stays, and no content is in the error."""
        forged = Output(ref_of("original"), "forged")
        with self.opened() as blobs:
            blobs.put("t", [output("original")])
            error = fails_with(StoreError, lambda: blobs.put("t", [forged]), "the ref is taken")
            expect(error.key, forged.ref, "the error names the ref")
            expect("forged" in str(error), False, "no content in an error")
            expect(blobs.get("t", forged.ref).text, "original", "the first one stays")

    def test_the_kind_is_part_of_the_content(self) -> None:
        """A block is not a text that reads the same."""
        with self.opened() as blobs:
            blobs.put("t", [Output("r", "same", "text")])
            fails_with(StoreError, lambda: blobs.put("t", [Output("r", "same", "block")]), "taken")
            fails_with(
                StoreError, lambda: blobs.put("t", [Output("q", "1"), Output("q", "2")]), "taken"
            )

    def test_threads_that_put_the_same_in_any_order_do_not_hinder_each_other(self) -> None:
        """Two writers of the same outputs must not wait for each other for ever."""
        outputs = [output(f"{n}" * 500) for n in range(12)]
        with self.opened() as blobs:
            errors = in_threads(6, lambda me: blobs.put("t", outputs if me % 2 else outputs[::-1]))
            expect(errors, [], "nobody fails")
            for out in outputs:
                expect(blobs.get("t", out.ref), out, "it comes back")


def _check_chunks(blobs: Blobs, text: str) -> None:
    ref = ref_of(text)
    shape = blobs.look("t", ref)
    chunks = [blobs.chunk("t", ref, n) for n in range(len(shape.chunks))]
    expect("".join(chunks) == text, True, "the chunks join to the text")
    expect((shape.ref, shape.kind, shape.chars), (ref, "text", len(text)), "the shape is its own")
    for chunk, extent in zip(chunks, shape.chunks, strict=True):
        counts = (extent.chars, extent.size_bytes, extent.newlines)
        size_bytes = len(chunk.encode("utf-8", "surrogatepass"))
        expect(counts, (len(chunk), size_bytes, chunk.count("\n")), "a chunk's extent")
    for beyond in (-1, len(chunks)):
        fails_with(RefNotFound, partial(blobs.chunk, "t", ref, beyond), "there is no such chunk")


def _reads(blobs: Blobs) -> tuple[Callable[[str, str], object], ...]:
    """Every way to read, by tenant and ref."""
    return blobs.get, blobs.look, lambda tenant, ref: blobs.chunk(tenant, ref, 0)
