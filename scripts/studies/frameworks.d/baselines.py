# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3's PPO: minibatches of 64 after each rollout of 2 x 256 steps of the environment."""
import stable_baselines3

stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=256, device="cpu").learn(10**7)
