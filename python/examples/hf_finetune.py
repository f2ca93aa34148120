"""A tiny Llama with the Trainer of transformers, on the bytes of a text file.

    pip install torch transformers accelerate
    murmurate local --nodes 4 --rounds 20 -- python python/examples/hf_finetune.py TEXT

For a model of yours, take `AutoModelForCausalLM.from_pretrained(...)` and tokens in place of bytes.
"""

import os
import sys
import tempfile

import numpy as np
from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments, set_seed

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import murmurate.hf as mh  # noqa: E402

LENGTH = 64
with open(sys.argv[1], "rb") as file:
    text = np.frombuffer(file.read(), np.uint8).astype(np.int64)
pieces = text[: len(text) // LENGTH * LENGTH].reshape(-1, LENGTH)
rows = [{"input_ids": piece, "labels": piece} for piece in pieces]
index, of = mh.shard()
train, held = rows[:-32][index::of], rows[-32:]

set_seed(mh.seed())
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
    )
)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        max_steps=10_000,  # the run ends before
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=3e-3,
        warmup_steps=10,
        seed=mh.seed(),
        data_seed=mh.seed() + index,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = mh.SwarmTrainer(model, arguments, train_dataset=train, eval_dataset=held)
    trainer.train()
