"""A client of the prototype's HTTP calls, written from their description alone; it uses no code of this project."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from typing import Any

PROMPTS = [
    *(
        f"Rewrite this document to be more {ending}."
        for ending in (
            "detailed and engaging",
            "formal and professional",
            "casual and conversational",
            "technical and precise",
            "creative and imaginative",
            "persuasive and compelling",
        )
    ),
    "Rewrite this document to be clear and concise.",
    "Summarize this document in one sentence.",
    "Translate this document into Spanish.",
    "Write a concise essay according to this outline.",
    "Write a detailed essay according to this outline.",
]


class PrototypePage:
    """The four pages of the prototype, on top of a server's HTTP calls."""

    def __init__(self, api_server: str) -> None:
        self.api_server = api_server.rstrip("/")

    def get(self, call: str, **parameters: Any) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.api_server}/{call}?{query}", timeout=120) as answer:
            return json.load(answer)

    def post(self, call: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.api_server}/{call}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def buttons(self, document: str, prompt: str, rewrite: str, several_words: bool = False) -> list[str]:
        """The page "Rewrite with predictions": the texts of its five buttons."""
        found = self.get("next_token", original_doc=document, prompt=prompt, doc_in_progress=rewrite.rstrip())
        return [self.cut(text, several_words) for text in found["next_tokens"]]

    @staticmethod
    def cut(text: str, several_words: bool) -> str:
        """A continuation, cut before the first space after its first character unless `several_words`."""
        place = text.find(" ", 1)
        return text if several_words or place < 0 else text[:place]

    def highlights(self, document: str, prompt: str) -> list[dict[str, Any]]:
        """The page "Highlights": words whose most likely token differs, highest loss first, with relative losses."""
        spans = self.get("highlights", doc=document, prompt=prompt)["highlights"]
        highest = max(span["token_loss"] for span in spans[1:])
        found = [
            {**span, "ratio": span["token_loss"] / highest, "text": document[span["start"] : span["end"]]}
            for span in spans
            if span["token"] != span["most_likely_token"]
        ]
        return sorted(found, key=lambda span: -span["ratio"])

    def continuations(self, messages: list[dict[str, str]], several_words: bool = False) -> list[str]:
        """The page "Type assistant response": the texts of its five buttons."""
        body = {"messages": messages, "n_branch_tokens": 5, "n_future_tokens": 5}
        found = self.post("continue_messages", body)["continuations"]
        return [self.cut(one["doc_text"], several_words) for one in found]

    def internals(self, messages: list[dict[str, str]]) -> list[tuple[str, list[tuple[str, float]]]]:
        """The page "Show internals": each token with its probabilities; "[____]" is the next token."""
        found = self.post("logprobs", {"messages": messages, "n_branch_tokens": 5, "n_future_tokens": 5})["logprobs"]
        return [
            (entry["token"] if entry["token"] is not None else "[____]", sorted_odds(entry["logprobs"]))
            for entry in found
        ]


def sorted_odds(odds: Any) -> list[tuple[str, float]]:
    """Probabilities, highest first; the first token of a text has none."""
    return sorted(odds.items(), key=lambda pair: -pair[1]) if odds else []
