"""Start the page: `python app.py`, and open the address that it prints."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from lookahead_core import Model, Settings

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

OF_THE_MODEL = ("model", "device", "device_map", "dtype", "engine", "trust_remote_code")
"""Arguments that stand above a setting of the same name."""
CHOICES = {
    "device": ("auto", "cpu", "cuda", "mps"),
    "dtype": ("auto", "float32", "bfloat16", "float16"),
    "engine": ("auto", "cached", "uncached"),
}
DESCRIPTION = "Write with a language model that shows where a text could go: several futures at once, with their odds."
EPILOG = """\
examples:
  python app.py                                    the default model, fetched once and kept
  python app.py --model gpt2 --dtype float32       a model of the Hub
  python app.py --model ./folder --host 0.0.0.0    one on this machine, for everybody on this network

environment:
  LOOKAHEAD_MODEL, LOOKAHEAD_DEVICE, LOOKAHEAD_DEVICE_MAP, LOOKAHEAD_DTYPE, LOOKAHEAD_ENGINE and
  LOOKAHEAD_TRUST_REMOTE_CODE (true or false) stand for the arguments of the same names.
  LOOKAHEAD_COMPUTE (auto, packed or plain) is how passes are computed on a processor.
  LOOKAHEAD_CACHE_DIR is where the default model is kept, LOOKAHEAD_CACHE_MB (2048) the most memory that the cache of
  all documents may take, LOOKAHEAD_HUB_TIMEOUT (3) how many seconds to wait for the Hub before looking elsewhere,
  LOOKAHEAD_ADDRESS where other people reach the page, for the links that it makes.
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the page of usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message[:1].upper()}{message[1:]}; see python app.py --help.\n")


def parser() -> Parser:
    made = Parser(description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--model", metavar="NAME", help="What to load: a name on the Hub, a folder or a .gguf file.")
    add("--revision", metavar="NAME", help="Which branch, tag or commit of a model on the Hub.")
    add("--device", choices=CHOICES["device"], help="Where the model runs; auto takes the best there is.")
    add("--device-map", metavar="MAP", help="Spread it: auto, balanced, a device, or JSON from its modules to devices.")
    add("--dtype", choices=CHOICES["dtype"], help="The type of its numbers; auto measures which is faster here.")
    add("--engine", choices=CHOICES["engine"], help="How it is read; auto uses the cache wherever that is exact.")
    trusted = "Run the code that comes with it, which may do anything on this machine."
    add("--trust-remote-code", action="store_true", default=None, help=trusted)
    add("--port", type=port, metavar="NUMBER", help="Where to listen; without it the first free one from 7860 on.")
    add("--host", metavar="ADDRESS", help="Who may come: 127.0.0.1 is this computer only, 0.0.0.0 everybody.")
    add("--share", action="store_true", help="Also open a public link, through a server of Gradio's.")
    add("--mcp", action="store_true", help="Also offer the calls as tools for other programs' models, by MCP.")
    return made


def port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 1 to 65535")
    return int(text)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """What the environment says, and above it what the arguments say."""
    from lookahead_core import Settings

    given = {name: getattr(arguments, name) for name in OF_THE_MODEL if getattr(arguments, name) is not None}
    if "device" in given or "device_map" in given:
        given = {"device": "auto", "device_map": ""} | given
    settings = replace(Settings.from_env(), **given)
    if settings.address and not settings.address.startswith(("http://", "https://")):
        raise ValueError(f"LOOKAHEAD_ADDRESS is {settings.address!r}, and must begin with http:// or https://.")
    if settings.device != "auto" and settings.device_map:
        raise ValueError(
            f"LOOKAHEAD_DEVICE (--device) is {settings.device!r} and LOOKAHEAD_DEVICE_MAP (--device-map) is "
            f"{settings.device_map!r}: give one of them."
        )
    for name, allowed in CHOICES.items():
        if getattr(settings, name) not in allowed:
            chosen = getattr(settings, name)
            raise ValueError(f"LOOKAHEAD_{name.upper()} is {chosen!r}, and must be one of {', '.join(allowed)}.")
    return settings


def loading(settings: Settings, revision: str | None) -> Callable[..., Model]:
    """What the loader does in its thread; torch is imported there, so that the page need not wait for it."""

    def load(report: Callable[[str, float | None], None]) -> Model:
        from lookahead_core import load_model

        return load_model(revision=revision, settings=settings, report=report)

    return load


def main() -> None:
    arguments = parser().parse_args()
    try:
        settings = settings_of(arguments)
    except ValueError as error:
        parser().exit(2, f"{error}\n")
    if arguments.mcp and find_spec("mcp") is None:
        parser().exit(2, '--mcp needs the package mcp: pip install "gradio[mcp]", and start again.\n')
    from lookahead_core.import_logs import quiet_import_logs

    quiet_import_logs()
    with suppress(ImportError):
        import spaces  # noqa: F401  # on shared GPUs it has to come before torch
    from interface import ModelLoader, answer_unreadable_requests, build, look

    loader = ModelLoader(loading(settings, arguments.revision))
    page = build(loader, settings.address or None)
    where = {"server_name": arguments.host, "server_port": arguments.port, "share": arguments.share}
    os.environ["GRADIO_DEBUG"] = "0"  # all it does is to keep `launch` from coming back
    try:
        page.launch(**where, mcp_server=arguments.mcp, prevent_thread_lock=True, **look(loader))
    except OSError:
        place = f"port {arguments.port}" if arguments.port else "any port from 7860 on"
        place += f" of {arguments.host}" if arguments.host else ""
        sys.exit(f"Nothing can listen on {place}, since it is taken or not to be had: choose another one.")
    answer_unreadable_requests(page.server)
    loader.start()  # not before: a server that has not answered after five seconds is given up by Gradio
    page.block_thread()


if __name__ == "__main__":
    main()
