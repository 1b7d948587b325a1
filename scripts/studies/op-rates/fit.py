# SPDX-License-Identifier: Apache-2.0
"""Fits reports/predict/op_rates.h to rows.csv and prints how well it predicts rows that it has not seen.

usage: fit.py ROWS.csv COUNTS.json                   (needs numpy and scipy; COUNTS.json is count.py's)
       fit.py ROWS.csv COUNTS.json --header op_rates.h

The header of op_rates.h states the model. Its parameters are fitted to the logarithms of the steps, with a loss that
forgives outliers (soft L1 beyond 20 %). A row weighs 1 / sqrt(rows of its source and chip). Normal priors pull the
factors of a generation to 1.

Left out, one at a time: all rows of a source, of a chip, of a model, of a source and a chip. The interval of a group
holds 90 % of the ratios of all other left-out rows (split-conformal, each group weighs the same): its coverage is that
of rows that neither the fit nor the interval has seen. Two other lines show FLOP over 40 % of the peak, and the preset
of reports/predict/chip_rates.h.
"""

import collections
import csv
import datetime
import json
import math
import pathlib
import re
import sys

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as error:
    print(f"fit.py needs {error.name}", file=sys.stderr)
    sys.exit(77)
from header import KINDS, header
from keys import key_of

HERE = pathlib.Path(__file__).resolve().parent
TENSOR = {"tf32", "f16", "bf16", "f8"}
FALLBACK = {"tf32": "f32", "bf16": "f32", "f16": "f32", "f8": "f16", "f64": "f32"}
WORKS = ("product", "convolution", "attention", "memory")
EFFICIENCIES = {
    "product_plain": 0.75,
    "product_tensor": 0.65,
    "convolution_plain": 0.6,
    "convolution_tensor": 0.45,
    "attention_plain": 0.4,
    "attention_tensor": 0.4,
    "memory": 0.8,
}
BY_GENERATION = ("product_tensor", "convolution_plain", "convolution_tensor", "memory", "product_plain")
OTHERS = {
    "size_product": 5e-5,
    "size_convolution": 5e-5,
    "nchw_passes": 1.0,
    "kernel_product": 4e-6,
    "kernel_convolution": 8e-6,
    "kernel_attention": 8e-6,
    "kernel_memory": 3e-6,
    "host_op": 12e-6,
    "compiled_memory": 0.5,
    "compiled_host": 0.3,
}
PRIOR = {
    "size_product": 0.7,
    "size_convolution": 0.7,
    "product_plain": 0.15,
    "product_tensor": 0.15,
    "convolution_plain": 0.2,
    "convolution_tensor": 0.2,
    "memory": 0.1,
    "attention_plain": 0.3,
    "attention_tensor": 0.3,
    "kernel_product": 0.2,
    "kernel_convolution": 0.2,
    "kernel_attention": 0.2,
    "kernel_memory": 0.2,
    "host_op": 0.7,
    "compiled_host": 0.3,
    "compiled_memory": 0.4,
    "nchw_passes": 0.5,
}
# The best product of MI300X and MI325X is 51 and 60 % of its peak, those of A100 to GB200 are 73 to 87 %:
# stas00/ml-engineering@744d01e18b:compute/accelerator/README.md#L348. AMD's chips have no row.
WITHOUT_ROWS = {"CDNA": 0.7}
GENERATION_PRIOR = 0.15
PRIOR_ROWS = 16  # how little a prior weighs: its width times this, in residuals
ROOFLINE, OVERLAP, SIZE_LOSS = 3.0, 2.0, 4.0
BOUNDS = {name: math.log(0.95) for name in EFFICIENCIES} | {"convolution_plain": math.log(1.5)}  # Winograd


def read_chips():
    with open(HERE / "chips.csv", newline="", encoding="utf-8") as file:
        return {chip["name"]: chip for chip in csv.DictReader(file)}


def peak_and_class(chip, dtype):
    """Returns FLOP/s, and "plain" or "tensor"."""
    while dtype != "f32" and float(chip.get(dtype) or 0) == 0:
        dtype = FALLBACK.get(dtype, "f32")
    plain = dtype not in TENSOR or chip["generation"] in ("Pascal", "Maxwell", "Kepler")
    return float(chip[dtype]) * 1e12, "plain" if plain else "tensor"


