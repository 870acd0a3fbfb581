"""Reports as `report.md` and `report.html`.

Both have one source: the page is the Markdown rendered, its figures inside it, so that
it can be sent as one file.
"""

from __future__ import annotations

import base64
import html
from pathlib import Path

from markdown_it import MarkdownIt

__all__ = ["write_page"]

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0;font-size:13px;display:block;overflow:auto}
th,td{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}
img{max-width:100%}code{background:#f4f4f4;padding:0 .2rem}
"""


def write_page(text: str, folder: Path) -> Path:
    """Writes `report.md` beside the figures it shows, and `report.html` with them.

    Args:
      text: Markdown; its first line is the title.
      folder: of the run; figures are named relative to it.

    Returns:
      The page.
    """
    (folder / "report.md").write_text(text, encoding="utf-8")
    page = folder / "report.html"
    page.write_text(_page(text, folder), encoding="utf-8")
    return page


def _page(text: str, folder: Path) -> str:
    """The Markdown as one self-contained page."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                figure = folder / str(child.attrs["src"])
                data = base64.b64encode(figure.read_bytes()).decode("ascii")
                child.attrs["src"] = f"data:image/png;base64,{data}"
    body = markdown.renderer.render(tokens, markdown.options, {})
    title = html.escape(text.split("\n", 1)[0].removeprefix("# "))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style><body>{body}</body></html>\n"
    )
