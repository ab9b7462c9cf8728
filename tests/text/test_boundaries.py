"""Boundary levels of words, clauses, sentences and lines, by examples in many scripts."""

from __future__ import annotations

import random
import unicodedata

import pytest

from lookahead_core.text.boundaries import CLAUSE, LINE, NOTHING, SENTENCE, WORD, boundary_levels
from tests.text.test_codec import random_text

LEVELS = {"": NOTHING, "¹": WORD, "²": CLAUSE, "³": SENTENCE, "⁴": LINE}


def parse(written: str) -> tuple[list[str], tuple[int, ...]]:
    """Pieces and levels from a line of the table: pieces are separated by |, with their levels as superscripts."""
    pieces = [part.rstrip("¹²³⁴") for part in written.split("|")]
    levels = tuple(LEVELS[part[len(part.rstrip("¹²³⁴")) :]] for part in written.split("|"))
    return pieces, levels


@pytest.mark.parametrize(
    "written",
    [
        " keep|er¹| saw¹| the",
        " keeper¹|,²| and",
        " keeper¹|;²| and",
        " he¹| said¹|:²| go",
        " on¹| —²| and",
        " on¹|–²|and",
        " stop¹|.³| The",
        " stop¹|!³| The",
        " what¹|?¹|!³| The",
        " wait¹|...³| The",
        " wait¹|.¹|.¹|.³| The",
        " wait¹|…³| The",
        " stop¹|.¹|”³| He",
        " stop¹|.”³| He",
        " (stop¹|.¹|)³| He",
        " stop¹|.¹",
        " stop¹|.³|\n⁴",
        " stop¹|,¹|”²| he",
        " line¹|\n⁴|next",
        " line¹|\n\n⁴|next",
        " line¹|\r\n⁴|next",
        "\n⁴|The",
        " | the",
        " the¹|  ¹|end",
        " the ¹|end",
        " in¹| 3|.|14¹| and",
        " in¹| 1|,|000¹| and",
        " at¹| 10¹|:¹|30¹| and",
        " in¹| 1984¹|.³| He",
        " in¹| 1984|.",
        " don|'|t¹| go",
        " don|'t¹| go",
        " don|’t¹| go",
        " the¹| keepers¹|'¹| house",
        " well|-|known¹| man",
        " light|house¹|,²| so",
        " Mr¹|.¹| Smith",
        " J¹|.¹| Smith",
        " it¹| was¹| I¹|.³| So",
        " e¹|.¹|g¹|.¹| this",
        " open¹| file¹|.¹|txt¹| now",
        " ¿|qué¹|?³| Sí",
        ' "|Go¹|!¹|"³| he',
        " (|see¹| it¹|)¹| now",
        ")¹| stop¹|.¹",
        " $|5¹| each",
        " #|tag¹| now",
        "你好¹|，²|世界¹|。³|我¹",
        "你好¹|。¹|」³|我¹",
        "本当¹|？³|はい¹|、²|そう¹",
        "مرحبا¹|،²| كيف¹| الحال¹|؟³| نعم",
        "สวัสดี¹|ครับ¹",
        "नमस्ते¹| दुनिया¹|।³| यह",
        "안녕¹| 세상¹|.³| 나",
        " cafe|\u0301¹| now",
        " ok¹|🙂¹| and",
        " 👍|🏽¹| and",
    ],
)
def test_each_piece_has_the_level_in_the_table(written: str) -> None:
    pieces, levels = parse(written)
    assert boundary_levels(pieces) == levels


@pytest.mark.parametrize(
    ("before", "written"),
    [
        ("the ligh", "thouse¹| keeper"),
        ("It was 3", ".|14¹| and"),
        ("It was 3", ".³| And"),
        ("the keeper", "’s¹| house"),
        ("Mr", ".¹| Smith"),
        ("He said “Go.", "”³| Then"),
        ("the keeper", " | said"),
        ("the keeper ", "said¹| so"),
        ("x" * 1000 + " 3", ".|5¹| m"),
    ],
)
def test_the_text_before_the_first_piece_counts(before: str, written: str) -> None:
    pieces, levels = parse(written)
    assert boundary_levels(pieces, before) == levels


def test_the_next_character_decides_and_the_end_of_the_text_completes_a_line() -> None:
    assert boundary_levels([" keeper"]) == (NOTHING,)
    assert boundary_levels([" keeper"], after=" s") == boundary_levels([" keeper"], after=",") == (WORD,)
    assert boundary_levels([" keeper"], after="s") == (NOTHING,)
    assert boundary_levels([" keeper"], final=True) == (LINE,)
    assert boundary_levels([" the", " keeper"], final=True) == (WORD, LINE)
    assert boundary_levels([], "before", final=True) == ()


def test_a_level_never_falls_when_more_text_is_known_unless_a_combining_mark_follows() -> None:
    generator = random.Random(0)
    for _ in range(2000):
        pieces = [piece for _ in range(6) if (piece := random_text(generator)[: generator.randrange(1, 4)])]
        all_known = boundary_levels(pieces)
        for count in range(1, len(pieces)):
            prefix_levels = boundary_levels(pieces[:count])
            for index, (level, later) in enumerate(zip(prefix_levels, all_known, strict=False)):
                combines = unicodedata.category(pieces[index + 1][0])[0] in "MC" or pieces[index + 1][0] in "\ufe0f"
                assert later >= level or combines, (pieces, index)