def read(rows_file, counts_file, chips):
    counts = json.loads(pathlib.Path(counts_file).read_text())
    with open(rows_file, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if key_of(row) in counts and row["chip"] in chips]
    for row in rows:
        row["count"] = counts[key_of(row)]
        samples = int(row["batch"]) * (int(row["length"]) if row["unit"] == "tokens/s" else 1)
        row["seconds"] = samples / float(row["rate"])
    return rows


class Table:
    """The operations of all rows, as arrays."""

    def __init__(self, rows, chips):
        self.rows = rows
        names = list(EFFICIENCIES)
        generations = sorted({chips[row["chip"]]["generation"] for row in rows})
        self.factors = [(generation, kind) for generation in generations for kind in BY_GENERATION]
        self.names = names + list(OTHERS) + [f"{generation}:{kind}" for generation, kind in self.factors]
        self.at = {name: place for place, name in enumerate(self.names)}
        columns = collections.defaultdict(list)
        self.starts, self.host, self.compiled_row = [], [], []
        for row in rows:
            self.starts.append(len(columns["flop_s"]))
            self.host.append(row["count"]["host_ops"])
            self.compiled_row.append(row["compiled"] == "1")
            self.add(row, chips[row["chip"]], columns)
        self.columns = {name: np.array(values) for name, values in columns.items()}
        self.host, self.compiled_row = np.array(self.host, float), np.array(self.compiled_row)
        self.seconds = np.array([row["seconds"] for row in rows])
        groups = collections.Counter((row["source"], row["chip"]) for row in rows)
        self.weights = np.array([groups[row["source"], row["chip"]] ** -0.5 for row in rows])

    def add(self, row, chip, columns):
        numbers = collections.Counter(row["count"]["order"])
        accumulation = int(row["accumulation"])
        for place, kind in enumerate(row["count"]["kinds"]):
            n = numbers[place] / (accumulation if kind["phase"] == "optimizer" or kind["op"] == "_fused_adam_" else 1)
            work = kind["work"] if kind["work"] in WORKS else "memory"
            peak, units = peak_and_class(chip, kind["dtype"]) if work != "memory" else (1e12, "")
            efficiency = "memory" if work == "memory" else f"{work}_{units}"
            nchw = units == "tensor" and kind["op"].endswith("_nchw")
            columns["flop_s"].append(kind["flop"] / peak if work != "memory" else 0)
            columns["byte_s"].append((kind["read"] + kind["written"]) / (1e9 * float(chip["gb_per_s"])))
            columns["n"].append(n)
            columns["row"].append(len(self.starts) - 1)
            columns["efficiency"].append(self.at[efficiency])
            columns["factor"].append(self.at.get(f"{chip['generation']}:{efficiency}", -1))
            columns["memory_factor"].append(self.at[f"{chip['generation']}:memory"])
            columns["kernel"].append(self.at[f"kernel_{work}"])
            sized = work in ("product", "convolution")
            columns["size"].append(self.at[f"size_{work}"] if sized else -1)
            columns["sized"].append(1.0 if sized else 0.0)
            columns["nchw"].append(nchw)
            columns["compiled"].append(row["compiled"] == "1" and work == "memory" and kind["phase"] != "optimizer")

    def start(self):
        values = [*EFFICIENCIES.values(), *OTHERS.values(), *([1.0] * len(self.factors))]
        return np.log(np.array(values))

    def parts(self, x):
        """Returns the seconds of each operation, apart: core, its share of compute, layout, kernel; and of each row:
        gpu, host."""
        values = np.append(np.exp(x), 1.0)  # place -1: no factor
        c, at = self.columns, self.at
        compute = c["flop_s"] / (values[c["efficiency"]] * values[c["factor"]])
        tau = values[c["size"]] * c["sized"]
        compute = compute * (1 + SIZE_LOSS * tau / (compute + tau + 1e-30))
        memory = c["byte_s"] / (values[at["memory"]] * values[c["memory_factor"]])
        share = np.where(c["compiled"], values[at["compiled_memory"]], 1.0)
        of_compute, of_memory = compute**ROOFLINE, (memory * share) ** ROOFLINE
        core = (of_compute + of_memory) ** (1 / ROOFLINE)
        computing = of_compute / np.maximum(of_compute + of_memory, 1e-300)
        layout = np.where(c["nchw"], memory * values[at["nchw_passes"]], 0)
        kernel = values[c["kernel"]] * share
        gpu = np.add.reduceat((core + layout + kernel) * c["n"], self.starts)
        host = self.host * values[at["host_op"]] * np.where(self.compiled_row, values[at["compiled_host"]], 1.0)
        return core, computing, layout, kernel, gpu, host

    def sizes(self, x):
        """Returns d log(compute) / d log(1 / efficiency) and / d log(size) of each operation."""
        values = np.append(np.exp(x), 1.0)
        c = self.columns
        plain = c["flop_s"] / (values[c["efficiency"]] * values[c["factor"]]) + 1e-30
        tau = values[c["size"]] * c["sized"]
        whole = 1 + SIZE_LOSS * tau / (plain + tau)
        return (
            (1 + SIZE_LOSS * (tau / (plain + tau)) ** 2) / whole,
            SIZE_LOSS * tau * plain / (plain + tau) ** 2 / whole,
        )

    def predicted(self, x):
        *_, gpu, host = self.parts(x)
        return (gpu**OVERLAP + host**OVERLAP) ** (1 / OVERLAP)

    def slopes(self, x):
        """Returns d log(step) / dx, one row per row."""
        core, computing, layout, kernel, gpu, host = self.parts(x)
        c, at, width = self.columns, self.at, len(self.names)
        by_rate, by_size = self.sizes(x)
        of_rate = -core * computing * by_rate
        by_memory = core * (1 - computing)
        memory = np.full(len(core), at["memory"])
        changes = [
            (c["efficiency"], of_rate),
            (c["factor"], of_rate),
            (c["size"], core * computing * by_size),
            (memory, -by_memory - layout),
            (c["memory_factor"], -by_memory - layout),
            (c["kernel"], kernel),
            (np.full(len(core), at["nchw_passes"]), layout),
            (np.full(len(core), at["compiled_memory"]), np.where(c["compiled"], by_memory + kernel, 0)),
        ]
        result = np.zeros((len(gpu), width))
        for place, change in changes:
            used = place >= 0
            flat = np.bincount(c["row"][used] * width + place[used], (change * c["n"])[used], len(gpu) * width)
            result += flat.reshape(len(gpu), width)
        weight = gpu**OVERLAP / (gpu**OVERLAP + host**OVERLAP)
        result *= (weight / gpu)[:, None]
        result[:, at["host_op"]] += 1 - weight
        result[:, at["compiled_host"]] += np.where(self.compiled_row, 1 - weight, 0)
        return result

    def fit(self, chosen, first=None):
        start = self.start()
        weights = self.weights[chosen]
        logs = np.log(self.seconds[chosen])
        prior_at = np.array([self.at[name] for name in PRIOR] + list(range(len(start) - len(self.factors), len(start))))
        widths = np.array([*PRIOR.values(), *([GENERATION_PRIOR] * len(self.factors))]) * PRIOR_ROWS
        prior_slopes = np.zeros((len(prior_at), len(start)))
        prior_slopes[np.arange(len(prior_at)), prior_at] = 1 / widths

        def residuals(x):
            off = (np.log(self.predicted(x))[chosen] - logs) / 0.2
            soft = 0.2 * np.sign(off) * np.sqrt(2 * (np.sqrt(1 + off**2) - 1))  # soft L1
            return np.concatenate([soft * weights, (x - start)[prior_at] / widths])

        def slopes(x):
            off = np.abs(np.log(self.predicted(x))[chosen] - logs) / 0.2 + 1e-6
            soft = off / np.sqrt(1 + off**2) / np.sqrt(2 * (np.sqrt(1 + off**2) - 1))
            return np.concatenate([self.slopes(x)[chosen] * (soft * weights)[:, None], prior_slopes])

        high = np.full(len(start), np.inf)
        for name, bound in BOUNDS.items():
            high[self.at[name]] = bound
        first = start if first is None else np.minimum(first, high - 1e-9)
        return least_squares(residuals, first, slopes, bounds=(-np.inf, high), x_scale=0.1, max_nfev=60, ftol=1e-5).x


