"""What makes a coding agent, or any program, talk to the proxy: variables and options.

An address that the user has set already, by a variable or in a file of the agent's, names a gateway
of theirs: it becomes an upstream of its own, so that the command still ends where it would have
ended. The agent finds it at a path that still has the gateway's host and path in it, because some
agents know a provider by those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ullage.doors.proxy.config import UPSTREAMS, is_loopback
from ullage.doors.proxy.own_settings import (
    OPENCODE_PROVIDERS,
    gemini_has_chosen,
    option_of,
    own_settings,
)

VARIABLES = {
    "ANTHROPIC_BASE_URL": "anthropic",  # Claude Code, Anthropic's SDKs, opencode, Qwen Code
    "ANTHROPIC_API_BASE": "anthropic",  # LiteLLM, aider
    "ANTHROPIC_HOST": "anthropic",  # goose
    "OPENAI_BASE_URL": "openai/v1",  # OpenAI's SDKs, opencode, Qwen Code, LiteLLM, goose
    "OPENAI_API_BASE": "openai/v1",  # LiteLLM, aider
    "OPENAI_HOST": "openai",  # goose
    "GOOGLE_GEMINI_BASE_URL": "gemini",  # Gemini CLI, Google's SDKs, Qwen Code
    "GEMINI_API_BASE": "gemini/v1beta",  # LiteLLM, aider
    "GOOGLE_HOST": "gemini",  # goose
}
"""Where programs look for a provider's address, and the path they find it at with us."""

