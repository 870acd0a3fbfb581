"""What an HTML page refers to and how its tables are made."""

from html.parser import HTMLParser

__all__ = ["Page"]


class Page(HTMLParser):
    """What a page refers to, its pictures' words, and the shapes of its tables."""

    def __init__(self, text):
        super().__init__()
        self.references, self.pictures, self.tables, self.tags = [], [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        found = dict(attrs)
        self.references += [
            v for k, v in attrs if k in ("src", "href", "data", "style")
        ]
        if tag == "img":
            self.pictures.append(found["alt"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append(tag)