def left_out(table, column, first):
    """Returns log(measured / predicted) of each row, by a fit to the rows of other groups."""
    groups = np.array([row[column] for row in table.rows])
    ratios = np.zeros(len(groups))
    for group in sorted(set(groups)):
        out = groups == group
        x = table.fit(~out, first)
        ratios[out] = np.log(table.seconds[out] / table.predicted(x)[out])
    return ratios, groups


def left_out_pairs(table, first):
    """The same for each pair of source and chip, by a fit to rows that have neither."""
    sources, chips = (np.array([row[column] for row in table.rows]) for column in ("source", "chip"))
    groups = np.array([f"{source} {chip}" for source, chip in zip(sources, chips, strict=True)])
    ratios = np.zeros(len(groups))
    for source, chip in sorted(set(zip(sources, chips, strict=True))):
        out = (sources == source) & (chips == chip)
        x = table.fit((sources != source) & (chips != chip), first)
        ratios[out] = np.log(table.seconds[out] / table.predicted(x)[out])
    return ratios, groups


def interval(ratios, groups, level=0.9):
    """The central `level` of the ratios; each group weighs the same."""
    sizes = collections.Counter(groups)
    weights = np.array([1 / sizes[group] for group in groups])
    order = np.argsort(ratios)
    shares = np.cumsum(weights[order]) / weights.sum()
    low = ratios[order][np.searchsorted(shares, (1 - level) / 2)]
    high = ratios[order][min(np.searchsorted(shares, (1 + level) / 2), len(order) - 1)]
    return low, high


