"""The command: `python -m lookahead_core "Once upon a time"`, for a terminal or, with --json, for other programs."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from lookahead_core.command import agreement, terminal, training
from lookahead_core.errors import LookaheadError
from lookahead_core.import_logs import quiet_import_logs
from lookahead_core.serving.json_values import json_safe
from lookahead_core.strategies.lookahead_options import MODES, UNTIL
from lookahead_core.validation import check_integer, parse_options

if TYPE_CHECKING:
    from lookahead_core import Cost, Document, Model

METHODS = {
    "greedy": "always the likeliest token",
    "sample": "each token drawn, by temperature, cuts and a seed",
    "beam": "the best of several paths that grow side by side",
    "diverse": "beams in groups that keep away from each other",
    "lookahead": "several futures at once, each with its odds, as a tree",
}
STREAMS, BEAMS = ("greedy", "sample"), ("beam", "diverse")
DESCRIPTION = "Go on with a text, or show where it could go, with a language model on this machine."
EPILOG = """\
examples:
  python -m lookahead_core "Once upon a time"
  python -m lookahead_core "Once upon a time" --method sample --temperature 0.8 --top-p 0.9 --samples 3
  python -m lookahead_core "Once upon a time" --method beam --num-beams 5 --tree
  echo "Once upon a time" | python -m lookahead_core - --method greedy --odds
  python -m lookahead_core --describe    # which model is loaded, and how it computes on this machine
  python -m lookahead_core train-heads --help    # teach a model to guess several tokens ahead
  python -m lookahead_core check-agreement "Once" --draft-model small/model    # how far a smaller model writes the same
"""
EARLINESS = "enough have ended (true), none that grows looks better (false), none can become so (never)"
EARLY = {"false": False, "true": True, "never": "never"}


class CommandOption(NamedTuple):
    """An argument: what it takes and means, and what holds without it."""

    flag: str
    kind: type
    help: str
    default: Any = None
    name: str = ""
    """What it is called elsewhere, where that is another name."""
    choices: Sequence[str] | None = None
    repeated: bool = False
    mode: str = ""
    """The only mode of a lookahead that heeds it."""

    @property
    def place(self) -> str:
        return self.name or self.flag.lstrip("-").replace("-", "_")

    def add_to(self, group: argparse._ArgumentGroup) -> None:
        """What is not given does not come into the namespace at all, so that the core's own defaults hold."""
        said = self.help if self.default is None else f"{self.help} ({self.default})"
        shared = {"dest": self.place, "default": argparse.SUPPRESS, "help": said}
        if self.kind is bool:
            group.add_argument(self.flag, action="store_true", **shared)
        else:
            metavar = None if self.choices else {int: "N", float: "X"}.get(self.kind, "TEXT")
            action = "append" if self.repeated else "store"
            group.add_argument(
                self.flag, type=self.kind, choices=self.choices, metavar=metavar, action=action, **shared
            )


def _many(flag: str, kind: type, name: str, help: str) -> CommandOption:
    return CommandOption(flag, kind, f"{help}; may be given again", name=name, repeated=True)


