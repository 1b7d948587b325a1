# SPDX-License-Identifier: Apache-2.0
"""Feeds torch.utils.data.DataLoader from files, for `howmany workers --worker-type pytorch`.

`howmany` runs it as it runs any training script: its hook changes num_workers. The model is one number, so that the
loader is measured. With --samples-per-second, a step takes as long as training at that rate, from the batch on.

Images of folders and tar shards are decoded by Pillow and cropped by torchvision, or by Pillow alone. A folder
with x.npy and y.npy is read through numpy's memory map."""
import argparse
import io
import math
import multiprocessing
import os
import random
import sys
import tarfile
import time

try:
    import torch
    from torch.utils.data import DataLoader, Dataset, RandomSampler
except ImportError:
    sys.exit(f"{sys.executable} has no PyTorch: give the Python of your training with --python")
try:
    from PIL import Image
except ImportError:
    Image = None
try:
    from torchvision import transforms
except ImportError:
    transforms = None

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
EPOCH = 1 << 30  # samples: it outlasts the measurement


def named(name, *extensions):
    """Names that begin with a dot belong to the system."""
    return not os.path.basename(name).startswith(".") and name.lower().endswith(extensions)


def named_as_image(name):
    return named(name, ".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff")


def files_below(root):
    """The files at any level, each folder once."""
    seen = {os.path.realpath(root)}
    files = []
    for folder, folders, names in os.walk(root, followlinks=True):
        targets = {name: os.path.realpath(os.path.join(folder, name)) for name in folders if not name.startswith(".")}
        folders[:] = [name for name in sorted(targets) if targets[name] not in seen]
        seen.update(targets.values())
        files += (os.path.join(folder, name) for name in sorted(names))
    return files


def files_of(root):
    """Yields (path, offset, size) of every image; size -1: the whole file."""
    files = files_below(root) if os.path.isdir(root) else [root]
    images = [file for file in files if named_as_image(file)]
    shards = [file for file in files if named(file, ".tar") and (not images or os.path.dirname(file) == root.rstrip("/"))]
    yield from ((file, 0, -1) for file in ([] if shards else images))
    for shard in shards:
        with tarfile.open(shard) as tar:
            yield from ((shard, m.offset_data, m.size) for m in tar if m.isfile() and named_as_image(m.name))


def image_of(file):
    path, offset, size = file
    with open(path, "rb") as opened:
        opened.seek(offset)
        return Image.open(io.BytesIO(opened.read(size))).convert("RGB")


def by_torchvision(size):
    """As torchvision's training recipe for ImageNet."""
    return transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(),
                               transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])


def crop_of(width, height):
    """As torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    side = min(width, height)
    return 0, 0, side, side


class ByPillow:
    def __init__(self, size):
        self.size = size
        self.mean, self.deviation = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(DEVIATION).view(3, 1, 1)

    def __call__(self, image):
        image = image.resize((self.size, self.size), Image.BILINEAR, crop_of(*image.size))
        x = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(self.size, self.size, 3)
        x = x.permute(2, 0, 1).float().div_(255)
        return ((x.flip(2) if random.random() < 0.5 else x) - self.mean) / self.deviation


class Images(Dataset):
    def __init__(self, root, size):
        if Image is None:
            sys.exit(f"{sys.executable} has no Pillow, which decodes images: give the Python of your training with --python")
        self.files = list(files_of(root))
        self.transform = by_torchvision(size) if transforms else ByPillow(size)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.transform(image_of(self.files[index])), 0


class Arrays(Dataset):
    def __init__(self, root):
        import numpy  # only for these files
        self.x, self.y = (numpy.load(os.path.join(root, name), mmap_mode="r") for name in ("x.npy", "y.npy"))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return torch.tensor(self.x[index]), torch.tensor(self.y[index])


def own_device():
    """Of this rank: its GPU, else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    return torch.device("cuda")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--image-size", type=int, required=True)
    parser.add_argument("--samples-per-second", type=float, default=0)
    parser.add_argument("--start-method")
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    if args.start_method:
        multiprocessing.set_start_method(args.start_method)
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    has_arrays = os.path.exists(os.path.join(args.data, "x.npy"))
    data = Arrays(args.data) if has_arrays else Images(args.data, args.image_size)
    if len(data) == 0:
        sys.exit(f"{args.data}: no images in folders or tar shards")
    device = own_device()
    loader = DataLoader(data, args.batch, sampler=RandomSampler(data, replacement=True, num_samples=EPOCH),
                        pin_memory=device.type == "cuda")
    model = torch.nn.Linear(1, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:  # its all-reduce lets ranks wait for each other, as in training
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    step_s = args.batch / args.samples_per_second if args.samples_per_second else 0
    for x, _ in loader:
        arrived = time.perf_counter()
        x.to(device, non_blocking=True)
        model(torch.ones(1, 1, device=device)).sum().backward()
        time.sleep(max(0, arrived + step_s - time.perf_counter()))
        optimizer.step()


if __name__ == "__main__":
    main()
