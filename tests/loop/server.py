"""A model that follows a script, behind an OpenAI-compatible endpoint on the loopback."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def serving(script):
    """Yields the base URL and the list of request bodies that came.

    ``script`` takes a request body and gives the assistant's message, or a status and an error.
    """
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(
                self.rfile.read(int(self.headers["content-length"]))
            )
            bodies.append(body)
            said = script(body)
            status, answer = (
                said
                if isinstance(said, tuple)
                else (200, completion(body, said))
            )
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(body, message):
    tokens = len(json.dumps(body)) // 4
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": 10,
        "total_tokens": tokens + 10,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": usage,
    }


def saying(text):
    return {"role": "assistant", "content": text}


def calling(number, name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
