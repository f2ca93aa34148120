"""Measures inner steps in PyTorch as `tasks/examples/inner_steps.rs` does ours:  inner_steps.py MODEL ROUNDS

Prints what the example prints, and the number of parameters on stderr. Data is random, and images are not shifted.
"""

import statistics
import sys
import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

THREADS = 2
CONTEXT, VOCABULARY = 128, 256


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn() -> nn.Module:
    def layer(channels, features):
        return nn.Conv2d(channels, features, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)

    classifier = nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)
    return nn.Sequential(*layer(1, 8), *layer(8, 16), *classifier)


def conv_norm(channels: int, features: int, side: int, stride: int) -> nn.Module:
    conv = nn.Conv2d(channels, features, side, stride, side // 2, bias=False)
    return nn.Sequential(conv, nn.GroupNorm(features // 16, features))


class Block(nn.Module):
    def __init__(self, channels: int, features: int, stride: int):
        super().__init__()
        self.first = conv_norm(channels, features, 3, stride)
        self.second = conv_norm(features, features, 3, 1)
        changes = channels != features or stride != 1
        self.shortcut = conv_norm(channels, features, 1, stride) if changes else nn.Identity()

    def forward(self, x):
        return F.relu(self.shortcut(x) + self.second(F.relu(self.first(x))))


def resnet18(width: int) -> nn.Module:
    """For small images: the first layer keeps the size."""
    stages = [Block(width, width, 1), Block(width, width, 1)]
    for features in (2 * width, 4 * width, 8 * width):
        stages += [Block(features // 2, features, 2), Block(features, features, 1)]
    output = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10)
    return nn.Sequential(conv_norm(1, width, 3, 1), nn.ReLU(), *stages, *output)


class Logits(nn.Module):
    """The logits of a model of `transformers`, a row for each token."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens, use_cache=False).logits.flatten(0, 1)


def llama(layers: int, width: int, heads: int, hidden: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, num_hidden_layers=layers, hidden_size=width,
        num_attention_heads=heads, num_key_value_heads=heads, intermediate_size=hidden, tie_word_embeddings=False,
    )
    return Logits(LlamaForCausalLM(config))


def gpt2(layers: int, width: int, heads: int, hidden: int) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=CONTEXT, n_layer=layers, n_embd=width, n_head=heads, n_inner=hidden,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None, eos_token_id=None,
    )
    return Logits(GPT2LMHeadModel(config))


# The model, its batch, inner steps of a round, and the number of parameters that the other side has.
MODELS = {
    "mlp": (mlp, 128, 400, 203_530),
    "cnn": (cnn, 128, 30, 204_778),
    "resnet18": (lambda: resnet18(16), 32, 3, 701_178),
    "llama-0.85m": (lambda: llama(4, 128, 4, 352), 8, 8, 869_504),
    "llama-4.9m": (lambda: llama(6, 256, 8, 688), 8, 3, 4_877_568),
    "gpt2-0.9m": (lambda: gpt2(4, 128, 4, 512), 8, 8, 842_496),
}


def images(batch: int) -> Iterator[tuple]:
    pixels, classes = torch.rand(10_000, 1, 28, 28), torch.randint(10, (10_000,))
    while True:
        drawn = torch.randint(len(pixels), (batch,))
        yield pixels[drawn], classes[drawn]


def windows(batch: int) -> Iterator[tuple]:
    text = torch.randint(VOCABULARY, (200_000,))
    while True:
        starts = torch.randint(len(text) - CONTEXT, (batch, 1))
        drawn = text[starts + torch.arange(CONTEXT + 1)]
        yield drawn[:, :-1], drawn[:, 1:].flatten()


def main(name: str, rounds: int) -> None:
    torch.set_num_threads(THREADS)
    make, batch, steps, parameters = MODELS[name]
    model = make().train()
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{name}: {count} parameters in PyTorch", file=sys.stderr)
    assert count == parameters, f"{name} has {parameters} parameters in tasks/examples/inner_steps.rs"
    optimizer: torch.optim.Optimizer
    if isinstance(model, Logits):
        data, optimizer = windows(batch), torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        data, optimizer = images(batch), torch.optim.SGD(model.parameters(), lr=0.01)

    def take(steps: int) -> float:
        for _, (x, y) in zip(range(steps), data):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    take(-(-steps // 4))  # as many warm up in the example
    wall, cpu = [], []
    for _ in range(rounds):
        began, spent = time.perf_counter(), time.process_time()
        loss = take(steps)
        wall.append(1e3 * (time.perf_counter() - began) / steps)
        cpu.append(1e3 * (time.process_time() - spent) / steps)
    print(f"{name:<12} {statistics.median(wall):>9.2f} {statistics.median(cpu):>9.2f} {loss:>8.4f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
