"""Texts in any Unicode for Hypothesis, most of them of characters that are hard to cut."""

from __future__ import annotations

from hypothesis import strategies as st


def unicode_texts(characters: int, further: str = "") -> st.SearchStrategy[str]:
    """Texts of 1 to so many characters; those in `further` are among the frequent ones."""
    return st.text(
        st.sampled_from("aé e\u0301nö 🙂👩‍👩‍👧🏽中文字العربيةनमस्ते\t\n\u200b\ufe0f1,.'ﬁ" + further)
        | st.characters(exclude_categories=["Cs"]),
        min_size=1,
        max_size=characters,
    )
