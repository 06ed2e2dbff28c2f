"""Which ref a reader would open."""

from lab.replay.chooser import SessionPages, Shelf, Stub, question, stubs_in
from lab.replay.past import PageLibrary
from tests.replay.evidence.conversation import WIRE, call, run_of, told, user
from ullage.core.values.limits import Limits
from ullage.core.values.notices import Pointer
from ullage.session.session import Session
from ullage.tools.replay.evidence.atoms import Atom
from ullage.tools.replay.evidence.demands import RunHistory, texts_of
from ullage.tools.replay.evidence.score import holds_in

A, B = "a" * 16, "b" * 16
NAME = Atom("invoice_4711", "identifier")


def stub(ref, text, call=""):
    return Stub(Pointer(ref, 0), text, call)


def test_the_ref_whose_stub_and_call_fit_the_question_comes_first():
    shelf = Shelf(
        [
            stub(A, "the log", "tail build.log"),
            stub(B, "rows", "select from invoices"),
        ]
    )
    assert shelf.ranked("pay the invoices", NAME)[0].pointer.ref == B
    assert (
        shelf.ranked("what does the build log say", NAME)[0].pointer.ref == A
    )


def test_the_value_itself_is_masked():
    shelf = Shelf([stub(A, "invoice_4711"), stub(B, "nothing")])
    assert (
        shelf.ranked("pay invoice_4711", NAME)[0].pointer.ref == B
    )  # alike: the newer


def test_an_empty_shelf_has_nothing():
    assert Shelf([]).ranked("anything", NAME) == []


def test_a_ref_is_named_with_its_line_and_its_call():
    run = run_of(
        user("Go."),
        call("bash", f"one\n[ullage: set aside. ref={A}]\ntwo", cmd="make"),
    )
    texts = [tuple(texts_of(WIRE.parse(raw, "x"))) for raw in run.messages]
    assert stubs_in(texts) == [
        stub(A, f"[ullage: set aside. ref={A}]", '{"cmd": "make"}')
    ]


def test_the_question_is_the_whole_reply_and_nothing_behind_it():
    run = run_of(
        user("Go."),
        call("bash", "result", said="I build.", cmd="make"),
        user("And?"),
    )
    assert question(told(run)[0], 1) == 'I build.\nbash {"cmd": "make"}'


def test_a_session_opens_what_it_set_aside_page_by_page():
    text = (
        "".join(f"{n} some line of a large output\n" for n in range(3_000))
        + "invoice_4711\n"
    )
    run = run_of(user("Go."), call("bash", text, cmd="make"))
    limits = Limits(window_tokens=16_000)
    session = Session(
        "gpt-4.1", limits=limits, format="openai-chat", recall=True
    )
    view = session.fit({"model": "gpt-4.1", "messages": run.messages})[
        "messages"
    ]
    story, library = RunHistory(WIRE, run.messages), SessionPages(session)
    texts = [
        story.pieces[0],
        *(tuple(texts_of(WIRE.parse(raw, "x"))) for raw in view[1:]),
    ]
    found = [each for each in stubs_in(texts) if each.pointer.offset]
    assert found
    pages = [library.page(each.pointer) for each in found]
    assert all(len(page) < len(text) / 2 for page in pages)
    assert not any(holds_in(page, NAME) for page in pages)
    assert library.whole(found[0].pointer.ref) == text


def test_a_page_library_opens_what_it_has():
    library = PageLibrary()
    library.pages = {A: "everything"}
    assert library.page(Pointer(A, 5)) == library.whole(A) == "everything"
    assert library.page(Pointer(B, 0)) == ""
    assert library.leads(A) == ()
