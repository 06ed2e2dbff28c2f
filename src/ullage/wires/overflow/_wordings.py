"""What providers write when a request is too long, and what only sounds like it.

Rows of (meaning, provider, pattern), read from top to bottom by `ullage.wires.overflow`. A pattern
is a regular expression without case, in which ``…`` stands for at most 90 characters of
anything, and ``{name}`` for a number of that name:

    limit    the window
    size     what the provider counted, the answer asked for included if it is in the sum
    input    the prompt alone; with output it adds up to the size
    output   what was asked for the answer

No provider is named where many write the same. Sources: `provider-rules` §5, the patterns
that public agents share, and messages as users reported them in public or the servers' own
source has them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["EXACT", "LOOKALIKES", "LOOSE", "PROVIDERS", "By", "Meaning", "Row"]

By: TypeAlias = Literal["tokens", "bytes", "after_output"]
"""What was too much: tokens before the answer, the request's bytes, tokens while answering."""

Meaning: TypeAlias = By | Literal["other"]
Row: TypeAlias = tuple[Meaning, str, str]

EXACT: tuple[Row, ...] = (
    ("tokens", "anthropic", r"prompt is too long: {size} tokens > {limit} maximum"),
    ("tokens", "anthropic", r"max_tokens.? exceed context limit: {input} \+ {output} > {limit}"),
    ("tokens", "gemini", r"input token count(?: \({size}\))? exceeds the maximum number of tokens"
                         r" allowed \(?{limit}"),
    ("tokens", "gemini", r"input token count is {size} but (?:the )?model only supports up to"
                         r" {limit}"),
    ("tokens", "vllm", r"context length is {limit} tokens…you requested {output} output tokens"
                       r" and your prompt contains (?:{input}|at least [0-9]+) input"),
    ("tokens", "vllm", r"is too large: {output}…maximum context length is {limit} tokens and your"
                       r" request has {input} input tokens"),
    ("tokens", "vllm", r"context length is {limit} tokens…your request has {size} input tokens"),
    ("tokens", "vllm", r"You passed {input} input tokens and requested {output} output tokens…"
                       r"context length is only {limit} tokens"),
    ("tokens", "vllm", r"context length is only {limit} tokens"),
    ("tokens", "vllm", r"prompt \(?(?:total )?length (?:of )?{size}\)? is (?:longer than the"
                       r" maximum model length of|too long to fit into the model \(context length)"
                       r" {limit}"),
    ("tokens", "vllm", r"input prompt \({size} tokens\)…is too long and exceeds (?:limit of {limit}"
                       r"|the capacity of block_manager)"),
    ("tokens", "vllm", r"max_(?:completion_)?tokens must be at least 1, got -[0-9]"),
    ("tokens", "openrouter", r"endpoint\W{1,2}s maximum context length is {limit} tokens…you"
                             r" requested about {size} tokens(?:…\b{output} in the output)?"),
    ("tokens", "", r"context length is {limit} tokens…you requested (?:about )?{size} tokens"
                   r"(?:…\b{output} (?:in|for) the completion)?"),
    ("tokens", "", r"context length is {limit} tokens…your (?:messages|prompt|input) resulted in"
                   r" {size} tokens"),
    ("tokens", "sglang", r"context length of {limit} tokens\. You requested a total of {size}"
                         r" tokens(?:…\b{output} tokens for the completion)?"),
    ("tokens", "sglang", r"input length \({size}\) exceeds model\W{1,2}s maximum context length"
                         r" \({limit}\)"),
    ("tokens", "", r"input length \(?{size}(?: tokens)?\)? exceeds (?:the )?maximum(?: allowed)?"
                   r"(?: input)? (?:length|token size)(?: of)? \(?{limit}"),
    ("tokens", "together", r"input \({size} tokens\) is longer than the model\W{0,2}s context"
                           r" length \({limit} tokens\)"),
    ("tokens", "together", r"inputs.? tokens \+ .?max_new_tokens.? must be <= {limit}\."
                           r" Given: {input} .?inputs.? tokens and {output} .?max_new_tokens"),
    ("tokens", "together", r"inputs.? must have less than {limit} tokens\. Given: {size}"),
    ("tokens", "openai", r"input tokens exceed the configured limit of {limit} tokens\."
                         r" Your messages resulted in {size} tokens"),
    ("tokens", "xai", r"maximum prompt length is {limit} but the request contains {size}"),
    ("tokens", "cerebras", r"current length is {size} while limit is {limit}"),
    ("tokens", "mistral", r"prompt contains {size} tokens…too large for model with {limit}"
                          r" maximum context length"),
    ("tokens", "llama.cpp", r"request \({size} tokens\) exceeds the available context size"
                            r" \({limit} tokens\)"),
    ("tokens", "llama.cpp", r"exceed(?:s the available context |_context_)size"
                            r"(?=.{,400}n_prompt_tokens\W{1,3}{size})"
                            r"(?=.{,400}n_ctx\W{1,3}{limit})"),
    ("tokens", "llama.cpp", r"exceeds? the available context size|exceed_context_size_error"),
    ("tokens", "llama.cpp", r"requested tokens \({size}\) exceed context window of {limit}"),
    ("tokens", "lm-studio", r"keep the first {size} tokens when context the overflows…context"
                            r" length of only {limit} tokens"),
    ("tokens", "lm-studio", r"greater than the context length(?: \(n_keep: {size} ?>= ?n_ctx:"
                            r" {limit}\))?"),
    ("after_output", "lm-studio", r"reached context length of {limit} tokens"),
    ("tokens", "kimi", r"exceeded model token limit: {limit}(?: \(requested: {size}\))?"),
    ("bytes", "kimi", r"total message size [0-9]+ exceeds limit [0-9]+"),
    ("tokens", "bedrock", r"too many input tokens\. Max input tokens: {limit}, request input"
                          r" token count: {size}"),
    ("tokens", "bedrock", r"input is too long for requested model"),
    ("bytes", "bedrock", r"malformed input request: (?:#/(?:inputText|prompt): )?expected"
                         r" maxLength: [0-9]{4,}, actual"),  # so many characters
    ("tokens", "cohere", r"total number of tokens…cannot exceed {limit} - received {size}"),
    ("tokens", "cohere", r"too many tokens: (?:size limit exceeded|total number of tokens)"),
    ("tokens", "copilot", r"prompt token count of {size} exceeds the limit of {limit}"),
    ("tokens", "github", r"request body too large for …model\. Max size: {limit} tokens"),
    ("tokens", "fireworks", r"prompt is too long: {size}, model maximum context length: {limit}"),
    ("tokens", "watsonx", r"input tokens {size} cannot exceed the total tokens limit {limit}"),
    ("tokens", "", r"prompt has {size} tokens, but the configured context size is {limit}"),
    ("tokens", "dashscope", r"range of input length should be \[[0-9]+, {limit}\]"),
    ("tokens", "", r"prompt tokens \({size}\) exceeds? (?:model maximum|context size) \({limit}\)"),
    ("tokens", "", r"number of tokens \({size}\) exceeded maximum context length \({limit}\)"),
    ("tokens", "", r"prompt too long \({size} tokens, max {limit}\)"),
    ("tokens", "omlx", r"prompt too long: {size} tokens exceeds max context window of {limit}"),
    ("tokens", "vmlx", r"has {size} tokens, max prompt/context tokens is {limit}"),
    ("tokens", "tabbyapi", r"(?:context|prompt) length {size} is greater than (?:the )?max_seq_len"
                           r" {limit}"),
    ("tokens", "tensorrt-llm", r"sum of prompt length \({size}(?:\.0)?\), query length \([0-9.]+\)"
                               r" should not exceed max_num_tokens \({limit}\)"),
    ("tokens", "tensorrt-llm", r"sum of prompt length \({input}…max_tokens \({output}\) should not"
                               r" exceed max_seq_len \({limit}\)"),
    ("tokens", "siliconflow", r"length of prompt_tokens \({size}\) must be less than max_seq_len"
                              r" \({limit}\)"),
    ("tokens", "cloudflare", r"input and maximum output tokens \({size}\) exceeded this model"
                             r" context window limit \({limit}\)"),
    ("tokens", "snowflake", r"max tokens of {limit} exceeded"),
    ("tokens", "volcengine", r"tokens of image and text exceed max message tokens"
                             r"|\bOutofContextError"),
    ("tokens", "perplexity", r"total length of all messages is too long"),
    ("tokens", "ollama", r"prompt too long; exceeded (?:max )?context length"),
    ("tokens", "ollama", r"the input length exceeds the context length"),
    ("tokens", "minimax", r"invalid params, context window exceeds limit"),
    ("tokens", "", r"context_(?:length|window)_exceeded"),
    ("tokens", "", r"Context(?:WindowExceededError|OverflowError|WindowOverflowException)"),
    ("bytes", "openai", r"string too long\. Expected a string with maximum length [0-9]{7,}"),
    ("bytes", "openai", r"maximum content size limit \([0-9]+\) exceeded"),
    ("bytes", "gemini", r"request payload size exceeds the limit: [0-9]+ bytes"),
)  # fmt: skip
"""Wordings that mean one thing only."""

