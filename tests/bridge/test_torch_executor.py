"""The executor over torch answers as the local one does, where torch is installed.

A SmolLM2 that the cache has is compared by `pytest -m slow`.
"""

import asyncio
import importlib.util
import shutil
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.local import LocalExecutor
from jerp.bridge.rows import Job
from jerp.bridge.torch_draws import draw_tokens
from jerp.bridge.torch_executor import TorchExecutor
from jerp.errors import ConfigError, ExecutorError, MissingExtraError, WeightsError
from jerp.models.sampling import SamplingRows, sample_tokens
from jerp.storage.export import export_folder
from jerp.storage.weights import list_models, load_weights
from tests.bridge.asking import REQUESTS, SHAPE, ask, complete, results
from tests.bridge.tiny_model import tiny_model

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = [
    pytest.mark.skipif(not HAS_TORCH, reason="no torch: pip install 'jerp[torch]'"),
    pytest.mark.filterwarnings("ignore"),  # theirs
]
[INFO] = (info for info in list_models() if info.name == "smollm2")


def exported(folder, model):
    return export_folder(
        folder,
        model.config,
        model.params,
        model.tokenizer,
        chat_template=model.chat_template,
        template_variables=model.template_variables,
        stop_tokens=model.stop_tokens,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("torch") / "tiny", tiny_model())


@cache
def executor(folder, **changes):
    return TorchExecutor(folder, **{"device": "cpu", "dtype": "float32"} | changes)


def log_probs(completions):
    return np.concatenate([np.asarray(c.log_probs) for c in completions])


