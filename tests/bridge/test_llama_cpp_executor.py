"""The executor over llama.cpp, where it is installed: the local one's draws."""

import asyncio
import importlib.util
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from jerp.bridge.llama_cpp_executor import LlamaCppExecutor
from jerp.bridge.local import LocalExecutor
from jerp.errors import ConfigError, ExecutorError, MissingExtraError, WeightsError
from jerp.storage.weights import list_models, load_weights
from tests.bridge.asking import REQUESTS, SHAPE, ask, complete, results
from tests.storage import model_files

IS_INSTALLED = importlib.util.find_spec("llama_cpp") is not None
needs_llama_cpp = [
    pytest.mark.skipif(
        not IS_INSTALLED, reason="no llama.cpp: pip install 'jerp[llama-cpp]'"
    ),
    pytest.mark.filterwarnings("ignore"),  # theirs
]
[INFO] = (info for info in list_models() if info.name == "smollm2")
LONG = "x" * 100


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    config = replace(model_files.SIZES, vocab_size=model_files.SIZES.vocab_size + 1)
    tokens = [*model_files.VOCABULARY, LONG]
    return model_files.write_gguf(path, config, tokens=tokens)


@cache
def executor(file, **changes):
    return LlamaCppExecutor(file, **{"threads": 1, "context_length": 64} | changes)


class TestLlamaCpp:
    pytestmark = needs_llama_cpp

    def test_it_draws_what_the_local_executor_draws(self, file, monkeypatch):
        import llama_cpp

        local = LocalExecutor(load_weights(file), numerics="float32", shape=SHAPE)
        theirs = complete(local, *REQUESTS)
        assert results(complete(executor(file), *REQUESTS)) == results(theirs)
        # Keys and values are kept in float16 unless told otherwise.
        exact = partial(llama_cpp.Llama, type_k=0, type_v=0)
        monkeypatch.setattr(llama_cpp, "Llama", exact)
        ours = complete(LlamaCppExecutor(file, context_length=64), *REQUESTS)
        assert results(ours) == results(theirs)
        for our, their in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(our.log_probs, their.log_probs, atol=1e-5)

    def test_alone_or_together_is_the_same_to_the_bit(self, file):
        together = complete(executor(file), *REQUESTS)
        for request, answer in zip(REQUESTS, together, strict=True):
            [alone] = complete(executor(file), request)
            assert results([alone]) == results([answer])
            assert alone.log_probs == answer.log_probs

    def test_each_answer_is_handed_over_when_it_is_there(self, file):
        told = {}
        answers = asyncio.run(
            executor(file).complete_each(REQUESTS[:3], told.__setitem__)
        )
        assert [told[index] for index in range(3)] == answers

    def test_cancellation_propagates_and_the_executor_goes_on(self, file):
        async def cancel():
            asked = [ask("c", index, max_tokens=60) for index in range(500)]
            task = asyncio.create_task(executor(file).complete(asked))
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await executor(file).complete([ask("a")])

        answers = asyncio.run(cancel())
        assert results(answers) == results(complete(executor(file), ask("a")))

    def test_a_prompt_that_is_too_long_is_a_status(self, file):
        bad, good = complete(executor(file), ask("z" * 60), ask("a"))
        assert bad.error == (
            "a prompt of 61 tokens with max_tokens=8 does not fit the context of 64 "
            "tokens"
        )
        assert good.status != "error"
        wide = executor(file, context_length=100_000)
        [beyond] = complete(wide, ask("z" * 600))
        assert f"of {model_files.SIZES.context_length} tokens" in beyond.error

    def test_tokens_of_any_length_and_bytes_that_are_no_text(self, file):
        vocabulary = executor(file)._chats.tokenizer
        end = len(model_files.VOCABULARY)
        assert vocabulary.decode([end], skip_special_tokens=True) == LONG
        umlaut = vocabulary.encode("ü", add_special_tokens=False).ids
        assert vocabulary.decode(umlaut[:1], skip_special_tokens=True) == "\ufffd"
        assert vocabulary.decode([*umlaut, 256], skip_special_tokens=True) == "ü"
        assert vocabulary.decode([256], skip_special_tokens=False) == "<|end|>"

    def test_the_fingerprint_names_weights_version_and_place(self, file, tmp_path):
        name = executor(file).fingerprint
        assert name.startswith("sha256:")
        assert name.endswith("/cpu")
        assert "/llama-cpp-python-" in name
        other = tmp_path / "other.gguf"
        other.write_bytes(file.read_bytes() + b" ")
        assert executor(other).fingerprint != name

    def test_what_cannot_be_loaded_is_refused_by_name(self, tmp_path, monkeypatch):
        broken = tmp_path / "broken.gguf"
        broken.write_text("no weights")
        with pytest.raises(WeightsError, match=r"broken\.gguf: llama\.cpp cannot load"):
            LlamaCppExecutor(broken)
        part = tmp_path / "m-00001-of-00002.gguf"
        part.write_text("one of two")
        with pytest.raises(WeightsError, match=r"m-00002-of-00002\.gguf: no such file"):
            LlamaCppExecutor(part)
        monkeypatch.setattr(model_files, "TEMPLATE", "")
        base = model_files.write_gguf(tmp_path / "base.gguf")
        with pytest.raises(ExecutorError, match="no chat template"):
            LlamaCppExecutor(base)

    @pytest.mark.slow
    @pytest.mark.weights
    @pytest.mark.skipif(
        not INFO.present, reason=f"no {INFO.path}; type: jerp models pull smollm2"
    )
    def test_smollm2_goes_on_counting(self):
        """Its products round to eight bits, so that open answers differ."""
        model = executor(INFO.path, context_length=256)
        asked = ask("Count to ten.", answer="One, two,", temperature=0.0, max_tokens=40)
        [answer] = complete(model, asked)
        assert answer.text == " three, four, five, six, seven, eight, nine, ten."
        assert answer.status == "ok"


@pytest.mark.skipif(IS_INSTALLED, reason="llama.cpp is installed")
def test_without_llama_cpp_the_extra_is_named(tmp_path):
    with pytest.raises(MissingExtraError, match=r"pip install 'jerp\[llama-cpp\]'"):
        LlamaCppExecutor(tmp_path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"context_length": 0}, "context_length: expected at least 1, got 0"),
        ({"gpu_layers": -2}, "gpu_layers: expected -1 or more, got -2"),
        ({"threads": 0}, "threads: expected at least 1, got 0"),
    ],
)
def test_numbers_that_are_none(tmp_path, setting, message):
    with pytest.raises(ConfigError, match=message):
        LlamaCppExecutor(tmp_path, **setting)