CORE: dict[tuple[str, ...], tuple[CommandOption, ...]] = {
    STREAMS + BEAMS: (
        CommandOption("--max-new-tokens", int, "how many tokens to add at most, an end token included", 40),
        CommandOption("--min-new-tokens", int, "how many tokens come before the text may end", 0),
        CommandOption("--repetition-penalty", float, "divides the scores of tokens that stood before", 1.0),
        CommandOption(
            "--frequency-penalty", float, "what a token's score loses for each time that it stood before", 0.0
        ),
        CommandOption("--presence-penalty", float, "what a token's score loses once, if it stood before", 0.0),
        CommandOption("--no-repeat-ngram-size", int, "so many tokens in a row never come twice; 0 lets them", 0),
        _many("--forbid", str, "forbidden", "what the text must not come to hold"),
        _many("--force", str, "forced", "a word that must come before the end"),
    ),
    STREAMS: (
        CommandOption("--max-words", int, "how many words to add at most"),
        _many("--stop", str, "stop", "ends the text and does not come into it"),
        _many("--stop-id", int, "stop_ids", "the number of a token that ends the text"),
    ),
    ("sample", "lookahead"): (
        CommandOption(
            "--temperature", float, "0 always takes the likeliest token, above 1 odds are evened", 1.0, mode="sampled"
        ),
        CommandOption(
            "--top-p", float, "draw among the likeliest tokens that have this much together", 1.0, mode="sampled"
        ),
        CommandOption("--seed", int, "the same seed draws the same", 0, mode="sampled"),
    ),
    ("sample",): (
        CommandOption("--top-k", int, "draw among so many of the likeliest tokens; 0 is all", 0),
        CommandOption("--min-p", float, "draw among tokens at least this share as likely as the likeliest", 0.0),
        CommandOption("--typical-p", float, "draw among tokens whose surprise is near the expected one", 1.0),
        CommandOption("--min-tokens-to-keep", int, "how many tokens each of these cuts leaves at least", 1),
    ),
    BEAMS: (
        CommandOption("--num-beams", int, "how many paths grow side by side", 5),
        CommandOption("--num-return-sequences", int, "how many of them to show; all, if not given"),
        CommandOption("--length-penalty", float, "a score is divided by the length to this power", 1.0),
        CommandOption("--early-stopping", str, f"it is over when {EARLINESS}", "false", choices=tuple(EARLY)),
        CommandOption("--num-beam-groups", int, "groups that search in turn; diverse: as many as there are beams", 1),
        CommandOption(
            "--diversity-penalty", float, "what each earlier group costs a token that it took; diverse: 1.0", 0.0
        ),
        CommandOption("--stopping", str, "whose rules", "transformers", choices=("transformers", "seed")),
    ),
    ("lookahead",): (
        CommandOption("-k", int, "how many branches", 5),
        CommandOption("--depth", int, "how many tokens each", 5),
        CommandOption(
            "--mode", str, "which branches; sampled heeds --temperature, --top-p and --seed", "likely", choices=MODES
        ),
        CommandOption("--until", str, "where branches end, if depth reaches so far", "tokens", choices=UNTIL),
        CommandOption("--branch-levels", int, "every_level: at how many levels to branch", 2, mode="every_level"),
        CommandOption("--cutoff", float, "forks: how likely another way must be to be shown", 0.15, mode="forks"),
        CommandOption("--slope", float, "forks: what the cutoff is multiplied by at each level", 1.0, mode="forks"),
        CommandOption("--split-limit", int, "forks: the most ways at one place", 3, mode="forks"),
        CommandOption("--budget", int, "best_first: how many tokens may be tried", 64, mode="best_first"),
        CommandOption("--pass-width", int, "best_first: how many of them at once", 16, "width", mode="best_first"),
        _many("--ban", int, "banned", "the number of a token that no branch may hold"),
        CommandOption("--heal", bool, "finish the word that the text ends in"),
        CommandOption("--speculate", bool, "draft what branches go on with from the text, several tokens a pass"),
    ),
}
"""What the core is asked for, by the methods that know it. A test holds it against the core's own options."""
LOOKS: dict[tuple[str, ...], tuple[CommandOption, ...]] = {
    STREAMS: (
        CommandOption("--odds", bool, "a line for each token: its odds, and what else could have come"),
        CommandOption("--no-drafts", bool, "one token a pass; the text is the same"),
        CommandOption("--draft-model", str, "a smaller model with the same tokens, that drafts as well", name="little"),
        CommandOption("--heads", str, "heads that were trained for the model, that draft as well", name="trained"),
        CommandOption("--corpus", str, "a text file or a folder of them, to draft from", name="texts"),
    ),
    ("sample",): (CommandOption("--samples", int, "how many different texts to draw", 1),),
    BEAMS: (
        CommandOption("--tree", bool, "also the tree of the search, with what became of each beam"),
        CommandOption("--all", bool, "in the tree, also what was outscored at once"),
    ),
    tuple(METHODS): (
        CommandOption("--json", bool, "one JSON document and nothing else"),
        CommandOption("--verbose", bool, "also cost, why it is over and average token probability, on standard error"),
        CommandOption(
            "--width", int, "how wide tables and trees may be; if not given, as wide as the terminal", name="columns"
        ),
    ),
}
MODEL = (
    CommandOption("--model", str, "a name on the Hub, a folder or a .gguf file; a small one, if not given"),
    CommandOption("--revision", str, "which branch, tag or commit of a model on the Hub"),
    CommandOption("--device", str, "where it runs", "auto", choices=("auto", "cpu", "cuda", "mps")),
    CommandOption("--device-map", str, "spread it: auto, balanced, a device, or JSON from its modules to devices"),
    CommandOption(
        "--dtype", str, "the type of its numbers", "auto", choices=("auto", "float32", "bfloat16", "float16")
    ),
    CommandOption("--quantize", str, "load its weights with few bits", choices=("4bit", "8bit")),
    CommandOption("--engine", str, "how it is read", "auto", choices=("auto", "cached", "uncached")),
    CommandOption(
        "--trust-remote-code", bool, "run the code that comes with it, which may do anything on this machine"
    ),
)


