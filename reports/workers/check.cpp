#include "reports/workers/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

constexpr const char* kScript = R"py(#!/usr/bin/env python3
"""Runs torch.utils.data.DataLoader on the folder that `howmany workers` measured, at the advised number of workers and
beside it, and tells its rate over the one measured there. Images are decoded by Pillow and cropped by torchvision, or
as --how says; with neither installed, files are only read, which tells about the workers' transport alone.

  python check.py [--seconds 15] [--workers 1,2,3] [--how torchvision.io] [--data DIR] [--json]"""
import argparse
import functools
import glob
import io
import json
import math
import os
import random
import statistics
import sys
import tarfile
import time

import torch
from torch.utils.data import DataLoader, Dataset

try:
    from PIL import Image
except ImportError:
    Image = None
try:
    from torchvision import transforms
    from torchvision.io import ImageReadMode, decode_image
except ImportError:
    transforms = None

DATA = @DATA@
BATCH, PREFETCH, SIZE = @BATCH@, @PREFETCH@, @SIZE@
RATES = @RATES@  # samples/s that howmany measured or predicted, by workers
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def named_as_image(name):
    return name.lower().endswith((".jpg", ".jpeg", ".png"))


def files_of(root):
    """(path, offset, size) of every image, in class folders or in tar shards; size -1: the whole file."""
    shards = [root] if root.endswith(".tar") else sorted(glob.glob(os.path.join(glob.escape(root), "*.tar")))
    for shard in shards:
        with tarfile.open(shard) as tar:
            yield from ((shard, m.offset_data, m.size) for m in tar if m.isfile() and named_as_image(m.name))
    for name in [] if shards else sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        if not name.startswith(".") and os.path.isdir(folder):
            yield from ((os.path.join(folder, file), 0, -1) for file in sorted(os.listdir(folder)) if named_as_image(file))


def bytes_of(file):
    path, offset, size = file
    with open(path, "rb") as opened:
        opened.seek(offset)
        return opened.read(size)


def crop_of(width, height):
    """torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    side = min(width, height)
    return 0, 0, side, side


def by_torchvision():
    """As torchvision's ImageFolder: Pillow decodes."""
    train = transforms.Compose([transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])
    return lambda file: train(Image.open(io.BytesIO(bytes_of(file))).convert("RGB"))


def by_torchvision_io():
    """Tensors from the start: torchvision decodes."""
    train = transforms.Compose([transforms.RandomResizedCrop(SIZE, antialias=True), transforms.RandomHorizontalFlip(),
                                transforms.ConvertImageDtype(torch.float), transforms.Normalize(MEAN, DEVIATION)])
    as_tensor = functools.partial(torch.frombuffer, dtype=torch.uint8)
    return lambda file: train(decode_image(as_tensor(bytearray(bytes_of(file))), ImageReadMode.RGB))


def by_pillow():
    mean, deviation = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(DEVIATION).view(3, 1, 1)

    def sample(file):
        image = Image.open(io.BytesIO(bytes_of(file))).convert("RGB")
        image = image.resize((SIZE, SIZE), Image.BILINEAR, crop_of(*image.size))
        x = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(SIZE, SIZE, 3)
        x = x.permute(2, 0, 1).float().div_(255)
        return ((x.flip(2) if random.random() < 0.5 else x) - mean) / deviation
    return sample


def by_reading():
    def sample(file):
        bytes_of(file)
        return torch.zeros(3, SIZE, SIZE)
    return sample


HOWS = {name: how for name, how, there in (
    ("torchvision", by_torchvision, transforms and Image), ("Pillow", by_pillow, Image),
    ("torchvision.io", by_torchvision_io, transforms), ("bytes", by_reading, True)) if there}


class Images(Dataset):
    def __init__(self, files, how):
        self.files, self.how, self.sample = files, how, None

    def __len__(self):
        return 1 << 30  # an epoch outlasts the measurement

    def __getitem__(self, index):
        self.sample = self.sample or HOWS[self.how]()  # made in the worker, so that nothing but names is sent to it
        return self.sample(self.files[index % len(self.files)]), 0


class Order(torch.utils.data.Sampler):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        while True:
            yield from torch.randperm(self.size).tolist()

    def __len__(self):
        return 1 << 30


