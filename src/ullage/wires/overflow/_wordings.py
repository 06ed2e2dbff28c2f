"""What providers write when a request is too long, and what only sounds like it.

Rows, read from top to bottom by `ullage.wires.overflow`. A pattern is a regular expression
without case, in which ``…`` stands for at most 90 characters of anything, and ``{name}`` for a
number of that name:

    limit    the window
    size     what the provider counted, the answer asked for included if it is in the sum
    input    the prompt alone; with output it adds up to the size
    output   what was asked for the answer

No provider is named where many write the same. Sources: `provider-rules` §5, the patterns
that public agents share, and messages as users reported them in public or the servers' own
source has them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

By: TypeAlias = Literal["tokens", "bytes", "after_output"]
"""What was too much: tokens before the answer, the request's bytes, tokens while answering."""


class Row(NamedTuple):
    """A wording: who writes it, its pattern, and what was too much."""

    provider: str
    pattern: str
    by: By = "tokens"


EXACT = (
    Row("anthropic", r"prompt is too long: {size} tokens > {limit} maximum"),
    Row("anthropic", r"max_tokens.? exceed context limit: {input} \+ {output} > {limit}"),
    Row("gemini", r"input token count(?: \({size}\))? exceeds the maximum number of tokens allowed"
                  r" \(?{limit}"),
    Row("gemini", r"input token count is {size} but (?:the )?model only supports up to {limit}"),
    Row("vllm", r"context length is {limit} tokens…you requested {output} output tokens and your"
                r" prompt contains (?:{input}|at least [0-9]+) input"),
    Row("vllm", r"is too large: {output}…maximum context length is {limit} tokens and your request"
                r" has {input} input tokens"),
    Row("vllm", r"context length is {limit} tokens…your request has {size} input tokens"),
    Row("vllm", r"You passed {input} input tokens and requested {output} output tokens…context"
                r" length is only {limit} tokens"),
    Row("vllm", r"context length is only {limit} tokens"),
    Row("vllm", r"prompt \(?(?:total )?length (?:of )?{size}\)? is (?:longer than the maximum model"
                r" length of|too long to fit into the model \(context length) {limit}"),
    Row("vllm", r"input prompt \({size} tokens\)…is too long and exceeds (?:limit of {limit}|the"
                r" capacity of block_manager)"),
    Row("vllm", r"max_(?:completion_)?tokens must be at least 1, got -[0-9]"),
    Row("openrouter", r"endpoint\W{1,2}s maximum context length is {limit} tokens…you requested"
                      r" about {size} tokens(?:…\b{output} in the output)?"),
    Row("", r"context length is {limit} tokens…you requested (?:about )?{size} tokens(?:…\b{output}"
            r" (?:in|for) the completion)?"),
    Row("", r"context length is {limit} tokens…your (?:messages|prompt|input) resulted in {size}"
            r" tokens"),
    Row("sglang", r"context length of {limit} tokens\. You requested a total of {size}"
                  r" tokens(?:…\b{output} tokens for the completion)?"),
    Row("sglang", r"input length \({size}\) exceeds model\W{1,2}s maximum context length"
                  r" \({limit}\)"),
    Row("", r"input length \(?{size}(?: tokens)?\)? exceeds (?:the )?maximum(?: allowed)?"
            r"(?: input)? (?:length|token size)(?: of)? \(?{limit}"),
    Row("together", r"input \({size} tokens\) is longer than the model\W{0,2}s context length"
                    r" \({limit} tokens\)"),
    Row("together", r"inputs.? tokens \+ .?max_new_tokens.? must be <= {limit}\. Given: {input}"
                    r" .?inputs.? tokens and {output} .?max_new_tokens"),
    Row("together", r"inputs.? must have less than {limit} tokens\. Given: {size}"),
    Row("openai", r"input tokens exceed the configured limit of {limit} tokens\. Your messages"
                  r" resulted in {size} tokens"),
    Row("xai", r"maximum prompt length is {limit} but the request contains {size}"),
    Row("cerebras", r"current length is {size} while limit is {limit}"),
    Row("mistral", r"prompt contains {size} tokens…too large for model with {limit} maximum context"
                   r" length"),
    Row("llama.cpp", r"request \({size} tokens\) exceeds the available context size \({limit}"
                     r" tokens\)"),
    Row("llama.cpp", r"exceed(?:s the available context |_context_)size"
                     r"(?=.{,400}n_prompt_tokens\W{1,3}{size})"
                     r"(?=.{,400}n_ctx\W{1,3}{limit})"),
    Row("llama.cpp", r"exceeds? the available context size|exceed_context_size_error"),
    Row("llama.cpp", r"requested tokens \({size}\) exceed context window of {limit}"),
    Row("lm-studio", r"keep the first {size} tokens when context the overflows…context length of"
                     r" only {limit} tokens"),
    Row("lm-studio", r"greater than the context length(?: \(n_keep: {size} ?>="
                     r" ?n_ctx: {limit}\))?"),
    Row("lm-studio", r"reached context length of {limit} tokens", "after_output"),
    Row("kimi", r"exceeded model token limit: {limit}(?: \(requested: {size}\))?"),
    Row("kimi", r"total message size [0-9]+ exceeds limit [0-9]+", "bytes"),
    Row("bedrock", r"too many input tokens\. Max input tokens: {limit}, request input token"
                   r" count: {size}"),
    Row("bedrock", r"input is too long for requested model"),
    Row("bedrock", r"malformed input request: (?:#/(?:inputText|prompt): )?expected"
                   r" maxLength: [0-9]{4,}, actual", "bytes"),  # so many characters
    Row("cohere", r"total number of tokens…cannot exceed {limit} - received {size}"),
    Row("cohere", r"too many tokens: (?:size limit exceeded|total number of tokens)"),
    Row("copilot", r"prompt token count of {size} exceeds the limit of {limit}"),
    Row("github", r"request body too large for …model\. Max size: {limit} tokens"),
    Row("fireworks", r"prompt is too long: {size}, model maximum context length: {limit}"),
    Row("watsonx", r"input tokens {size} cannot exceed the total tokens limit {limit}"),
    Row("", r"prompt has {size} tokens, but the configured context size is {limit}"),
    Row("dashscope", r"range of input length should be \[[0-9]+, {limit}\]"),
    Row("", r"prompt tokens \({size}\) exceeds? (?:model maximum|context size) \({limit}\)"),
    Row("", r"number of tokens \({size}\) exceeded maximum context length \({limit}\)"),
    Row("", r"prompt too long \({size} tokens, max {limit}\)"),
    Row("omlx", r"prompt too long: {size} tokens exceeds max context window of {limit}"),
    Row("vmlx", r"has {size} tokens, max prompt/context tokens is {limit}"),
    Row("tabbyapi", r"(?:context|prompt) length {size} is greater than (?:the )?max_seq_len"
                    r" {limit}"),
    Row("tensorrt-llm", r"sum of prompt length \({size}(?:\.0)?\), query length \([0-9.]+\) should"
                        r" not exceed max_num_tokens \({limit}\)"),
    Row("tensorrt-llm", r"sum of prompt length \({input}…max_tokens \({output}\) should not exceed"
                        r" max_seq_len \({limit}\)"),
    Row("siliconflow", r"length of prompt_tokens \({size}\) must be less than max_seq_len"
                       r" \({limit}\)"),
    Row("cloudflare", r"input and maximum output tokens \({size}\) exceeded this model context"
                      r" window limit \({limit}\)"),
    Row("snowflake", r"max tokens of {limit} exceeded"),
    Row("volcengine", r"tokens of image and text exceed max message tokens|\bOutofContextError"),
    Row("perplexity", r"total length of all messages is too long"),
    Row("ollama", r"prompt too long; exceeded (?:max )?context length"),
    Row("ollama", r"the input length exceeds the context length"),
    Row("minimax", r"invalid params, context window exceeds limit"),
    Row("", r"context_(?:length|window)_exceeded"),
    Row("", r"Context(?:WindowExceededError|OverflowError|WindowOverflowException)"),
    Row("openai", r"string too long\. Expected a string with maximum length [0-9]{7,}", "bytes"),
    Row("openai", r"maximum content size limit \([0-9]+\) exceeded", "bytes"),
    Row("gemini", r"request payload size exceeds the limit: [0-9]+ bytes", "bytes"),
)  # fmt: skip
"""Wordings that mean one thing only."""

