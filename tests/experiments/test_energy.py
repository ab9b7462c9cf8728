"""Energy counters: those of the processor, which restart at 0 after their maximum, and the estimate without them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lookahead_core.experiments import energy


def domain(folder: Path, number: int, microjoules: int, limit: int = 1000) -> Path:
    """Write the files of one processor package, as Linux shows them; return the file of the counter."""
    made = folder / f"intel-rapl:{number}"
    made.mkdir()
    (made / "max_energy_range_uj").write_text(f"{limit - 1}\n")
    (made / "energy_uj").write_text(f"{microjoules}\n")
    return made / "energy_uj"


def test_without_a_readable_counter_the_energy_is_an_estimate_of_processor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    counter = energy.energy_counter()
    assert counter.source == energy.ESTIMATE
    before, seconds = counter.read(), time.process_time()
    while time.process_time() < seconds + 0.05:
        pass
    used = time.process_time() - seconds
    assert counter.read() - before == pytest.approx(used * energy.WATTS_OF_BUSY_CORE, rel=0.2)


def test_the_counters_of_all_packages_add_up_also_where_one_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    first, second = domain(tmp_path, 0, 900), domain(tmp_path, 1, 100)
    counter = energy.energy_counter()
    assert counter.source == energy.RAPL
    assert counter.read() == 0
    first.write_text("950\n")
    second.write_text("400\n")
    assert counter.read() == pytest.approx(350e-6)
    first.write_text("50\n")  # over its limit of 1,000
    assert counter.read() == pytest.approx(450e-6)


def test_a_counter_that_cannot_be_read_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    domain(tmp_path, 0, 5).write_text("no number\n")
    assert energy.energy_counter().source == energy.ESTIMATE
