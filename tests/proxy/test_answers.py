"""The proxy's own answers."""

import json

from ullage.doors.proxy import answers


def test_an_error_is_in_the_form_of_every_vendor():
    error = json.loads(answers.failure(502, "no.").body)["error"]
    assert {"type", "message", "code", "status"} == set(error)
