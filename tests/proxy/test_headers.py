"""Headers: what is between two neighbours stays there."""

from multidict import CIMultiDict, CIMultiDictProxy

from ullage.doors.proxy.headers import (
    TREATMENT_HEADER,
    client_session_of,
    passed_down,
    passed_up,
    subagent_of,
)


def test_several_of_one_name_stay_several_in_their_order():
    came = CIMultiDictProxy(
        CIMultiDict([("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
    )
    assert passed_down(came).getall("set-cookie") == ["a=1", "b=2"]


def test_what_a_connection_names_is_the_hops_own():
    came = CIMultiDictProxy(
        CIMultiDict({"Connection": "close, X-One", "x-one": "1", "Two": "2"})
    )
    assert dict(passed_up(came)) == {"Two": "2"}
    assert dict(passed_down(came, without=["two"])) == {}


def test_our_own_headers_go_nowhere():
    assert not passed_up(
        CIMultiDictProxy(
            CIMultiDict({TREATMENT_HEADER: "off", "x-ullage-more": "1"})
        )
    )


def test_a_client_names_its_session_in_a_header_of_its_own():
    headers = CIMultiDict({"x-claude-code-session-id": "0d9b7a3e-52f1"})
    assert client_session_of(headers) == "0d9b7a3e-52f1"
    assert client_session_of(CIMultiDict({"session_id": "codex-1234"})) == (
        "codex-1234"
    )
    assert client_session_of(CIMultiDict({"session_id": "<b>a</b>" * 9})) == ""
    assert client_session_of({}) == ""


def test_a_subagent_of_a_session_has_a_header_of_its_own():
    headers = CIMultiDict({"x-claude-code-agent-id": "a9fe9d43ea946fd64"})
    assert subagent_of(headers) == "a9fe9d43ea946fd64"
    assert subagent_of(CIMultiDict({"x-claude-code-agent-id": "<b>"})) == ""
    assert subagent_of({}) == ""


def test_opencode_names_its_session_and_what_began_a_subagent():
    headers = CIMultiDict({"x-session-affinity": "ses_de0c960fdffeGRPI58KL"})
    assert client_session_of(headers) == "ses_de0c960fdffeGRPI58KL"
    assert subagent_of(headers) == ""
    headers["x-parent-session-id"] = "ses_aaaaaaaaaaaaaaaaaaaa"
    assert subagent_of(headers) == "ses_de0c960fdffeGRPI58KL"
