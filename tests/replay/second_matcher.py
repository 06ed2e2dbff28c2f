r"""A second, independent evidence matcher, to hold the first one against (metrics M1, control N4).

Written from the text of the metric alone, in plain Python, without `ullage`. A conversation is a
list of Chat Completions messages. Where the text leaves something open, this is what was decided:

Calls and age
 1. A call is a row of assistant messages, with or without tool calls; the first has `call_index` 1.
 2. A result belongs to the last call before it. Age = t − that call, so the next call has age 1.
 3. Any role but assistant and tool counts as user or system, from where its message stands on
    (so does a harness's summary in a user message).
 4. What the assistant wrote: its text, its reasoning, its arguments with their keys. Names of
    tools, ids and metadata are not writing. No part of a_t is "before t".
Atoms
 5. Only leaf *strings* give atoms; JSON numbers do not. Arguments that are no JSON are a string.
 6. Every leaf string is split, an edit's old text too: no guess is made which are code. A string
    of 8 to 80 characters, with a space, of nothing but words and `,.'’@:#+-`, is a literal too.
 7. A token is a URL, or words joined by single `.`, `-` or `@`, in turn joined by `/`, with a
    leading `/` or `~/`. `./` and `../` are not part of it, nor a leading `@`, nor a leading `.`
    if it holds no `/`, nor a `/` at the end or behind `<`, `*` or what closes a bracket.
    `:`, `=`, `,`, `%`, `\` and `#` end a token that is no URL. A URL holds only brackets that it
    closes, and ends before the stop of its sentence.
 8. Kinds, the first that fits: number, hash, path (a `/`, a letter, 4 characters), identifier.
    A bare file name is an identifier, so is a date. Units are those of `UNIT`. Groups (`1,234`)
    are not joined. A token is no literal, an old text nothing else.
 9. Hash: a UUID, or 7 or more hex digits (`0x` allowed); digits alone are a number.
10. Case change: anywhere after the first letter, so that a capitalised word is no identifier.
11. A quoted literal stands between `'` or `"` on one line, not opened or closed inside a word, and
    has 8 characters without its escapes and the space around. What it holds is split as well.
12. An edit's old text is an argument named `old`, alone or with str, string, text, content or
    code, or `search` beside `replace`. It has 8 characters without the space around it.
Matching
13. x occurs where it is a whole token, or what follows a `/` of a token (whatever kind x is).
    A path does not occur in a shorter path that ends it, nor in one that only begins with it.
    An identifier or hash also occurs as whole dotted parts of what follows the last `/`.
14. A quoted literal is a substring that cuts no word at its ends; an old text any substring.
15. Escapes: of texts and x all JSON escapes are undone, however deep; a backslash and a letter
    that are left are a space. An old text: x unchanged, in the text as it is or undone once.
Conditions
16. (5) means all tools called in a_t. Schemas are texts here: enum values fall under (2).
17. Re-uses are what the assistant wrote before, in a result or not; all it said is a source.
18. Classes, the first that fits: user/system; tool name; generated (nobody said it); stop list
    (it counts the atoms of arguments, once for each task); re-use; demand.
Visible
19. Source lines are those of *all* results before t that hold x; `source_line` is the last one.
    Lines end at a line feed. For an old text of several lines they are those lines, whole.
20. A line is long when it is longer than x and 160 characters. The window may cut words.
21. "80% of its tokens in order" is the longest common subsequence of words (letters, digits, `_`)
    with the text around an x: 80 characters and twice what the line has on either side of it.
22. A message's text is its content, reasoning and arguments' leaves, one a line.

Changed after a comparison with the first (both read the text so now): 1 rows of messages; 4 keys;
6 old text and whole strings; 7 `@`, `./`, `%`; 8 least path and dates; 11 space around; 12 names
and least length; 13 dotted parts; 14 hyphens; 15 depth; 17 own sources; 21 words, and around x.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

SUBSTRINGS = QUOTE, LITERAL = "quote", "literal"
USED = DEMAND, REUSE = "demand", "re-use"
DIVIDED = ("identifier", "hash")
WINDOW_CHARS, LEAST_CHARS, SHOWN_SHARE, STOP_SHARE = 80, 8, 0.8, 0.02

WORD = r"\w+(?:[.@-]\w+)*"
TOKEN = re.compile(
    rf"(?:(?<!\w)~/|(?<![<*)}}\]~./\w])/)?[.@]?{WORD}(?:/[.@]?{WORD})*"
)
BARE = r"\s\"'`<>()\[\]{}|\\"
URL = re.compile(
    rf"\b[A-Za-z]\w*://(?:[^{BARE}]|\([^{BARE}]*\))*(?:[^{BARE}.,:;!?*/]|\([^{BARE}]*\))"
)
UNIT = (
    r"(?:[kKMGTP]i?[bB]?|[bB]|bytes|[nuµm]?s|min|sec|h|d|px|r?em|pt|[kMG]?Hz)"
)
NUMBERS = re.compile(rf"\d{{4,}}(?:\.\d+)?|\d+\.\d+|\d+(?:\.\d+)?{UNIT}")
HASHES = re.compile(
    r"(?:0x)?[0-9a-fA-F]{7,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
MARKED = re.compile(r"[\d_@./-]|(?<!^)(?:[a-z][A-Z]|[A-Z][a-z])")
QUOTED = [
    re.compile(rf"(?<!\w){q}((?:[^{q}\\\n]|\\.){{8,}}){q}(?!\w)")
    for q in ('"', "'")
]
PHRASE = re.compile(r"(?=.* )[\w ,.'’@:#+-]{8,80}")
OLD_TEXT = re.compile(r"(?i)old[-_]?(?:str|string|text|content|code)?")
HEX = "[0-9a-fA-F]"
PAIR = rf"u[dD][89abAB]{HEX}{{2}}\\u[dD][c-fC-F]{HEX}{{2}}"
ESCAPE = re.compile(
    rf"""\\(?:{PAIR}|u(?![dD][89a-fA-F]){HEX}{{4}}|["'\\/nrt])"""
)


@dataclass(frozen=True)
class Demand:
    """One atom that a call's arguments take from an earlier result."""

    call_index: int
    atom: str
    kind: str
    age: int
    source_line: str
    first_use: bool
    other_lines: tuple[str, ...] = ()


def demands(messages, system_and_tools_texts, stop_list) -> list[Demand]:
    """First uses (the scored demands) and re-uses (`first_use` false), in order of calls."""
    found = classes(messages, system_and_tools_texts, stop_list)
    return [demand for class_, demand in found if class_ in USED]


def classes(
    messages, system_and_tools_texts, stop_list
) -> Iterator[tuple[str, Demand]]:
    """The class of every atom of every call; what is outside has age 0 and no source line."""
    given, said = Heard(system_and_tools_texts), Heard()
    written, call = Heard(), 0
    sources: list[tuple[int, str]] = []
    for is_reply, row in groupby(
        messages, key=lambda message: message["role"] == "assistant"
    ):
        reply = list(row)
        if is_reply:
            call += 1
            tools = {each["function"]["name"] for each in calls_of(reply)}
            for atom, kind in atoms_of(*reply).items():
                outside = outside_of(atom, kind, given, tools, said, stop_list)
                class_ = outside or (
                    REUSE if written.holds(atom, kind) else DEMAND
                )
                yield class_, sourced(call, atom, kind, class_, sources)
        for message in reply:
            if message["role"] not in ("assistant", "tool"):
                given.add(text_of(message))
                continue
            said.add(text_of(message, keys=True))
            sources.append((call, text_of(message, keys=True)))
            if is_reply:
                written.add(text_of(message, keys=True))


def outside_of(atom, kind, given, tools, said, stop_list) -> str | None:
    """The class of an atom that no use of a source is, or None."""
    if given.holds(atom, kind):
        return "user/system"
    if atom in tools:
        return "tool name"
    if not said.holds(atom, kind):
        return "generated"
    return "stop list" if atom in stop_list else None


def sourced(call, atom, kind, class_, sources) -> Demand:
    """An atom with its age and its source lines, the latest first."""
    if class_ not in USED:
        return Demand(call, atom, kind, 0, "", first_use=False)
    holding = [(u, text) for u, text in sources if occurs(atom, kind, text)]
    lines = [
        line for _, text in holding for line in lines_with(atom, kind, text)
    ]
    latest, *others = dict.fromkeys(reversed(lines))
    return Demand(
        call,
        atom,
        kind,
        call - holding[-1][0],
        latest,
        class_ == DEMAND,
        tuple(others),
    )


def stop_list_for(
    task: str, atoms_by_task: dict[str, set[str]]
) -> frozenset[str]:
    """Atoms that more than 2% of the other tasks use."""
    others = [atoms for other, atoms in atoms_by_task.items() if other != task]
    tasks_with = Counter(atom for atoms in others for atom in atoms)
    return frozenset(
        atom for atom, n in tasks_with.items() if n > STOP_SHARE * len(others)
    )


def visible(demand: Demand, view_messages) -> bool:
    """Whether one message of the view shows the atom in evidence form (ER_line)."""
    return any(
        shown(line, demand, form, start)
        for message in view_messages
        for form in readings(demand.kind, text_of(message))
        for start in places(demand.atom, demand.kind, form)
        for line in (demand.source_line, *demand.other_lines)
    )


def atom_visible(demand: Demand, view_messages) -> bool:
    """Whether the atom stands anywhere in the view (ER_atom)."""
    return any(
        occurs(demand.atom, demand.kind, text_of(message))
        for message in view_messages
    )


class Heard:
    """What one voice said so far."""

    def __init__(self, texts=()):
        self.texts, self.whole, self.parts = [], set(), set()
        for text in texts:
            self.add(text)

    def add(self, text):
        self.texts.append(text)
        whole, parts = names(text)
        self.whole |= whole
        self.parts |= parts

    def holds(self, atom, kind):
        if kind in SUBSTRINGS:
            return any(occurs(atom, kind, text) for text in self.texts)
        return atom in self.whole or (kind in DIVIDED and atom in self.parts)


def text_of(message, *, keys=False) -> str:
    """Content, reasoning and arguments of a message: their leaves, or all with the keys."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(
            part["text"] for part in content if part.get("type") == "text"
        )
    if keys:
        written = [
            str(each["function"]["arguments"]) for each in calls_of([message])
        ]
    else:
        written = [str(value) for _, value in leaves_of(message)]
    return "\n".join(
        filter(None, [content, message.get("reasoning_content"), *written])
    )


def calls_of(messages) -> list[dict]:
    return [
        call
        for message in messages
        for call in message.get("tool_calls") or ()
    ]


def leaves_of(*messages) -> Iterator[tuple[str, object]]:
    """(the parameter's name, value) of each leaf of the arguments."""
    for tool_call in calls_of(messages):
        arguments = tool_call["function"]["arguments"]
        with suppress(ValueError, TypeError):
            arguments = json.loads(arguments)
        yield from leaves("", arguments)


def leaves(name: str, value) -> Iterator[tuple[str, object]]:
    """The leaves below a value; a search beside its replacement is called old text."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(
                "old" if key == "search" and "replace" in value else key, below
            )
    elif isinstance(value, list):
        for below in value:
            yield from leaves(name, below)
    else:
        yield name, value


def atoms_of(*messages) -> dict[str, str]:
    """The atoms of a call, each with its kind."""
    strings = [
        (name, leaf)
        for name, leaf in leaves_of(*messages)
        if isinstance(leaf, str)
    ]
    literals = {
        literal: LITERAL
        for _, text in strings
        for literal in literals_in(text)
    }
    tokens = {
        token: kind for _, text in strings for token, kind in tokens_in(text)
    }
    old = {
        text: QUOTE
        for name, text in strings
        if OLD_TEXT.fullmatch(name) and is_long(text)
    }
    return literals | tokens | old


def is_long(text: str) -> bool:
    return len(text.strip()) >= LEAST_CHARS


def literals_in(text: str) -> Iterator[str]:
    """What stands in quotes, and the text itself if it is a phrase; without their escapes."""
    inside = [literal for quoted in QUOTED for literal in quoted.findall(text)]
    yield from (
        plain(literal).strip() for literal in inside if is_long(plain(literal))
    )
    if PHRASE.fullmatch(plain(text).strip()):
        yield plain(text).strip()


def tokens_in(text: str) -> Iterator[tuple[str, str]]:
    """(token, kind) in one leaf string."""
    yield from ((url, "path") for url in URL.findall(plain(text)))
    for token in map(bare, TOKEN.findall(URL.sub(" ", plain(text)))):
        if kind := kind_of(token):
            yield token, kind


def kind_of(token: str) -> str | None:
    """The kind of a token, or None for a plain word."""
    if NUMBERS.fullmatch(token):
        return "number"
    if HASHES.fullmatch(token):
        return "hash"
    if (
        "/" in token
        and len(token) >= 4
        and any(sign.isalpha() for sign in token)
    ):
        return "path"
    return "identifier" if len(token) >= 6 and MARKED.search(token) else None


def bare(token: str) -> str:
    return token.lstrip("@" if "/" in token else "@.")


def undone(text: str) -> str:
    """The text with its JSON escapes undone once."""
    return ESCAPE.sub(
        lambda it: "'" if it[0] == r"\'" else json.loads(f'"{it[0]}"'), text
    )


@lru_cache(4096)
def plain(text: str) -> str:
    """The text with its escapes undone, however deep; other escapes of letters are a space."""
    while (inner := undone(text)) != text:
        text = inner
    return re.sub(r"\\+[A-Za-z]", " ", text)


def readings(kind: str, text: str) -> tuple[str, ...]:
    """The forms of a text in which an atom of a kind is looked for."""
    return (
        tuple(dict.fromkeys((text, undone(text))))
        if kind == QUOTE
        else (plain(text),)
    )


def named(text: str) -> Iterator[tuple[int, str, bool]]:
    """(start, name, whether it is only a part) of all that a token can be found by."""
    yield from (
        (match.start(), match[0], False) for match in URL.finditer(text)
    )
    for match in TOKEN.finditer(text):
        for cut in (0, *(slash.end() for slash in re.finditer("/", match[0]))):
            name = bare(match[0][cut:])
            start = match.end() - len(name)
            yield start, name, False
            yield from ((start + at, part, True) for at, part in dotted(name))


def dotted(name: str) -> Iterator[tuple[int, str]]:
    """(start, text) of all rows of dotted parts of a name."""
    if "/" not in name and "." in name:
        starts = [0, *(dot.end() for dot in re.finditer(r"\.", name))]
        ends = [*(dot.start() for dot in re.finditer(r"\.", name)), len(name)]
        yield from (
            (a, name[a:b]) for n, a in enumerate(starts) for b in ends[n:]
        )


@lru_cache(4096)
def names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of a text that are whole, and those that are parts of dotted names."""
    found = list(named(plain(text)))
    whole = frozenset(name for _, name, is_part in found if not is_part)
    return whole, frozenset(name for _, name, is_part in found if is_part)


def occurs(atom: str, kind: str, text: str) -> bool:
    if kind in SUBSTRINGS:
        return any(
            True
            for form in readings(kind, text)
            for _ in places(atom, kind, form)
        )
    whole, parts = names(text)
    return atom in whole or (kind in DIVIDED and atom in parts)


def places(atom: str, kind: str, form: str) -> Iterator[int]:
    """Where the atom starts in a form of a text."""
    if atom not in form:
        return
    if kind not in SUBSTRINGS:
        for line in re.finditer(".+", form):
            found = named(line[0]) if atom in line[0] else ()
            starts = {
                s
                for s, name, part in found
                if name == atom and (kind in DIVIDED or not part)
            }
            yield from (line.start() + start for start in sorted(starts))
    else:
        before = r"(?<!\w)" if kind == LITERAL else ""
        after = r"(?!\w)" if kind == LITERAL else ""
        yield from (
            m.start()
            for m in re.finditer(before + re.escape(atom) + after, form)
        )


def lines_with(atom: str, kind: str, text: str) -> list[str]:
    """The source lines of the atom in one text; long ones as the window around the atom."""
    lines = []
    for form in readings(kind, text):
        for start in places(atom, kind, form):
            end = start + len(atom)
            low, high = (
                form.rfind("\n", 0, start) + 1,
                f"{form}\n".index("\n", end - 1),
            )
            if high - low > len(atom) + 2 * WINDOW_CHARS:
                low, high = (
                    max(low, start - WINDOW_CHARS),
                    min(high, end + WINDOW_CHARS),
                )
            lines.append(form[low:high])
    return lines


def shown(line: str, demand: Demand, form: str, start: int) -> bool:
    """Whether a line stands around a place where the atom does, or 80% of its words in order."""
    at = max(line.find(demand.atom), 0)
    before, behind = at, len(line) - at - len(demand.atom)
    low = max(start - 2 * before - WINDOW_CHARS, 0)
    around = form[low : start + len(demand.atom) + 2 * behind + WINDOW_CHARS]
    return line in around or in_order(line, around) >= SHOWN_SHARE


def in_order(line: str, text: str) -> float:
    """Longest common subsequence of the words, as a share of the line's."""
    wanted = re.findall(r"\w+", line)
    row = [0] * (len(wanted) + 1)
    for word in re.findall(r"\w+", text):
        if word in wanted:
            above = 0
            for i, other in enumerate(wanted, 1):
                above, row[i] = (
                    row[i],
                    above + 1 if other == word else max(row[i], row[i - 1]),
                )
    return row[-1] / max(1, len(wanted))