READ_BY: Mapping[str, tuple[str, ...]] = {
    "claude": ("ANTHROPIC_BASE_URL",),
    "codex": (),
    "gemini": ("GOOGLE_GEMINI_BASE_URL",),
    "opencode": ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"),
    "aider": (
        *("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        *("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        "GEMINI_API_BASE",
    ),
    "goose": (
        "OPENAI_HOST",
        "OPENAI_BASE_URL",
        "ANTHROPIC_HOST",
        "GOOGLE_HOST",
    ),
    "qwen": (
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "GOOGLE_GEMINI_BASE_URL",
    ),
}
"""The variables that each coding agent reads; of one provider's, the one that it prefers first."""

OLLAMAS: Mapping[str, tuple[str, ...]] = {
    "": ("OLLAMA_HOST", "OLLAMA_API_BASE"),  # Ollama's own clients; LiteLLM
    "aider": ("OLLAMA_API_BASE",),
    "goose": ("OLLAMA_HOST",),
}
"""The variables with the address of an Ollama server, by who reads them. They are left alone for
the other coding agents: what those start in a shell may be the server, and it reads the first one
as the address at which it is to listen."""

_PORTS = {"http": 80, "https": 443}
_EVERY_ADDRESS = ("0.0.0.0", "::")
_OWN_OLLAMA = "http://127.0.0.1:11434"
"""Where its clients ask, if nothing names an address."""

AGENTS = tuple(READ_BY)
"""Coding agents that need no more than `setting_for` and `arguments_for`."""

FEATURES: Mapping[str, Mapping[str, str]] = {
    "https://api.anthropic.com": {
        "ENABLE_TOOL_SEARCH": "true",
        "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1",
    },
}
"""What a client switches off where its base URL is not the vendor's own, and how it is told to keep
it, by the vendor's address. Claude Code: the search for tools, without which every definition is in
every request, and the window of 1M tokens. Set only where the requests end at that address, and
never over a value of the user's."""

MARK = "ULLAGE_PROXY"
"""Set for a command that runs behind a proxy of ours."""

_OWN_DEFAULTS = {
    "OPENAI_BASE_URL": "https://dashscope.aliyuncs.com/compatible-mode/v1"
}
"""Where Qwen Code asks, if nothing names an address: Alibaba's, not OpenAI's."""

_OPENCODE = "OPENCODE_CONFIG_CONTENT"
_OPTIONS = {
    "codex": "openai/v1",
    "opencode.anthropic": "anthropic/v1",
    "opencode.openai": "openai/v1",
    "opencode.google": "gemini/v1beta",
}
_VARIABLES_OF_OPTIONS = {
    "opencode.anthropic": "ANTHROPIC_BASE_URL",
    "opencode.openai": "OPENAI_BASE_URL",
}
_NOT_PROXIED = "127.0.0.1,localhost"
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_GEMINI_DEFAULTS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
_GEMINI_CHOICES = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")


class Setting(Struct, frozen=True):
    """What a command needs.

    Attributes:
        upstreams: those that the user has named, for the proxy's configuration.
        variables: what is to be set for the command, still without the proxy's address: a path of
            the proxy for each.
        options: paths of the proxy for what has no variable: Codex's ``codex``, opencode's
            ``opencode.anthropic`` and the like, and ``claude``, if a file of Claude Code's names an
            address, as that goes before the environment.
        features: what is to be set besides, so that the command does all that it does without us.
        without: variables of the environment that are left out.
        note: what the user should know before the command starts; "" if nothing.
    """

    upstreams: dict[str, str]
    variables: dict[str, str]
    options: dict[str, str]
    features: dict[str, str] = {}
    without: tuple[str, ...] = ()
    note: str = ""

    def variables_at(
        self, url: str, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """The variables for a proxy at this address.

        Args:
            url: of the proxy, without a path.
            environment: the command's own, for what is only added to.
        """
        variables = {
            name: f"{url}/{path}" for name, path in self.variables.items()
        }
        variables |= {
            name: value
            for name, value in self.features.items()
            if name not in environment
        }
        variables[_OPENCODE] = _opencode(
            environment.get(_OPENCODE), url, self.options
        )
        for name in ("NO_PROXY", "no_proxy"):
            no_proxy = environment.get(name)
            variables[name] = (
                f"{no_proxy},{_NOT_PROXIED}" if no_proxy else _NOT_PROXIED
            )
        return {**variables, MARK: url}

    def environment_at(
        self, url: str, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """The whole environment of the command, for a proxy at this address."""
        whole = {**environment, **self.variables_at(url, environment)}
        return {
            name: value
            for name, value in whole.items()
            if name not in self.without
        }


def setting_for(
    environment: Mapping[str, str],
    configured: Collection[str] = (),
    addresses: Mapping[str, str] = UPSTREAMS,
    program: str = "",
    folder: Path | None = None,
    arguments: Sequence[str] = (),
) -> Setting:
    """The setting of a command, from the environment it would have had.

    Args:
        environment: the command's.
        configured: names of upstreams that were set on purpose; they go before the environment.
        addresses: the upstreams of the proxy by name.
        program: the name of the command, or a path of it; its own files are read if it is one of
            `AGENTS`.
        folder: where it is started; None: the current one.
        arguments: of the command; some name a file of settings.
    """
    agent = agent_of(program)
    file_settings = own_settings(agent, environment, folder, arguments)
    named = _addresses(agent, file_settings, environment)
    upstreams: dict[str, str] = {}
    variables: dict[str, str] = {}
    for name, path in VARIABLES.items():
        gateway = _gateway(name, path, named, configured)
        if gateway is not None:
            variables[name] = _path_of(name, gateway, upstreams)
        elif name in named or _may_be_set(name, agent, named, configured):
            variables[name] = path
    options = dict(
        _options({**environment, **file_settings}, configured, upstreams)
    )
    if agent == "claude" and "ANTHROPIC_BASE_URL" in file_settings:
        options["claude"] = variables["ANTHROPIC_BASE_URL"]
    features = _features(variables, {**addresses, **upstreams})
    without = _PROXIES if agent == "qwen" else ()
    if "serve" not in arguments[:1] or PurePath(program).stem != "ollama":
        variables |= _ollamas(agent, named, configured, upstreams)
    setting = Setting(upstreams, variables, options, features, without)
    if agent == "gemini":
        return _for_gemini(setting, file_settings, environment, folder)
    return setting


def lasting_path(
    variable: str, path: str, address: str, upstreams: dict[str, str]
) -> str:
    """The path of the proxy for an address that a client's settings had.

    Args:
        variable: the name of the setting.
        path: the path for the vendor's own address.
        address: what the setting said; "" for the vendor's own.
        upstreams: a gateway is added to them, by the name that the path begins with.
    """
    if not address or _is_vendor_s(address, path):
        return path
    return _path_of(variable, address, upstreams)


def leads_to_proxy(value: object, variable: str, path: str) -> bool:
    """Whether an address is one that `lasting_path` made, of a proxy on this machine.

    Args:
        value: the address.
        variable: the name of the setting.
        path: the path for the vendor's own address.
    """
    if not isinstance(value, str):
        return False
    parts = urlsplit(value)
    if parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        return False
    target = parts.path.strip("/")
    return target == path or target.startswith(f"{_label(variable)}.")


def features_at(address: str) -> Mapping[str, str]:
    """What a client is told so that it keeps what it has, by the address where requests end."""
    return FEATURES.get(_plain(address), {})


def agent_of(program: str) -> str:
    """The coding agent that a command starts; "" if it is none of `AGENTS`."""
    name = PurePath(program).stem.lower()
    return name if name in READ_BY else ""


def arguments_for(
    command: Sequence[str], setting: Setting, url: str
) -> list[str]:
    """A command with the options it needs.

    Codex reads its address from its settings alone. Claude Code's settings go before its
    environment, and an option before both. Other users of the machine can read arguments.
    """
    agent = agent_of(command[0]) if command else ""
    added: list[str] = []
    if agent == "codex":
        added = ["-c", f'openai_base_url="{url}/{setting.options["codex"]}"']
    elif (
        "claude" in setting.options
        and option_of(command, "--settings") is None
    ):
        settings = {
            "env": {"ANTHROPIC_BASE_URL": f"{url}/{setting.options['claude']}"}
        }
        added = ["--settings", json.dumps(settings)]
    return [*command[:1], *added, *command[1:]]


# what the user has named


def _addresses(
    agent: str,
    file_settings: Mapping[str, str],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """What is set, by variable: by the environment or a file, whichever the agent prefers."""
    defaults = _OWN_DEFAULTS if agent == "qwen" else {}
    merged = (
        {**environment, **file_settings}
        if agent == "claude"
        else {**file_settings, **environment}
    )
    return {
        **defaults,
        **{name: value for name, value in merged.items() if value},
    }


def _gateway(
    name: str, path: str, named: Mapping[str, str], configured: Collection[str]
) -> str | None:
    """The gateway that a variable names; None if it is the vendor, or the proxy has its own."""
    address = named.get(name)
    upstream = path.partition("/")[0]
    if not address or upstream in configured or _is_vendor_s(address, path):
        return None
    return address


def _is_vendor_s(address: str, path: str) -> bool:
    """Whether an address is the one that a path of the proxy leads to."""
    name, _, rest = path.partition("/")
    vendor_address = f"{UPSTREAMS[name]}/{rest}".rstrip("/")
    return _plain(address) in (vendor_address, UPSTREAMS[name])


def _plain(address: str) -> str:
    """An address without what means nothing: the standard port, a slash at its end."""
    parts = urlsplit(address.strip().lower())
    if parts.scheme != "https":
        return address
    host = parts.netloc.removesuffix(":443")
    return (
        f"https://{host}{parts.path}".rstrip("/")
        if not parts.query
        else address
    )


def _path_of(name: str, gateway: str, upstreams: dict[str, str]) -> str:
    """The path of the proxy for a gateway, which becomes an upstream.

    Host and path of the gateway stand in it as they stand in its address. Agents look for them:
    Qwen Code for ``dashscope.aliyuncs.com``, LiteLLM for ``/v1/messages`` at the end.
    """
    parts = urlsplit(gateway)
    host = _NOT_IN_A_NAME.sub("-", (parts.hostname or "").lower()).strip("-")
    label = _label(name)
    upstream = f"{label}.{host}" if host else label
    path = parts.path.rstrip("/")
    upstreams[upstream] = (
        gateway.rstrip("/").removesuffix(path) if path else gateway
    )
    return f"{upstream}{path}"


def _label(variable: str) -> str:
    """The beginning of the name of an upstream that a variable or setting named."""
    return re.sub(r"[^a-z]+", "-", variable.lower())


def _ollamas(
    agent: str,
    named: Mapping[str, str],
    configured: Collection[str],
    upstreams: dict[str, str],
) -> dict[str, str]:
    """The variables of Ollama's that a program reads, and the path of the proxy for each.

    The server is the user's own: the one that is named, or the one on this machine. Where one
    variable names another than that, the one that the user has not set stays so: a program may read
    both, and prefer it.
    """
    read = OLLAMAS.get(agent, ())
    if "ollama" in configured:
        return dict.fromkeys(read, "ollama")
    servers = {name: _ollama_at(named[name]) for name in read if name in named}
    if set(servers.values()) <= {_OWN_OLLAMA} and len(servers) < len(read):
        upstreams["ollama"] = _OWN_OLLAMA
    variables = {}
    for name in read:
        server = servers.get(name)
        if name not in servers and "ollama" in upstreams:
            variables[name] = "ollama"
        elif server is not None:
            variables[name] = _path_of(name, server, upstreams)
    return variables


def _ollama_at(address: str) -> str | None:
    """The address of an Ollama server as its clients read it: often a host without a scheme.

    One that names every address of the machine is where the server listens. None: it is none.
    """
    has_scheme = "://" in address
    try:
        parts = urlsplit(address if has_scheme else f"http://{address}")
        host = parts.hostname or "127.0.0.1"
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or parts.username or parts.query:
        return None  # a client sends its own credentials
    if host in _EVERY_ADDRESS:
        host = "127.0.0.1"
    elif ":" in host:
        host = f"[{host}]"
    port = port or (_PORTS[parts.scheme] if has_scheme else 11434)
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


def _may_be_set(
    name: str,
    agent: str,
    named: Mapping[str, str],
    configured: Collection[str],
) -> bool:
    """Whether a variable that the user has not set may lead to us.

    Not where another variable of the same provider is theirs, and a program may read both: it
    might then go by ours, with a key for theirs. Of those that an agent is known to read, the one
    that it prefers least is set, so that any setting of the user's goes before it.
    """
    provider = VARIABLES[name].partition("/")[0]
    siblings = [
        variable
        for variable in VARIABLES
        if VARIABLES[variable].partition("/")[0] == provider
    ]
    gateways = [
        variable
        for variable in siblings
        if variable != name
        and _gateway(variable, VARIABLES[variable], named, configured)
    ]
    read = [
        variable for variable in READ_BY.get(agent, ()) if variable in siblings
    ]
    if name not in read:
        return not gateways
    return name == read[-1] and not set(gateways) & set(read)


def _options(
    named: Mapping[str, str],
    configured: Collection[str],
    upstreams: dict[str, str],
) -> Iterator[tuple[str, str]]:
    """The path of the proxy for each address that an option or a text of settings gives."""
    for option, path in _OPTIONS.items():
        name = (
            option
            if named.get(option)
            else _VARIABLES_OF_OPTIONS.get(option, "")
        )
        gateway = _gateway(name, path, named, configured)
        yield (
            option,
            path if gateway is None else _path_of(name, gateway, upstreams),
        )


# what an agent would do otherwise because of us


def _features(
    variables: Mapping[str, str], addresses: Mapping[str, str]
) -> dict[str, str]:
    address = addresses.get(variables.get("ANTHROPIC_BASE_URL", ""), "")
    return dict(features_at(address))


def _for_gemini(
    setting: Setting,
    file_settings: Mapping[str, str],
    environment: Mapping[str, str],
    folder: Path | None,
) -> Setting:
    """Gemini CLI takes a base URL for a gateway, and signs in at none without a terminal.

    A key in the environment is not looked for then. What it is to use can be said in a file of
    defaults, below all settings of the user's, which it reads if the file is root's.
    """
    values = {**file_settings, **environment}
    chooses = any(values.get(name) for name in _GEMINI_CHOICES)
    is_left_alone = chooses or values.get("GOOGLE_GEMINI_BASE_URL")
    needs_key = not is_left_alone and not gemini_has_chosen(
        environment, folder
    )
    if not needs_key or not values.get("GEMINI_API_KEY"):
        return setting
    file = Path(__file__).with_name("gemini-defaults.json")
    system = Path("/etc/gemini-cli/system-defaults.json")
    is_free = _GEMINI_DEFAULTS not in environment and not system.exists()
    if is_free and _is_root_s(file.parent) and _is_root_s(file):
        return replace(
            setting, features={**setting.features, _GEMINI_DEFAULTS: str(file)}
        )
    variables = dict(setting.variables)
    del variables["GOOGLE_GEMINI_BASE_URL"]
    note = (
        "Gemini CLI takes no base URL with a key that is in its environment alone, so it runs "
        "without the proxy. Choose the key once in it (/auth)."
    )
    return replace(setting, variables=variables, note=note)


def _is_root_s(path: Path) -> bool:
    """Whether nobody but root may write there, as Gemini CLI wants it."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & 0o022


def _opencode(
    settings_text: str | None, url: str, options: Mapping[str, str]
) -> str:
    """Opencode's settings, with our addresses where none was set in these."""
    settings = _object(settings_text)
    providers = settings["provider"] = dict(_object(settings.get("provider")))
    for name in OPENCODE_PROVIDERS:
        path = options[f"opencode.{name}"]
        provider = providers[name] = dict(_object(providers.get(name)))
        provider["options"] = {
            "baseURL": f"{url}/{path}",
            **_object(provider.get("options")),
        }
    return json.dumps(settings)


def _object(value: Any) -> dict[str, Any]:
    """A JSON object, given as one or as text; an empty one if it is anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
