"""``session.open(ref)``: the whole text of what was set aside."""

import asyncio
import re

import pytest

from tests.history.test_window import history
from ullage import AsyncSession, Limits, Session
from ullage.core.errors import RefNotFound
from ullage.session.answering import RecallMixin

TEXTS = [f"{number} the tide came in\n" * 600 for number in range(6)]
REQUEST = {"model": "gpt-4.1", "messages": history(*TEXTS)}
LIMITS = Limits(window_tokens=9_000)


def refs_of(session):
    return {event.ref for event in session.events if event.ref}


def test_every_ref_opens_to_the_text_as_it_came():
    with Session("gpt-4.1", limits=LIMITS) as session:
        session.fit(REQUEST)
        indexes = [session.open(ref) for ref in refs_of(session)]
        named = {
            ref for text in indexes for ref in re.findall(r"ref=(\w+)", text)
        }
        assert {session.open(ref) for ref in named} == set(TEXTS[:5]), (
            "the newest is in the view"
        )
        assert session.open("call_0") == TEXTS[0], (
            "the id of a call means its newest result"
        )


def test_another_process_opens_it_before_it_has_fitted_anything(tmp_path):
    with Session(
        "gpt-4.1", limits=LIMITS, store=tmp_path / "kept.db"
    ) as session:
        view = session.fit(REQUEST)
        visible = {
            ref for ref in refs_of(session) if ref in str(view["messages"])
        }
        texts = {ref: session.open(ref) for ref in visible}
    assert texts
    with Session("gpt-4.1", store=tmp_path / "kept.db") as later:
        assert {ref: later.open(ref) for ref in texts} == texts


def test_a_ref_of_another_tenant_opens_nothing(tmp_path):
    with Session(
        "gpt-4.1", limits=LIMITS, store=tmp_path / "kept.db", tenant="ada"
    ) as session:
        session.fit(REQUEST)
        ref = min(refs_of(session))
    other = Session("gpt-4.1", store=tmp_path / "kept.db", tenant="bob")
    with other, pytest.raises(RefNotFound):
        other.open(ref)


def test_the_async_twin():
    async def opened():
        async with AsyncSession("gpt-4.1", limits=LIMITS) as session:
            await session.fit(REQUEST)
            return [await session.open(ref) for ref in refs_of(session)]

    assert all(
        text.startswith("Index of messages 2 to ")
        for text in asyncio.run(opened())
    )


def test_both_kinds_of_session_answer_and_open():
    assert issubclass(Session, RecallMixin)
    assert issubclass(AsyncSession, RecallMixin)
