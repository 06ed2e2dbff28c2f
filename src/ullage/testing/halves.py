"""The proof of the two halves of a store, `ullage.stores.Blobs` and `ullage.stores.Records`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ullage import Output, Record
from ullage.core.errors import RefNotFound, StoreError
from ullage.stores import Blobs, ref_of
from ullage.testing._samples import (
    HUGE,
    ODD,
    Contract,
    batch,
    expect,
    fails_with,
    in_threads,
    output,
)

__all__ = ["BlobsContract", "RecordsContract"]


class BlobsContract(Contract):
    """The promises of `ullage.stores.Blobs`, as tests to inherit.

        class TestMyBlobs(BlobsContract):
            def open(self):
                return MyBlobs()

    A broken promise is an AssertionError that names it.
    """

    def test_every_text_comes_back_as_it_was(self) -> None:
        """Lone surrogates, NUL, nothing at all: a str is a str."""
        for kind in ("text", "block"):
            for text in ODD:
                with self.opened() as blobs:
                    blobs.put("t", [output(text, kind)])
                    expect(
                        blobs.get("t", ref_of(text, kind)),
                        output(text, kind),
                        "it comes back",
                    )

    def test_its_chunks_join_to_the_text_and_are_what_the_shape_says(
        self,
    ) -> None:
        """Recall pages through a text by these counts and never reads all of it."""
        for text in (*ODD, HUGE):
            with self.opened() as blobs:
                blobs.put("t", [output(text)])
                _check_chunks(blobs, text)

    def test_an_unknown_ref_is_not_found_whatever_it_looks_like(self) -> None:
        """A ref comes from a model."""
        with self.opened() as blobs:
            blobs.put("t", [output("kept")])
            for ref in (
                "",
                "../../etc/passwd",
                "a\x00b",
                "\ud800",
                "x" * 300,
                "Ａ",
            ):
                for read in _reads(blobs):
                    error = fails_with(
                        RefNotFound, partial(read, "t", ref), "it is not there"
                    )
                    expect(error.ref, ref, "the error names the ref")

    def test_what_a_tenant_put_no_other_reads(self) -> None:
        """A ref opens for who put it, even where two put the same."""
        shared = output("both hold this")
        private = output("only one holds this")
        with self.opened() as blobs:
            blobs.put("one", [shared, private])
            blobs.put("two", [shared])
            expect(blobs.get("two", shared.ref), shared, "both may read it")
            for read in _reads(blobs):
                fails_with(
                    RefNotFound,
                    partial(read, "two", private.ref),
                    "it is not theirs",
                )

    def test_putting_twice_is_putting_once(self) -> None:
        """A put is done again after any failure."""
        with self.opened() as blobs:
            for _ in range(3):
                blobs.put("t", [output("x"), output("y"), output("x")])
            expect(
                blobs.get("t", output("x").ref), output("x"), "it comes back"
            )

    def test_a_ref_taken_by_other_content_is_refused(self) -> None:
        """What was kept first stays, and no content is in the error."""
        forged = Output(ref_of("original"), "forged")
        with self.opened() as blobs:
            blobs.put("t", [output("original")])
            error = fails_with(
                StoreError,
                lambda: blobs.put("t", [forged]),
                "the ref is taken",
            )
            expect(error.key, forged.ref, "the error names the ref")
            expect("forged" in str(error), False, "no content in an error")
            expect(
                blobs.get("t", forged.ref).text,
                "original",
                "the first one stays",
            )

    def test_the_kind_is_part_of_the_content(self) -> None:
        """A block is not a text that reads the same."""
        with self.opened() as blobs:
            blobs.put("t", [Output("r", "same", "text")])
            fails_with(
                StoreError,
                lambda: blobs.put("t", [Output("r", "same", "block")]),
                "taken",
            )
            fails_with(
                StoreError,
                lambda: blobs.put("t", [Output("q", "1"), Output("q", "2")]),
                "taken",
            )

    def test_threads_that_put_the_same_in_any_order_do_not_hinder_each_other(
        self,
    ) -> None:
        """Two writers of the same outputs must not wait for each other for ever."""
        outputs = [output(f"{n}" * 500) for n in range(12)]
        with self.opened() as blobs:
            errors = in_threads(
                6,
                lambda me: blobs.put(
                    "t", outputs if me % 2 else outputs[::-1]
                ),
            )
            expect(errors, [], "nobody fails")
            for out in outputs:
                expect(blobs.get("t", out.ref), out, "it comes back")


def _check_chunks(blobs: Blobs, text: str) -> None:
    ref = ref_of(text)
    shape = blobs.stat("t", ref)
    chunks = [blobs.chunk("t", ref, n) for n in range(len(shape.chunks))]
    expect("".join(chunks) == text, True, "the chunks join to the text")
    expect(
        (shape.ref, shape.kind, shape.chars),
        (ref, "text", len(text)),
        "the shape is its own",
    )
    for chunk, extent in zip(chunks, shape.chunks, strict=True):
        counts = (extent.chars, extent.size_bytes, extent.newlines)
        size_bytes = len(chunk.encode("utf-8", "surrogatepass"))
        expect(
            counts,
            (len(chunk), size_bytes, chunk.count("\n")),
            "a chunk's extent",
        )
    for beyond in (-1, len(chunks)):
        fails_with(
            RefNotFound,
            partial(blobs.chunk, "t", ref, beyond),
            "there is no such chunk",
        )


def _reads(blobs: Blobs) -> tuple[Callable[[str, str], object], ...]:
    """Every way to read, by tenant and ref."""
    return (
        blobs.get,
        blobs.stat,
        lambda tenant, ref: blobs.chunk(tenant, ref, 0),
    )


class RecordsContract(Contract):
    """The promises of `ullage.stores.Records`, as tests to inherit.

        class TestMyRecords(RecordsContract):
            def open(self):
                return MyRecords()

    A broken promise is an AssertionError that names it.
    """

    def test_the_first_of_what_is_written_once_stands(self) -> None:
        """The loser is given what is kept, and nothing of its append is kept."""
        with self.opened() as records:
            for kind in ("batch", "opened"):
                one, two = (
                    Record(b"k", kind, 0, data)
                    for data in (b"first", b"second")
                )
                expect(records.append("t", [one]), (), "the first one is kept")
                late = [
                    batch(b"k", 7, b"x"),
                    Record(b"k", "observed", 0, b"y"),
                    two,
                ]
                expect(
                    records.append("t", late),
                    (one,),
                    "the loser is given what is kept",
                )
            expected = (
                batch(b"k", 0, b"first"),
                Record(b"k", "opened", 0, b"first"),
            )
            expect(
                records.find("t", [b"k"]),
                expected,
                "nothing of a lost append is kept",
            )

    def test_the_same_record_twice_is_no_race(self) -> None:
        """An append is done again after any failure."""
        with self.opened() as records:
            for n in (0, 1):
                again = [batch(b"k", i, b"d") for i in range(n + 1)]
                expect(
                    records.append("t", again), (), "the same again is no race"
                )
            expected = (batch(b"k", 0, b"d"), batch(b"k", 1, b"d"))
            expect(records.find("t", [b"k"]), expected, "each is kept once")

    def test_of_the_others_the_newest_stands_for_each_name(self) -> None:
        """What was observed of one model says nothing of another."""
        with self.opened() as records:
            for data in (b"1", b"2", b"1"):
                for kind in ("latest", "observed"):
                    for name in ("b", "a", ""):
                        one = Record(b"k", kind, 0, data + name.encode(), name)
                        expect(
                            records.append("t", [one]),
                            (),
                            "nothing prevents it",
                        )
            rivals = [
                Record(b"k", "observed", 0, b"x"),
                Record(b"k", "observed", 0, b"y"),
            ]
            records.append("t", rivals)
            columns = [
                (r.kind, r.name, r.data) for r in records.find("t", [b"k"])
            ]
            latest = [
                ("latest", name, b"1" + name.encode())
                for name in ("", "a", "b")
            ]
            observed = [
                ("observed", "", b"y"),
                ("observed", "a", b"1a"),
                ("observed", "b", b"1b"),
            ]
            expect(
                columns,
                [*latest, *observed],
                "the newest is kept, in order of kind and name",
            )

    def test_a_kind_of_a_later_version_is_kept_as_it_is(self) -> None:
        """An upgrade that is taken back must not lose what the newer version wrote."""
        later = Record(
            b"k", "of a later version", 3, b"\xc1 no data of ours", "named"
        )
        with self.opened() as records:
            records.append("t", [later, batch(b"k", 0, b"d")])
            expected = (batch(b"k", 0, b"d"), later)
            expect(records.find("t", [b"k"]), expected, "it comes back")
            rival = Record(b"k", later.kind, 3, b"other", "named")
            expect(
                records.append("t", [rival]), (later,), "it is not replaced"
            )

    def test_an_append_that_contradicts_itself_keeps_nothing(self) -> None:
        """Neither of two batches of one number could be said to be the first."""
        with self.opened() as records:
            two = [
                Record(b"j", "observed", 0, b"x"),
                batch(b"k", 0, b"1"),
                batch(b"k", 0, b"2"),
            ]
            fails_with(
                StoreError, lambda: records.append("t", two), "it is refused"
            )
            expect(records.find("t", [b"j", b"k"]), (), "nothing is kept")

    def test_a_tenant_finds_only_its_own(self) -> None:
        """The same key under two tenants is two places."""
        with self.opened() as records:
            for tenant in ("one", "two", "\ud800", "a\x00b"):
                data = tenant.encode("utf-8", "surrogatepass")
                expect(
                    records.append(tenant, [batch(b"k", 0, data)]),
                    (),
                    "it is a place apart",
                )
                expect(
                    records.find(tenant, [b"k"]),
                    (batch(b"k", 0, data),),
                    "it is found there",
                )
            expect(records.find("three", [b"k"]), (), "and nowhere else")

    def test_many_keys_come_back_in_the_order_asked(self) -> None:
        """A long history asks for thousands at once."""
        keys = [n.to_bytes(16, "big") for n in range(2_500)]
        with self.opened() as records:
            records.append("t", [batch(key, 0, key[-2:]) for key in keys])
            keys.sort(key=lambda key: key[-1:] + key)
            lookups = [b"absent", *keys, keys[0]]
            order = [record.key for record in records.find("t", iter(lookups))]
            expect(order == keys, True, "in the order asked, each once")
            expect(records.find("t", []), (), "no key, no record")

    def test_threads_that_want_one_place_agree_on_a_winner(self) -> None:
        """Each writer learns what is kept."""
        with self.opened() as records:
            lost: list[tuple[Record, ...]] = []
            errors = in_threads(
                8,
                lambda me: lost.append(
                    records.append("t", [batch(b"k", 0, b"%d" % me)])
                ),
            )
            winner = records.find("t", [b"k"])
            expect((errors, len(winner)), ([], 1), "one record is kept")
            expect(lost.count(()), 1, "one writer won")
            expect(
                set(lost), {(), winner}, "the others were given what is kept"
            )

    def test_threads_that_write_the_same_places_in_any_order_do_not_hinder_each_other(
        self,
    ) -> None:
        """Two writers must not wait for each other for ever."""
        many = [Record(b"%d" % n, "observed", 0, b"x") for n in range(20)]
        with self.opened() as records:
            errors = in_threads(
                6,
                lambda me: records.append("t", many if me % 2 else many[::-1]),
            )
            expect(errors, [], "nobody fails")
            keys = [record.key for record in many]
            expect(records.find("t", keys), tuple(many), "all are kept")
