"""The command's arguments: the tables of options, the parser, and the options that the core gets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from lookahead_core.command.terminal import complain
from lookahead_core.strategies.lookahead_options import MODES, ODDS, UNTIL

METHODS = {
    "greedy": "always the likeliest token",
    "sample": "each token sampled, by temperature, cuts and a seed",
    "beam": "beam search: the best of several paths",
    "diverse": "beam search in groups that avoid each other's tokens",
    "lookahead": "several continuations at once, each with its probability, as a tree",
}
STREAMS, BEAMS = ("greedy", "sample"), ("beam", "diverse")
DESCRIPTION = "Continue a text, or show its possible continuations, with a language model on this machine."
EPILOG = """\
examples:
  python -m lookahead_core "Once upon a time"
  python -m lookahead_core "Once upon a time" --method sample --temperature 0.8 --top-p 0.9 --samples 3
  python -m lookahead_core "Once upon a time" --method beam --num-beams 5 --tree
  echo "Once upon a time" | python -m lookahead_core - --method greedy --odds
  python -m lookahead_core --describe    # which model is loaded, and how it computes on this machine
  python -m lookahead_core train-heads --help    # train heads that draft several tokens ahead
  python -m lookahead_core compress report.txt --ratio 0.25    # shorten a text to a quarter of its tokens
  python -m lookahead_core check-agreement "Once" --draft-model small/model    # how far a smaller model agrees
  python -m lookahead_core experiment "After careful" --depth 100    # is the cache right, and what does it save
  python -m lookahead_core sizing --people 200 --memory 80    # how many replicas of a model's server hold these people
"""
EARLY_STOPPING_HELP = (
    "stop when enough beams have ended (true), no growing one looks better (false), or none can (never)"
)
EARLY_STOPPING = {"false": False, "true": True, "never": "never"}


class CommandOption(NamedTuple):
    """A command-line option: its flag, the type of its value, and the key of its value in the parsed arguments."""

    flag: str
    kind: type
    """The type of its value; bool for a flag without a value."""
    help: str
    default: Any = None
    """The default of the core's option, for the help text only."""
    name: str = ""
    """The key of its value, if that is not the flag's own name."""
    choices: Sequence[str] | None = None
    repeated: bool = False
    mode: str = ""
    """The only mode of a lookahead that takes it; empty if all do."""

    @property
    def key(self) -> str:
        """The key of its value in the parsed arguments: for an option of the core, the name of its keyword argument."""
        return self.name or self.flag.lstrip("-").replace("-", "_")

    def add_to(self, group: argparse._ArgumentGroup) -> None:
        """Add this option to a group of a parser; parsed arguments have its key only if it is on the command line."""
        help = self.help if self.default is None else f"{self.help} ({self.default})"
        shared: dict[str, Any] = {"dest": self.key, "default": argparse.SUPPRESS, "help": help}
        if self.kind is bool:
            group.add_argument(self.flag, action="store_true", **shared)
        else:
            metavar = None if self.choices else {int: "N", float: "X"}.get(self.kind, "TEXT")
            action = "append" if self.repeated else "store"
            group.add_argument(
                self.flag, type=self.kind, choices=self.choices, metavar=metavar, action=action, **shared
            )


def _repeatable(flag: str, kind: type, name: str, help: str) -> CommandOption:
    return CommandOption(flag, kind, f"{help}; may be repeated", name=name, repeated=True)