LOOKALIKES = (
    # a rate, not a size
    r"rate[ _-]?limit|too many requests|throttl|\b(?:TPM|TPD|RPM|ITPM)\b",
    r"\b(?:per|a) (?:min|minute|hour|day|second)\b|/(?:min|day)\b",
    r"\b(?:daily|monthly|hourly)\b",
    r"(?:\bcode:?|\bstatus(?: code)?:?|\bhttp) 429\b|^429\b",
    r"quota|billing|credit balance|insufficient (?:balance|funds|credits)",
    # the answer, not the prompt
    r"maximum allowed number of output tokens|at most [0-9]+ completion tokens",
    r"output[ _]tokens?[ _]limit",
    (r"max_?(?:new_|output_|completion_)?tokens.{,60}(?:must be|cannot be|should be|at most"
     r"|less than|greater than|valid range|supported range|out of range|is too large"
     r"|exceeds? [^.]{,40}\boutput\b)"),
    # what an account may use, or what is embedded at once
    (r"limit (?:was )?exceeded (?:for|by|on) (?:this|your|the) (?:api|account|plan|key"
     r"|organi[sz]ation|project|subscription|tier|user|workspace)\b"),
    r"too many tokens in (?:the )?batch",
    # one field or one attachment, not the history
    r"string too long|array too long|above_max_length",
    (r"image_|too many images|\b(?:images?|pixels?|pdf|audio|video)\b…"
     r"(?:exceed|too (?:large|big|many|long)|larger|maximum|limit|dimension)"),
    (r"\b(?:tools?|functions?|files?|pages?|names?|characters|metadata|sequences|batch"
     r"|attachments?|documents?)\b[^.]{,50}"
     r"(?:exceed(?!\w* (?:the )?(?:\S+ )?context)|too (?:long|many|large|big))"),
    r"content[ _]?filter|content_policy|content management policy",
)  # fmt: skip
"""What speaks of tokens, limits or length, and is not cured by a shorter history."""

