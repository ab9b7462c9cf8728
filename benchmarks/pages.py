"""The cost of two tabs: a click in Rewrite against a full evaluation, and highlights against one forward pass."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import PreTrainedModel

from benchmarks.environment import describe
from benchmarks.peers import peers_model
from benchmarks.prompts import Prompts
from benchmarks.report import markdown
from benchmarks.timing import rotated, timed
from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from interface.tabs.highlights.highlights_json import as_json
from lookahead_core import Document, Model, load_model
from lookahead_core.analysis.highlight_results import Highlights
from lookahead_core.analysis.highlights import highlights
from lookahead_core.text.chat import instruction_opening

NAME = "pages"
HELP = "Measure a click in Rewrite and the highlights of a text, against reading them the plain way."
INSTRUCTION = "Rewrite this document to be clear and concise."
BRANCHES = {"k": 5, "depth": 5}
CLICK, LAST, ANEW, FORWARD, OURS = "first word", "last token", "anew", "forward", "highlights"
SAME = 1e-3
"""The largest accepted error: of the mean loss of a token, in nats, and of a logit, as a share of the largest one."""
View = dict[str, Any]


@dataclass(frozen=True)
class Repeat:
    """One repeat of a measurement."""

    tokens: int
    """The tokens that a plain forward pass evaluates."""
    seconds: dict[str, float]
    """Seconds by method: CLICK, LAST, ANEW and FORWARD, or OURS and FORWARD."""


@dataclass
class Page:
    """A page of the Rewrite tab that calls the server functions directly; `text` is the text before its caret."""

    service: PageService
    loop: asyncio.AbstractEventLoop
    source: str
    text: str = ""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    number: int = 0
    news: dict[str, Any] = field(default_factory=dict)
    view: View | None = None

    def first_view(self, accepted: Sequence[object] = ()) -> View:
        """Request branches for the current text; return the first view, as soon as the page could paint it.

        `accepted` is the request's field of that name. Raises RuntimeError if the request ends without a view.
        """
        self.number, self.view = self.number + 1, None
        asked = {"text": self.text, "accepted": accepted, "instruction": INSTRUCTION, "source": self.source}
        self._await(self.service.ask(asked | self._request_id | BRANCHES | {"ahead": False}))
        while self.view is None:
            self._poll()
        return self.view

    def settled(self) -> View:
        """Wait for the end of the request and return its final view."""
        while not self.news["over"]:
            self._poll()
        assert self.view is not None
        return self.view

    def click(self, view: View, *, whole: bool) -> list[Any]:
        """Append the first piece of a branch to the text, or with `whole` all of the branch.

        The branch is the first of `view` with readable pieces. Returns the `accepted` field of the next request.
        """
        found = [(branch["ids"], _readable(branch)) for branch in view["branches"] if not branch["healed"]]
        ids, pieces = next((ids, pieces) for ids, pieces in found if pieces)
        chosen = pieces if whole else pieces[:1]
        before = len(self.text)
        self.text += "".join(piece["text"] for piece in chosen)
        return [[before, ids[: chosen[-1]["tokens"]], False]]

    @property
    def _request_id(self) -> dict[str, Any]:
        return {"page": self.name, "number": self.number, "revision": self.number}

    def _poll(self) -> None:
        """Wait for further news of the request; raise RuntimeError if it has ended."""
        if self.news["over"]:
            raise RuntimeError(f"There are no branches: {self.news.get('sentence', self.news)}")
        self._await(self.service.more(self._request_id | {"seen": self.news["seen"]}))

    def _await(self, answer: Any) -> None:
        """Run a server function's coroutine, and keep its news and the view in them."""
        self.news = self.loop.run_until_complete(answer)
        self.view = self.news.get("view", self.view)


