"""The text format of Prometheus, version 0.0.4: what it needs is short enough not to depend on a package."""

from __future__ import annotations

from collections.abc import Mapping

from lookahead_core.histogram import Histogram

MEDIA_TYPE = "text/plain; version=0.0.4"
Labels = Mapping[str, str]


def family(name: str, kind: str, meaning: str, samples: list[tuple[str, Labels, float]]) -> str:
    """Return the lines of one metric: its meaning, its type, and samples of suffix, labels and value.

    `kind` is "counter", "gauge" or "histogram". `meaning` has one line without a backslash.
    """
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def gauge(name: str, meaning: str, value: float) -> str:
    """Return the lines of a metric that can rise and fall."""
    return family(name, "gauge", meaning, [("", {}, value)])


def counter(name: str, meaning: str, value: float | Mapping[str, float], label: str = "") -> str:
    """Return the lines of a metric that only rises; with `label` its values are by that label's values."""
    values = value if isinstance(value, Mapping) else {"": value}
    samples: list[tuple[str, Labels, float]] = [
        ("", {label: key} if label else {}, number) for key, number in sorted(values.items())
    ]
    return family(name, "counter", meaning, samples)


def histogram(name: str, meaning: str, values: Histogram) -> str:
    """Return the lines of a histogram: how many values are at most each bound, their sum and their number."""
    counts, total = values.read()
    bounds = [*map(_number, values.bounds), "+Inf"]
    samples: list[tuple[str, Labels, float]] = [
        ("_bucket", {"le": bound}, count) for bound, count in zip(bounds, counts, strict=True)
    ]
    return family(name, "histogram", meaning, [*samples, ("_sum", {}, total), ("_count", {}, counts[-1])])


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
