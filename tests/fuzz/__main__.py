"""Run the fuzzer: `python -m tests.fuzz --seeds 20 --requests 50`. The exit status is 1 if something went wrong."""

from __future__ import annotations

import argparse
import sys

from lookahead_core import Settings
from tests.fuzz import campaign
from tests.fuzz.endpoints import endpoints_of
from tests.fuzz.server import served_app, tiny_chat_model


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="Number of campaigns.")
    parser.add_argument("--seed", type=int, default=1, help="The seed of the first one.")
    parser.add_argument("--requests", type=int, default=20, help="Requests to each endpoint in each campaign.")
    arguments = parser.parse_args()
    failed = False
    settings = Settings(person_requests=10**9, person_characters=10**15, call_seconds=5, page_seconds=5)
    with served_app(tiny_chat_model(), settings) as (url, app):
        endpoints = endpoints_of(app)
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            report = campaign.run(url, endpoints, seed, arguments.requests)
            print(f"seed {seed}: {report.summary}", flush=True)
            for failure in report.failures:
                failed = True
                print(f"  {failure}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
