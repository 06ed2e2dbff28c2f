"""What a policy costs once all evidence is paid for: every fault is serviced (`metrics` M1).

At a call that demands what its view does not show, a reader would open a ref:

    view ─▶ recall call + page ─▶ view ─▶ … ─▶ view that shows it ─▶ the recorded call

Each try is one more request over a history that has grown by a real call and its real page.
Where a tool searches by words all that left the view, two pages of that are read first. Up to three
refs are tried in the order of the chooser; then the tool that told the value is called again at its
recorded size, if it only reads; else the call counts as failed. So every policy ends with the same
evidence, and tokens, prices and failed calls can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from lab.replay.caches import Caches, Totals, total_usd
from lab.replay.chooser import (
    WORD_PAGES,
    PagedLibrary,
    Shelf,
    Stub,
    masked,
    question,
    stubs_in,
)
from lab.replay.readonly import reads_only
from lab.replay.story import Story
from ullage.tools.replay.calls import answer_of, boundaries
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.evidence.demands import Demand, Demands
from ullage.tools.replay.evidence.score import ViewReader, holds_in
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.wires.convert import convert

Asked: TypeAlias = Stub | tuple[str, int]
"""What brought a page: a ref, or words and the number of the page."""
_TRIES = 3
_READ_ON = "get_continuation"


class Subject(Protocol):
    """What is judged: it makes views, and opens the refs in them."""

    @property
    def library(self) -> PagedLibrary:
        """Opens refs."""

    def view(self, story: Story, call: int) -> Sequence[Any] | None:
        """The view of all messages of the story before a call; None if there is none."""


class Counts(Struct, frozen=True, kw_only=True):
    """What full service took.

    Attributes:
        calls: recorded calls.
        faults: demands that were not visible.
        searches: pages of a search by words that were read.
        tries: refs that were opened.
        wrong: of both, such as did not hold what was wanted.
        repeated: tools that were called again.
        failed: calls with a demand that nothing could serve.
        over_limit: requests that could not be made to fit.
    """

    calls: int = 0
    faults: int = 0
    searches: int = 0
    tries: int = 0
    wrong: int = 0
    repeated: int = 0
    failed: int = 0
    over_limit: int = 0

    def __add__(self, other: Counts) -> Counts:
        names = Counts.__struct_fields__
        return Counts(
            **{
                name: getattr(self, name) + getattr(other, name)
                for name in names
            }
        )

    @property
    def failed_share(self) -> float:
        """Share of the calls that failed."""
        return self.failed / self.calls if self.calls else 0.0


class Serviced(Counts, frozen=True, kw_only=True):
    """One run at full service. Tokens of the totals are the simulator's.

    Attributes:
        run: the run's id.
        output_tokens: what the model wrote, calls for refs included.
        totals: all requests, by profile.
        raw: the same without any policy and without any fault, by profile.
        raw_output_tokens: what the recorded model wrote.
    """

    run: str
    output_tokens: int
    totals: list[Totals]
    raw: list[Totals]
    raw_output_tokens: int


def cost_usd(
    serviced: Serviced, at: int = 0
) -> tuple[float | None, float | None]:
    """What the run cost at full service, and without a policy; None where no price is known.

    Args:
        serviced: the run.
        at: which of its profiles.
    """
    return (
        total_usd(serviced.totals[at], serviced.output_tokens),
        total_usd(serviced.raw[at], serviced.raw_output_tokens),
    )


def serve(
    run: Run,
    story: Story,
    demands: Demands,
    subject: Subject,
    profiles: Sequence[Profile],
) -> Serviced:
    """Replay one run and service every first use that is not in view.

    Args:
        run: the recording.
        story: the whole of it.
        demands: what its calls demand.
        subject: what is judged.
        profiles: the terms of the simulated caches.
    """
    service = _Service(run, story, subject, profiles)
    done = 0
    for number, length in enumerate(boundaries(run)):
        service.told.extend(run.messages[done:length])
        done = length
        service.call(number, length, demands[number])
    return service.result()


class _Service:
    """The history of one run as it grows, with what was put in to service its faults."""

    def __init__(
        self,
        run: Run,
        story: Story,
        subject: Subject,
        profiles: Sequence[Profile],
    ) -> None:
        self.run, self.story, self.subject = run, story, subject
        self.told = Story(story.wire)
        self.judge, self.head = Judge(), head_of(run.request)
        self.caches = Caches(profiles, self.judge.text)
        self.raw = Caches(profiles, self.judge.text)
        self.sight = ViewReader(story)
        self.counts = Counts()
        self.output_tokens = self.raw_output_tokens = 0
        self._asked = 0
        self._shown: Sequence[Any] = ()

    def call(
        self, number: int, length: int, demands: Sequence[Demand]
    ) -> None:
        """One recorded call: its request, and what has to be asked for before it is made."""
        self.raw.call(self.run.messages[:length], self.head)
        reply = self.judge.tokens(answer_of(self.run, length))
        self.raw_output_tokens += reply
        self.output_tokens += reply
        view = self._view(number)
        missing = [
            d for d in demands if d.use == "first" and not self._shows(view, d)
        ]
        opened: dict[Asked, str] = {}
        served = [
            self._serve(number, length, demand, opened) for demand in missing
        ]
        self.counts += Counts(
            calls=1, faults=len(missing), failed=int(not all(served))
        )

    def result(self) -> Serviced:
        """The sums."""
        return Serviced(
            **asdict(self.counts),
            run=self.run.id,
            output_tokens=self.output_tokens,
            totals=self.caches.totals,
            raw=self.raw.totals,
            raw_output_tokens=self.raw_output_tokens,
        )

    def _view(self, number: int) -> Sequence[Any]:
        view = self.subject.view(self.told, number)
        if view is None:
            self.counts += Counts(over_limit=1)
            return ()
        self.caches.call(view, self.head)
        self._shown = view
        return view

    def _shows(self, view: Sequence[Any], demand: Demand) -> bool:
        return self.sight.shows(demand, self.sight.look(view))

    def _serve(
        self,
        number: int,
        length: int,
        demand: Demand,
        opened: dict[Asked, str],
    ) -> bool:
        """Ask for what is missing until it has come, and say whether it has."""
        if any(holds_in(page, demand.atom) for page in opened.values()):
            return True
        asked = question(self.story, length)
        if self._search(number, masked(asked, demand.atom), demand, opened):
            return True
        stubs = stubs_in(
            self.sight.look(self._shown).texts, self.subject.library.named
        )
        order = Shelf(stubs).ranked(asked, demand.atom)
        for stub in [stub for stub in order if stub not in opened][:_TRIES]:
            page = opened[stub] = self.subject.library.page(stub.pointer)
            arguments = {
                "tool_call_id": stub.pointer.ref,
                "offset": stub.pointer.offset,
            }
            self._ask(number, _READ_ON, json.dumps(arguments), page)
            found = holds_in(page, demand.atom)
            self.counts += Counts(tries=1, wrong=int(not found))
            if found:
                return True
        return self._repeat(number, demand)

    def _search(
        self, number: int, words: str, demand: Demand, opened: dict[Asked, str]
    ) -> bool:
        """Read the first pages of a search by words, where a tool takes words."""
        for at in range(1, WORD_PAGES + 1):
            page = self.subject.library.find(words, at)
            if page is None:
                return False
            opened[words, at] = page
            self._ask(
                number,
                _READ_ON,
                json.dumps({"words": words, "page": at}),
                page,
            )
            found = holds_in(page, demand.atom)
            self.counts += Counts(searches=1, wrong=int(not found))
            if found:
                return True
        return False

    def _repeat(self, number: int, demand: Demand) -> bool:
        """Call the tool again that told the value, if it only reads."""
        index, piece = demand.sources[-1]
        call = self.story.call_for(index, piece.part)
        if call is None or not reads_only(call):
            return False
        self.counts += Counts(repeated=1)
        self._ask(number, call.name, call.arguments, piece.text)
        return True

    def _ask(self, number: int, tool: str, arguments: str, text: str) -> None:
        """Put a call and its result into the history, and send the request that follows."""
        self._asked += 1
        name = f"fault_{self._asked}"
        function = {"name": tool, "arguments": arguments}
        call = {"id": name, "type": "function", "function": function}
        asked = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": text},
        ]
        wire = convert(
            asked, self.run.format, format="openai-chat", lossy="describe"
        )
        self.told.extend(wire, recorded=False)
        self.output_tokens += self.judge.text(tool) + self.judge.text(
            arguments
        )
        self._view(number)
