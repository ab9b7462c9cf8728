"""Histograms: the counts are those of a count by hand, and threads lose none."""

from __future__ import annotations

import random
import threading

from lookahead_core.histogram import Histogram


def test_each_bound_counts_the_values_up_to_it_and_the_last_count_is_all() -> None:
    values, bounds = [random.Random(1).uniform(0, 12) for _ in range(200)] + [1, 2, 2, 8], (1, 2, 8)
    histogram = Histogram(bounds)
    for value in values:
        histogram.add(value)
    counts, total = histogram.read()
    assert counts == [*(sum(value <= bound for value in values) for bound in bounds), len(values)]
    assert abs(total - sum(values)) < 1e-9
    assert Histogram(bounds).read() == ([0, 0, 0, 0], 0)


def test_threads_that_add_at_once_lose_no_value() -> None:
    histogram = Histogram((4,))
    threads = [threading.Thread(target=lambda: [histogram.add(value) for value in range(10)] * 1) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert histogram.read() == ([40, 80], 360)