CORE_OPTIONS: dict[tuple[str, ...], tuple[CommandOption, ...]] = {
    STREAMS + BEAMS: (
        CommandOption("--max-new-tokens", int, "maximum number of new tokens, an end token included", 40),
        CommandOption("--min-new-tokens", int, "minimum number of new tokens before an end token", 0),
        CommandOption("--repetition-penalty", float, "divides the scores of tokens that are in the text already", 1.0),
        CommandOption(
            "--frequency-penalty", float, "subtracted from a token's score for each time it is in the text already", 0.0
        ),
        CommandOption(
            "--presence-penalty", float, "subtracted once from the score of a token that is in the text already", 0.0
        ),
        CommandOption("--no-repeat-ngram-size", int, "no n-gram of this many tokens occurs twice; 0 is off", 0),
        _repeatable("--forbid", str, "forbidden", "a string that the text must not come to contain"),
        _repeatable("--force", str, "forced", "a word that must come before the end"),
    ),
    STREAMS: (
        CommandOption("--max-words", int, "maximum number of new words"),
        _repeatable("--stop", str, "stop", "a string that ends the text and is not part of it"),
        _repeatable("--stop-id", int, "stop_ids", "the id of a token that ends the text"),
    ),
    ("sample", "lookahead"): (
        CommandOption(
            "--temperature",
            float,
            "0 always takes the likeliest token; above 1 flattens the distribution",
            1.0,
            mode="sampled",
        ),
        CommandOption(
            "--top-p",
            float,
            "sample among the likeliest tokens that together have this probability",
            1.0,
            mode="sampled",
        ),
        CommandOption("--seed", int, "the same seed draws the same text", 0, mode="sampled"),
    ),
    ("sample",): (
        CommandOption("--top-k", int, "sample among this many likeliest tokens; 0 is off", 0),
        CommandOption(
            "--min-p", float, "sample among tokens with at least this share of the likeliest one's probability", 0.0
        ),
        CommandOption(
            "--typical-p", float, "sample among tokens whose surprise is near the entropy, up to this probability", 1.0
        ),
        CommandOption("--min-tokens-to-keep", int, "minimum number of tokens that each cut leaves", 1),
    ),
    BEAMS: (
        CommandOption("--num-beams", int, "number of beams", 5),
        CommandOption("--num-return-sequences", int, "number of beams to show; all, if not given"),
        CommandOption("--length-penalty", float, "a score is divided by the length to this power", 1.0),
        CommandOption("--early-stopping", str, EARLY_STOPPING_HELP, "false", choices=tuple(EARLY_STOPPING)),
        CommandOption("--num-beam-groups", int, "number of groups that search in turn; diverse: as many as beams", 1),
        CommandOption(
            "--diversity-penalty",
            float,
            "subtracted from a token's score for each earlier group that took it; diverse: 1.0",
            0.0,
        ),
        CommandOption("--stopping", str, "whose stopping rules", "transformers", choices=("transformers", "seed")),
    ),
    ("lookahead",): (
        CommandOption("-k", int, "number of branches", 5),
        CommandOption("--depth", int, "maximum number of tokens per branch", 5),
        CommandOption(
            "--mode",
            str,
            "how branches are chosen; sampled uses --temperature, --top-p and --seed",
            "likely",
            choices=MODES,
        ),
        CommandOption("--until", str, "where branches end, within --depth tokens", "tokens", choices=UNTIL),
        CommandOption("--share-of", str, "what shares are the probabilities of", "tokens", "odds", choices=ODDS),
        CommandOption("--branch-levels", int, "every_level: number of levels that branch", 2, mode="every_level"),
        CommandOption(
            "--branch-total", int, "every_level: number of branches in all; 0: -k at each level", 0, mode="every_level"
        ),
        CommandOption(
            "--cutoff", float, "forks: probability from which another token starts a branch", 0.15, mode="forks"
        ),
        CommandOption("--slope", float, "forks: factor of the cutoff at each further level", 1.0, mode="forks"),
        CommandOption("--split-limit", int, "forks: maximum number of branches at one node", 3, mode="forks"),
        CommandOption(
            "--budget", int, "best_first and --towards: maximum number of evaluated nodes", 64, mode="best_first"
        ),
        CommandOption(
            "--pass-width", int, "best_first and --towards: nodes per forward pass", 16, "width", mode="best_first"
        ),
        CommandOption(
            "--contrast",
            float,
            "diverse: weight of differences against probability; 0: none",
            10.0,
            mode="diverse",
        ),
        CommandOption(
            "--floor",
            float,
            "surprising: minimum probability of the tokens that set a branch apart",
            0.003,
            mode="surprising",
        ),
        _repeatable("--ban", int, "banned", "the id of a token that no branch may contain"),
        CommandOption("--towards", str, "a word: show the likeliest paths to it, and how likely it is", ""),
        CommandOption("--avoid", str, "a word that no branch may contain", ""),
        CommandOption("--heal", bool, "finish the word that the text ends in"),
        CommandOption("--speculate", bool, "draft continuations from the text, several tokens per pass"),
        CommandOption("--stop-at-repetition", bool, "end a branch where it would repeat itself"),
    ),
}
"""Options of the core, by the methods that take them. A test compares them with the core's options dataclasses."""
OUTPUT_OPTIONS: dict[tuple[str, ...], tuple[CommandOption, ...]] = {
    STREAMS: (
        CommandOption(
            "--odds", bool, "one line per token: its probability and the likeliest other tokens", name="token_odds"
        ),
        CommandOption("--no-drafts", bool, "one token per pass; the text is the same"),
        CommandOption("--draft-model", str, "a smaller model with the same tokens that drafts as well"),
        CommandOption("--heads", str, "draft heads trained for the model"),
        CommandOption("--corpus", str, "a text file, or a folder of text files, to draft from"),
    ),
    ("sample",): (CommandOption("--samples", int, "number of different texts to draw", 1),),
    BEAMS: (
        CommandOption("--tree", bool, "also show the tree of the search, with the fate of each path"),
        CommandOption("--all", bool, "in the tree, also show candidates that were outscored at once"),
    ),
    tuple(METHODS): (
        CommandOption("--json", bool, "write one JSON document and nothing else"),
        CommandOption(
            "--verbose", bool, "also write cost, reason of the end and average token probability to standard error"
        ),
        CommandOption(
            "--width", int, "width of tables and trees in columns; if not given, the terminal's", name="columns"
        ),
    ),
}
MODEL_OPTIONS = (
    CommandOption("--model", str, "a Hub name, a folder or a .gguf file; a small model, if not given"),
    CommandOption("--revision", str, "branch, tag or commit of a model on the Hub"),
    CommandOption("--device", str, "where the model runs", "auto", choices=("auto", "cpu", "cuda", "mps")),
    CommandOption(
        "--device-map", str, "how to spread the model: auto, balanced, a device, or JSON from modules to devices"
    ),
    CommandOption("--dtype", str, "type of the weights", "auto", choices=("auto", "float32", "bfloat16", "float16")),
    CommandOption("--quantize", str, "load weights with few bits", choices=("4bit", "8bit")),
    CommandOption("--engine", str, "which engine evaluates the model", "auto", choices=("auto", "cached", "uncached")),
    CommandOption(
        "--trust-remote-code", bool, "run code that comes with the model, which may do anything on this machine"
    ),
)