def coverage(ratios, groups):
    """The share of rows in the interval of the other groups: of all rows, and the mean over groups."""
    held, by_group = [], []
    for group in set(groups):
        out = groups == group
        low, high = interval(ratios[~out], groups[~out])
        inside = (ratios[out] >= low) & (ratios[out] <= high)
        held.extend(inside)
        by_group.append(np.mean(inside))
    return np.mean(held), np.mean(by_group)


def errors(ratios):
    """Median and 90 % absolute error of the predicted step, relative to the measured one; the share within 25 %."""
    off = np.abs(np.exp(-ratios) - 1)
    return np.median(off), np.quantile(off, 0.9), np.mean(off <= 0.25)


def line_of(name, ratios, groups=None):
    median, most, within = errors(ratios)
    text = (
        f"{name:<34} {len(ratios):>4} rows  error: median {median:5.1%}, 90 % {most:6.1%}; within 25 %: {within:4.0%}"
    )
    if groups is not None:
        rows, by_group = coverage(ratios, groups)
        low, high = np.exp(interval(ratios, groups))
        text += f"; interval {low:.2f} to {high:.2f} holds {rows:.0%} of rows, {by_group:.0%} by group"
    print(text)


def forty_percent(rows, chips):
    """log(measured / predicted) of FLOP over 40 % of the peak of the dtype of most FLOP."""
    result = []
    for row in rows:
        by_dtype = collections.Counter()
        for place in row["count"]["order"]:
            kind = row["count"]["kinds"][place]
            by_dtype[kind["dtype"]] += kind["flop"]
        seconds = sum(
            flop / (0.4 * peak_and_class(chips[row["chip"]], dtype)[0]) for dtype, flop in by_dtype.items() if flop
        )
        result.append(math.log(row["seconds"] / seconds))
    return np.array(result)


def preset(rows):
    """log(measured / predicted) of the rows that chip_rates.h has a rate for, and those rows."""
    text = (HERE.parents[2] / "reports/predict/chip_rates.h").read_text(encoding="utf-8")
    rates = {
        (chip, work, precision): float(rate)
        for chip, work, precision, rate in re.findall(
            r'\{"([^"]+)", "(convolutions|products)", "(f32|mixed|tf32)", ([0-9.]+)', text
        )
    }
    result, known = [], []
    for row in rows:
        chip = row["chip"].replace(" 40GB", "")
        flop = collections.Counter()
        for place in row["count"]["order"]:
            kind = row["count"]["kinds"][place]
            if kind["phase"] == "forward":
                flop[kind["work"]] += kind["flop"]
        work = "convolutions" if flop["convolution"] > flop["product"] else "products"
        precision = row["precision"] if row["precision"] in ("f32", "tf32") else "mixed"
        rate = rates.get((chip, work, precision))
        if rate:
            result.append(math.log(row["seconds"] / (3 * sum(flop.values()) / (rate * 1e12))))
            known.append(row)
    return np.array(result), known


