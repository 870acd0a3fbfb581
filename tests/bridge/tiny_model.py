"""A loaded model with random weights and a byte-level tokenizer without merges."""

from dataclasses import dataclass, field, replace
from typing import Any

from jerp.models.decoder import DecoderConfig
from jerp.storage.tokenizer import byte_level_tokenizer
from tests.models.tiny import CONFIG, random_params

SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>")
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def byte_alphabet():
    """The 256 printable stand-ins of byte-level tokenizers, in order of the bytes."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


TOKENS = [*byte_alphabet(), *SPECIAL]


def tokenizer():
    """Token `b` is byte `b`; 256 ends an answer."""
    return byte_level_tokenizer(TOKENS, [], special=SPECIAL)


@dataclass(frozen=True)
class TinyModel:
    """What `LocalExecutor` needs."""

    config: DecoderConfig
    params: Any
    tokenizer: Any = field(default_factory=tokenizer)
    chat_template: str = TEMPLATE
    template_variables: dict[str, str] = field(default_factory=dict)
    stop_tokens: tuple[int, ...] = (256,)
    fingerprint: str = "tiny"


def tiny_model(**changes):
    config = replace(CONFIG, vocab_size=len(TOKENS), context_length=128)
    return TinyModel(config, random_params(1, config), **changes)
