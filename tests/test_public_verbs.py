"""The keyword arguments of the public functions: typed, explained, and in agreement with the options dataclasses."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import (
    Calls,
    Document,
    Model,
    beam_search_batch,
    lookahead_batch,
    lookahead_batch_steps,
    stream_batch,
    train_heads,
)  # fmt: skip
from lookahead_core.analysis.lookahead_within_text import lookahead_steps_at
from lookahead_core.document.prefetch import prefetch_views
from lookahead_core.strategies import keywords
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.training import trainer

OPTIONS = {
    keywords.LookaheadKeywords: LookaheadOptions,
    keywords.RuleKeywords: LogitRules,
    keywords.StreamKeywords: StreamOptions,
    keywords.BeamKeywords: BeamOptions,
    trainer.TrainingKeywords: trainer.TrainingPlan,
}
VERBS = {
    Document.lookahead: keywords.LookaheadKeywords,
    Document.lookahead_steps: keywords.LookaheadKeywords,
    Document.steps_after: keywords.LookaheadKeywords,
    Document.continue_branch: keywords.LookaheadKeywords,
    Document.stream: keywords.StreamKeywords,
    Document.odds: keywords.StreamKeywords,
    Document.beam_search: keywords.BeamKeywords,
    Document.beam_search_steps: keywords.BeamKeywords,
    lookahead_batch: keywords.LookaheadKeywords,
    lookahead_batch_steps: keywords.LookaheadKeywords,
    stream_batch: keywords.StreamKeywords,
    beam_search_batch: keywords.BeamKeywords,
    prefetch_views: keywords.LookaheadKeywords,
    lookahead_steps_at: keywords.LookaheadKeywords,
    train_heads: trainer.TrainingKeywords,
}
CALLS = {"lookahead": LookaheadOptions, "generate": StreamOptions, "beam_search": BeamOptions}
OF_CALLS = {"text", "messages"}
"""Arguments of the calls that are no options."""
OTHER_DEFAULTS = {("generate", "stop"): None, ("beam_search", "max_new_tokens"): 10}
"""Defaults of the calls that are not those of the options: JSON has no tuple, and beams are for short texts."""


def declared(kind: type) -> dict[str, str]:
    """The annotations of a typed dictionary as they are written, its base's included."""
    return {name: getattr(hint, "__forward_arg__", hint) for name, hint in kind.__annotations__.items()}


def name_of(verb: Callable[..., Any]) -> str:
    return verb.__qualname__


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_keyword_arguments_have_the_names_and_types_of_the_options_they_become(kind: type) -> None:
    assert declared(kind) == {each.name: each.type for each in fields(OPTIONS[kind])}


@pytest.mark.parametrize("verb", VERBS, ids=name_of)
def test_a_public_function_declares_its_options_and_shows_their_names_types_and_defaults(
    verb: Callable[..., Any],
) -> None:
    kind = VERBS[verb]
    assert verb.__annotations__["options"] == f"Unpack[{kind.__name__}]"
    shown = inspect.signature(verb).parameters
    assert not any(each.kind is each.VAR_KEYWORD for each in shown.values())
    for each in fields(OPTIONS[kind]):
        assert (shown[each.name].default, shown[each.name].annotation) == (each.default, each.type)
        assert shown[each.name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_the_defaults_of_the_options_that_it_passes_on(name: str) -> None:
    known = {each.name: each for each in fields(CALLS[name])}
    for argument in list(inspect.signature(getattr(Calls, name)).parameters.values())[1:]:
        if argument.name not in OF_CALLS:
            default = OTHER_DEFAULTS.get((name, argument.name), known[argument.name].default)
            assert argument.default == default, argument.name


@pytest.mark.parametrize("module", [keywords, trainer], ids=lambda module: module.__name__)
def test_every_keyword_argument_is_explained(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    kinds = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Keywords")]
    assert kinds
    for kind in kinds:
        body = kind.body[1:]
        assert len(body) % 2 == 0
        for declaration, explanation in zip(body[::2], body[1::2], strict=True):
            assert isinstance(declaration, ast.AnnAssign), ast.unparse(declaration)
            assert isinstance(explanation, ast.Expr), f"{kind.name} explains no {ast.unparse(declaration)}"
            assert isinstance(ast.literal_eval(explanation.value), str)


@pytest.mark.parametrize("verb", VERBS, ids=name_of)
def test_a_wrong_name_is_refused_with_a_list_of_the_options(verb: Callable[..., Any], tiny_model: Model) -> None:
    document = Document(tiny_model, token_ids=[1, 2, 3])
    arguments: dict[Any, tuple[Any, ...]] = {
        Document.steps_after: (document, [1], 1),
        Document.continue_branch: (document, None, "x"),
        prefetch_views: (document, None),
        lookahead_steps_at: (document, 0),
        train_heads: (tiny_model,),
        lookahead_batch: ([document],),
        stream_batch: ([document],),
        beam_search_batch: ([document],),
    }
    first = fields(OPTIONS[VERBS[verb]])[0].name
    with pytest.raises(ValueError, match=rf"^wrong is not an option of \w+; the options are {first}, .*\.$"):
        list(verb(*arguments.get(verb, (document,)), wrong=1))