DESCRIBE = CommandOption(
    "--describe", bool, "load the model, tell what it is and how it computes, and end; takes no prompt"
)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the page of usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(complain(f"{message[:1].upper()}{message[1:]}; see {self.prog} --help."))


def parser() -> Parser:
    methods = "\n".join(f"  {name:11}{meaning}" for name, meaning in METHODS.items())
    made = Parser(
        prog="python -m lookahead_core",
        usage="%(prog)s [options] [prompt]",
        description=f"{DESCRIPTION}\n\nmethods:\n{methods}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("prompt", nargs="?", help='what to go on from; "-" reads it, without its last line break')
    made.add_argument("--method", choices=METHODS, default="lookahead", help="how (lookahead)")
    for methods in dict.fromkeys((*CORE, *LOOKS)):
        title = "all methods" if len(methods) == len(METHODS) else _listed(methods)
        _add(made, title, CORE.get(methods, ()) + LOOKS.get(methods, ()))
    _add(made, "model", (*MODEL, DESCRIBE))
    return made


def _add(made: Parser, title: str, options: Sequence[CommandOption]) -> None:
    group = made.add_argument_group(title)
    for option in options:
        option.add_to(group)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def arguments_of(words: Sequence[str] | None) -> dict[str, Any]:
    """What was asked, each option one that the method heeds; a sentence and the end where that is not so."""
    made = parser()
    asked = vars(made.parse_args(words))
    for methods, options in (*CORE.items(), *LOOKS.items()):
        for option in options:
            if option.place in asked and (reason := _unheeded(option, methods, asked)):
                made.error(f"{option.flag} is for {reason}")
    if "all" in asked and "tree" not in asked:
        made.error("--all is about the tree; give --tree as well")
    if DESCRIBE.place in asked:
        if asked["prompt"] is not None:
            made.error("--describe takes no text; leave one of them out")
        return asked
    if asked["prompt"] is None and (sys.stdin is None or sys.stdin.isatty()):
        made.error("give a text to go on from, or - to read it from standard input")
    return asked


def _unheeded(option: CommandOption, methods: Sequence[str], asked: dict[str, Any]) -> str:
    """Why the chosen method, or the chosen mode of a lookahead, takes no notice of an option."""
    method, mode = asked["method"], asked.get("mode", MODES[0])
    if method not in methods:
        return f"{_listed(methods)}, and the method is {method}"
    if method == "lookahead" and option.mode not in ("", mode):
        return f"--mode {option.mode}, and the mode is {mode}"
    return ""


def prompt_of(asked: dict[str, Any]) -> str:
    return standard_input() if asked["prompt"] in (None, "-") else asked["prompt"]


def standard_input() -> str:
    """A text from standard input, without its last line break."""
    if sys.stdin is None:
        raise ValueError("There is no standard input to read; give a text to go on from.")
    try:
        return re.sub(r"\r?\n\Z", "", sys.stdin.buffer.read().decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"Byte {error.start} of standard input is no UTF-8; give it as UTF-8.") from None


def given(asked: dict[str, Any]) -> dict[str, Any]:
    """The core's options that were given, and those that make the method what it is."""
    known = {option.place for options in CORE.values() for option in options}
    found = {name: value for name, value in asked.items() if name in known}
    if "early_stopping" in found:
        found["early_stopping"] = EARLY[found["early_stopping"]]
    if asked["method"] == "sample":
        return {"temperature": 1.0} | found
    if asked["method"] == "diverse":
        beams = next(option.default for option in CORE[BEAMS] if option.place == "num_beams")
        return {"num_beam_groups": found.get("num_beams", beams), "diversity_penalty": 1.0} | found
    return found


def load(asked: dict[str, Any]) -> Model:
    from lookahead_core import load_model

    found = {option.place: asked[option.place] for option in MODEL if option.place in asked}
    model = load_model(found.pop("model", None), **found, report=terminal.report)
    terminal.report("")
    return model


def load_beside(model: Model, asked: dict[str, Any]) -> Model:
    """The smaller model that drafts, on the device and in the type of the model."""
    from lookahead_core import load_model

    little = load_model(
        asked["little"],
        device=model.device.partition(":")[0],
        dtype=model.dtype,
        trust_remote_code="trust_remote_code" in asked,
        report=terminal.report,
    )
    terminal.report("")
    return little


class Command:
    """One call of the command, as it was asked for."""

    def __init__(self, asked: dict[str, Any], screen: terminal.Screen) -> None:
        self.asked = asked
        self.screen = screen
        self.method = asked["method"]
        self.given = given(asked)
        self.samples = asked.get("samples", 1)
        check_integer("samples", self.samples, 1, 1000)
        self.prompt = prompt_of(asked)

    def run(self) -> None:
        """The options are checked before anything is loaded, which takes longer."""
        terminal.report("Starting")
        options = self._options()
        from lookahead_core import Document

        document = Document(load(self.asked), self.prompt)
        if self.method in STREAMS:
            self._stream(document, options)
        elif self.method in BEAMS:
            self._search(document, options)
        else:
            self._look_ahead(document, options)

    def _options(self) -> Any:
        from lookahead_core.strategies.beam_options import BeamOptions
        from lookahead_core.strategies.lookahead_options import LookaheadOptions
        from lookahead_core.strategies.stream_options import StreamOptions

        kind: Any = (
            StreamOptions if self.method in STREAMS else BeamOptions if self.method in BEAMS else LookaheadOptions
        )
        return parse_options(kind, self.given, self.method)

    def _stream(self, document: Document, options: Any) -> None:
        from lookahead_core.document.batch import stream_batch

        given = self.given | self._drafting(document.model)
        model = document.model if "odds" in self.asked else None
        writer = terminal.Writer(self.screen, self.prompt, self.samples, model)
        streams = stream_batch([document] * self.samples, **given)
        with writer:
            for index, step in terminal.in_order(streams, self.samples):
                if "json" not in self.asked:
                    writer.hear(index, step)
        if "json" in self.asked:
            found = [terminal.stream_as_json(steps) for steps in streams.steps]
            everything = {"samples": found} if "samples" in self.asked else found[0]
            self._write_json(everything, streams.cost, document, options)
        over = dict.fromkeys(terminal.FINISHES[steps[-1].finish] for steps in streams.steps)
        self._tell(streams.cost, *over, terminal.told_average(streams.steps))

    def _drafting(self, model: Model) -> dict[str, Any]:
        """Who drafts, beside those who need nothing."""
        from lookahead_core import load_corpus, load_heads

        asked, found = self.asked, {"speculate": False} if "no_drafts" in self.asked else {}
        if "little" in asked:
            found["draft_model"] = load_beside(model, asked)
        if "trained" in asked:
            found["heads"] = load_heads(asked["trained"], model)
        if "texts" in asked:
            found["corpus"] = load_corpus(model, asked["texts"])
        return found

    def _search(self, document: Document, options: Any) -> None:
        beams = document.beam_search(**self.given)
        if "json" in self.asked:
            self._write_json(terminal.beams_as_json(beams), beams.cost, document, options)
        else:
            self._write(terminal.beam_lines(beams, self.screen))
            if "tree" in self.asked:
                self._write(terminal.beam_tree_lines(self.prompt, beams, "all" in self.asked, self.screen))
        self._tell(beams.cost, f"{beams.steps} levels")

    def _look_ahead(self, document: Document, options: Any) -> None:
        result = document.lookahead(**self.given)
        if "json" in self.asked:
            self._write_json(terminal.lookahead_as_json(result), result.cost, document, options)
        else:
            self._write(terminal.lookahead_lines(self.prompt, result, self.screen))
        self._tell(result.cost)

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.screen.line(line)

    def _write_json(self, found: dict[str, Any], cost: Cost, document: Document, options: Any) -> None:
        asked = {"prompt": self.prompt, "method": self.method}
        everything = asked | found | terminal.facts(cost, document.model, options)
        self.screen.line(json.dumps(json_safe(everything), allow_nan=False))

    def _tell(self, cost: Cost, *more: str) -> None:
        if "verbose" in self.asked:
            print("; ".join((f"{terminal.told(cost)}, {cost.seconds:.2f} s", *more)), file=sys.stderr)


def complain(sentence: str, status: int = 2) -> int:
    """One sentence on standard error, whatever it quotes; returns the exit status."""
    terminal.report("")
    print(" ".join(terminal.visible(sentence).split()), file=sys.stderr)
    return status


def train(words: Sequence[str]) -> None:
    """The command `train-heads`."""
    training.run(_asked_of(training, words), load)


def check_agreement(words: Sequence[str]) -> None:
    """The command `check-agreement`."""
    asked = _asked_of(agreement, words)
    asked["prompt"] = [standard_input() if prompt == "-" else prompt for prompt in asked["prompt"]]
    agreement.run(asked, _screen(asked), load, load_beside)


def _asked_of(command: ModuleType, words: Sequence[str]) -> dict[str, Any]:
    """What was asked of a command that has a name: its own arguments, and the same model options."""
    made = Parser(
        prog=f"python -m lookahead_core {command.NAME}",
        description=command.DESCRIPTION,
        epilog=command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add(made)
    _add(made, "model", MODEL)
    return vars(made.parse_args(words))


def _screen(asked: dict[str, Any]) -> terminal.Screen:
    """Standard output, as wide as was asked for."""
    if "columns" in asked:
        check_integer("width", asked["columns"], 20, 1000)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return terminal.Screen(sys.stdout, colours=colours, width=asked.get("columns"))


COMMANDS = {training.NAME: train, agreement.NAME: check_agreement}


def run(words: Sequence[str] | None) -> None:
    words = sys.argv[1:] if words is None else words
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    asked = arguments_of(words)
    screen = _screen(asked)
    if DESCRIBE.place in asked:
        for line in load(asked).describe(details=True).splitlines():
            screen.line(line)
    else:
        Command(asked, screen).run()


def main(words: Sequence[str] | None = None) -> int:
    """Do what the arguments ask; returns the exit status."""
    quiet_import_logs()
    if sys.stdout is None:
        return complain("There is no standard output to write to; open one.")
    try:
        try:
            run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        let_go()
    except KeyboardInterrupt as interrupt:
        return complain(str(interrupt) or "Stopped.", 130)
    except (LookaheadError, ValueError) as error:
        return complain(str(error))
    except OSError as error:
        let_go()
        return complain(f"That could not be written or read: {error.strerror or error}.")
    except Exception as error:
        return complain(f"Something has gone wrong that nobody foresaw, {type(error).__name__}: {error}")
    return 0


def let_go() -> None:
    """Nothing takes the output any more: what is still held would be written at the end, and complained about."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
