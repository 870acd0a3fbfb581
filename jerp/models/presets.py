"""Sizes of decoders that learn from scratch: `tiny` on a laptop, `small` on a GPU.

Feed-forward layers are four times as wide as the residual stream, embeddings are tied.
"""

from __future__ import annotations

from jerp.models.decoder import DecoderConfig

__all__ = ["small_decoder", "tiny_decoder"]


def tiny_decoder(vocab_size: int, *, context_length: int = 512) -> DecoderConfig:
    """2 layers of 64 features and 4 heads: 0.13 M parameters beside the embedding.

    Args:
      vocab_size: of the token stream.
      context_length: the most tokens of a sequence.

    Returns:
      The sizes.

    Example:
      >>> config = tiny_decoder(100)
      >>> config.hidden_size, config.num_layers
      (64, 2)
    """
    return _preset(vocab_size, context_length, hidden_size=64, num_layers=2)


def small_decoder(vocab_size: int, *, context_length: int = 1024) -> DecoderConfig:
    """4 layers of 256 features and 8 heads: 4.2 M parameters beside the embedding.

    Args:
      vocab_size: of the token stream.
      context_length: the most tokens of a sequence.

    Returns:
      The sizes.

    Example:
      >>> config = small_decoder(100)
      >>> config.hidden_size, config.num_layers
      (256, 4)
    """
    return _preset(vocab_size, context_length, hidden_size=256, num_layers=4)


def _preset(
    vocab_size: int, context_length: int, *, hidden_size: int, num_layers: int
) -> DecoderConfig:
    heads = 2 * num_layers
    return DecoderConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_layers=num_layers,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=hidden_size // heads,
        context_length=context_length,
    )
