"""Exports of who wrote what, read again by other programs' parsers: no text becomes markup, no author is lost."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.interface.test_scripts import ROOT, node

SCRIPT = ROOT / "tests" / "support" / "scripts" / "exports.js"
NASTY = [
    *"ab 1.)#*_`[]()<>&~|$\\!-+=\"'{}@:/",
    "\n",
    "\n\n",
    "  ",
    "\t",
    "é",
    "🙂",
    "中",
    "<b>",
    "</script>",
    "&amp;",
    "- ",
    "1. ",
    "## ",
    "```\n",
    "<!--",
    "http://a.b",
    "\u2028",
]
AUTHORS = ["typed", "pasted", "chosen", "example", "earlier"]
Marked = list[tuple[str, str]]


class Reader(HTMLParser):
    """The characters inside one element, each with the class or the tag of the element around it."""

    def __init__(self, tag: str | None) -> None:
        super().__init__()
        self.tag, self.inside, self.around = tag, tag is None, ""
        self.characters: Marked = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == self.tag:
            self.inside = True
        elif tag == "span":
            self.around = dict(attrs).get("class") or ""
        elif tag in ("b", "i"):
            self.around = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self.tag:
            self.inside = False
        elif tag in ("span", "b", "i"):
            self.around = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.characters += [(character, self.around) for character in data]


def read(markup: str, tag: str | None = None) -> Reader:
    reader = Reader(tag)
    reader.feed(markup)
    reader.close()
    return reader


def some_documents(count: int) -> list[dict[str, Any]]:
    draw = random.Random(7)
    documents = []
    for _ in range(count):
        runs, text = [], ""
        for step in range(draw.randrange(1, 7)):
            piece = "".join(draw.choices(NASTY, k=draw.randrange(1, 9)))
            author = draw.choice(AUTHORS)
            details = {"model": "a|<b>", "logprob": -draw.random() * 9} if author == "chosen" else {}
            runs.append({"length": len(piece.encode("utf-16-le")) // 2, "author": author, "step": step + 1, **details})
            text += piece
        documents.append({"name": "My <i>|*text*", "text": text, "model": None, "authors": runs})
    return documents


def authors_of(document: dict[str, Any]) -> Marked:
    """Each character with its author: an author for each UTF-16 unit, of which the first counts."""
    units = [run["author"] for run in document["authors"] for _ in range(run["length"])]
    found, at = [], 0
    for character in document["text"]:
        found.append((character, units[at]))
        at += len(character.encode("utf-16-le")) // 2
    return found


@pytest.fixture(scope="module")
def exports() -> list[tuple[Marked, dict[str, str]]]:
    documents = some_documents(150)
    ended = node(str(SCRIPT), given=json.dumps(documents))
    assert ended.returncode == 0, ended.stderr
    return list(zip(map(authors_of, documents), json.loads(ended.stdout), strict=True))


def test_the_page_shows_every_character_with_its_author(exports: list[tuple[Marked, dict[str, str]]]) -> None:
    for wanted, files in exports:
        reader = read(files["html"], "article")
        assert reader.characters == wanted
        assert "script" not in reader.tags


def test_the_json_has_every_character_with_its_author(exports: list[tuple[Marked, dict[str, str]]]) -> None:
    for wanted, files in exports:
        found = json.loads(files["json"])
        text = "".join(character for character, _ in wanted).encode("utf-16-le")
        for piece in found["pieces"]:
            assert text[2 * piece["start"] : 2 * piece["end"]].decode("utf-16-le") == piece["text"]
        assert [(c, piece["author"]) for piece in found["pieces"] for c in piece["text"]] == wanted


def test_the_markdown_shows_every_visible_character_with_its_author(
    exports: list[tuple[Marked, dict[str, str]]],
) -> None:
    markdown = pytest.importorskip("markdown_it", reason="It comes with another package.").MarkdownIt("commonmark")
    tags = {"typed": "", "chosen": "b"}
    for wanted, files in exports:
        body = files["markdown"].split("\n\n## Who wrote what\n")[0].split("\n", 2)[2]
        reader = read(markdown.render(body))
        shown = [(c, tag) for c, tag in reader.characters if not c.isspace()]
        assert shown == [(c, tags.get(author, "i")) for c, author in wanted if not c.isspace()], body
        assert not {"h1", "h2", "li", "code", "pre", "a", "em", "strong", "blockquote", "hr"} & set(reader.tags), body


def test_no_text_ends_the_script_of_a_replay_page(exports: list[tuple[Marked, dict[str, str]]]) -> None:
    for wanted, files in exports:
        page = files["replay"]
        data = page.split('id="replay-data">')[1].split("</script>")[0]
        assert json.loads(data)["first"][0]["text"] == "".join(character for character, _ in wanted)
        assert page.count("</script>") == 2
        assert "<!--" not in page