DESCRIBE = CommandOption(
    "--describe", bool, "load the model, describe it and how it computes, and exit; takes no prompt"
)


class Parser(argparse.ArgumentParser):
    """The argparse parser of the command, also of its subcommands: an error is one sentence, without the usage.

    Options cannot be abbreviated.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Write the message as a sentence to standard error, and exit with status 2."""
        self.exit(complain(f"{message[:1].upper()}{message[1:]}; see {self.prog} --help."))

    def add_options(self, title: str, options: Sequence[CommandOption]) -> None:
        """Add options as a group with this title."""
        group = self.add_argument_group(title)
        for option in options:
            option.add_to(group)


def make_parser() -> Parser:
    """Return the parser for command lines that name no subcommand: a prompt, a method and all options.

    Parsed arguments always have `prompt` (None if not given) and `method`; other options only if they are on the
    command line. Whether an option suits the method is not checked: `parse_arguments` does that.
    """
    meanings = "\n".join(f"  {name:11}{meaning}" for name, meaning in METHODS.items())
    parser = Parser(
        prog="python -m lookahead_core",
        usage="%(prog)s [options] [prompt]",
        description=f"{DESCRIPTION}\n\nmethods:\n{meanings}",
        epilog=EPILOG,
    )
    parser.add_argument("prompt", nargs="?", help='a text to continue; "-" reads it, without its last line break')
    parser.add_argument("--method", choices=METHODS, default="lookahead", help="how to continue it (lookahead)")
    for methods in dict.fromkeys((*CORE_OPTIONS, *OUTPUT_OPTIONS)):
        title = "all methods" if len(methods) == len(METHODS) else _enumeration(methods)
        parser.add_options(title, CORE_OPTIONS.get(methods, ()) + OUTPUT_OPTIONS.get(methods, ()))
    parser.add_options("model", (*MODEL_OPTIONS, DESCRIBE))
    return parser


def parse_arguments(words: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments by key; None for `words` means those of the process.

    `prompt` and `method` are always there, other options only if they are on the command line. `prompt` is None with
    `--describe`, and if standard input, which is then no terminal, is to be read. Exits with status 2 and a sentence if
    arguments are wrong, or if the method or mode ignores one of them, and with 0 after `--help`. Whether numbers are in
    their range is not checked here.
    """
    parser = make_parser()
    arguments = vars(parser.parse_args(words))
    for methods, options in (*CORE_OPTIONS.items(), *OUTPUT_OPTIONS.items()):
        for option in options:
            if option.key in arguments and (scope := _other_scope(option, methods, arguments)):
                parser.error(f"{option.flag} is for {scope}")
    if "all" in arguments and "tree" not in arguments:
        parser.error("--all is about the tree; give --tree as well")
    if DESCRIBE.key in arguments:
        if arguments["prompt"] is not None:
            parser.error("--describe takes no text; leave one of them out")
        return arguments
    if arguments["prompt"] is None and (sys.stdin is None or sys.stdin.isatty()):
        parser.error("give a text to continue, or - to read it from standard input")
    return arguments


def core_options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments for a method of `Document`: options on the command line, and some by method.

    `arguments` are those of `parse_arguments`. The method "sample" sets a temperature of 1, "diverse" as many groups as
    beams and a diversity penalty of 1, unless they are on the command line. Options of the output, the drafts and the
    model are left out.
    """
    keys = {option.key for options in CORE_OPTIONS.values() for option in options}
    found = {key: value for key, value in arguments.items() if key in keys}
    if "early_stopping" in found:
        found["early_stopping"] = EARLY_STOPPING[found["early_stopping"]]
    if arguments["method"] == "sample":
        return {"temperature": 1.0} | found
    if arguments["method"] == "diverse":
        beams = next(option.default for option in CORE_OPTIONS[BEAMS] if option.key == "num_beams")
        return {"num_beam_groups": found.get("num_beams", beams), "diversity_penalty": 1.0} | found
    return found


def _other_scope(option: CommandOption, methods: Sequence[str], arguments: dict[str, Any]) -> str:
    """Return a phrase that says what the option is for, if the chosen method or mode ignores it; else "".

    `methods` are the methods that take the option; `arguments` are all parsed arguments by key.
    """
    method, mode = arguments["method"], arguments.get("mode", MODES[0])
    if method not in methods:
        return f"{_enumeration(methods)}, and the method is {method}"
    searches_word = option.mode == "best_first" and "towards" in arguments
    if method == "lookahead" and option.mode not in ("", mode) and not searches_word:
        return f"--mode {option.mode}, and the mode is {mode}"
    return ""


def _enumeration(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
