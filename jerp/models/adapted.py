"""A decoder with adapters beside it, or without: its parameters and its variables."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.lora import LoraConfig, init_adapters, with_adapters
from jerp.typing import Key

__all__ = ["adapted_variables", "init_adapted"]


def init_adapted(
    key: Key, config: DecoderConfig, lora: LoraConfig | None
) -> dict[str, Any]:
    """Fresh parameters: `decoder`, and `adapters` where there are some.

    Args:
      key: consumed.
      config: of the decoder.
      lora: of adapters, or None.

    Returns:
      `decoder` is what a `Decoder` calls `params`: put a pretrained one there.
    """
    keys = jax.random.split(key)
    variables = Decoder(config).init(keys[0], jnp.zeros((1, 1), jnp.int32))
    params: dict[str, Any] = {"decoder": variables["params"]}
    if lora is not None:
        params["adapters"] = init_adapters(keys[1], config, lora)
    return params


def adapted_variables(
    params: Any, lora: LoraConfig | None, dropout_key: Key | None = None
) -> Any:
    """Variables of a `Decoder`, its matrices with what adapters add.

    Args:
      params: as of `init_adapted`; other entries are not looked at.
      lora: of the adapters, or None.
      dropout_key: consumed; drops inputs of adapters. None drops nothing.
    """
    variables = {"params": params["decoder"]}
    if lora is None:
        return variables
    return with_adapters(variables, params["adapters"], lora, dropout_key=dropout_key)
