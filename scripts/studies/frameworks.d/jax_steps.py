# SPDX-License-Identifier: Apache-2.0
"""JAX, which prints its rate: steps of 64 samples."""
import time

import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


w, x = jnp.ones((256, 256)), jnp.ones((64, 256))
while True:
    start = time.perf_counter()
    for _ in range(50):
        w = step(w, x)
    w.block_until_ready()
    print(f"{64 * 50 / (time.perf_counter() - start):.1f} samples/s", flush=True)
