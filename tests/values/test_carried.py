"""What is copied is itself; what is pickled is made anew, or refused with what to carry."""

import copy
import pickle

import pytest

from ullage.core.errors import ConfigError, NotCarried
from ullage.core.values.carried import Portable, check


class Kettle(Portable):
    """Has a connection, of a kind."""

    def __init__(self, litres, *, lid=None):
        self.litres, self.lid, self.wire = litres, lid, lambda: None


def test_a_copy_is_the_thing_itself():
    kettle = Kettle(2)
    assert copy.copy(kettle) is kettle
    assert copy.deepcopy({"k": [kettle]})["k"][0] is kettle


def test_pickled_it_is_made_anew_from_its_arguments():
    kettle = pickle.loads(pickle.dumps(Kettle(2, lid="tin")))
    assert (type(kettle), kettle.litres, kettle.lid) == (Kettle, 2, "tin")


def test_two_that_share_something_share_it_where_they_arrive():
    lid = Kettle(0)
    one, other = pickle.loads(
        pickle.dumps([Kettle(1, lid=lid), Kettle(2, lid=lid)])
    )
    assert one.lid is other.lid


def test_what_cannot_go_along_is_named_by_its_argument():
    with pytest.raises(
        NotCarried, match=r"^lid of Kettle: a function cannot be pickled"
    ):
        pickle.dumps(Kettle(1, lid=lambda: None))
    with pytest.raises(NotCarried, match=r"^argument 1 of Kettle"):
        pickle.dumps(Kettle(lambda: None))
    assert issubclass(NotCarried, ConfigError)
    assert issubclass(NotCarried, TypeError), (
        "what libraries expect of pickling"
    )


def test_an_address_with_a_password_is_told_from_one_without():
    check("store", "postgresql://ada@db.example.org/ullage?sslmode=require")
    check("store", "s3://bucket/prefix?endpoint=http://host:9000&region=eu")
    for secret in (
        "postgresql://ada:x1@h/d",
        "host=h password=x1",
        "s3://b/p?secret_access_key=x1",
    ):
        with pytest.raises(NotCarried) as raised:
            check("store", secret)
        assert "x1" not in str(raised.value)
