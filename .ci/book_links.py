"""Checks the built book: every link and picture leads to a file of it, every anchor to a place, every page is reached."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The targets and places of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.places = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("href", "src"):
            if attributes.get(name) and tag != "base":
                self.targets.add(attributes[name])
        for name in ("id", "name"):
            if attributes.get(name):
                self.places.add(attributes[name])


def main():
    book = Path(sys.argv[1]).resolve()
    # The page for printing repeats all others; that of a lost reader has an absolute base.
    left_out = {"print.html", "404.html"}
    files = [file for file in book.rglob("*.html") if file.name not in left_out]
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    wrong, count, reached = [], 0, set()
    for file, page in pages.items():
        for target in sorted(page.targets):
            link = urlsplit(target)
            if link.scheme or target.startswith("//"):
                continue
            count += 1
            place = (file.parent / unquote(link.path)).resolve() if link.path else file
            reached.add(place)
            anchor = unquote(link.fragment)
            if not place.exists():
                wrong.append(f"{file.relative_to(book)} links to {target}, which is not there")
            elif anchor and place in pages and anchor not in pages[place].places:
                wrong.append(f"{file.relative_to(book)} links to {target}, and the page has no such place")
    for file in pages:
        if file not in reached and file.name not in {"index.html", "toc.html"}:
            wrong.append(f"no page links to {file.relative_to(book)}")
    print("\n".join([*wrong, f"{len(pages)} pages with {count} links, {len(wrong)} wrong"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
