"""Which models an endpoint serves."""

from __future__ import annotations

from jerp.bridge.api_key import ApiKey
from jerp.bridge.remote_settings import RemoteSettings, endpoint_fingerprint
from jerp.errors import ExecutorError, MissingExtraError

__all__ = ["served_models", "the_model"]

SECONDS = 30.0
"""For the list, after which nobody is there."""


def served_models(
    base_url: str, *, settings: RemoteSettings | None = None
) -> tuple[str, ...]:
    """Names of the models behind an endpoint, as it lists them.

    Args:
      base_url: up to and without `/models`.
      settings: where the key is.

    Raises:
      ConfigError: the address is none, or carries a secret.
      ExecutorError: nobody answers there, or not with a list of models.
      MissingExtraError: the client library is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError("openai", "remote") from error
    settings = settings or RemoteSettings()
    # Refuses an address that cannot be meant before anything is sent there.
    endpoint_fingerprint(base_url, "", settings)
    key = ApiKey(settings.api_key_env)
    client = openai.OpenAI(
        api_key=key.for_client(), base_url=base_url, max_retries=1, timeout=SECONDS
    )
    try:
        with client:
            names = tuple(str(model.id) for model in client.models.list().data)
    except (openai.OpenAIError, AttributeError, TypeError, ValueError) as error:
        reason = key.scrub(f"{type(error).__name__}: {error}")[:300]
        raise ExecutorError(
            f"{base_url}: expected a list of models, got {reason}; check the address "
            f"and that the server runs, such as: jerp serve smollm2"
        ) from None
    if odd := [name for name in names if not name.strip() or not name.isprintable()]:
        raise ExecutorError(
            f"{base_url}: expected names of models that can be printed, got {odd[0]!r}"
        )
    return names


def the_model(base_url: str, *, settings: RemoteSettings | None = None) -> str:
    """The model behind an endpoint that serves one.

    Raises:
      ExecutorError: it serves none or several, or see `served_models`.
    """
    models = served_models(base_url, settings=settings)
    if len(models) != 1:
        shown = ", ".join(models[:10]) or "none"
        raise ExecutorError(
            f"{base_url}: expected one model, got {len(models)} ({shown}); say which: "
            "--model NAME"
        )
    return models[0]
