"""A provider as it is seen through something that stands before it."""

from contextlib import closing

from tests.hidden_turns.sdks import gathered
from tests.servers.loopback import _CLIENTS


class Behind:
    """A `tests.servers.Provider` whose clients ask elsewhere, streamed or not."""

    def __init__(self, server, url, stream):
        self.format, self._server, self._url, self._stream = (
            server.format,
            server,
            url,
            stream,
        )

    def client(self):
        """The vendor's own client, pointed at what stands before the provider."""
        return self._server._stack.enter_context(
            _CLIENTS[self.format](self._url)
        )

    def ask(self, client, request):
        """The SDK's call; of a stream, what the SDK itself puts together of it."""
        if not self._stream:
            return self._server.ask(client, request)
        match self.format:
            case "bedrock-converse":
                with closing(
                    client.converse_stream(**request)["stream"]
                ) as events:
                    return gathered(self.format, events)
            case "anthropic":
                with client.messages.stream(**request) as stream:
                    return stream.get_final_message()
            case "openai-chat":
                with client.chat.completions.stream(**request) as stream:
                    return stream.get_final_completion()
            case "openai-responses":
                with client.responses.stream(**request) as stream:
                    return stream.get_final_response()
            case "ollama":
                return whole(list(client.chat(**request, stream=True)))
        return _joined(client.models.generate_content_stream(**request))


def behind(server, url, *, stream=False):
    """The provider behind an address."""
    return Behind(server, url, stream)


def whole(lines):
    """Ollama's client puts nothing together: the texts and calls of all lines in the last."""
    last = lines[-1]
    for name in ("content", "thinking"):
        text = "".join(line.message.get(name) or "" for line in lines)
        if text:
            last.message[name] = text
    calls = [call for line in lines for call in line.message.tool_calls or ()]
    if calls:
        last.message.tool_calls = calls
    return last


def _joined(chunks):
    """Google's SDK puts nothing together: the parts of all chunks in the first of them."""
    first, *rest = list(chunks)
    for chunk in rest:
        first.candidates[0].content.parts += (
            chunk.candidates[0].content.parts or []
        )
    return first
