"""The frozen executor over llama.cpp: any GGUF file, in the quantisation it comes in.

llama.cpp computes logits, one request at a time and each from its first token, so that
an answer depends on its request alone; tokens are drawn here, as those of our own
decoder are.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.batch_executor import BatchExecutor, uniform_numbers
from jerp.bridge.chat import ChatTemplate
from jerp.bridge.chat_jobs import ChatJobs
from jerp.bridge.rows import Job
from jerp.errors import ConfigError, ExecutorError, MissingExtraError, WeightsError
from jerp.models.sampling import SamplingRows, sample_tokens

__all__ = ["LlamaCppExecutor"]

_draw = jax.jit(sample_tokens)
_FIRST_PART = re.compile(r"(.+)-00001-of-(\d{5})\.gguf")
_ALL_LAYERS = -1


class LlamaCppExecutor(BatchExecutor):
    """Answers requests with a model of llama.cpp; an `EagerExecutor`.

    `jerp.bridge.chat_jobs.ChatJobs` says which tokens and which text a completion has.
    Log-probabilities are under the distribution sampled from; draws are those of
    `jerp.bridge.local.LocalExecutor`.

    Args:
      gguf_path: the file, or the first of its parts. It holds the chat template.
      context_length: the most tokens of prompt and answer together, if the model knows
        as many; memory for them is taken at once.
      gpu_layers: how many layers a GPU computes, -1 for all; needs a llama-cpp-python
        that was built for it.
      threads: of the processor; None leaves it to llama.cpp.

    Raises:
      MissingExtraError: llama-cpp-python is not installed.
      WeightsError: no such file, or llama.cpp cannot load it.
      ExecutorError: a base model, without a chat template.
      ConfigError: a number that is none.
    """

    def __init__(
        self,
        gguf_path: str | Path,
        *,
        context_length: int = 8192,
        gpu_layers: int = 0,
        threads: int | None = None,
    ):
        if context_length < 1:
            raise ConfigError(
                f"context_length: expected at least 1, got {context_length}"
            )
        if gpu_layers < _ALL_LAYERS:
            raise ConfigError(f"gpu_layers: expected -1 or more, got {gpu_layers}")
        if threads is not None and threads < 1:
            raise ConfigError(f"threads: expected at least 1, got {threads}")
        try:
            package = importlib.import_module("llama_cpp")
        except ImportError as error:
            raise MissingExtraError("llama-cpp-python", "llama-cpp") from error
        path = Path(gguf_path).expanduser()
        parts = _parts(path)
        model = _loaded(package, path, context_length, gpu_layers, threads)
        template = model.metadata.get("tokenizer.chat_template")
        if not template:
            raise ExecutorError(
                f"{path}: the model has no chat template: expected an "
                "instruction-tuned model"
            )
        vocabulary = _Vocabulary(package, model)
        known = package.llama_model_n_ctx_train(model.model)
        chats = ChatJobs(
            vocabulary,
            ChatTemplate(template, vocabulary.template_variables),
            stop_tokens=vocabulary.stop_tokens,
            context_length=min(context_length, known),
        )
        place = f"gpu{gpu_layers}" if gpu_layers else "cpu"
        super().__init__(
            chats,
            partial(_decode, package, model),
            batch_size=1,
            fingerprint=f"sha256:{_digest(parts)[:16]}/llama-cpp-python-"
            f"{package.__version__}/{place}",
        )


def _parts(path: Path) -> list[Path]:
    """All files of the weights, in order."""
    names = [path]
    if first := _FIRST_PART.fullmatch(path.name):
        stem, last = first[1], first[2]
        numbers = range(1, int(last) + 1)
        names = [path.with_name(f"{stem}-{i:05d}-of-{last}.gguf") for i in numbers]
    for name in names:
        if not name.is_file():
            raise WeightsError(f"{name}: no such file; expected weights in GGUF")
    return names


def _digest(files: list[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _loaded(
    package: Any, path: Path, context: int, gpu_layers: int, threads: int | None
) -> Any:
    try:
        return package.Llama(
            str(path),
            n_ctx=context,
            n_gpu_layers=gpu_layers,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
    except (ValueError, RuntimeError, MemoryError) as error:
        raise WeightsError(f"{path}: llama.cpp cannot load it: {error}") from error


def _decode(
    package: Any, model: Any, jobs: Sequence[Job], cancelled: Callable[[], bool]
) -> None:
    """`jerp.bridge.batch_executor.Decode` of a model, for one job."""
    [job] = jobs
    rows = SamplingRows(
        temperature=jnp.asarray([job.temperature], jnp.float32),
        top_k=jnp.asarray([job.top_k], jnp.int32),
        top_p=jnp.asarray([job.top_p], jnp.float32),
    )
    numbers = uniform_numbers(job.seed)
    model.reset()  # no prefix of another request is kept: it would round differently
    model.eval(job.prompt)
    while not cancelled():
        scores = package.llama_get_logits_ith(model.ctx, -1)
        logits = np.ctypeslib.as_array(scores, shape=(1, model.n_vocab())).copy()
        uniform = jnp.asarray([next(numbers)], jnp.float32)
        token, log_prob = _draw(jnp.asarray(logits), uniform, rows)
        if job.take([int(token[0])], [float(log_prob[0])]):
            return
        model.eval(job.tokens[-1:])


@dataclass(frozen=True)
class _Encoding:
    ids: list[int]


class _Vocabulary:
    """The model's tokens with the two methods of a `tokenizers.Tokenizer`."""

    def __init__(self, package: Any, model: Any):
        self._package, self._model = package, model
        self._vocab = package.llama_model_get_vocab(model.model)
        self._bytes = lru_cache(maxsize=None)(self._read_bytes)

    def encode(self, text: str, *, add_special_tokens: bool) -> _Encoding:
        """Control tokens are recognised in the text."""
        encoded = text.encode("utf-8", "replace")
        ids = self._model.tokenize(encoded, add_bos=add_special_tokens, special=True)
        return _Encoding(ids)

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Bytes that are no text become replacement characters."""
        whole = b"".join(self._bytes(t, not skip_special_tokens) for t in tokens)
        return whole.decode(errors="replace")

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """All that llama.cpp takes for the end of an answer."""
        is_end = partial(self._package.llama_vocab_is_eog, self._vocab)
        return tuple(filter(is_end, range(self._model.n_vocab())))

    @property
    def template_variables(self) -> dict[str, str]:
        """The texts of the tokens that begin and end a text, where there are any."""
        ids = {
            "bos_token": self._model.token_bos(),
            "eos_token": self._model.token_eos(),
        }
        return {
            name: self.decode([token], skip_special_tokens=False)
            for name, token in ids.items()
            if token >= 0
        }

    def _read_bytes(self, token: int, special: bool) -> bytes:
        size = 64
        while True:
            place = ctypes.create_string_buffer(size)
            written = self._package.llama_token_to_piece(
                self._vocab, token, place, size, 0, special
            )
            if written >= 0:
                return place.raw[:written]
            size = -written
