r"""A second, independent evidence matcher, to hold the first one against (metrics M1, control N4).

Written from the text of the metric alone, in plain Python, without `ullage`. A conversation is a
list of Chat Completions messages. Where the text leaves something open, this is what was decided:

Calls and age
 1. A call is an assistant message, with or without tool calls; the first has `call_index` 1.
 2. A result belongs to the last call before it. Age = t − that call, so the next call has age 1.
 3. Any role but assistant and tool counts as user or system, from where its message stands on
    (so does a harness's summary in a user message).
 4. What the assistant wrote: its text, its reasoning, the leaves of its arguments (numbers too).
    Names, ids and metadata are not writing. No part of a_t is "before t".
Atoms
 5. Only leaf *strings* give atoms; JSON numbers do not. Arguments that are no JSON are a string.
 6. Every leaf string is split: no guess is made which of them are shell or code.
 7. A token is a URL, or words joined by single `.` or `-`, in turn joined by `/`, with a leading
    `/`, `./`, `../` or `~/`. A leading `@` or `-`, a leading `.` of a token without `/`, and a
    `/` at the end are not part of it. `:`, `=`, `,`, `\` and `#` end a token that is no URL.
 8. Kinds, the first that fits: path (holds `/`, any length), number, hash, identifier. A bare
    file name is an identifier. Units are those of `UNIT`. Groups (`1,234`) are not joined. An x
    that a call holds as several kinds has the kind met last; a token is met after a literal.
 9. Hash: a UUID, or 7 or more hex digits (`0x` allowed); digits alone are a number.
10. Case change: anywhere after the first letter, so that a capitalised word is no identifier.
11. A quoted literal stands between `'` or `"` on one line, as written (its escapes kept), not
    opened or closed inside a word. What it holds is split as well.
12. An edit's old text is an argument named `old`, `old_…`, `old…` in camel case, or `search`
    beside `replace`. It is one atom and not split. It has no least length, but is not blank.
Matching
13. x occurs where it is a whole token, or what follows a `/` of a token (whatever kind x is).
    A path does not occur in a shorter path that ends it, nor in one that only begins with it.
14. A quoted literal is a substring that cuts no token at its ends; an old text any substring.
15. Escapes: the text as it is, or with its JSON escapes undone once. x is never changed.
Conditions
16. (5) means all tools called in a_t. Schemas are texts here: enum values fall under (2).
17. Re-uses meet all conditions but (3), also if the assistant wrote x before a result showed it.
18. Classes, the first that fits: user/system; in no result: own writing or generated; tool name;
    stop list (it counts the atoms of arguments, once for each task); re-use; demand.
Visible
19. Source lines are those of *all* results before t that hold x; `source_line` is the last one.
    Lines end at a line feed. For an old text of several lines they are those lines, whole.
20. A line is long when it is longer than x and 160 characters. The window may cut tokens.
21. "80% of its tokens in order" is the longest common subsequence with the tokens of 7, over the
    whole message. x must occur in that message too, though not among the matching tokens.
22. A message's text is its content, reasoning and arguments' leaves, as in 4, one a line.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

SUBSTRINGS = QUOTE, LITERAL = "quote", "literal"
USED = DEMAND, REUSE = "demand", "re-use"
WINDOW_CHARS, SHOWN_SHARE, STOP_SHARE = 80, 0.8, 0.02

WORD = r"\w+(?:[.-]\w+)*"
TOKEN = re.compile(
    rf"\d+(?:\.\d+)?%(?!\w)|(?:~/|(?:\.\.?/)+|(?<![</\w.])/)?\.?{WORD}(?:/[.@]?{WORD})*"
)
URL = re.compile(r"\b[A-Za-z][\w+.-]{0,15}://[^\s\"'`<>()\[\]{}|\\,;]*[\w=&#%~@$*+-]")
UNIT = r"(?:%|[kKMGTP]i?[bB]?|[bB]|bytes|[nuµm]?s|min|h|d|px|r?em|pt|[kMG]?Hz)"
NUMBERS = re.compile(rf"\d{{4,}}(?:\.\d+)?|\d+\.\d+|\d+(?:\.\d+)?{UNIT}")
HASHES = re.compile(r"(?:0x)?[0-9a-fA-F]{7,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MARKED = re.compile(r"[\d_./-]|(?<!^)(?:[a-z][A-Z]|[A-Z][a-z])")
QUOTED = [re.compile(rf"(?<!\w){q}((?:[^{q}\\\n]|\\.){{8,}}){q}(?!\w)") for q in ('"', "'")]
OLD_TEXT = re.compile(r"old(?:[_A-Z]\w*)?")
ESCAPE = re.compile(r'\\(?:u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|["\\/bfnrt])')


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


def classes(messages, system_and_tools_texts, stop_list) -> Iterator[tuple[str, Demand]]:
    """The class of every atom of every call; what is outside has age 0 and no source line."""
    given, written, returned = Heard(system_and_tools_texts), Heard(), Heard()
    results: list[tuple[int, str]] = []
    call = 0
    for message in messages:
        text = text_of(message)
        if message["role"] == "assistant":
            call += 1
            tools = {tool_call["function"]["name"] for tool_call in message.get("tool_calls") or ()}
            for atom, kind in atoms_of(message).items():
                own = written.holds(atom, kind)
                if given.holds(atom, kind):
                    class_ = "user/system"
                elif not returned.holds(atom, kind):
                    class_ = "own writing" if own else "generated"
                elif atom in tools or atom in stop_list:
                    class_ = "tool name" if atom in tools else "stop list"
                else:
                    class_ = REUSE if own else DEMAND
                yield class_, sourced(call, atom, kind, class_, results)
            written.add(text)
        elif message["role"] == "tool":
            results.append((call, text))
            returned.add(text)
        else:
            given.add(text)


def sourced(call, atom, kind, class_, results) -> Demand:
    """An atom with its age and its source lines in the results, the latest first."""
    if class_ not in USED:
        return Demand(call, atom, kind, 0, "", first_use=False)
    holding = [(u, text) for u, text in results if occurs(atom, kind, text)]
    lines = [line for _, text in holding for line in lines_with(atom, kind, text)]
    latest, *others = dict.fromkeys(reversed(lines))
    return Demand(call, atom, kind, call - holding[-1][0], latest, class_ == DEMAND, tuple(others))


def stop_list_for(task: str, atoms_by_task: dict[str, set[str]]) -> frozenset[str]:
    """Atoms that more than 2% of the other tasks use."""
    others = [atoms for other, atoms in atoms_by_task.items() if other != task]
    tasks_with = Counter(atom for atoms in others for atom in atoms)
    return frozenset(atom for atom, n in tasks_with.items() if n > STOP_SHARE * len(others))


def visible(demand: Demand, view_messages) -> bool:
    """Whether one message of the view shows the atom in evidence form (ER_line)."""
    return any(
        occurs(demand.atom, demand.kind, text)
        and any(shown(line, text) for line in (demand.source_line, *demand.other_lines))
        for text in map(text_of, view_messages)
    )


def atom_visible(demand: Demand, view_messages) -> bool:
    """Whether the atom stands anywhere in the view (ER_atom)."""
    return any(occurs(demand.atom, demand.kind, text_of(message)) for message in view_messages)


class Heard:
    """What one voice said so far."""

    def __init__(self, texts=()):
        self.texts, self.names = list(texts), {name for text in texts for name in names(text)}

    def add(self, text):
        self.texts.append(text)
        self.names |= names(text)

    def holds(self, atom, kind):
        if kind in SUBSTRINGS:
            return any(occurs(atom, kind, text) for text in self.texts)
        return atom in self.names


def text_of(message) -> str:
    """Content, reasoning and leaves of the arguments of a message."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content if part.get("type") == "text")
    written = [str(value) for _, value in leaves_of(message)]
    return "\n".join(filter(None, [content, message.get("reasoning_content"), *written]))