def _readable(branch: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pieces of a branch before the first one with an incomplete character."""
    return list(takewhile(lambda piece: "\ufffd" not in piece["text"], branch["pieces"]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--quick", action="store_true", help="three repeats in place of eleven")
    parser.add_argument("--source", type=int, default=1000, metavar="TOKENS", help="of the source in Rewrite (1000)")
    parser.add_argument("--words", type=int, default=1000, help="of the text whose highlights are sought (1000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, save figures as the arguments say; return 0, or 1 if the model cannot be loaded."""
    loader = ModelLoader(lambda report: load_model(arguments.model, dtype="float32", device=arguments.device))
    loader.run()
    if loader.model is None:
        return 1
    repeats = 3 if arguments.quick else 11
    clicks, readings = measure(loader, arguments.source, arguments.words, repeats)
    loader.scheduler.close()
    print("; ".join(f"{name} {value}" for name, value in describe({"float32": loader.model}).items()), end="\n\n")
    print(click_table(clicks), reading_table(readings), sep="\n\n")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        found = {"clicks": clicks, "highlights": readings}
        arguments.json.write_text(json.dumps({name: [asdict(one) for one in some] for name, some in found.items()}))
    return 0


def measure(loader: ModelLoader, source: int, words: int, repeats: int) -> tuple[list[Repeat], list[Repeat]]:
    """Repeat both measurements in turns, each on texts new to the process; return the clicks and the highlights.

    `source` is the number of tokens of a source in Rewrite, `words` that of the words of a text with highlights.
    """
    model = loader.model
    assert model is not None
    prompts, peer = Prompts(model.tokenizer), peers_model(model.hf_model)
    clicks, readings = [], []
    for repeat in range(repeats):
        clicks.append(one_click(loader, peer, _text(model, prompts.draw(source)), repeat))
        # A word has more tokens than one, and fewer than four.
        text = " ".join(_text(model, prompts.draw(4 * words)).split()[:words])
        readings.append(one_reading(model, peer, text, repeat))
        told = [
            f"{name} {seconds:.3f} s" for one in (clicks[-1], readings[-1]) for name, seconds in one.seconds.items()
        ]
        print(f"{repeat + 1}: {', '.join(told)}", file=sys.stderr, flush=True)
    return clicks, readings


def one_click(loader: ModelLoader, peer: PreTrainedModel, source: str, repeat: int) -> Repeat:
    """Time a click on a first word, on a last token, the same text in a new page, and a plain forward pass.

    Raises AssertionError if the branches after the click begin with other tokens than the most likely ones.
    """
    model = loader.model
    assert model is not None
    loop, service = asyncio.new_event_loop(), PageService(loader)
    page = Page(service, loop, source)
    page.first_view()
    accepted = page.click(page.settled(), whole=False)
    fresh = Page(service, loop, source, page.text)
    ids = [*instruction_opening(model.tokenizer, f"{INSTRUCTION}\n\n{source}"), *accepted[0][1]]

    def clicked() -> View:
        return page.first_view(accepted)

    sides: dict[str, Callable[[], Any]] = {
        CLICK: clicked, ANEW: fresh.first_view, FORWARD: lambda: forward(peer, ids, last=1),
    }  # fmt: skip
    found = {}
    for name in rotated(list(sides), repeat):
        found[name] = timed(sides[name], peer.device)
        if name != FORWARD:
            (page if name == CLICK else fresh).settled()  # no method is timed while branches of another still grow
    check_click(found[CLICK][1], found[FORWARD][1])
    accepted = page.click(page.settled(), whole=True)
    found[LAST] = timed(lambda: page.first_view(accepted), peer.device)
    page.settled()
    loop.close()
    return Repeat(len(ids), {name: seconds for name, (seconds, _) in found.items()})


def one_reading(model: Model, peer: PreTrainedModel, text: str, repeat: int) -> Repeat:
    """Time the highlights of a text in a new document, and the peer's logits at all of its tokens.

    Raises AssertionError if the losses differ.
    """
    ids = Document(model, text).token_ids
    sides: dict[str, Callable[[], Any]] = {
        OURS: lambda: sent(highlights(Document(model, text))), FORWARD: lambda: forward(peer, ids, last=0),
    }  # fmt: skip
    found = {name: timed(sides[name], peer.device) for name in rotated(list(sides), repeat)}
    check_losses(found[OURS][1], found[FORWARD][1], ids)
    return Repeat(len(ids), {name: seconds for name, (seconds, _) in found.items()})


def sent(found: Highlights) -> Highlights:
    """Return `found`, after making JSON of it as for the page, so that this is timed as well."""
    as_json(found)
    return found


@torch.inference_mode()
def forward(peer: PreTrainedModel, ids: list[int], last: int) -> torch.Tensor:
    """Return the logits of the last `last` of these ids (0: all), of shape (tokens, vocabulary), by a plain forward."""
    return peer(torch.tensor([ids], device=peer.device), use_cache=False, logits_to_keep=last).logits[0]


def check_click(view: View, logits: torch.Tensor) -> None:
    """Raise AssertionError unless the branches begin with the tokens of the largest logits in the last row."""
    firsts = [branch["ids"][0] for branch in view["branches"]]
    shown, best = logits[-1][firsts], logits[-1].topk(len(firsts)).values
    if not torch.allclose(shown.sort(descending=True).values, best, atol=SAME * float(best.abs().max())):
        raise AssertionError(f"The branches begin with {firsts}, which are not transformers' likeliest.")


def check_losses(found: Any, logits: torch.Tensor, ids: list[int]) -> None:
    """Raise AssertionError unless the losses of the highlights `found` add up to those by the peer's `logits`.

    `ids` are the text's token ids; row i of the logits predicts token i + 1.
    """
    entries = [entry for entry in found.entries if entry.loss is not None]
    places = [entry.first_token + place for entry in entries for place in range(len(entry.token_ids))]
    odds = logits[[place - 1 for place in places]].log_softmax(-1)
    theirs = -float(odds.gather(1, torch.tensor([[ids[place]] for place in places], device=odds.device)).double().sum())
    ours = math.fsum(entry.loss for entry in entries)
    if abs(ours - theirs) > SAME * len(ids):
        raise AssertionError(f"The losses are {ours} together, and transformers' {theirs}.")


def _text(model: Model, ids: list[int]) -> str:
    return str(model.tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def click_table(repeats: Sequence[Repeat]) -> str:
    """Return a Markdown table: median seconds from a click to its first view, and ratios of other methods to it."""
    header = ["a click in Rewrite on", "tokens before it", "ours, s", "a fresh page / ours", "plain forward / ours"]
    tokens = f"{median(one.tokens for one in repeats):,.0f}"
    return markdown(
        header,
        [
            [f"a {name}", tokens, _seconds(repeats, name), _ratio(repeats, ANEW, name), _ratio(repeats, FORWARD, name)]
            for name in (CLICK, LAST)
        ],
    )


def reading_table(repeats: Sequence[Repeat]) -> str:
    """Return a Markdown table: median seconds of highlights and of a plain forward with all logits, and their ratio."""
    header = ["highlights of", "ours, s", "plain forward, s", "plain forward / ours"]
    tokens = f"{median(one.tokens for one in repeats):,.0f} tokens"
    figures = [_seconds(repeats, OURS), _seconds(repeats, FORWARD), _ratio(repeats, FORWARD, OURS)]
    return markdown(header, [[tokens, *figures]])


def _seconds(repeats: Sequence[Repeat], name: str) -> str:
    """Return the median seconds of a method, with four decimals."""
    return f"{median(one.seconds[name] for one in repeats):.4f}"


def _ratio(repeats: Sequence[Repeat], name: str, by: str) -> str:
    """Return the median ratio of the seconds of method `name` to those of method `by`, with two decimals."""
    return f"{median(one.seconds[name] / one.seconds[by] for one in repeats):.2f}"