def values_of(table, x):
    """Returns the tables of the header."""
    values = dict(zip(table.names, np.exp(x), strict=True))
    base = {kind: values[kind] for kind in KINDS}
    efficiencies = {"any": base}
    for generation in sorted({one for one, _ in table.factors}):
        efficiencies[generation] = {kind: base[kind] * values.get(f"{generation}:{kind}", 1) for kind in KINDS}
    for generation, share in WITHOUT_ROWS.items():
        efficiencies[generation] = {kind: base[kind] * (share if "tensor" in kind else 1) for kind in KINDS}
    return values, efficiencies


def tables(table, chips):
    x = table.fit(np.ones(len(table.rows), bool))
    values, efficiencies = values_of(table, x)
    for name in (*EFFICIENCIES, *OTHERS):
        print(f"  {name:<20} {values[name]:.3g}")
    for generation, kinds in efficiencies.items():
        print(f"  {generation:<14}", "  ".join(f"{kind} {value:.2f}" for kind, value in kinds.items()))
    ratios = np.log(table.seconds / table.predicted(x))
    line_of("in the fit", ratios)
    for column in ("source", "chip", "precision"):
        for group in sorted({row[column] for row in table.rows}):
            chosen = np.array([row[column] == group for row in table.rows])
            off = ratios[chosen]
            print(
                f"    {group:<18} {chosen.sum():>4} rows  median ratio {math.exp(np.median(off)):.2f}, "
                f"median error {errors(off)[0]:.1%}"
            )
    return x, values, efficiencies


def main():
    arguments = sys.argv[1:]
    if len(arguments) not in (2, 4) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    chips = read_chips()
    rows = read(*arguments[:2], chips)
    table = Table(rows, chips)
    x, values, efficiencies = tables(table, chips)
    line_of("40 % of peak", forty_percent(rows, chips))
    old, known = preset(rows)
    line_of("today's preset, where it answers", old)
    found = {}
    real = np.array(
        [row["source"] not in ("ryujaehun", "u39kun") and row["framework"].startswith("PyTorch") for row in rows]
    )
    for column in ("source", "chip", "model"):
        ratios, groups = left_out(table, column, x)
        found[column] = (ratios, groups)
        line_of(f"left out: {column}", ratios, groups)
        mine = np.array([row in known for row in rows])
        line_of("  of the preset's rows", ratios[mine])
        line_of("  of real training programs", ratios[real], groups[real])
    found["source and chip"] = left_out_pairs(table, x)
    line_of("left out: source and chip", *found["source and chip"])
    *_, gpu, host = table.parts(x)
    held = intervals(found, host > gpu / 2)
    if len(arguments) == 4:
        write(arguments[3], rows, chips, values, efficiencies, held)


def intervals(found, bound):
    """Returns {interval of the header: (low, high, rows)}; `bound` is true for rows that the host holds up. They are of
    too few sources to weigh each the same."""
    (sources, by_source), (pairs, _) = found["source"], found["source and chip"]
    parts = {
        "known": (sources, by_source, ~bound),
        "new": (pairs, by_source, ~bound),
        "host_bound": (pairs, np.arange(len(pairs)), bound),
    }
    result = {}
    for name, (ratios, groups, chosen) in parts.items():
        line_of(f"interval of {name}", ratios[chosen], groups[chosen])
        result[name] = (*np.exp(interval(ratios[chosen], groups[chosen])), chosen.sum())
    return result


def write(path, rows, chips, values, efficiencies, held):
    counts = {
        chip: (sum(row["chip"] == chip for row in rows), len({row["source"] for row in rows if row["chip"] == chip}))
        for chip in chips
    }
    fit = {
        "rows": len(rows),
        "sources": len({row["source"] for row in rows}),
        "efficiencies": efficiencies,
        "size_s": {work: values[f"size_{work}"] for work in WORKS[:2]},
        "size_loss": SIZE_LOSS,
        "kernel_s": {work: values[f"kernel_{work}"] for work in WORKS},
        "host_op_s": values["host_op"],
        "roofline_power": ROOFLINE,
        "overlap_power": OVERLAP,
        "nchw_passes": values["nchw_passes"],
        "compiled": {"memory": values["compiled_memory"], "host": values["compiled_host"]},
        **held,
    }
    date = datetime.datetime.now(datetime.UTC).date()
    pathlib.Path(path).write_text(header(date, fit, list(chips.values()), counts), encoding="utf-8")


if __name__ == "__main__":
    main()
