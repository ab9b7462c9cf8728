"""Two or three processes of vLLM, of which one is killed in the middle of lookaheads."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.remote.placement import ranking
from tests.conftest import CORPUS
from tests.support.vllm_server import process_serving

pytestmark = pytest.mark.vllm
PEOPLE = 30


@pytest.mark.parametrize("count", [2, 3])
def test_documents_of_a_killed_server_go_on_at_the_others(default_model: Model, count: int) -> None:
    with ExitStack() as stack:
        servers = dict(stack.enter_context(process_serving()) for _ in range(count))
        model = load_model(list(servers))
        engine: Any = model.engine
        texts = [CORPUS[number % 3][: 20 + number] for number in range(PEOPLE)]
        documents = [Document(model, text) for text in texts]
        expected = [
            [branch.token_ids for branch in Document(default_model, text).lookahead(k=3, depth=12).branches]
            for text in texts
        ]
        for document in documents:
            document.predict()
        victim = ranking(list(servers), documents[0].tree.session_key)[0]

        def finish(document: Document) -> tuple[list[tuple[int, ...]], float]:
            result = document.lookahead(k=3, depth=12)
            return [branch.token_ids for branch in result.branches], time.perf_counter()

        with ThreadPoolExecutor(PEOPLE) as threads:
            running = [threads.submit(finish, document) for document in documents]
            time.sleep(0.4)
            unfinished = sum(not each.done() for each in running)
            os.killpg(servers[victim].pid, signal.SIGKILL)
            killed = time.perf_counter()
            found = [each.result() for each in running]
            longest = max(at for _, at in found) - killed
            begun = time.perf_counter()
            again = list(threads.map(finish, [Document(model, text) for text in texts]))
            undisturbed = max(at for _, at in again) - begun
        print(
            f"{unfinished} of {PEOPLE} lookaheads ran; all were served {longest:.1f} s after the server was killed; "
            f"the servers that are left need {undisturbed:.1f} s for all of them as new texts"
        )
        assert [ids for ids, _ in found] == [ids for ids, _ in again] == expected
        assert unfinished and engine.moves and longest < 1.5 * undisturbed
        engine.close()
