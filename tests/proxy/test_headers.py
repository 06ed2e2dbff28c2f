"""Headers: what is between two neighbours stays there."""

from multidict import CIMultiDict, CIMultiDictProxy

from ullage.doors.proxy.headers import TREATMENT_HEADER, passed_down, passed_up


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
