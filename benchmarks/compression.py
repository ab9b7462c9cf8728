"""Compression: whether questions about a shortened source get the same answers, and what compressing costs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.environment import describe
from benchmarks.questions import Fact, sources
from benchmarks.report import markdown
from benchmarks.timing import rotated, timed
from lookahead_core import Compression, Document, Model, compress, load_model
from lookahead_core.analysis.text_spans import node_before
from lookahead_core.engines.engine import PREFILL_CHUNK
from lookahead_core.text.chat import tokenize_conversation
from lookahead_core.tree import TokenTree

NAME = "compression"
HELP = "Measure whether answers stay the same after a source is shortened, and what shortening costs."
QUESTIONS = 100
LENGTHS = (512, 2048, 8192)
"""Numbers of tokens of the sources whose compression is timed."""
RATIOS = (0.25, 0.5)
"""The shares that are kept where removed answers are counted: those that the Rewrite tab offers."""


@dataclass(frozen=True)
class Answer:
    """A question about a source, and the model's answers with the source and with the shortened source."""

    kind: str
    question: str
    answer: str
    """The first token of the right answer."""
    kept: bool
    """Whether all characters of the answer are in kept spans."""
    by_source: str
    """The model's likeliest first token after the source."""
    by_short: str
    """The model's likeliest first token after the shortened source."""

    @property
    def same(self) -> bool:
        """Whether the shortened source gives the same first token."""
        return self.by_source == self.by_short


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark to its parser."""
    parser.add_argument("--quick", action="store_true", help="20 questions, the shortest source only, three repeats")
    parser.add_argument("--ratio", type=float, default=0.25, help="share of the tokens that is kept (0.25)")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help=f"answers in kept parts ({QUESTIONS})")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of each timing (7)")
    parser.add_argument(
        "--lengths", type=int, nargs="+", metavar="N", help="tokens of the timed sources (512 2048 8192)"
    )
    parser.add_argument("--costs-only", action="store_true", help="time reading only, without questions")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sources (0)")
    parser.add_argument("--model", help="what to load: a Hub id, a folder, a .gguf file; the default model if left out")
    parser.add_argument("--dtype", default="auto", help="type of the weights")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")


def main(arguments: argparse.Namespace) -> int:
    """Measure answers and costs, print a table of each, and return the exit status 0."""
    model = load_model(arguments.model, dtype=arguments.dtype)
    wanted = 20 if arguments.quick else arguments.questions
    answers = [] if arguments.costs_only else list(answer_until(model, arguments.ratio, wanted, arguments.seed))
    removed = [] if arguments.costs_only else [removed_of(model, one, wanted, arguments.seed) for one in RATIOS]
    lengths, repeats = (LENGTHS[:1], 3) if arguments.quick else (LENGTHS, arguments.repeats)
    lengths = arguments.lengths or lengths
    costs = [cost_of(model, length, arguments.ratio, repeats, arguments.seed) for length in lengths]
    environment = describe({model.dtype: model})
    print("\n".join(f"- {name}: {value}" for name, value in environment.items()), end="\n\n")
    if answers:
        print(table_of_answers(answers), table_of_removed(removed), sep="\n\n", end="\n\n")
    print(table_of_costs(costs))
    if arguments.json:
        found = {"environment": environment, "answers": [asdict(one) for one in answers], "removed": removed}
        found["costs"] = costs
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


def answer_until(model: Model, ratio: float, wanted: int, seed: int) -> Iterator[Answer]:
    """Yield answers, source by source, until `wanted` of them are kept; `seed` is that of the sources."""
    kept = 0
    for source in sources(seed):
        found = compress(model, source.text, ratio)
        for fact, span, by_source, by_short in zip(
            source.facts, source.spans, _answers(model, source.text, source.facts),
            _answers(model, found.text, source.facts), strict=True,
        ):  # fmt: skip
            stays = _is_kept(found, *span)
            yield Answer(fact.kind, fact.question, _first_token(model, fact), stays, by_source, by_short)
            kept += stays
            if kept == wanted:
                return
        print(f"{kept} of {wanted} questions", end="\r", file=sys.stderr, flush=True)


def removed_of(model: Model, ratio: float, wanted: int, seed: int) -> dict[str, Any]:
    """Return how many answers of the first `wanted` questions a compression to `ratio` removes, in all and by kind.

    An answer is removed unless all of its characters are in kept parts. The names of the kinds come with their counts,
    as pairs (removed, questions).
    """
    kinds: dict[str, list[bool]] = {}
    total = 0
    for source in sources(seed):
        found = compress(model, source.text, ratio)
        for fact, span in list(zip(source.facts, source.spans, strict=True))[: wanted - total]:
            kinds.setdefault(fact.kind, []).append(not _is_kept(found, *span))
            total += 1
        if total == wanted:
            break
    counts = {kind: (sum(removed), len(removed)) for kind, removed in kinds.items()}
    return {"ratio": ratio, "questions": total, "removed": sum(count for count, _ in counts.values()), "kinds": counts}


def table_of_removed(found: Sequence[dict[str, Any]]) -> str:
    """Return a table of the answers that were removed, by the kept share and the kind of answer."""
    kinds = list(found[0]["kinds"])
    rows = [
        [f"{one['ratio']:g}", str(one["questions"]), str(one["removed"]),
         *(f"{one['kinds'][kind][0]} of {one['kinds'][kind][1]}" for kind in kinds)]
        for one in found
    ]  # fmt: skip
    return markdown(["kept share", "questions", "answers removed", *kinds], rows)


def _is_kept(found: Compression, start: int, end: int) -> bool:
    return all(span.kept for span in found.spans if span.start < end and span.end > start)


def _answers(model: Model, text: str, facts: Sequence[Fact]) -> Iterator[str]:
    """Yield the model's likeliest first token of each answer. All questions share the text's KV cache."""
    tree = TokenTree()
    for fact in facts:
        content = f"{text}\n\n{fact.question}"
        chat = tokenize_conversation(
            model.codec, [{"role": "user", "content": content}, {"role": "assistant", "content": ""}]
        )
        document = Document(model, fact.beginning, opening=chat.opening, tree=tree)
        yield _text_of(model, document.predict().token_ids[0])


def _first_token(model: Model, fact: Fact) -> str:
    whole = model.codec.encode(fact.beginning + fact.answer)
    return _text_of(model, next(token.token_id for token in whole if token.end > len(fact.beginning)))


def _text_of(model: Model, token_id: int) -> str:
    return model.codec.bytes_of(token_id).decode(errors="replace")


def table_of_answers(answers: Sequence[Answer]) -> str:
    """Return a Markdown table: the shares of answers that are the same and that are right, by kind."""
    rows = []
    kinds = list(dict.fromkeys(one.kind for one in answers))
    for kind in [*kinds, ""]:
        group = [one for one in answers if one.kept and kind in ("", one.kind)]
        rows.append(
            [
                kind or "**all in kept parts**",
                str(len(group)),
                _share(one.same for one in group),
                _share(one.by_source == one.answer for one in group),
                _share(one.by_short == one.answer for one in group),
            ]
        )
    removed = [one for one in answers if not one.kept]
    rows.append(
        ["in removed parts", str(len(removed)), _share(one.same for one in removed),
         _share(one.by_source == one.answer for one in removed), _share(one.by_short == one.answer for one in removed)]
    )  # fmt: skip
    return markdown(["answer", "questions", "same first token", "right with the source", "right with the rest"], rows)


def _share(facts: Iterator[bool]) -> str:
    values = list(facts)
    return f"{sum(values) / len(values):.0%}" if values else ""


def source_of_length(model: Model, tokens: int, seed: int) -> str:
    """Return joined sources, cut to about `tokens` tokens."""
    text = ""
    for source in sources(seed):
        text += source.text + "\n\n"
        encoded = model.codec.encode(text)
        if len(encoded) >= tokens:
            return text[: encoded[tokens - 1].end]
    raise AssertionError("sources never end")


@torch.inference_mode()
def cost_of(model: Model, tokens: int, ratio: float, repeats: int, seed: int) -> dict[str, Any]:
    """Return the median seconds of compressing a text of about `tokens` tokens and of evaluating it plainly, in turns.

    A dict: `ours` is `compress`, `scored` our evaluation with all rows of logits, from which log-probabilities of the
    next tokens are taken, `plain` one forward pass of transformers with all logits, `read` our prefill, without logits;
    `to_scored`, `to_plain` and `to_read` are medians of the ratios; `tokens` and `evaluated` are numbers of tokens.
    """
    text = source_of_length(model, tokens, seed)
    ids = torch.tensor([[token.token_id for token in model.codec.encode(text)]], device=model.hf_model.device)
    evaluated = []

    def ours() -> None:
        evaluated.append(compress(model, text, ratio).cost.tokens)

    def plain() -> None:
        model.hf_model(ids, use_cache=True).logits.float()

    def read() -> None:
        document = Document(model, text)
        model.engine.prefill([node_before(document, len(document.token_ids), 0)])

    def scored() -> None:
        document = Document(model, text)
        path = document.tree.path(node_before(document, len(document.token_ids), 0))
        for first in range(0, len(path), PREFILL_CHUNK):
            nodes = path[first : first + PREFILL_CHUNK]
            model.engine.score(nodes).next_logprobs(nodes, [node.token_id for node in nodes])

    methods: dict[str, Callable[[], None]] = {"ours": ours, "scored": scored, "plain": plain, "read": read}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for repeat in range(-1, repeats):  # the first is not counted
        for name in rotated(list(methods), repeat):
            spent, _ = timed(methods[name], model.hf_model.device)
            if repeat >= 0:
                seconds[name].append(spent)
    return {
        "tokens": ids.shape[1],
        "evaluated": evaluated[-1],
        **{name: median(values) for name, values in seconds.items()},
        **{f"to_{name}": _median_ratio(seconds["ours"], seconds[name]) for name in methods if name != "ours"},
    }


def _median_ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    return median(own / other for own, other in zip(ours, others, strict=True))


def table_of_costs(costs: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table of tokens and seconds, with the ratios to one evaluation of the source."""
    heads = ["tokens", "evaluated", "seconds", "read with log-probabilities", "transformers' pass", "prefill alone"]
    return markdown(
        heads,
        [
            [f"{cost['tokens']:,}", f"{cost['evaluated'] / cost['tokens']:.3f} ×", f"{cost['ours']:.2f}",
             f"{cost['to_scored']:.2f} ×", f"{cost['to_plain']:.2f} ×", f"{cost['to_read']:.2f} ×"]
            for cost in costs
        ],
    )  # fmt: skip
