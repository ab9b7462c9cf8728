"""The command without a subcommand: continues a text by one of the methods and writes the result."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lookahead_core.command import json_output, model_loading, terminal, text_output
from lookahead_core.command.arguments import BEAMS, STREAMS, core_options
from lookahead_core.command.standard_input import read_standard_input
from lookahead_core.serving.json_values import json_safe
from lookahead_core.validation import check_integer, parse_options

if TYPE_CHECKING:
    from lookahead_core import Cost, Document, Model


class GenerationCommand:
    """One run of the command without a subcommand: continues one prompt by the method in the parsed arguments."""

    def __init__(self, arguments: dict[str, Any], screen: terminal.Screen) -> None:
        """Take the arguments of `parse_arguments`; read the prompt from standard input if it is None or "-" in them.

        Raises ValueError if standard input cannot be read, or for a wrong number of samples.
        """
        self.arguments = arguments
        self.screen = screen
        self.method = arguments["method"]
        self.core_options = core_options(arguments)
        self.samples = arguments.get("samples", 1)
        check_integer("samples", self.samples, 1, 1000)
        prompt = arguments["prompt"]
        self.prompt: str = read_standard_input() if prompt in (None, "-") else prompt

    def run(self) -> None:
        """Check the options, load the model, continue the prompt by the method, and write the result to the screen.

        With `--verbose`, a summary goes to standard error. Raises ValueError for wrong options, nearly all before the
        model is loaded, and LookaheadError if the model cannot be loaded or the prompt cannot be continued.
        """
        terminal.report("Starting")
        options = self._parsed_options()  # before the model is loaded, which takes longer
        from lookahead_core import Document

        document = Document(model_loading.load(self.arguments), self.prompt)
        if self.method in STREAMS:
            self._stream(document, options)
        elif self.method in BEAMS:
            self._search(document, options)
        else:
            self._look_ahead(document, options)

    def _parsed_options(self) -> Any:
        """Return the options of the method: `StreamOptions`, `BeamOptions` or `LookaheadOptions`.

        Raises ValueError if a value is wrong. Draft model, heads and corpus are not among them.
        """
        from lookahead_core.strategies.beam_options import BeamOptions
        from lookahead_core.strategies.lookahead_options import LookaheadOptions
        from lookahead_core.strategies.stream_options import StreamOptions

        kind: Any = (
            StreamOptions if self.method in STREAMS else BeamOptions if self.method in BEAMS else LookaheadOptions
        )
        return parse_options(kind, self.core_options, self.method)

    def _stream(self, document: Document, options: Any) -> None:
        from lookahead_core.document.batch import stream_batch

        model = document.model if "token_odds" in self.arguments else None
        writer = text_output.StreamWriter(self.screen, self.prompt, self.samples, model)
        all_options = self.core_options | self._drafting_options(document.model)
        streams = stream_batch([document] * self.samples, **all_options)
        with writer:
            for index, step in text_output.in_order(streams, self.samples):
                if "json" not in self.arguments:
                    writer.add(index, step)
        if "json" in self.arguments:
            samples = [json_output.stream_as_json(steps) for steps in streams.steps]
            result = {"samples": samples} if "samples" in self.arguments else samples[0]
            self._write_json(result, streams.cost, document, options)
        reasons = dict.fromkeys(text_output.FINISHES[steps[-1].finish] for steps in streams.steps)
        self._write_summary(streams.cost, *reasons, text_output.average_phrase(streams.steps))

    def _drafting_options(self, model: Model) -> Any:
        """Return the keyword arguments of the core for drafts, as far as they are on the command line.

        Draft model, heads and corpus are loaded here; they draft for `model`. Raises LookaheadError or ValueError if
        one cannot be loaded.
        """
        from lookahead_core import load_corpus, load_heads

        arguments = self.arguments
        options: dict[str, Any] = {"speculate": False} if "no_drafts" in arguments else {}
        if "draft_model" in arguments:
            options["draft_model"] = model_loading.load_draft_model(model, arguments)
        if "heads" in arguments:
            options["heads"] = load_heads(arguments["heads"], model)
        if "corpus" in arguments:
            options["corpus"] = load_corpus(model, arguments["corpus"])
        return options

    def _search(self, document: Document, options: Any) -> None:
        beams = document.beam_search(**self.core_options)
        if "json" in self.arguments:
            self._write_json(json_output.beams_as_json(beams), beams.cost, document, options)
        else:
            self._write(text_output.beam_lines(beams, self.screen))
            if "tree" in self.arguments:
                every = "all" in self.arguments
                self._write(text_output.beam_tree_lines(self.prompt, beams, every, self.screen))
        self._write_summary(beams.cost, f"{beams.steps} levels")

    def _look_ahead(self, document: Document, options: Any) -> None:
        result = document.lookahead(**self.core_options)
        if "json" in self.arguments:
            self._write_json(json_output.lookahead_as_json(result), result.cost, document, options)
        else:
            self._write(text_output.lookahead_lines(self.prompt, result, self.screen))
        self._write_summary(result.cost)

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.screen.line(line)

    def _write_json(self, result: dict[str, Any], cost: Cost, document: Document, options: Any) -> None:
        request = {"prompt": self.prompt, "method": self.method}
        everything = request | result | json_output.run_as_json(cost, document.model, options)
        self.screen.line(json.dumps(json_safe(everything), allow_nan=False))

    def _write_summary(self, cost: Cost, *more: str) -> None:
        """Write the cost and the phrases `more` as one line to standard error; without `--verbose` do nothing."""
        if "verbose" in self.arguments:
            phrases = (f"{text_output.cost_phrase(cost)}, {cost.seconds:.2f} s", *more)
            print("; ".join(phrases), file=sys.stderr)
