"""The frozen executor over transformers and torch: any causal language model of theirs.

Safetensors only, and no code that comes with a model: a pickle or a model's own Python
file is refused. JAX draws the random numbers; a process whose JAX has the same GPU must
not let it take all memory first (XLA_PYTHON_CLIENT_PREALLOCATE=false).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from jerp.bridge.batch_executor import BatchExecutor, uniform_numbers
from jerp.bridge.chat import ChatTemplate
from jerp.bridge.chat_jobs import ChatJobs
from jerp.bridge.rows import Job
from jerp.bridge.torch_draws import draw_tokens
from jerp.bridge.torch_model import TorchModel, load_torch_model

__all__ = ["Dtype", "TorchExecutor"]

Dtype = Literal["auto", "float32", "bfloat16", "float16"]


class TorchExecutor(BatchExecutor):
    """Answers requests with a model of transformers; an `EagerExecutor`.

    `jerp.bridge.chat_jobs.ChatJobs` says which tokens and which text a completion has.
    Log-probabilities are under the distribution sampled from; draws are those of
    `jerp.bridge.local.LocalExecutor`. With `batch_size=1` a completion depends on
    its request alone, bit for bit. In larger batches each request keeps draws of its
    own, but torch rounds differently with other companions, which now and then tips a
    token; answers that must be the same again then belong into a store.

    Args:
      folder_or_id: a folder with config.json, a tokenizer, a chat template and
        safetensors files; or a name on the model hub, which is fetched once.
      device: such as "cpu" or "cuda:1"; "auto" is the first accelerator, else the CPU.
      dtype: of weights and products; "auto" is the weights' own. The distribution is
        always computed in float32.
      batch_size: the most requests computed together.

    Raises:
      MissingExtraError: torch is not installed.
      WeightsError: there is no such model, or it needs a pickle or code of its own.
      ExecutorError: a base model, without a chat template.
      ConfigError: no such device, dtype or batch size.
    """

    def __init__(
        self,
        folder_or_id: str | Path,
        *,
        device: str = "auto",
        dtype: Dtype = "auto",
        batch_size: int = 1,
    ):
        model = load_torch_model(folder_or_id, device=device, dtype=dtype)
        self._model = model
        chats = ChatJobs(
            model.tokenizer,
            ChatTemplate(model.chat_template, model.template_variables),
            stop_tokens=model.stop_tokens,
            context_length=model.context_length,
        )
        super().__init__(
            chats,
            partial(_decode, model),
            batch_size=batch_size,
            fingerprint=f"{model.fingerprint}/b{batch_size}",
        )


def _decode(
    model: TorchModel, jobs: Sequence[Job], cancelled: Callable[[], bool]
) -> None:
    """`jerp.bridge.batch_executor.Decode` of a model."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    longest = max(len(job.prompt) for job in jobs)
    rows = [[0] * (longest - len(job.prompt)) + list(job.prompt) for job in jobs]
    tokens = torch.tensor(rows, device=model.device)
    lengths = torch.tensor([len(job.prompt) for job in jobs], device=model.device)
    place = torch.arange(longest, device=model.device)
    mask = (place[None] >= longest - lengths[:, None]).long()
    turns = _Turns(torch, jobs, cancelled)
    settings = transformers.GenerationConfig(
        do_sample=False,  # the token is chosen before
        max_new_tokens=max(job.max_tokens for job in jobs),
        pad_token_id=0,
    )
    try:
        with torch.inference_mode():
            model.module.generate(
                tokens,
                attention_mask=mask,
                generation_config=settings,
                logits_processor=[turns.choose],
                stopping_criteria=[turns.ended],
            )
    except torch.OutOfMemoryError as error:
        if model.device.startswith("cuda"):
            torch.cuda.empty_cache()
        raise MemoryError(str(error).splitlines()[0]) from error


class _Turns:
    """Between two tokens of a generation: draws for each row until it has ended."""

    def __init__(self, torch: Any, jobs: Sequence[Job], cancelled: Callable[[], bool]):
        self._torch, self._jobs, self._cancelled = torch, jobs, cancelled
        self._uniform = [uniform_numbers(job.seed) for job in jobs]
        self._is_over = [False] * len(jobs)

    def choose(self, tokens: Any, scores: Any) -> Any:
        """Scores that leave the drawn token alone."""
        del tokens
        uniform = [next(numbers) for numbers in self._uniform]
        drawn, log_probs = draw_tokens(scores.float(), uniform, self._jobs)
        for row, job in enumerate(self._jobs):
            if not self._is_over[row]:
                self._is_over[row] = job.take([drawn[row]], [log_probs[row]])
        index = self._torch.tensor(drawn, device=scores.device)[:, None]
        return self._torch.full_like(scores, -self._torch.inf).scatter(-1, index, 0.0)

    def ended(self, tokens: Any, scores: Any, **_: Any) -> Any:
        """`[B]` bool; all of them once the call is cancelled."""
        del scores
        over = [self._cancelled() or over for over in self._is_over]
        return self._torch.tensor(over, device=tokens.device)