LOOKALIKES: tuple[Row, ...] = (
    # a rate, not a size
    ("other", "", r"rate[ _-]?limit|too many requests|throttl|\b(?:TPM|TPD|RPM|ITPM)\b"),
    ("other", "", r"\b(?:per|a) (?:min|minute|hour|day|second)\b|/(?:min|day)\b"),
    ("other", "", r"\b(?:daily|monthly|hourly)\b"),
    ("other", "", r"(?:\bcode:?|\bstatus(?: code)?:?|\bhttp) 429\b|^429\b"),
    ("other", "", r"quota|billing|credit balance|insufficient (?:balance|funds|credits)"),
    # the answer, not the prompt
    ("other", "", r"maximum allowed number of output tokens|at most [0-9]+ completion tokens"),
    ("other", "", r"output[ _]tokens?[ _]limit"),
    ("other", "", r"max_?(?:new_|output_|completion_)?tokens.{,60}(?:must be|cannot be|should be"
                  r"|at most|less than|greater than|valid range|supported range|out of range"
                  r"|is too large|exceeds? [^.]{,40}\boutput\b)"),
    # what an account may use, or what is embedded at once
    ("other", "", r"limit (?:was )?exceeded (?:for|by|on) (?:this|your|the) (?:api|account|plan|key"
                  r"|organi[sz]ation|project|subscription|tier|user|workspace)\b"),
    ("other", "", r"too many tokens in (?:the )?batch"),
    # one field or one attachment, not the history
    ("other", "", r"string too long|array too long|above_max_length"),
    ("other", "", r"image_|too many images|\b(?:images?|pixels?|pdf|audio|video)\b…"
                  r"(?:exceed|too (?:large|big|many|long)|larger|maximum|limit|dimension)"),
    ("other", "", r"\b(?:tools?|functions?|files?|pages?|names?|characters|metadata|sequences"
                  r"|batch|attachments?|documents?)\b[^.]{,50}"
                  r"(?:exceed(?!\w* (?:the )?(?:\S+ )?context)|too (?:long|many|large|big))"),
    ("other", "", r"content[ _]?filter|content_policy|content management policy"),
)  # fmt: skip
"""What speaks of tokens, limits or length, and is not cured by a shorter history."""

