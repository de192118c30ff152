"""A preprocessor of mdBook: links that leave docs/ become links to the repository.

The address is `repository` of Cargo.toml; without one such a link becomes its text. mdBook calls the program with
`supports RENDERER`, then with a book as JSON on standard input.
"""

import json
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def repository():
    text = (DOCS.parent / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^repository\s*=\s*"([^"]+)"', text, re.MULTILINE)
    return found and found[1].rstrip("/").removesuffix(".git")


def rewrite(content, path, address):
    """Returns a page whose links to files outside of docs/ are changed."""
    folder = (DOCS / path).parent

    def changed(match):
        mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if "://" in target:
            return match[0]
        place = Path(os.path.normpath(folder / target))
        if place.is_relative_to(DOCS):
            # mdBook makes README.md the index of its folder.
            target = re.sub(r"(^|/)README\.md$", r"\1index.md", target)
            return f"{mark}[{text}]({target}{anchor})"
        place = place.relative_to(DOCS.parent).as_posix()
        return f"{mark}[{text}]({address}/blob/main/{place}{anchor})" if address else text

    # Blocks of code have no links.
    parts = re.split(r"(^```.*?^```)", content, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if at % 2 else LINK.sub(changed, part) for at, part in enumerate(parts))


def chapters(items):
    for item in items:
        if "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    address = repository()
    for chapter in chapters(book.get("items") or book.get("sections")):
        if chapter.get("path"):
            chapter["content"] = rewrite(chapter["content"], chapter["path"], address)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
