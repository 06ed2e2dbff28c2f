"""JSON values, schemas, and streams in parts, for the properties of this room."""

from itertools import pairwise

from hypothesis import strategies as st

TEXTS = st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


def parted(stream, cuts):
    """A stream in parts, cut at these places."""
    places = sorted(
        {0, len(stream), *(cut for cut in cuts if cut < len(stream))}
    )
    return [stream[a:b] for a, b in pairwise(places)]


# Schemas, and values that are valid under them


def _texts():
    lengths = st.integers(0, 400)
    plain = st.just({"type": "string"})
    least = lengths.map(lambda n: {"type": "string", "minLength": n})
    like = st.just({"type": "string", "pattern": "^x*$"})
    return plain | least | like


def _lists(inner):
    least = st.integers(0, 30)
    return st.builds(
        lambda items, n: {"type": "array", "items": items, "minItems": n},
        inner,
        least,
    )


def _objects(inner):
    names = st.sampled_from("abcd")
    return st.builds(
        lambda properties, closed: {
            "type": "object",
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": not closed,
        },
        st.dictionaries(names, inner, min_size=1, max_size=3),
        st.booleans(),
    )


LEAVES = _texts() | st.sampled_from(
    [{"type": "integer"}, {"enum": ["one", "two"]}]
)
SCHEMAS = _objects(
    st.recursive(
        LEAVES, lambda inner: _lists(inner) | _objects(inner), max_leaves=5
    )
)


@st.composite
def valid(draw, schema):
    """A value of a schema of `SCHEMAS`, often a long one."""
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"]
    if kind == "integer":
        return draw(st.integers(0, 10**6))
    if kind == "string":
        letter = (
            "x" if "pattern" in schema else draw(st.sampled_from("xé😀\n"))
        )
        return letter * draw(st.integers(schema.get("minLength", 0), 400))
    if kind == "array":
        one = draw(valid(schema["items"]))
        least = schema["minItems"]
        return [one] * draw(st.integers(least, least + 15))
    return {
        name: draw(valid(inner))
        for name, inner in schema["properties"].items()
    }