LOOSE: tuple[Row, ...] = (
    ("tokens", "", r"(?:prompt|input|context) (?:is |was )?too (?:long|large)"),
    ("tokens", "", r"(?:exceed(?:s|ed|ing)?|beyond|outside|larger than|longer than)"
                   r" (?:the |its |this |model |model's |maximum |max |available )*"
                   r"context[ _](?:window|length|limit|size)"),
    ("tokens", "", r"context[ _](?:window|length|limit|size)(?: limit)?[ _]"
                   r"(?:is |was |has been )?(?:exceed|full\b|overflow)"),
    ("tokens", "", r"too (?:long|large) for (?:this |the )?model\W{0,2}s? context"),
    ("tokens", "", r"max(?:imum)? (?:context|prompt) length (?:is|of) {limit}"),
    ("tokens", "", r"maximum (?:context|prompt) length|available context size"),
    ("tokens", "", r"reduce the length of (?:the|your|either)|prompt exceeds max"),
    ("tokens", "gemini", r"input token count.{,80}exceeds the maximum"),
    ("tokens", "", r"input tokens? (?:exceed|limit exceeded)|exceeded model token limit"),
    ("tokens", "", r"exceeds the (?:max|maximum) input token limit"),
    ("tokens", "", r"total tokens exceeds? the model\W{0,2}s max(?:imum)? of {limit}"),
    ("tokens", "", r"prompt_too_long|too many (?:input |prompt )?tokens"),
    ("tokens", "", r"token limit exceeded|exceed(?:s|ed) (?:the )?token limit"),
    ("bytes", "", r"request_too_large|(?:request entity|payload|content|request) too large"),
    ("bytes", "", r"request (?:body |size |payload )?exceeds the (?:maximum|limit|allowed)"),
    ("bytes", "", r"body_too_large|message larger than max"),
    ("bytes", "", r"(?:\bcode:?|\bstatus(?: code)?:?|\bhttp) 413\b|^413\b"),
    ("tokens", "", r"exceeds the limit of {limit}(?! *(?:[kmg]?i?b\b|bytes|requests))"),
)  # fmt: skip
"""Wordings that many use, and some for something else."""

_SIGNS = (
    ("anthropic", "anthropic"), ("azure", "azure"), ("bedrock", "amazonaws bedrock"),
    ("openai", "openai"), ("gemini", "google vertex gemini"), ("openrouter", "openrouter"),
    ("xai", "x.ai xai"), ("groq", "groq"), ("kimi", "moonshot"), ("minimax", "minimax"),
    ("deepseek", "deepseek"), ("mistral", "mistral"), ("cohere", "cohere"),
    ("together", "together"), ("cerebras", "cerebras"), ("fireworks", "fireworks"),
    ("dashscope", "dashscope"), ("zai", "bigmodel z.ai"), ("copilot", "githubcopilot"),
    ("github", "models.github"), ("ollama", "ollama"), ("siliconflow", "siliconflow"),
    ("cloudflare", "cloudflare"), ("snowflake", "snowflake"),
    ("volcengine", "volces volcengine bytepluses"), ("perplexity", "perplexity"),
    ("vllm", "vllm"),
)  # fmt: skip
"""Of each provider what shows it in an address, a gateway's word or a package's name."""

PROVIDERS = {sign: provider for provider, signs in _SIGNS for sign in signs.split()}
"""Providers by these signs, the first of which decides."""
