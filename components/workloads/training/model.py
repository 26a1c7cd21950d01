"""A language model of bytes: GPT-2's decoder, with layer norms before attention and before the perceptron.

Source: Radford et al., Language Models are Unsupervised Multitask Learners, section 2.3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from components.workloads.training.texts import VOCABULARY


class Decoder(nn.Module):
    """Predict the next byte after each byte of a text.

    layers: number of attention layers. width: dimensions of the embedding, divided among the heads. context: bytes of
    the longest text.
    """

    def __init__(self, *, layers: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.apply(_initialized)

    def forward(self, text: Tensor) -> Tensor:
        """Return logits of shape (texts, bytes, VOCABULARY) of texts of shape (texts, bytes)."""
        places = torch.arange(text.shape[1], device=text.device)
        hidden = self.tokens(text) + self.positions(places)
        for block in self.blocks:
            hidden = block(hidden)
        return functional.linear(self.norm(hidden), self.tokens.weight)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.before_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden: Tensor) -> Tensor:
        texts, places, width = hidden.shape
        parts = self.projection(self.before_attention(hidden)).chunk(3, dim=-1)
        query, key, value = (part.view(texts, places, self.heads, -1).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.attended(seen.transpose(1, 2).reshape(texts, places, width))
        return hidden + self.perceptron(self.before_perceptron(hidden))


def _initialized(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
