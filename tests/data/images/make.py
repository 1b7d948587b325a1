# SPDX-License-Identifier: Apache-2.0
"""Makes the WebP files of core.data.image with Pillow, and PNGs of the pixels that Pillow reads from them."""
import pathlib

from PIL import Image

HERE = pathlib.Path(__file__).parent
for name, mode in (("lossy", "RGB"), ("alpha", "RGBA")):
    image = Image.new(mode, (45, 31))
    for x in range(image.width):
        for y in range(image.height):
            image.putpixel((x, y), (x * 5 % 256, y * 7 % 256, x * y // 7 % 256, 255 - x * 3)[:len(mode)])
    image.save(HERE / f"{name}.webp", quality=70)
    Image.open(HERE / f"{name}.webp").convert("RGB").save(HERE / f"{name}.png")
