"""Lookahead results as JSON for pages and other programs."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from lookahead_core.serving.packed_predictions import KEPT, PredictionPacker

if TYPE_CHECKING:
    from lookahead_core.document.results import Branch, Lookahead, Other
    from lookahead_core.prediction import Prediction

MAX_BANNED_SHOWN = 16
"""Maximum number of banned tokens in `without` of a lookahead's JSON."""
REPORTED_OPTIONS = ("k", "depth", "mode", "until", "temperature", "top_p", "seed", "odds")
"""Options of a lookahead that a page compares with its controls."""


def lookahead_as_json(
    result: Lookahead, *, kept: int = KEPT, rest: int = 64, packer: PredictionPacker | None = None
) -> dict[str, Any]:
    """Return a lookahead result as JSON, with packed predictions from which a page applies temperatures itself.

    `nodes` lists the predictions, that of the first token first, each with the `kept` likeliest tokens in the format of
    `packed_predictions.pack`; successive views may share a `packer`, which then decides how many. A branch has `ids`,
    `logprobs`, `pieces`, `ended`, `healed`, `repeats`, and in `at` for each token the index of its prediction in this
    list. The field `rest` has at most `rest` other first tokens, with
    `ids`, `logprobs`, `at`, `text` and `end` (whether it is an end token). `without` has at most `MAX_BANNED_SHOWN` of
    `Lookahead.banned`, with `id`, `text` and `probability`. `given`, `seen_from`, `compared_by`, `cost` and `alone` are
    those of `Lookahead`; `asked` has the `REPORTED_OPTIONS`, the number of banned tokens, and `towards` or `avoid` if
    it is set. With `towards`, `word` has the fields of `Lookahead.word`, and branches that reach the word have `word`,
    its tokens. With token healing `typed` is the re-opened token: its `id`, its `logprob` among the tokens that begin
    with its text, and in `at` the indexes of the prediction of this token and of that of the token after it. An edited
    branch has `edited`, the tokens of the text put in, and `earlier_edits`, those of texts put in before it, if any.
    With `odds="words"` each branch and each entry of `rest` has `next_word`: `share`, `error` (its maximum error), and
    for a branch the word's `text` and `tokens`, the number of the branch's tokens that spell it.
    """
    predictions = _distinct_predictions(result, rest)
    indexes = {id(prediction): index for index, prediction in enumerate(predictions)}
    options, cost = result.options, result.cost
    return {
        "branches": [_branch_as_json(branch, indexes) for branch in result.branches],
        "nodes": (packer or PredictionPacker(kept)).pack(predictions),
        "rest": [
            {**_tokens_as_json(other, indexes), "text": other.text, "end": other.ended, **_other_word(other)}
            for other in result.rest[:rest]
        ],
        "without": [
            {"id": token.token_id, "text": token.text, "probability": round(token.probability, 6)}
            for token in result.banned[:MAX_BANNED_SHOWN]
        ],
        "given": result.given,
        **_typed_as_json(result, indexes),
        "seen_from": result.seen_from,
        "compared_by": result.compared_by,
        "cost": {
            "passes": cost.passes,
            "tokens": cost.tokens,
            "seconds": cost.seconds,
            "live_slots": cost.live_slots,
            "cache_bytes": cost.cache_bytes,
        },
        "alone": result.alone,
        "asked": {name: getattr(options, name) for name in REPORTED_OPTIONS}
        | {"banned": len(options.banned)}
        | {name: word for name in ("towards", "avoid") if (word := getattr(options, name))},
        **word_as_json(result),
    }


def _typed_as_json(result: Lookahead, indexes: dict[int, int]) -> dict[str, Any]:
    """Return `{"typed": …}` with the re-opened token of a lookahead; an empty dict without one, or if it has odds 0."""
    if (typed := result.typed) is None or typed.logprob == -math.inf:
        return {}
    at = [indexes[id(prediction)] for prediction in typed.said]
    return {"typed": {"id": typed.token_id, "logprob": round(typed.logprob, 5), "at": at}}


def word_as_json(result: Lookahead) -> dict[str, Any]:
    """Return `{"word": …}` with the fields of `Lookahead.word`; empty if that is None."""
    return {} if result.word is None else {"word": dataclasses.asdict(result.word)}


def _branch_as_json(branch: Branch, indexes: dict[int, int]) -> dict[str, Any]:
    return {
        **_tokens_as_json(branch, indexes),
        "pieces": [{"text": piece.text, "tokens": piece.tokens, "ends": piece.ends} for piece in branch.pieces],
        "ended": branch.ended,
        "healed": branch.healed,
        "repeats": branch.repeats,
        **({} if branch.word_tokens is None else {"word": list(branch.word_tokens)}),
        **({} if branch.edited_tokens is None else {"edited": list(branch.edited_tokens)}),
        **({"earlier_edits": [list(span) for span in branch.earlier_edits]} if branch.earlier_edits else {}),
        **_next_word(branch),
    }


def _next_word(branch: Branch) -> dict[str, Any]:
    """Return a branch's first word as `{"next_word": …}`; an empty dict with token odds."""
    if branch.next_word is None:
        return {}
    return {
        "next_word": {
            "text": branch.next_word,
            "tokens": branch.next_word_tokens,
            **_share(branch.share, branch.share_error),
        }
    }


def _other_word(other: Other) -> dict[str, Any]:
    """Return the share of a word that no branch begins with as `{"next_word": …}`; an empty dict with token odds."""
    return {} if other.share is None else {"next_word": _share(other.share, other.share_error)}


def _share(share: float, error: float) -> dict[str, float]:
    return {"share": round(share, 6), "error": round(error, 6)}


def _tokens_as_json(path: Branch | Other, indexes: dict[int, int]) -> dict[str, Any]:
    return {
        "ids": list(path.token_ids),
        "logprobs": [round(logprob, 5) for logprob in path.logprobs],
        "at": [indexes[id(prediction)] for prediction in path.said],
    }


def _distinct_predictions(result: Lookahead, rest: int) -> list[Prediction]:
    """Return every prediction object that a token of the branches, or of the first `rest` of `result.rest`, has, once.

    That of the first token comes first, if it is known; those of `result.typed` are among them.
    """
    predictions = [] if result.said is None else [result.said]
    predictions += result.typed.said if result.typed else ()
    paths: list[Branch | Other] = [*result.branches, *result.rest[:rest]]
    predictions += [prediction for path in paths for prediction in path.said]
    return list({id(prediction): prediction for prediction in predictions}.values())
