# SPDX-License-Identifier: Apache-2.0
"""ultralytics: its DataLoader has its own __iter__, and gradients accumulate more and more at first."""
import os
import pathlib
import tempfile

import numpy
import PIL.Image

os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())
import ultralytics  # noqa: E402  reads the variable

root = pathlib.Path(tempfile.mkdtemp())
for part in ("images", "labels"):
    (root / part).mkdir()
for i in range(32):
    PIL.Image.fromarray(numpy.random.randint(0, 255, (64, 64, 3), "uint8")).save(root / f"images/{i}.jpg")
    (root / f"labels/{i}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
(root / "data.yaml").write_text(f"path: {root}\ntrain: images\nval: images\nnames: [thing]\n")
ultralytics.YOLO("yolo11n.yaml").train(data=root / "data.yaml", imgsz=64, batch=8, epochs=1000, device="cpu", workers=0,
                                       val=False, plots=False, project=str(root), verbose=False)
