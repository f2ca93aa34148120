"""A perceptron in JAX on MNIST, one shard of the images for each daemon.

    pip install jax optax
    murmurate local --nodes 4 --rounds 40 -- python python/examples/jax_mnist.py
"""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import mnist  # noqa: E402
import murmurate.jax as mj  # noqa: E402

BATCH = 64
(train_x, train_y), (held_x, held_y) = mnist.load()

first, second = jax.random.split(jax.random.key(mj.seed()))
params = {
    "hidden": {"w": jax.random.normal(first, (784, 64)) / 28, "b": jnp.zeros(64)},
    "out": {"w": jax.random.normal(second, (64, 10)) / 8, "b": jnp.zeros(10)},
}
optimizer = optax.sgd(0.1, momentum=0.9)


def scores(params, x):
    hidden = jax.nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return hidden @ params["out"]["w"] + params["out"]["b"]


def loss_of(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(scores(params, x), y).mean()


@jax.jit
def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


def evaluate(params):
    right = (scores(params, held_x).argmax(axis=1) == held_y).mean()
    return loss_of(params, held_x, held_y), right, len(held_y)


swarm, params, state = mj.attach(params, optimizer.init(params), evaluate)
order, done = np.random.default_rng([swarm.seed, swarm.shard[0], swarm.steps]), False
while not done:
    index, of = swarm.shard  # changes when daemons come and go
    batch = index + of * order.integers(len(train_y) // of, size=BATCH)
    params, state, loss = train_step(params, state, train_x[batch], train_y[batch])
    params, state, done = swarm.step(params, state, samples=BATCH, loss=loss)