def rate_of(data, workers, seconds):
    """Mean samples/s, and half the width of its 95 % interval, from ten stretches; None: too few batches."""
    more = {"prefetch_factor": PREFETCH, "persistent_workers": True} if workers else {}
    loader = DataLoader(data, batch_size=BATCH, num_workers=workers, sampler=Order(len(data.files)),
                        pin_memory=torch.cuda.is_available(), **more)
    times, batches = [], iter(loader)
    for _ in range(max(1, workers * PREFETCH)):  # what was made ahead
        next(batches)
    start = last = time.perf_counter()
    while last - start < seconds or (len(times) < 20 and last - start < 5 * seconds):
        next(batches)
        now = time.perf_counter()
        times.append(now - last)
        last = now
    del batches, loader
    each, mean = len(times) // 10, statistics.mean(times)
    if each == 0:
        return BATCH / mean, None
    blocks = [statistics.mean(times[i * each:(i + 1) * each]) for i in range(10)]
    return BATCH / mean, 2.26 * statistics.stdev(blocks) / math.sqrt(10) / mean * BATCH / mean


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--workers", default=",".join(map(str, RATES)))
    parser.add_argument("--seconds", type=float, default=15, help="for each number of workers")
    parser.add_argument("--how", choices=HOWS, default=next(iter(HOWS)))
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    files = list(files_of(a.data))
    if not files:
        sys.exit(f"{a.data}: no images in class folders or tar shards")
    for file in files[:4096]:  # from memory, as measured
        bytes_of(file)
    data, rows = Images(files[:4096], a.how), []
    for workers in map(int, a.workers.split(",")):
        rate, half = rate_of(data, workers, a.seconds)
        told = RATES.get(workers)
        rows.append({"workers": workers, "samples_per_s": rate, "half_width": half, "howmany": told,
                     "ratio": rate / told if told else None})
    done = {"torch": torch.__version__, "how": a.how, "rows": rows,
            "best": max(rows, key=lambda row: row["samples_per_s"])["workers"]}
    if a.json:
        print(json.dumps(done, indent=1))
        return
    print(f"torch {torch.__version__}, samples by {a.how}")
    for row in rows:
        told = f"  howmany {row['howmany']:9.1f}  ratio {row['ratio']:.2f}" if row["howmany"] else ""
        half = "" if row["half_width"] is None else f" +- {row['half_width']:.1f}"
        print(f"{row['workers']:4} workers {row['samples_per_s']:9.1f} samples/s{half}{told}")
    print(f"fastest here: {done['best']} workers")


if __name__ == "__main__":
    main()
)py";

void put(std::string& text, const std::string& token, const std::string& value) {
  const size_t at = text.find(token);
  text.replace(at, token.size(), value);
}

}  // namespace

CheckScript check_of(const WorkersFacts& facts, const WorkersAdvice& advice,
                     const std::string& data, int64_t image_size) {
  CheckScript what{data, facts.asked.batch, image_size, facts.asked.prefetch, {}};
  const int chosen = advice.recommended.value_or(0);
  for (int w = std::max(0, chosen - 1); w <= chosen + 1; ++w)
    what.rates[w] = predicted_rate(facts.probes, facts.asked, w);
  for (const WorkersPoint& p : facts.points)
    if (p.error.empty() && what.rates.contains(p.workers))
      what.rates[p.workers] = p.rate.value / facts.asked.devices;
  return what;
}

std::string check_script(const CheckScript& what) {
  std::string rates;
  for (const auto& [workers, rate] : what.rates)
    rates += fmt::format("{}{}: {:.1f}", rates.empty() ? "" : ", ", workers, rate);
  std::string text = kScript;
  put(text, "@BATCH@", std::to_string(what.batch));
  put(text, "@PREFETCH@", std::to_string(what.prefetch));
  put(text, "@SIZE@", std::to_string(what.image_size));
  put(text, "@RATES@", "{" + rates + "}");
  // A JSON string is a valid Python string. Replaced last, because a folder name may contain
  // placeholders.
  std::string folder = dump_json_line(what.data);
  folder.erase(folder.find_last_not_of('\n') + 1);
  put(text, "@DATA@", folder);
  return text;
}

}  // namespace howmany::reports
