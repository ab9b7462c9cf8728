"""Start the page: `python app.py`, and open the address that it prints."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from lookahead_core import Model, Settings

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

SETTING_ARGUMENTS = (
    *("model", "draft_model", "device", "device_map", "dtype", "engine", "trust_remote_code"),
    *("auth", "root_path", "mcp"),
)
"""Arguments that override the setting of the same name."""
CHOICES = {
    "device": ("auto", "cpu", "cuda", "mps"),
    "dtype": ("auto", "float32", "bfloat16", "float16"),
    "engine": ("auto", "cached", "uncached"),
}
LOG_FORMATS = ("text", "json")
DESCRIPTION = (
    "Write with a language model that shows where a text could go: several futures at once, with their probabilities."
)
EPILOG = """\
examples:
  python app.py                                    the default model, fetched once and kept
  python app.py --model gpt2 --dtype float32       a model of the Hub
  python app.py --model ./folder --host 0.0.0.0    a local folder, for everybody on this network

environment:
  LOOKAHEAD_MODEL, LOOKAHEAD_DRAFT_MODEL, LOOKAHEAD_DEVICE, LOOKAHEAD_DEVICE_MAP, LOOKAHEAD_DTYPE, LOOKAHEAD_ENGINE
  and LOOKAHEAD_TRUST_REMOTE_CODE (true or false) set the defaults of the arguments of the same names.
  LOOKAHEAD_COMPUTE (auto, packed or plain) selects how forward passes are computed on a CPU.
  LOOKAHEAD_CACHE_DIR is the folder that keeps the default model.
  LOOKAHEAD_CACHE_MB (2048) limits the memory of the KV caches of all documents together.
  LOOKAHEAD_HUB_TIMEOUT (3) is how many seconds to wait for the Hub before the default model comes from elsewhere.
  LOOKAHEAD_SERVER_KEY is the API key of a model on a server, and LOOKAHEAD_SERVER_SECONDS (60) how many seconds
  to wait for the next part of its answer.
  LOOKAHEAD_ADDRESS is the page's address for other people, used in the links that it makes.
  LOOKAHEAD_LOG (text or json) is the form of the log, and LOOKAHEAD_METRICS_TOKEN opens /metrics to other computers.
  LOOKAHEAD_AUTH, LOOKAHEAD_ROOT_PATH and LOOKAHEAD_MCP (true or false) set --auth, --root-path and --mcp. Only
  a variable keeps passwords out of the list of processes.
  LOOKAHEAD_TRUSTED_PROXIES are the proxies whose X-Forwarded-For is believed.
  LOOKAHEAD_PERSON_REQUESTS, LOOKAHEAD_PERSON_CHARACTERS, LOOKAHEAD_PERSON_CALLS, LOOKAHEAD_PERSON_SECONDS,
  LOOKAHEAD_ADDRESS_PEOPLE, LOOKAHEAD_REQUEST_TOKENS, LOOKAHEAD_AHEAD_TOKENS, LOOKAHEAD_CALL_SECONDS and
  LOOKAHEAD_PAGE_SECONDS limit what people and addresses may ask for; docs/settings.md describes them.
"""
NO_SHARED_GPU = (
    "This Space has shared GPUs (SPACES_ZERO_GPU is set), but the package spaces cannot be imported: {}. "
    "Choose other hardware, or a version of torch that shared GPUs have."
)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one sentence, without the usage text."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message[:1].upper()}{message[1:]}; see python app.py --help.\n")


def parser() -> Parser:
    """The parser of the command line."""
    created = Parser(description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = created.add_argument
    add(
        "--model",
        metavar="NAME",
        help="The model to load: a name on the Hub, a folder, a .gguf file, or addresses of its servers (with commas).",
    )
    add(
        "--draft-model",
        metavar="NAME",
        help="A smaller model with the same tokens, which drafts tokens on the Lab's page Speculation.",
    )
    add("--revision", metavar="NAME", help="The branch, tag or commit of a model on the Hub.")
    add("--device", choices=CHOICES["device"], help="The device that the model runs on; auto takes the fastest.")
    add(
        "--device-map",
        metavar="MAP",
        help="Spread the model over devices: auto, balanced, a device, or JSON from modules to devices.",
    )
    add(
        "--dtype",
        choices=CHOICES["dtype"],
        help="The type of the weights; auto takes half precision where the device multiplies it.",
    )
    add(
        "--engine",
        choices=CHOICES["engine"],
        help="The engine; auto uses the cached one for every model where it is exact.",
    )
    trusted = "Run the Python code that comes with the model; it may do anything on this computer."
    add("--trust-remote-code", action="store_true", default=None, help=trusted)
    add(
        "--port", type=port, metavar="NUMBER", help="The port to listen on; by default the first free one from 7860 on."
    )
    add(
        "--host",
        metavar="ADDRESS",
        help="The address to listen on: 127.0.0.1 for this computer only, 0.0.0.0 for everybody.",
    )
    add("--share", action="store_true", help="Also open a public link through a server of Gradio.")
    add("--mcp", action="store_true", default=None, help="Also offer the calls as MCP tools.")
    add(
        "--auth",
        metavar="ACCOUNTS",
        help="Let in only who signs in: name:password, several separated by commas. It holds for the calls too.",
    )
    add("--root-path", metavar="PATH", help="The path or URL under which a proxy serves the page, such as /lookahead.")
    return created


def port(text: str) -> int:
    """A port number from the command line."""
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 1 to 65535")
    return int(text)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings: from the environment, overridden by the arguments. Raises ValueError for an invalid one."""
    from lookahead_core import Settings

    overrides = {name: getattr(arguments, name) for name in SETTING_ARGUMENTS if getattr(arguments, name) is not None}
    if "device" in overrides or "device_map" in overrides:
        overrides = {"device": "auto", "device_map": ""} | overrides
    settings = replace(Settings.from_env(), **overrides)
    if settings.address and not settings.address.startswith(("http://", "https://")):
        raise ValueError(f"LOOKAHEAD_ADDRESS is {settings.address!r}, and must begin with http:// or https://.")
    if settings.root_path and not settings.root_path.startswith(("/", "http://", "https://")):
        raise ValueError(
            f"LOOKAHEAD_ROOT_PATH (--root-path) is {settings.root_path!r}, and must begin with /, http:// or https://."
        )
    accounts_of(settings.auth)
    settings.proxy_networks  # noqa: B018  # raises for an invalid one
    if settings.log not in LOG_FORMATS:
        raise ValueError(f"LOOKAHEAD_LOG is {settings.log!r}, and must be one of {', '.join(LOG_FORMATS)}.")
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


