"""The waiting time on the page: from click, key or slider to the paint that answers it, in a real browser."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.timing import rotated
from tests.support import browser as browsers
from tests.support.browser import Visit

NAME = "page"
HELP = "Measure from click, key or slider to paint, in a headless Chromium."
PROMPT = "The old lighthouse keeper climbed the stairs again and looked out over the sea. He"
Times = dict[str, list[float]]
ODDS = ("words", "tokens")

# In the page: the time from an event to the frame that shows what a condition waits for.
WATCH = """
window.measure = (type, target, condition) => new Promise(resolve => {
  const root = document.getElementById('branches'), revision = Number(root.dataset.revision);
  const holds = () => condition(root, revision);
  document.querySelector(target).addEventListener(type, event => {
    const began = performance.now(), painted = () => resolve(performance.now() - began);
    const done = () => requestAnimationFrame(() => setTimeout(painted));
    if (holds()) return done();
    const observer = new MutationObserver(() => { if (holds()) { observer.disconnect(); done(); } });
    queueMicrotask(() => { if (holds()) { observer.disconnect(); done(); } });
    observer.observe(root, {attributes: true, childList: true, subtree: true, characterData: true});
  }, {capture: true, once: true});
});
window.fresh = (root, revision) => Number(root.dataset.revision) > revision && root.dataset.stale === 'false'
  && root.querySelectorAll('[data-branch]:not([data-inert])').length >= Number(document.getElementById('k').value);
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--repeats", type=int, default=30, help="how often each wait is measured (30)")
    choices = {"choices": (*ODDS, "both"), "default": "words"}
    parser.add_argument("--odds", **choices, help="what shares are of (words), or both in turns, as a ratio")
    parser.add_argument("--delay", type=int, default=0, help="milliseconds of network delay added to every request")
    parser.add_argument("--model", help="what to load in place of the default model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every time to this file")


def main(arguments: argparse.Namespace) -> int:
    """Measure everything in turns, print tables, and save the times if the arguments say so; return 0."""
    model = ["--model", arguments.model] if arguments.model else []
    times: dict[str, Times] = {odds: {} for odds in (ODDS if arguments.odds == "both" else [arguments.odds])}
    with _visit(model, arguments.delay) as visit:
        for repeat in range(arguments.repeats):
            for name, measure in MEASURES.items():
                for odds in rotated(list(times), repeat):
                    visit.fill("")  # an empty text asks for nothing
                    visit.put("odds", odds)
                    times[odds].setdefault(name, []).append(measure(visit))
    print(*(_table(own, arguments.delay, odds) for odds, own in times.items()), sep="\n\n")
    if arguments.odds == "both":
        print("", _ratios(times), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(times if arguments.odds == "both" else times[arguments.odds]))
    return 0


@contextmanager
def _visit(words: list[str], delay: int) -> Iterator[Visit]:
    """Context manager: a browser's visit to a new server, once the model is ready.

    `words` are arguments of app.py; each request is delayed by `delay` milliseconds.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        browsers.app(Path(folder) / "log", *words) as app,
        browsers.chromium() as chromium,
        browsers.visit(chromium, app.url) as visit,
    ):
        visit.wait_for_status("ready")
        visit.page.evaluate(f"() => {{ {WATCH} }}")
        if delay:
            network = visit.page.context.new_cdp_session(visit.page)
            network.send("Network.enable")
            conditions = {"offline": False, "latency": delay, "downloadThroughput": -1, "uploadThroughput": -1}
            network.send("Network.emulateNetworkConditions", conditions)
        yield visit


def _settle(visit: Visit, ahead: bool = True) -> None:
    """Type the prompt into an empty text and wait for its branches; with `ahead` also for all prefetched views."""
    visit.fill("")
    visit.wait_for_view("empty")
    visit.fill(PROMPT)
    visit.wait_until_settled()
    if ahead:
        visit.page.wait_for_function(
            "document.getElementById('branches').dataset.aheadReady === document.getElementById('k').value"
        )


def _measured(visit: Visit, event: str, target: str, condition: str, act: Callable[[], Any]) -> float:
    """Return the milliseconds from an event to the frame that shows its effect.

    `act` causes the event at the element `target` (a CSS selector); `condition` is a JavaScript function of the branch
    view's element and its revision before, which returns whether the effect is there.
    """
    script = f"() => {{ window.took = measure({event!r}, {target!r}, {condition}); }}"
    visit.page.evaluate(script)
    act()
    return float(visit.page.evaluate("window.took"))


def _click_ahead(visit: Visit) -> float:
    _settle(visit)
    return _measured(visit, "click", "#branches", "fresh", visit.token(1, 0).click)


def _click_cold(visit: Visit) -> float:
    """Milliseconds of a click on a token of the list "everything else", whose view is never prefetched."""
    _settle(visit, ahead=False)
    visit.page.evaluate("document.querySelector('#rest .more').click()")
    other = visit.page.locator("#rest [data-rest]").nth(1)
    return _measured(visit, "click", "#branches", "fresh", other.click)


def _key(visit: Visit) -> float:
    _settle(visit, ahead=False)
    visit.page.locator("#document textarea").focus()
    return _measured(visit, "keydown", "#document textarea", "fresh", lambda: visit.page.keyboard.press("Space"))


def _slider(visit: Visit) -> float:
    _settle(visit)
    three = "root => root.querySelectorAll('[data-branch]').length === 3"
    took = _measured(visit, "input", "#k", three, lambda: visit.put("k", 3))
    visit.put("k", 5)
    return took


def _temperature(visit: Visit) -> float:
    _settle(visit)
    share = visit.page.locator("#branches [data-branch='0']").get_attribute("data-share")
    other = f"root => root.querySelector('[data-branch]').dataset.share !== {share!r}"
    took = _measured(visit, "input", "#temperature", other, lambda: visit.put("temperature", 0.5))
    visit.put("temperature", 1)
    return took


def _frame(visit: Visit) -> float:
    """Milliseconds of a click that changes nothing: the browser's own time."""
    return _measured(visit, "click", "h1", "() => true", visit.page.locator("h1").click)


MEASURES: dict[str, Callable[[Visit], float]] = {
    "a frame (click that changes nothing)": _frame,
    "click to paint, prefetched": _click_ahead,
    "click to paint, not prefetched": _click_cold,
    "key to first paint": _key,
    "fewer branches to paint": _slider,
    "temperature to paint": _temperature,
}


def _table(times: Times, delay: int, odds: str) -> str:
    floor = statistics.median(times[next(iter(MEASURES))])
    lines = [f"odds of {odds}; {delay} ms of network delay added; milliseconds", ""]
    lines += ["| | median | 95th percentile | in frames |", "| --- | --- | --- | --- |"]
    for name, values in times.items():
        late = sorted(values)[max(0, round(0.95 * len(values)) - 1)]
        middle = statistics.median(values)
        lines.append(f"| {name} | {middle:.0f} | {late:.0f} | {middle / floor:.1f} |")
    return "\n".join(lines)


def _ratios(times: dict[str, Times]) -> str:
    """Return a Markdown table: the median time with odds of words as a multiple of that with odds of tokens."""
    lines = ["| | words / tokens |", "| --- | --- |"]
    for name in MEASURES:
        words, tokens = (statistics.median(times[odds][name]) for odds in ODDS)
        lines.append(f"| {name} | {words / tokens:.2f} |")
    return "\n".join(lines)
