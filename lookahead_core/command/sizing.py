"""The subcommand `sizing`: how many replicas of a model's server a number of people needs."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from lookahead_core.command import terminal
from lookahead_core.command.arguments import MODEL_OPTIONS
from lookahead_core.errors import ModelError
from lookahead_core.serving.json_values import json_safe
from lookahead_core.settings import Settings
from lookahead_core.validation import check_integer

if TYPE_CHECKING:
    from lookahead_core.loading.sizing import Demand, ModelShape, Sizing

NAME = "sizing"
DESCRIPTION = """\
Say how much memory the weights of a model and the KV cache of people's documents need, and how many replicas of a
server, such as vLLM's, hold them. Only the model's config is read. Memory is counted, not speed.
"""
EPILOG = """\
examples:
  python -m lookahead_core sizing --model some/model --people 200 --tokens 2000 --memory 80
  python -m lookahead_core sizing --layers 32 --kv-heads 8 --head-dim 128 --parameters 8e9 --people 200 --memory 24
"""
TAKEN = ("model", "dtype", "trust_remote_code")
"""The options of the model that the subcommand takes."""
OPTIONS_OF_MODEL = tuple(option for option in MODEL_OPTIONS if option.key in TAKEN)
SHAPE = {
    "layers": "number of layers",
    "kv_heads": "heads of keys and values in each layer",
    "head_dim": "numbers in a head",
    "parameters": "number of parameters, such as 8e9",
}
"""The numbers that may be given in place of a model's config."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sizing` to its parser; the caller adds OPTIONS_OF_MODEL."""
    group = parser.add_argument_group("people and memory")
    group.add_argument("--people", type=int, metavar="N", required=True, help="people with an open text at once")
    group.add_argument("--memory", type=float, metavar="X", required=True, help="memory of a replica's devices, in GiB")
    for name, default, meaning in (
        ("tokens", 1000, "tokens of a document, with its prompt"),
        ("branches", 5, "branches below a document"),
        ("depth", 10, "tokens of a branch"),
    ):
        group.add_argument(f"--{name}", type=int, metavar="N", default=default, help=f"{meaning} ({default})")
    for name, number, meaning in (
        ("share", 0.9, "part of the memory that the server may use: vLLM's --gpu-memory-utilization"),
        ("overhead", 2.0, "GiB for activations and graphs"),
    ):
        group.add_argument(f"--{name}", type=float, metavar="X", default=number, help=f"{meaning} ({number:g})")
    group.add_argument("--weight-bits", type=int, metavar="N", help="bits of a weight, if they are quantized")
    group.add_argument("--kv-dtype", choices=("float32", "bfloat16", "float16", "fp8"), help="type of keys and values")
    group.add_argument(
        "--json", action="store_true", help="write one JSON document and nothing else", default=argparse.SUPPRESS
    )
    numbers = parser.add_argument_group("model, in place of its config")
    for key, meaning in SHAPE.items():
        numbers.add_argument(f"--{key.replace('_', '-')}", type=float, metavar="N", help=meaning)


def run(arguments: dict[str, Any], screen: terminal.Screen) -> None:
    """Write the sizing for the parsed arguments to `screen`, as lines of text or as JSON with `--json`.

    Raises ValueError for wrong options, and ModelError if the model's config cannot be read.
    """
    terminal.report("Starting")
    from lookahead_core.loading.sizing import BYTES, GIBIBYTE, Demand, ReplicaMemory, size

    demand = Demand(*(_whole(arguments, name) for name in ("people", "tokens", "branches", "depth")))
    for name, most in (("memory", 1e6), ("share", 1.0), ("overhead", 1e6)):
        if not 0 <= arguments[name] <= most or (name != "overhead" and not arguments[name]):
            raise ValueError(f"{name} is {arguments[name]:g}, and must be above 0 and at most {most:g}.")
    shape, dtype = _shape(arguments), arguments.get("dtype", "bfloat16")
    dtype = "bfloat16" if dtype == "auto" else dtype
    memory = ReplicaMemory(
        int(arguments["memory"] * GIBIBYTE), arguments["share"], int(arguments["overhead"] * GIBIBYTE)
    )
    weight_bytes = arguments["weight_bits"] / 8 if arguments["weight_bits"] else BYTES[dtype]
    found = size(shape, demand, memory, weight_bytes=weight_bytes, kv_bytes=BYTES[arguments["kv_dtype"] or dtype])
    terminal.report("")
    if "json" in arguments:
        screen.line(json.dumps(json_safe(dataclasses.asdict(found)), indent=2))
        return
    for line in lines(shape, demand, found):
        screen.line(line)


def lines(shape: ModelShape, demand: Demand, found: Sizing) -> list[str]:
    """Return the result as lines of text."""
    windowed = sum(window is not None for window in shape.windows)
    slides = f", {windowed} of them with a window" if windowed else ""
    result = [
        f"weights               {_bytes(found.weights):>12}   {shape.parameters:,} parameters",
        f"KV cache, one token   {_bytes(found.kv_per_token):>12}   {len(shape.windows)} layers{slides}",
        f"KV cache, a document  {_bytes(found.kv_per_document):>12}   {demand.tokens:,} tokens and "
        f"{demand.branches} branches of {demand.depth}",
        f"room in a replica     {_bytes(found.kv_room):>12}   {found.documents_per_replica:,} documents",
    ]
    if found.replicas is None:
        return [*result, "A replica has no room for a document: choose more memory, fewer bits or a smaller model."]
    spare = found.replicas + 1
    return [
        *result,
        f"replicas              {found.replicas:>12,}   for {demand.people:,} people; {spare:,}, so that one may fail",
    ]


def _shape(arguments: dict[str, Any]) -> ModelShape:
    """Return the shape from the numbers, if there are any, else from the config of the model, or the default one."""
    from lookahead_core.loading.default_model import DEFAULT_HUB_ID, DEFAULT_NAME
    from lookahead_core.loading.sizing import ModelShape, read_shape

    names = [name for name in SHAPE if arguments[name] is not None]
    if names and (len(names) < len(SHAPE) or "model" in arguments):
        raise ModelError("Give the model, or all of --layers, --kv-heads, --head-dim and --parameters.")
    if names:
        layers, heads, width, parameters = (_whole(arguments, name) for name in SHAPE)
        return ModelShape(parameters, heads, width, (None,) * layers)
    cached = Settings.from_env().cache_dir.expanduser() / DEFAULT_NAME
    default = str(cached) if (cached / "config.json").is_file() else DEFAULT_HUB_ID
    return read_shape(arguments.get("model", default), trust_remote_code="trust_remote_code" in arguments)


def _whole(arguments: dict[str, Any], name: str) -> int:
    value = arguments[name]
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    check_integer(name, value, 1, 10**14)
    return int(value)


def _bytes(count: int) -> str:
    """Return a number of bytes with its unit, three digits at least."""
    for unit, name in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if count >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} B"
