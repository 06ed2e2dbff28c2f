"""What each kind of server says of its window, read; and what can be none, refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.proxy.served import (
    LEAST_TOKENS,
    MOST_TOKENS,
    Served,
    from_lm_studio,
    from_model_info,
    from_models,
    from_props,
    from_ps,
    from_show,
)


def listed(model="qwen3-8b", **fields):
    return {
        "object": "list",
        "data": [{"id": "other", "max_model_len": 1}, {"id": model, **fields}],
    }


@pytest.mark.parametrize(
    ("fields", "tokens", "is_loaded"),
    [
        ({"owned_by": "vllm", "max_model_len": 32_768}, 32_768, True),
        ({"context_length": 131_072}, 131_072, True),
        (
            {
                "context_length": 131_072,
                "top_provider": {"context_length": 40_960},
            },
            40_960,
            True,
        ),
        ({"context_window": 131_072}, 131_072, True),
        ({"max_context_length": 32_000}, 32_000, True),
        ({"meta": {"n_ctx": 8_192, "n_ctx_train": 131_072}}, 8_192, True),
        ({"meta": {"n_ctx_train": 131_072}}, 131_072, False),
        ({"max_model_len": "16384"}, 16_384, True),
    ],
)
def test_a_list_of_models_tells_the_window_of_one(fields, tokens, is_loaded):
    served = from_models(listed(**fields), "qwen3-8b")
    assert (served.window_tokens, served.is_loaded) == (tokens, is_loaded)


def test_a_model_is_found_by_its_name_without_owner_tag_and_case():
    body = listed("Qwen/Qwen3-8B", max_model_len=32_768)
    assert from_models(body, "qwen3-8b").window_tokens == 32_768
    assert from_models(body, "qwen3-14b") is None
    one = {"data": [{"id": "model.gguf", "meta": {"n_ctx": 4_096}}]}
    assert from_models(one, "whatever").window_tokens == 4_096, (
        "a server of one model"
    )


def test_llama_cpp_tells_the_window_of_a_slot():
    assert (
        from_props(
            {"default_generation_settings": {"n_ctx": 4_096}}
        ).window_tokens
        == 4_096
    )
    assert from_props({"error": "no"}) is None


def test_lm_studio_tells_what_is_loaded_or_what_could_be():
    fields = {"max_context_length": 131_072, "loaded_context_length": 8_192}
    assert from_lm_studio(listed(**fields), "qwen3-8b").window_tokens == 8_192
    del fields["loaded_context_length"]
    assert not from_lm_studio(listed(**fields), "qwen3-8b").is_loaded


def test_ollama_tells_what_is_loaded_what_is_set_and_how_it_was_trained():
    loaded = {"models": [{"name": "qwen3:latest", "context_length": 4_096}]}
    assert from_ps(loaded, "qwen3").window_tokens == 4_096
    assert from_ps({"models": []}, "qwen3") is None
    assert from_ps(loaded, "llama3.1") is None
    trained = {"model_info": {"qwen3.context_length": 40_960}}
    bound = Served(40_960, "context_length of /api/show", is_loaded=False)
    assert from_show(trained, "qwen3:480b-cloud") == bound
    by_default = from_show(trained, "qwen3")
    assert (
        by_default.window_tokens,
        by_default.is_served,
        by_default.is_default,
    ) == (
        *(4_096, False),
        True,
    )
    small = {"model_info": {"bert.context_length": 512}}
    assert from_show(small, "all-minilm").window_tokens == 512
    told = {
        **trained,
        "parameters": 'stop "<|im_end|>"\nnum_ctx                        8192',
    }
    assert from_show(told, "qwen3").window_tokens == 8_192


def test_litellm_tells_by_the_name_it_gives_a_model():
    info = {"max_tokens": 8_192, "max_input_tokens": 200_000}
    body = {"data": [{"model_name": "house-model", "model_info": info}]}
    assert from_model_info(body, "house-model").window_tokens == 200_000
    assert from_model_info(body, "another") is None


@pytest.mark.parametrize(
    "value",
    [0, -1, 7, MOST_TOKENS + 1, 1e9, 8192.5, True, "8k", "", [], {}, "9" * 40],
)
def test_what_cannot_be_a_window_is_refused(value):
    found = [
        from_models(listed(max_model_len=value), "qwen3-8b"),
        from_props({"default_generation_settings": {"n_ctx": value}}),
        from_ps(
            {"models": [{"model": "qwen3", "context_length": value}]}, "qwen3"
        ),
    ]
    assert [served.window_tokens for served in found] == [None, None, None]
    assert not any(served.is_served for served in found)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["data", "models", "id", "model", "meta", "n_ctx", "model_info", "max_model_len",
             "context_length", "parameters", "default_generation_settings", "x.context_length"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_any_answer_is_read_without_an_error(body):
    found = [
        from_models(body, "m"),
        from_props(body),
        from_lm_studio(body, "m"),
        from_ps(body, "m"),
        from_show(body, "qwen3-8b"),
        from_model_info(body, "m"),
    ]
    for served in found:
        if served is not None and served.window_tokens is not None:
            assert LEAST_TOKENS <= served.window_tokens <= MOST_TOKENS
