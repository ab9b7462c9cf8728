"""The command `sizing`: its figures are those of the library, and mistakes are sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lookahead_core import Model
from lookahead_core.command.main import main
from lookahead_core.loading.sizing import GIBIBYTE, Demand, ReplicaMemory, read_shape, size

NUMBERS = ("--layers", "32", "--kv-heads", "8", "--head-dim", "128", "--parameters", "8.03e9")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def called(*words: str) -> tuple[int, str, str]:
        try:
            status = main(["sizing", *words])
        except SystemExit as ending:
            status = int(str(ending.code))
        return status, *capsys.readouterr()

    return called


def test_numbers_give_the_figures_worked_out_by_hand(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = run("--people", "200", "--memory", "24", "--tokens", "2000", *NUMBERS)
    assert (status, err) == (0, "")
    # 2,000 tokens are 125 blocks of 16, five branches two each: 2,160 tokens of 128 KiB are 270 MiB.
    # 90 % of 24 GiB less 14.96 GiB of weights and 2 GiB leave 4.64 GiB, room for 17 documents.
    assert out.splitlines() == [
        "weights                  14.96 GiB   8,030,000,000 parameters",
        "KV cache, one token     128.00 KiB   32 layers",
        "KV cache, a document    270.00 MiB   2,000 tokens and 5 branches of 10",
        "room in a replica         4.64 GiB   17 documents",
        "replicas                        12   for 200 people; 13, so that one may fail",
    ]
    status, out, _ = run("--people", "200", "--memory", "16", *NUMBERS)
    assert status == 0 and "A replica has no room for a document: choose more memory" in out
    assert "replicas" in run("--people", "200", "--memory", "16", "--weight-bits", "4", *NUMBERS)[1]


def test_json_has_the_figures_of_a_models_config(
    run: Callable[..., tuple[int, str, str]], tiny_model: Model, tmp_path: Path
) -> None:
    tiny_model.hf_model.config.save_pretrained(tmp_path)
    options = ("--model", str(tmp_path), "--people", "9", "--memory", "4", "--dtype", "float32", "--kv-dtype", "fp8")
    status, out, _ = run(*options, "--json")
    found = size(read_shape(str(tmp_path)), Demand(9, 1000), ReplicaMemory(4 * GIBIBYTE), weight_bytes=4, kv_bytes=1)
    assert status == 0 and json.loads(out) == {
        "weights": found.weights,
        "kv_per_token": found.kv_per_token,
        "kv_per_document": found.kv_per_document,
        "kv_room": found.kv_room,
        "documents_per_replica": found.documents_per_replica,
        "replicas": found.replicas,
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "the following arguments are required: --people, --memory"),
        (("--people", "0", "--memory", "4", *NUMBERS), "people is 0, and must be a whole number from 1"),
        (("--people", "1", "--memory", "0", *NUMBERS), "memory is 0, and must be above 0"),
        (("--people", "1", "--memory", "4", "--layers", "3"), "Give the model, or all of --layers, --kv-heads"),
        (("--people", "1", "--memory", "4", "--model", "m", *NUMBERS), "Give the model, or all of --layers"),
        (("--people", "1", "--memory", "4", "--model", "/nowhere"), "The config of /nowhere cannot be read"),
    ],
)
def test_mistakes_are_sentences(
    run: Callable[..., tuple[int, str, str]], words: tuple[str, ...], sentence: str
) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "") and sentence.lower() in err.lower()
