"""Create a granite model of a few thousand weights, its tokenizer, and questions with answers, in a folder.

The same calls load models in this form from the hub. Runs in the environment of the group `training`.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GraniteConfig, GraniteForCausalLM, PreTrainedTokenizerFast

_NUMBERS = range(20)


def make(folder: Path) -> None:
    """Write them into the folders `model` and `data`."""
    entries = [{"question": f"What is {a} plus {b}?", "answer": str(a + b)} for a in _NUMBERS for b in _NUMBERS]
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "train.jsonl").write_text("\n".join(json.dumps(entry) for entry in entries))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<end>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator([entry["question"] for entry in entries], trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder / "model")
    config = GraniteConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    GraniteForCausalLM(config).save_pretrained(folder / "model")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
