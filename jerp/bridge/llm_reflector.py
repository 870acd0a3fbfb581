"""Reflection by a frozen language model, whichever executor runs it.

All occasions are asked in one call. The answer is read strictly (see
`jerp.bridge.reflection_parser`); a call that failed gives no operation and is counted
as infrastructure. By default the most likely answer is taken, so that a run which
resumes reflects as one that never stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import (
    FAILED,
    Completion,
    Executor,
    Request,
    Sampling,
    complete_checked,
)
from jerp.bridge.reflection import (
    INFRASTRUCTURE,
    MAX_OPERATIONS,
    Occasion,
    Reflection,
    judged,
    nothing_judged,
)
from jerp.bridge.reflection_parser import parse_answer
from jerp.bridge.reflection_prompt import (
    MIN_PROMPT,
    ReflectionPrompt,
    reflection_prompt,
)
from jerp.errors import ConfigError
from jerp.ops.checks import check_count
from jerp.rules.instructions import instruction_fault

__all__ = ["GREEDY", "LlmReflector"]

GREEDY = Sampling(temperature=0.0, max_tokens=256)


class LlmReflector:
    """Asks a language model to revise rules.

    `Reflection.rejected` counts, besides what the parser does not use, "cut"
    transcripts, a last line that was "truncated" with its answer, and "no_text": an
    occasion without a transcript, of which nothing is asked.

    Args:
      executor: the model.
      sampling: how an answer is drawn.
      max_chars: of a prompt.
      num_shown: transcripts of each kind in a prompt.
      max_operations: of an answer.
      refuse: what else a rule may not be, see `parse_answer`; by default anything but
        one instruction of at most 25 words that names no single instance. None refuses
        no more than the parser does.

    Raises:
      ConfigError: no executor.
    """

    needs_text: bool = True
    """Nothing is asked of episodes without a transcript."""

    def __init__(
        self,
        executor: Executor,
        *,
        sampling: Sampling = GREEDY,
        max_chars: int = 12_000,
        num_shown: int = 3,
        max_operations: int = MAX_OPERATIONS,
        refuse: Callable[[str], str | None] | None = instruction_fault,
    ):
        if not isinstance(getattr(executor, "fingerprint", None), str):
            raise ConfigError(
                f"executor: expected one of jerp.bridge, such as a LocalExecutor, got "
                f"{executor!r:.80}"
            )
        check_count("max_chars", max_chars, least=MIN_PROMPT)
        check_count("num_shown", num_shown)
        check_count("max_operations", max_operations)
        self.executor, self.sampling, self.refuse = executor, sampling, refuse
        self.max_chars, self.num_shown = max_chars, num_shown
        self.max_operations = max_operations

    @property
    def name(self) -> str:
        """Names the model."""
        return f"llm {self.executor.fingerprint}"

    def reflect(self, occasions: Sequence[Occasion]) -> list[Reflection]:
        """See `jerp.bridge.reflection.Reflector`.

        Raises:
          ExecutorError: the executor failed as a whole.
        """
        prompts = [self._prompt(occasion) for occasion in occasions]
        requests = [
            Request(prompt.messages, self.sampling)
            for prompt in prompts
            if isinstance(prompt, ReflectionPrompt)
        ]
        answers = iter(
            wait_for(complete_checked(self.executor, requests)) if requests else ()
        )
        return [
            self._read(next(answers), prompt, occasion)
            if isinstance(prompt, ReflectionPrompt)
            else prompt
            for prompt, occasion in zip(prompts, occasions, strict=True)
        ]

    def _prompt(self, occasion: Occasion) -> ReflectionPrompt | Reflection:
        """What is asked, or what comes of an occasion of which nothing is."""
        trials = judged(occasion.trials)
        if not trials:
            return nothing_judged(occasion)
        if not any(trial.text for trial in trials):
            return Reflection((), Counter(no_text=1), "skipped")
        return reflection_prompt(
            occasion,
            max_chars=self.max_chars,
            num_shown=self.num_shown,
            max_operations=self.max_operations,
        )

    def _read(
        self, answer: Completion, prompt: ReflectionPrompt, occasion: Occasion
    ) -> Reflection:
        if answer.status in FAILED:
            return Reflection((), Counter({INFRASTRUCTURE: 1}), answer.status)
        text, counts = answer.text, Counter(cut=prompt.num_cut)
        if answer.status == "truncated":
            # What was cut off may be half a number.
            text = text.rpartition("\n")[0]
            counts["truncated"] = 1
        found = parse_answer(
            text,
            occasion.rules,
            max_operations=self.max_operations,
            refuse=self.refuse,
        )
        return Reflection(found.operations, counts + found.rejected, answer.status)
