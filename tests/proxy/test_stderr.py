"""No request waits for who reads a proxy's standard error."""

import json
import os
import threading
from time import sleep

from tests.proxy.started import started
from tests.proxy.upstream import ask, upstream
from ullage.doors.proxy.stderr import Unwaited


def test_a_proxy_whose_log_nobody_reads_goes_on(tmp_path):
    """A pipe holds 64 KB: two hundred of these lines."""
    with (
        upstream() as there,
        started(there, "--log", f"--store={tmp_path}/kept.db") as proxy,
    ):
        body = json.dumps({"model": "m" * 500, "messages": []}).encode()
        answers = {
            ask(proxy.url, "POST", "/v1/chat/completions", body)[0]
            for _ in range(300)
        }
        assert answers == {200}
        proxy.process.terminate()
        assert proxy.process.wait(20) == 0


def test_what_waits_too_long_is_left_out_and_counted():
    reading, writing = os.pipe()
    file = Unwaited(writing, most=3)
    texts = [f"{number:07}\n" * 2_000 for number in range(9)]
    for text in texts[
        :5
    ]:  # four fill the pipe, and the fifth is being written
        file.write(text)
        while file._waiting.qsize():
            sleep(0.01)
    for text in texts[5:]:
        file.write(text)
    found = []
    with os.fdopen(reading) as end:
        reader = threading.Thread(target=lambda: found.extend(end.readlines()))
        reader.start()
        file.close()
        os.close(writing)
        reader.join()
    said = "".join(found)
    assert said.startswith("".join(texts[:5]))
    assert "ullage proxy: 1 texts were left out here\n" + texts[5] in said
    assert texts[8] not in said
