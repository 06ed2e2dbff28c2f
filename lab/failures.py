"""The guards against known failures, taken out one at a time: the test of each must fail.

    python -m lab.failures [--only NUMBER]

Each row is a line of ``src``, what is written in its place, and the tests of ``tests/failures``
that must notice. As `lab.mutants_by_hand`, which runs them.
"""

from __future__ import annotations

import sys

from lab.mutants_by_hand import Fault, Mutant, main

_ROWS = (
    (
        "recall f79",
        "core/turn/turn.py",
        "outputs = (*set_aside, *walk.outputs.values())",
        "outputs = tuple(set_aside)",
    ),
    (
        "recall f91_a_full",
        "core/turn/turn.py",
        "outputs = (*set_aside, *walk.outputs.values())",
        "outputs = tuple(set_aside)",
    ),
    (
        "summary f49",
        "core/turn/filling.py",
        'return "there is no <summary> … </summary> in it"',
        'return Accepted(text, "")',
    ),
    (
        "recall f89",
        "session/recall/read.py",
        '    return f"{page}\\n{more}"',
        "    return page",
    ),
    (
        "storage f96",
        "core/turn/caches.py",
        "return _Match(history, min(length, len(raws)), reworded)",
        "return _Match(history, length, reworded)",
    ),
    (
        "control f29",
        "session/turns.py",
        'return any(event.kind == "compacted" for event in info.events)',
        "return True",
    ),
    (
        "control f32",
        "session/turns.py",
        'return any(event.kind == "compacted" for event in info.events)',
        "return True",
    ),
    (
        "recall f86",
        "stores/_file.py",
        "place.mkdir(mode=0o700, exist_ok=True)",
        "place.mkdir(exist_ok=True)",
    ),
    (
        "recall f77",
        "policy/stages/shorten.py",
        "room = max(limit_chars - _NOTICE_ROOM_CHARS, limit_chars // 2)",
        "room = 1",
    ),
    (
        "summary f53",
        "core/values/briefs.py",
        'f"> {line}".rstrip()',
        'f"{line}".rstrip()',
    ),
    (
        "summary f52",
        "core/values/briefs.py",
        'f"> {line}".rstrip()',
        'f"{line}".rstrip()',
    ),
    (
        "summary f46",
        "core/values/briefs.py",
        'f"> {line}".rstrip()',
        'f"{line}".rstrip()',
    ),
    (
        "spend f101",
        "wires/anthropic/usage.py",
        'read="cache_read_input_tokens"',
        'read="cache_read"',
    ),
    (
        "counting f109",
        "session/summarise/_calls.py",
        "model = reply.model or self.summariser",
        "model = self.summariser",
    ),
    (
        "recall f88",
        "core/history/transcript.py",
        "clean = redacted(message, self._redact)",
        "clean = message",
    ),
    (
        "pairing f04",
        "wires/repair/base.py",
        "                yield self._interrupted(call)\n",
        "",
    ),
    (
        "pairing f05",
        "wires/repair/base.py",
        "                yield self._interrupted(call)\n",
        "",
    ),
    (
        "pairing f10",
        "wires/repair/base.py",
        "while name in used_ids:",
        "while False:",
    ),
    (
        "pairing f11",
        "wires/repair/base.py",
        "self._outputs += outputs",
        "pass",
    ),
    (
        "pairing f17",
        "wires/repair/base.py",
        "return not text or text.isspace()",
        "return False",
    ),
    (
        "control f24",
        "core/turn/filling.py",
        "if tokens and tokens + fragment_tokens > room:",
        "if False:",
    ),
    (
        "control f25",
        "policy/stages/emergency.py",
        "window.within(start_limit, surely=True)",
        "window.within(10**9)",
    ),
    (
        "control f27",
        "policy/stages/emergency.py",
        "window.within(start_limit, surely=True)",
        "window.within(10**9)",
    ),
    (
        "control f36",
        "policy/stages/emergency.py",
        "window.within(start_limit, surely=True)",
        "window.within(10**9)",
    ),
    (
        "control f39",
        "policy/stages/emergency.py",
        "window.within(start_limit, surely=True)",
        "window.within(10**9)",
    ),
    (
        "control f40",
        "policy/stages/stall.py",
        "if 2 * repeats <= len(newest):",
        "if True:",
    ),
    (
        "summary f43",
        "policy/stages/summary.py",
        "if room_chars <= 0:",
        "if True:",
    ),
    (
        "summary f44",
        "policy/stages/summary.py",
        "if room_chars <= 0:",
        "if True:",
    ),
    (
        "summary f45",
        "policy/stages/facts.py",
        'verb = "changed"',
        'verb = "read"',
    ),
    (
        "summary f47",
        "core/turn/filling.py",
        "if not reply.finished:",
        "if False:",
    ),
    (
        "summary f48",
        "core/turn/filling.py",
        "most_tokens=2 * request.most_tokens",
        "most_tokens=request.most_tokens",
    ),
    (
        "summary f54",
        "policy/stages/facts.py",
        'verb = "changed"',
        'verb = "read"',
    ),
    (
        "summary f56",
        "core/turn/filling.py",
        "if tokens > brief.room_tokens:",
        "if False:",
    ),
    (
        "counting f57",
        "core/tokens/meter.py",
        "return text(said) if tokens is None else tokens",
        "return tokens or 0",
    ),
    (
        "counting f62",
        "core/turn/beginning.py",
        "    return history.head[2]",
        "    return 0",
    ),
    (
        "recall f73",
        "policy/stages/shorten.py",
        "while at > earliest and _joined(text[at - 1], text[at]):",
        "while False:",
    ),
    (
        "recall f74",
        "policy/stages/shorten.py",
        'if text.lstrip()[:1] in ("{", "[")',
        "if False",
    ),
    (
        "recall f78",
        "policy/stages/truncate.py",
        "if window.is_recall(spot):",
        "if False:",
    ),
    (
        "recall f80",
        "core/values/notices.py",
        "if self.recall and CONTINUATION in self.toolset.names:",
        "if CONTINUATION in self.toolset.names:",
    ),
    (
        "recall f84",
        "stores/_clean.py",
        "return self.max_bytes is not None and size_bytes > self.max_bytes",
        "return False",
    ),
    (
        "recall f85",
        "stores/_clean.py",
        'if needed == (position.phase == "needed") and',
        "if",
    ),
    (
        "recall f75",
        "policy/stages/truncate.py",
        "if chars <= whole_chars:",
        "if chars <= whole_chars or True:",
    ),
    (
        "recall f90",
        "policy/stages/truncate.py",
        "if chars <= whole_chars:",
        'if chars <= whole_chars or source.tool.startswith("mcp"):',
    ),
    (
        "spend f105",
        "session/spend/budget.py",
        "account.claim = amount\n            if used_up",
        "account.claim = Claim()\n            if used_up",
    ),
    (
        "spend f106_the_same",
        "session/aio.py",
        "await self._run(self._observe(self._newest, reply))",
        "return",
    ),
    (
        "spend f106_every",
        "session/summarise/_calls.py",
        "if self._budget.is_used_up:",
        "if False:",
    ),
    (
        "spend f108",
        "session/summarise/_calls.py",
        "if self._budget.is_used_up:",
        "if False:",
    ),
    (
        "pairing f01",
        "core/history/transcript.py",
        "return self._closed[index] and self.starts_turn(index)",
        "return index > 0",
    ),
    (
        "pairing f02",
        "core/history/transcript.py",
        "return self._closed[index] and self.starts_turn(index)",
        "return index > 0",
    ),
    (
        "pairing f08",
        "wires/repair/base.py",
        "                yield self._interrupted(call)\n",
        "",
    ),
    (
        "pairing f07",
        "wires/repair/base.py",
        "self._outputs += outputs",
        "pass",
    ),
    (
        "control f26",
        "policy/stages/shrink.py",
        'return canon.canonical_json({"_ullage": notice})',
        'return str({"_ullage": notice})',
    ),
    (
        "control f33",
        "policy/stages/emergency.py",
        "if not window.within(start_limit, surely=True):",
        "if True:",
    ),
    (
        "counting f66",
        "policy/stages/emergency.py",
        "if not window.within(start_limit, surely=True):",
        "if True:",
    ),
    (
        "control f34",
        "core/turn/engine.py",
        "        _check_limit(window, has_guard=walk.policy.guard is not None)\n",
        "        pass\n",
    ),
    (
        "control f35",
        "wires/overflow/__init__.py",
        "if verdict == _OTHER:",
        "if False:",
    ),
    (
        "counting f58",
        "core/tokens/estimate.py",
        "return byte_length(text)",
        "return len(text) // 4",
    ),
    (
        "counting f70",
        "core/contract/ranges.py",
        "start = _behind_task(window) if keeps_task else 0",
        "start = 0",
    ),
    (
        "summary f42",
        "core/contract/ranges.py",
        "start = _behind_task(window) if keeps_task else 0",
        "start = 0",
    ),
    (
        "counting f72",
        "core/history/canon.py",
        '    number = int.from_bytes(content_digest(text, kind)[:10], "big")',
        "    number = int.from_bytes(__import__('os').urandom(10), \"big\")",
    ),
    (
        "recall f81",
        "core/values/notices.py",
        "for pattern in (_REF, _FILE):",
        "for pattern in (_FILE,):",
    ),
    (
        "spend f103",
        "session/replies.py",
        "if earlier is not None and earlier.is_full(report):",
        "if info.reply_usage or (earlier and earlier.is_full(report)):",
    ),
    (
        "notices f83_no_tool",
        "doors/loop/steps.py",
        "        return _COPIED\n",
        "        pass\n",
    ),
    ("notices f83_what", "doors/loop/steps.py", '"[ref=", " ref=", ', ""),
    (
        "storage f93",
        "session/session.py",
        "        with self._lock:\n            result = run(",
        "        if True:\n            result = run(",
    ),
    (
        "storage f97",
        "core/turn/rendering.py",
        "    messages = list(request.history)\n",
        "    messages = request.history\n",
    ),
    (
        "storage f99",
        "core/turn/caches.py",
        "return _Match(history, min(length, len(raws)), reworded)",
        "return _Match(history, length, reworded)",
    ),
    (
        "storage f94",
        "core/turn/batches.py",
        "        self.records.append(record)\n",
        "        pass\n",
    ),
    (
        "summary f50",
        "policy/stages/facts.py",
        'error=_error_line(edges) if is_failure else "",',
        'error="",',
    ),
    (
        "control f28",
        "core/history/window.py",
        "        return self.calibration.apply(self.tokens)",
        "        return self.reported_tokens or self.calibration.apply(self.tokens)",
    ),
    (
        "control f31",
        "session/summarise/_calls.py",
        "self._circuit = self._circuit._replace(left_out=0)",
        "pass",
    ),
    (
        "control f37",
        "session/provider/passing.py",
        "return replace(state, learnt=verdict.learnt), (verdict.event,)",
        "return state, (verdict.event,)",
    ),
    (
        "control f38",
        "session/summarise/_calls.py",
        "        except TimeoutError:",
        "        except ZeroDivisionError:",
    ),
    (
        "control f41",
        "policy/stages/compact.py",
        "    stop = cut_before(window, keep_from(window, start), since)",
        "    stop = window.size",
    ),
    (
        "pairing f03",
        "core/history/transcript.py",
        "return self._closed[index] and self.starts_turn(index)",
        "return index > 0",
    ),
    (
        "pairing f06",
        "core/history/pairing.py",
        "                self.waiting = {\n"
        "                    at: late for at, late in self.waiting.items() if late\n"
        "                }\n",
        "                pass\n",
    ),
    (
        "pairing f09",
        "core/history/pairing.py",
        "call = next(call for call in fits if call.group == fits[-1].group)",
        "call = fits[-1]",
    ),
    (
        "pairing f18",
        "core/contract/ranges.py",
        "if window.may_summarise(least, stop) and window.may_cut(stop):",
        "if stop < index:",
    ),
    (
        "pairing f21",
        "core/turn/beginning.py",
        "    return tools, True\n",
        "    return (), True\n",
    ),
    (
        "counting f59",
        "core/tokens/meter.py",
        "return media_tokens(self.model, leaf, self.detail)",
        "return text(leaf.data)",
    ),
    (
        "counting f60",
        "policy/stages/media.py",
        "if len(media) <= most and total_bytes <= limits.request_bytes:",
        "if len(media) <= most:",
    ),
    (
        "counting f61_a_picture",
        "policy/stages/media.py",
        "if limits.takes(medium.side_px, medium.sent_bytes):",
        "if True:",
    ),
    (
        "counting f61_more",
        "policy/stages/media.py",
        "staying = small[excess:]",
        "staying = small",
    ),
    (
        "counting f68",
        "core/turn/beginning.py",
        "    return tools, True\n",
        "    return (tools if len(request.history) % 4 else ()), True\n",
    ),
    (
        "recall f76",
        "policy/stages/shorten.py",
        "errors = _error_lines(text, head_stop, tail_start, error_room)",
        "errors = list[str]()",
    ),
    (
        "storage f95",
        "session/summarise/_calls.py",
        "                running.cancel()  # whoever does not hear of it is still under way",
        "                pass",
    ),
    (
        "storage f98",
        "core/history/ledger.py",
        "except (msgspec.MsgspecError, ValueError):",
        "except ZeroDivisionError:",
    ),
    (
        "spend f102",
        "session/summarise/_calls.py",
        "            self._charge(request, reply)",
        "            pass",
    ),
    (
        "spend f104",
        "session/spend/book.py",
        "        return self.reply == report.reply and (",
        "        return False and (",
    ),
    (
        "spend f107",
        "session/state.py",
        "Spent(usage=self.persisted.usage, cost_usd=self.persisted.cost_usd)\n            + spent",
        "Spent() + spent",
    ),
    (
        "control f30",
        "core/turn/engine.py",
        "        filled.append(full)",
        "        filled.extend([] if refused else [full])",
    ),
    (
        "recall f91_on_a_full_disk_what_is",
        "core/turn/turn.py",
        "    except OverLimitError:\n        builder = decision",
        "    except ZeroDivisionError:\n        builder = decision",
    ),
    (
        "recall f91_on_a_full_disk_what_repair",
        "core/turn/turn.py",
        "unstored=unstored",
        "unstored=()",
    ),
    (
        "recall f91_the_same",
        "stores/_reasons.py",
        ", sqlite3.SQLITE_IOERR_WRITE)",
        ",)",
    ),
    (
        "pairing f12",
        "wires/convert/names.py",
        "if is_taken or not is_legal or is_made_up(call_id, call.name):",
        "if False:",
    ),
    (
        "summary f51",
        "policy/stages/compact.py",
        "return [ProposedEdit(edit, outputs, ",
        "return [ProposedEdit(edit, outputs[-1:], ",
    ),
    (
        "recall f82",
        "policy/stages/record.py",
        "return ProposedEdit(edit, outputs)",
        "return ProposedEdit(edit, outputs[-1:])",
    ),
    (
        "summary f55",
        "policy/stages/record.py",
        "return ProposedEdit(edit, outputs)",
        "return ProposedEdit(edit, outputs[-1:])",
    ),
    (
        "storage f92",
        "documents/conversation/store.py",
        "summary, *messages[boundary:])",
        "summary, *messages[boundary : boundary + 1])",
    ),
    (
        "storage f100",
        "session/ahead.py",
        "return [compaction.proposed(window)]",
        "return ()",
    ),
    (
        "pairing f13",
        "core/contract/bound.py",
        "    return [ProposedEdit(Drop(chain[start], chain[window.size], reason), ())]",
        "    return []",
    ),
    (
        "pairing f14",
        "core/history/transcript.py",
        "return self._closed[index] and self.starts_turn(index)",
        "return index > 0",
    ),
    (
        "pairing f15",
        "core/history/transcript.py",
        "return self._closed[index] and self.starts_turn(index)",
        "return self._closed[index]",
    ),
    (
        "pairing f16",
        "wires/convert/read.py",
        "piece = self._piece(part, block, place, (index, number))",
        "piece = self._piece(part, block, place, (index, number))\n"
        "            piece = piece or Text(str(bare))",
    ),
    (
        "pairing f19",
        "policy/stages/emergency.py",
        "        if index <= end and may_cut(index):\n"
        "            best = index\n"
        "    return best if best < window.size else earliest",
        "        newest = window.transcript.newest_request(index + 1)\n"
        "        if index <= end and newest == index:\n"
        "            best = index\n"
        "    return best",
    ),
    (
        "pairing f20",
        "wires/anthropic/format.py",
        'if row.opens else ""',
        'if False else ""',
    ),
    (
        "control f22",
        "session/summarise/_calls.py",
        "        if self._circuit.left_out:",
        "        if False:",
    ),
    (
        "control f23",
        "policy/stages/emergency.py",
        "if not window.within(start_limit, surely=True):",
        "if True:",
    ),
    (
        "counting f63",
        "wires/reported.py",
        "    if not usage.input_tokens:",
        "    if False:",
    ),
    (
        "counting f64",
        "core/tokens/calibrate.py",
        "not _is_plausible(reported, estimated)",
        "False",
    ),
    (
        "counting f65",
        "session/view.py",
        "        self._session._run(self._session._observe(self._sent, reply))",
        "        self._session._run(self._session._observe(self._session._newest, reply))",
    ),
    (
        "counting f67",
        "core/turn/rendering.py",
        "    body = request.wire.compose(request.raw, messages, tools)\n",
        '    status = request.wire.user(f"{len(messages)} messages")\n'
        "    body = request.wire.compose(request.raw, [status, *messages], tools)\n",
    ),
    (
        "counting f69",
        "policy/stages/emergency.py",
        "if not window.within(start_limit, surely=True):",
        "if True:",
    ),
    (
        "counting f71",
        "core/values/usage.py",
        "self.input_tokens\n            if self.prompt_tokens is None",
        "self.fresh_tokens\n            if self.prompt_tokens is None",
    ),
    (
        "recall f87",
        "stores/_open.py",
        'subfolder = ref_of(tenant, "tenant") if tenant else ""',
        "subfolder = tenant",
    ),
)
"""File and number of the test; the file of ``src/ullage``, what stands there once, the fault."""


_SPANS = "core/turn/spans.py"
_SEAMS = Fault(_SPANS, "    if ground.fits(start, stop):\n", "    if True:\n")
_OUTPUTS = Fault(
    _SPANS,
    "    outputs = proposal.kept(cut._replace(edit=edit), needed)\n",
    "    outputs = tuple(cut.outputs)\n",
)
_TWICE = {
    **dict.fromkeys(("f01", "f02", "f03", "f14", "f15", "f18"), (_SEAMS,)),
    **dict.fromkeys(("f51", "f55", "f82"), (_OUTPUTS,)),
}
"""What the kernel checks as well, by the failure: with that alone left, it does not happen."""


def _guard(name: str, file: str, right: str, wrong: str) -> Mutant:
    tests, number = name.split()
    nearest = f"failures/test_{tests}.py -k test_{number}_"
    also = _TWICE.get(number, ())
    return Mutant(file, right, wrong, nearest, number, also)


GUARDS = tuple(_guard(*row) for row in _ROWS)


if __name__ == "__main__":
    sys.exit(main(GUARDS, __doc__))