def leaves_of(message) -> Iterator[tuple[str, object]]:
    """(the parameter's name, value) of each leaf of the arguments."""
    for tool_call in message.get("tool_calls") or ():
        arguments = tool_call["function"]["arguments"]
        with suppress(ValueError, TypeError):
            arguments = json.loads(arguments)
        yield from leaves("", arguments)


def leaves(name: str, value) -> Iterator[tuple[str, object]]:
    """The leaves below a value; a search beside its replacement is called old text."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves("old" if key == "search" and "replace" in value else key, below)
    elif isinstance(value, list):
        for below in value:
            yield from leaves(name, below)
    else:
        yield name, value


def atoms_of(message) -> dict[str, str]:
    """The atoms of a call, each with its kind."""
    strings = ((name, leaf) for name, leaf in leaves_of(message) if isinstance(leaf, str))
    return {atom: kind for name, text in strings for atom, kind in atoms_in(name, text)}


def atoms_in(name: str, text: str) -> Iterator[tuple[str, str]]:
    """(atom, kind) in one leaf string, by the name of its parameter."""
    if OLD_TEXT.fullmatch(name):
        if text.strip():
            yield text, QUOTE
        return
    for quoted in QUOTED:
        yield from ((literal, LITERAL) for literal in quoted.findall(text) if literal.strip())
    yield from ((url, "path") for url in URL.findall(text))
    for token in map(bare, TOKEN.findall(URL.sub(" ", text))):
        if kind := kind_of(token):
            yield token, kind


def kind_of(token: str) -> str | None:
    """The kind of a token, or None for a plain word."""
    if "/" in token:
        return "path"
    if NUMBERS.fullmatch(token):
        return "number"
    if HASHES.fullmatch(token):
        return "hash"
    return "identifier" if len(token) >= 6 and MARKED.search(token) else None


def bare(token: str) -> str:
    return token.lstrip("@" if "/" in token else "@.")


@lru_cache(2048)
def forms(text: str) -> tuple[str, ...]:
    """The text as it is, after the text with its JSON escapes undone where it has any."""
    plain = ESCAPE.sub(lambda escape: json.loads(f'"{escape[0]}"'), text)
    return (text,) if plain == text else (plain, text)


@lru_cache(512)
def named(text: str) -> list[tuple[int, str]]:
    """(start, name) of all that a token of the text can be found by."""
    found = [(match.start(), match[0]) for match in URL.finditer(text)]
    for match in TOKEN.finditer(text):
        for start in (0, *(slash.end() for slash in re.finditer("/", match[0]))):
            found.append((match.start() + start, bare(match[0][start:])))
    return found


@lru_cache(4096)
def names(text: str) -> frozenset[str]:
    return frozenset(name for form in forms(text) for _, name in named(form))


def occurs(atom: str, kind: str, text: str) -> bool:
    if kind in SUBSTRINGS:
        return any(True for form in forms(text) for _ in places(atom, kind, form))
    return atom in names(text)


def places(atom: str, kind: str, form: str) -> Iterator[int]:
    """Where the atom starts in a form of a text."""
    if kind not in SUBSTRINGS:
        for line in re.finditer(".+", form) if atom in form else ():
            if atom in line[0]:
                yield from (line.start() + start for start, name in named(line[0]) if name == atom)
    elif atom in form:
        before = r"(?<!\w)(?<!\w[.-])" if kind == LITERAL and re.match(r"\w", atom) else ""
        after = r"(?!\w|[./-]\w)" if kind == LITERAL and re.search(r"\w\Z", atom) else ""
        yield from (m.start() for m in re.finditer(before + re.escape(atom) + after, form))


def lines_with(atom: str, kind: str, text: str) -> list[str]:
    """The source lines of the atom in one text; long ones as the window around the atom."""
    lines = []
    for form in forms(text):
        for start in places(atom, kind, form):
            end = start + len(atom)
            low, high = form.rfind("\n", 0, start) + 1, f"{form}\n".index("\n", end - 1)
            if high - low > len(atom) + 2 * WINDOW_CHARS:
                low, high = max(low, start - WINDOW_CHARS), min(high, end + WINDOW_CHARS)
            lines.append(form[low:high])
    return lines


def shown(line: str, text: str) -> bool:
    """Whether a text holds a line: as it is, or 80% of its tokens in order."""
    return line in text or any(in_order(line, form) >= SHOWN_SHARE for form in forms(text))


def in_order(line: str, text: str) -> float:
    """Longest common subsequence of the tokens, as a share of the line's."""
    wanted = TOKEN.findall(line)
    row = [0] * (len(wanted) + 1)
    for token in TOKEN.findall(text):
        if token in wanted:
            above = 0
            for i, other in enumerate(wanted, 1):
                above, row[i] = row[i], above + 1 if other == token else max(row[i], row[i - 1])
    return row[-1] / max(1, len(wanted))