def accounts_of(auth: str) -> list[tuple[str, str]] | None:
    """The names and passwords in LOOKAHEAD_AUTH; None if it is empty. Raises ValueError, without any password in it."""
    accounts = [tuple(part.strip() for part in account.split(":", 1)) for account in auth.split(",") if account.strip()]
    for number, account in enumerate(accounts, 1):
        if len(account) != 2 or not all(account):
            raise ValueError(f"LOOKAHEAD_AUTH (--auth) must be name:password, and entry {number} is not.")
    if len({name for name, *_ in accounts}) < len(accounts):
        raise ValueError("LOOKAHEAD_AUTH (--auth) has a name twice: give each person one entry.")
    return [(name, password) for name, password in accounts] or None


def model_loader(
    settings: Settings, revision: str | None, decorate: Any = None, page: Callable[[], Any] = lambda: None
) -> Callable[..., Model]:
    """The function that loads the model in the loader's thread. It imports torch there, so the page opens sooner.

    `decorate` is the decorator of shared GPUs, if these are to compute, and `page` returns the page; see
    `shared_gpu.load`.
    """

    def load(report: Callable[[str, float | None], None]) -> Model:
        from lookahead_core import load_model

        if decorate is not None:
            from interface.server import shared_gpu

            return shared_gpu.load(settings, revision, report, decorate, page)
        return load_model(revision=revision, settings=settings, report=report)

    return load


def draft_model_loader(settings: Settings) -> Callable[..., Model] | None:
    """The function that loads the draft model of the settings, called in the loader's thread; None if there is none."""
    if not settings.draft_model:
        return None

    def load(report: Callable[[str, float | None], None]) -> Model:
        from lookahead_core import load_model

        return load_model(settings.draft_model, settings=settings, report=report)

    return load


def gpu_decorator() -> Any:
    """The decorator for functions on shared GPUs (`spaces.GPU`); None where the environment does not ask for them.

    Must be called before torch and gradio are imported. Ends the program with a sentence if the package `spaces`
    cannot be imported.
    """
    if os.environ.get("SPACES_ZERO_GPU", "").lower() not in ("1", "t", "true"):
        return None
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the workers are forked
    try:
        import spaces
    except Exception as error:
        sys.exit(NO_SHARED_GPU.format(str(error) or type(error).__name__))
    return spaces.GPU


def __getattr__(name: str) -> object:
    """Build `demo`, the page with the settings of the environment, when it is first read; `main` starts such a page."""
    if name != "demo":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interface import ModelLoader, build

    settings = settings_of(parser().parse_args([]))
    loader = ModelLoader(model_loader(settings, None), settings, draft_model_loader(settings))
    globals()[name] = build(loader, settings.address or None)
    return globals()[name]


def main() -> None:
    """Read the arguments, start the server, then load the model."""
    arguments = parser().parse_args()
    try:
        settings = settings_of(arguments)
    except ValueError as error:
        parser().exit(2, f"{error}\n")
    if settings.mcp and find_spec("mcp") is None:
        parser().exit(2, '--mcp (LOOKAHEAD_MCP) needs the package mcp: pip install "gradio[mcp]", and start again.\n')
    from lookahead_core.import_logs import quiet_import_logs

    quiet_import_logs()
    decorate = gpu_decorator()
    from interface import ModelLoader, answer_unreadable_requests, build, configure_logs, launch_options, remember_peers

    configure_logs(settings.log)
    # Workers on shared GPUs have one model; the page that uses a second one does not run there.
    load_draft = draft_model_loader(settings) if decorate is None else None
    loader = ModelLoader(model_loader(settings, arguments.revision, decorate, lambda: page), settings, load_draft)
    page = build(loader, settings.address or None)
    address = {"server_name": arguments.host, "server_port": arguments.port, "share": arguments.share}
    access = {"auth": accounts_of(settings.auth), "root_path": settings.root_path or None}
    if decorate is not None:
        loader.run()  # before the launch, which packs the weights for the workers
    os.environ["GRADIO_DEBUG"] = "0"  # else `launch` would block
    try:
        page.launch(**address, **access, mcp_server=settings.mcp, prevent_thread_lock=True, **launch_options(loader))
    except OSError:
        ports = f"port {arguments.port}" if arguments.port else "any port from 7860 on"
        ports += f" of {arguments.host}" if arguments.host else ""
        sys.exit(f"The server cannot listen on {ports}: it is in use or not allowed. Choose another one.")
    answer_unreadable_requests(page.server)
    remember_peers(page.server)
    if decorate is None:
        loader.start()  # after the launch: Gradio gives up a server that does not answer within five seconds
    page.block_thread()


if __name__ == "__main__":
    main()