@pytest.mark.usefixtures("folder")
class TestTorch:
    pytestmark = needs_torch

    def test_it_draws_what_the_local_executor_draws(self, folder):
        local = LocalExecutor(tiny_model(), numerics="float32", shape=SHAPE)
        ours = complete(executor(folder), *REQUESTS)
        theirs = complete(local, *REQUESTS)
        assert results(ours) == results(theirs)
        np.testing.assert_allclose(log_probs(ours), log_probs(theirs), atol=1e-5)

    def test_alone_or_together_is_the_same_to_the_bit(self, folder):
        together = complete(executor(folder), *REQUESTS)
        for request, answer in zip(REQUESTS, together, strict=True):
            [alone] = complete(executor(folder), request)
            assert results([alone]) == results([answer])
            assert alone.log_probs == answer.log_probs

    def test_batches_of_several_round_differently_and_no_more(self, folder):
        alone = complete(executor(folder), *REQUESTS)
        together = complete(executor(folder, batch_size=4), *REQUESTS)
        assert results(together) == results(alone)
        np.testing.assert_allclose(log_probs(together), log_probs(alone), atol=1e-5)

    def test_a_batch_is_handed_over_when_it_has_ended(self, folder):
        told = {}
        answers = asyncio.run(
            executor(folder, batch_size=2).complete_each(REQUESTS[:3], told.__setitem__)
        )
        assert [told[index] for index in range(3)] == answers

    def test_cancellation_propagates_and_the_executor_goes_on(self, folder):
        async def cancel():
            asked = [ask("c", index, max_tokens=100) for index in range(40)]
            task = asyncio.create_task(executor(folder).complete(asked))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await executor(folder).complete([ask("a")])

        answers = asyncio.run(cancel())
        assert results(answers) == results(complete(executor(folder), ask("a")))

    def test_memory_that_does_not_suffice_is_a_status(self, folder, monkeypatch):
        import torch

        model = executor(folder, batch_size=3)
        module, generate = model._model.module, model._model.module.generate
        sizes = []

        def crowded(tokens, **settings):
            sizes.append(len(tokens))
            if len(tokens) > 1:
                raise torch.OutOfMemoryError("no room\nfor more")
            return generate(tokens, **settings)

        monkeypatch.setattr(module, "generate", crowded)
        answers = complete(model, *(ask("a", index) for index in range(3)))
        assert sizes == [3, 1, 2]
        assert [answer.status for answer in answers][1:] == ["error", "error"]
        assert answers[1].error == "out of memory with a batch of 2: no room"
        assert answers[0].tokens == complete(executor(folder), ask("a"))[0].tokens

    def test_the_models_own_settings_change_no_answer(self, folder, tmp_path):
        other = shutil.copytree(folder, tmp_path / "other")
        text = '{"eos_token_id": 256, "repetition_penalty": 9.0, "temperature": 0.1}'
        (other / "generation_config.json").write_text(text)
        asked = [ask("abc", index) for index in range(3)]
        answers = complete(executor(other), *asked)
        assert results(answers) == results(complete(executor(folder), *asked))
        assert executor(other).fingerprint != executor(folder).fingerprint

    def test_the_fingerprint_names_all_that_decides_the_numbers(self, folder):
        name = executor(folder).fingerprint
        assert name.startswith("sha256:")
        assert "/float32/torch-" in name
        assert name.endswith("/cpu/b1")
        changes = ({"batch_size": 4}, {"dtype": "bfloat16"})
        assert name not in {executor(folder, **one).fingerprint for one in changes}
        assert executor(folder, dtype="auto").fingerprint == name

    def test_what_cannot_be_loaded_is_refused_by_name(self, folder, tmp_path):
        pickled = shutil.copytree(folder, tmp_path / "pickled")
        (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
        with pytest.raises(WeightsError, match=r"no \.safetensors file; pickles are"):
            TorchExecutor(pickled)
        own_code = shutil.copytree(folder, tmp_path / "own_code")
        (own_code / "config.json").write_text(
            '{"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig"}}'
        )
        (own_code / "own.py").write_text("raise SystemExit('run')")
        with pytest.raises(WeightsError, match="transformers cannot load it"):
            TorchExecutor(own_code)
        adapter = shutil.copytree(folder, tmp_path / "adapter")
        (adapter / "adapter_config.json").write_text("{}")
        with pytest.raises(WeightsError, match="got an adapter"):
            TorchExecutor(adapter)
        base = exported(tmp_path / "base", tiny_model(chat_template=""))
        with pytest.raises(ExecutorError, match="no chat template"):
            TorchExecutor(base, device="cpu")
        with pytest.raises(WeightsError, match="'no/model' is no folder, and the"):
            TorchExecutor("no/model")

    def test_settings_that_are_none(self, folder):
        with pytest.raises(ConfigError, match="device: expected"):
            TorchExecutor(folder, device="abacus")
        with pytest.raises(ConfigError, match="batch_size: expected at least 1, got 0"):
            TorchExecutor(folder, batch_size=0)

    def test_draws_are_those_of_the_slow_definition(self):
        import torch

        logits = np.asarray(jax.random.normal(jax.random.key(0), (64, 300))) * 3
        logits[:, 17] = logits[:, 4]  # ties
        uniform = np.linspace(0, 0.9999, 64, dtype=np.float32)
        jobs = [
            Job((1,), 0, *how, 1, bool)
            for how in [(0.0, 0, 1.0), (1.0, 0, 1.0), (0.7, 9, 1.0), (1.3, 0, 0.6)] * 12
            + [(1.0, 1, 1.0), (1.0, 400, 0.999), (2.0, 40, 0.2), (1.0, 2, 0.999)] * 4
        ]
        rows = SamplingRows(
            temperature=jnp.asarray([job.temperature for job in jobs]),
            top_k=jnp.asarray([job.top_k for job in jobs]),
            top_p=jnp.asarray([job.top_p for job in jobs]),
        )
        tokens, probs = draw_tokens(torch.from_numpy(logits), uniform.tolist(), jobs)
        expected = sample_tokens(jnp.asarray(logits), jnp.asarray(uniform), rows)
        assert tokens == expected[0].tolist()
        np.testing.assert_allclose(probs, expected[1], atol=2e-6)

    @pytest.mark.slow
    @pytest.mark.weights
    @pytest.mark.skipif(
        not INFO.present, reason=f"no {INFO.path}; type: jerp models pull smollm2"
    )
    def test_smollm2_says_what_it_says_in_jax(self, tmp_path):
        weights = load_weights("smollm2")
        model = executor(exported(tmp_path / "smollm2", weights))
        local = LocalExecutor(weights, numerics="float32")
        asked = [
            ask("What is the capital of France?", temperature=0.0, max_tokens=24),
            ask("Count to ten.", answer="One, two,", temperature=0.0, max_tokens=12),
            *(ask("Name a fruit.", i, top_p=0.9, max_tokens=12) for i in range(3)),
        ]
        ours, theirs = complete(model, *asked), complete(local, *asked)
        assert results(ours) == results(theirs)
        np.testing.assert_allclose(log_probs(ours), log_probs(theirs), atol=1e-3)


@pytest.mark.skipif(HAS_TORCH, reason="torch is installed")
def test_without_torch_the_extra_is_named(tmp_path):
    with pytest.raises(MissingExtraError, match=r"pip install 'jerp\[torch\]'"):
        TorchExecutor(tmp_path)


def test_an_unknown_dtype_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="dtype: expected one of"):
        TorchExecutor(tmp_path, dtype="int8")
