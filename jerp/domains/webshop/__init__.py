"""WebShop: a thing is wanted, a shop is searched, something is bought.

The official files come from a folder; without one there is a catalogue of our own.
"""

from __future__ import annotations

from jerp.domains.webshop.benchmark import WebShop
from jerp.domains.webshop.reward import purchase_reward

__all__ = ["WebShop", "purchase_reward"]
