import json

import pytest

from demo.tools import MAX_HITS, ToolError, Tools, default_roots


@pytest.fixture
def small(tmp_path):
    root = tmp_path / "root"
    (root / "pkg" / "tests").mkdir(parents=True)
    (root / "pkg" / "b.py").write_text(
        "import os\n\n\ndef two():\n    return os.sep\n"
    )
    (root / "pkg" / "a.py").write_text("def one():\n\x0c\n    return 1\n")
    (root / "pkg" / "tests" / "test_a.py").write_text("def one():\n    pass\n")
    (root / "pkg.py").write_text("")
    (tmp_path / "secret.py").write_text("key = 1\n")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    return Tools({"code": root})


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": "c1", "type": "function", "function": function}


def test_a_listing_is_sorted_and_leaves_out_tests_and_links(small):
    assert small.list_dir("code") == "pkg/\npkg.py  0\n"
    assert small.list_dir("code/pkg") == "a.py  26\nb.py  41\n"
    assert small.list_dir(".") == "code/\n"


def test_a_file_is_numbered_by_line_breaks_alone(small):
    assert (
        small.read_file("code/pkg/a.py")
        == "     1|def one():\n     2|\x0c\n     3|    return 1\n"
    )
    assert small.read_file("code/pkg/b.py", 4, 4) == "     4|def two():\n"
    assert (
        small.read_file("code/pkg/b.py", 99) == "(code/pkg/b.py has 5 lines)\n"
    )


def test_search_names_the_line_of_the_word_not_of_the_blank_before(small):
    assert small.search(r"^\s*def \w+", "code") == (
        "2 hits in 2 files\ncode/pkg/a.py:1:def one():\ncode/pkg/b.py:4:def two():\n"
    )


def test_search_of_one_file_and_hit_limit(tmp_path):
    (tmp_path / "many.py").write_text("x = 1\n" * (MAX_HITS + 5))
    found = Tools({"code": tmp_path}).search("x", "code/many.py")
    assert found.count("\n") == MAX_HITS + 2
    assert found.endswith("(5 more hits not shown)\n")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "code/../secret.py",
        "code/link.py",
        "",
        "other/x.py",
        "../secret.py",
    ],
)
def test_nothing_outside_the_roots_is_read(small, path):
    for tool in (
        small.read_file,
        small.list_dir,
        lambda p: small.search("key", p),
    ):
        if tool == small.list_dir and not path:
            continue
        with pytest.raises(ToolError, match="root"):
            tool(path)


def test_a_tool_tells_its_errors_as_a_result(small):
    answer = small.run(call("read_file", path="code/pkg/missing.py"))
    assert answer == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "error: code/pkg/missing.py does not exist",
    }
    assert (
        "RE2" in small.run(call("search", pattern="(", path="code"))["content"]
    )
    assert "arguments" in small.run(call("search", query="x"))["content"]
    assert "no tool" in small.run(call("rm", path="code"))["content"]


def test_a_missing_module_that_is_a_package_says_so(tools):
    with pytest.raises(ToolError, match="there is a folder stdlib/email/"):
        tools.read_file("stdlib/email.py")


def test_the_same_call_returns_the_same_text_and_no_machine_path():
    calls = [
        call("list_dir", path="stdlib"),
        call("search", pattern=r"\bre\.compile\(", path="stdlib"),
        call("read_file", path="stdlib/json/decoder.py"),
        call("read_file", path="stdlib/nowhere.py"),
    ]
    first, second = (
        [Tools().run(c)["content"] for c in calls] for _ in range(2)
    )
    assert first == second
    assert first[1].count("\n") > 100
    for root in default_roots().values():
        assert not any(str(root) in text for text in first)


def test_files_that_name_the_machine_are_not_shown(tools):
    assert "_sysconfigdata" not in tools.list_dir("stdlib")
    with pytest.raises(ToolError, match="does not exist"):
        tools.list_dir("stdlib/site-packages")
