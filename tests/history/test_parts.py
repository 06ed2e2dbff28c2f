"""What one message holds, by itself."""

from ullage.core.history.parts import (
    content_of,
    has_bound_reasoning,
    leaf_at,
    leaves_of,
    loaded_tools,
    marks_of,
)
from ullage.core.values.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

IMAGE = Media("image", "image/png", "aGVsbG8=", 0)
RESULT = ToolResult("c1", (Text("so"), IMAGE), False, 1)
MESSAGE = Message("user", (Text("look"), RESULT))


def test_each_item_of_a_result_is_a_leaf():
    assert list(leaves_of(MESSAGE)) == [
        (0, 0, MESSAGE.parts[0]),
        (1, 0, RESULT.content[0]),
        (1, 1, IMAGE),
    ]


def test_a_leaf_is_found_at_its_location_alone():
    for number, item, leaf in leaves_of(MESSAGE):
        assert leaf_at(MESSAGE, (7, number, item)) is leaf
    assert leaf_at(MESSAGE, (7, 1, 2)) is None
    assert leaf_at(MESSAGE, (7, 2, 0)) is None


def test_what_a_leaf_is_set_aside_as():
    assert content_of(ToolCall("c1", "bash", "{}", 0)) == ("{}", "text")
    assert content_of(Opaque("document", "{}", 0)) == ("{}", "block")
    assert content_of(IMAGE) == (
        '{"data":"aGVsbG8=","kind":"image","mime":"image/png"}',
        "block",
    )
    block = Media("image", "image/png", "aGVsbG8=", 0, block={"b": 1, "a": 2})
    assert content_of(block) == ('{"a":2,"b":1}', "block")
    assert content_of(Reasoning("hm", 0)) is None
    assert content_of(None) is None


def test_what_sets_a_message_apart():
    def marks(message, *, begins=False):
        kinds = {type(part) for part in message.parts}
        return list(marks_of(message, kinds, begins=begins))

    bound = Message("assistant", (Reasoning("hm", 0, bound=True),))
    assert marks(MESSAGE) == ["media"]
    assert marks(bound, begins=True) == ["begins", "bound"]
    assert has_bound_reasoning(bound)
    assert marks(Message("system", (Text("be brief"),))) == ["permanent"]
    assert marks(Message("user", (Text("go on"),))) == ["asks"]


def test_the_tools_that_a_search_loaded():
    search = Opaque("tool_search_output", "{}", 0, loads=("grep", "find"))
    message = Message("assistant", (Text("here"), search))
    assert loaded_tools(message) == ["grep", "find"]
    assert loaded_tools(MESSAGE) == []