LOOSE = (
    Row("", r"(?:prompt|input|context) (?:is |was )?too (?:long|large)"),
    Row("", r"(?:exceed(?:s|ed|ing)?|beyond|outside|larger than|longer than) (?:the |its |this |"
            r"model |model's |maximum |max |available )*context[ _](?:window|length|limit|size)"),
    Row("", r"context[ _](?:window|length|limit|size)(?: limit)?[ _]"
            r"(?:is |was |has been )?(?:exceed|full\b|overflow)"),
    Row("", r"too (?:long|large) for (?:this |the )?model\W{0,2}s? context"),
    Row("", r"max(?:imum)? (?:context|prompt) length (?:is|of) {limit}"),
    Row("", r"maximum (?:context|prompt) length|available context size"),
    Row("", r"reduce the length of (?:the|your|either)|prompt exceeds max"),
    Row("gemini", r"input token count.{,80}exceeds the maximum"),
    Row("", r"input tokens? (?:exceed|limit exceeded)|exceeded model token limit"),
    Row("", r"exceeds the (?:max|maximum) input token limit"),
    Row("", r"total tokens exceeds? the model\W{0,2}s max(?:imum)? of {limit}"),
    Row("", r"prompt_too_long|too many (?:input |prompt )?tokens"),
    Row("", r"token limit exceeded|exceed(?:s|ed) (?:the )?token limit"),
    Row("", r"request_too_large|(?:request entity|payload|content|request) too large", "bytes"),
    Row("", r"request (?:body |size |payload )?exceeds the (?:maximum|limit|allowed)", "bytes"),
    Row("", r"body_too_large|message larger than max", "bytes"),
    Row("", r"(?:\bcode:?|\bstatus(?: code)?:?|\bhttp) 413\b|^413\b", "bytes"),
    Row("", r"exceeds the limit of {limit}(?! *(?:[kmg]?i?b\b|bytes|requests))"),
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
