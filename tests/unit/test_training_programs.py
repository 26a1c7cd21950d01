"""The files of the training programs. `make training` runs them with PyTorch, which is not installed here."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from unittest.mock import MagicMock

import pytest

TRAINING = "components.workloads.training"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHERS = ("ray", "ray.train", "ray.train.torch", "datasets", "peft", "transformers", "torch.nn", "torch.nn.parallel")


@pytest.fixture
def packages() -> Iterator[dict[str, MagicMock]]:
    """The packages that the programs use, by name, and newly loaded programs."""
    found = {name: MagicMock() for name in ("torch", *OTHERS)}
    with pytest.MonkeyPatch.context() as patch:
        for name, package in found.items():
            patch.setitem(sys.modules, name, package)
        for name in ("checkpoints", "finetune"):
            sys.modules.pop(f"{TRAINING}.{name}", None)
        yield found
        for name in ("checkpoints", "finetune"):
            sys.modules.pop(f"{TRAINING}.{name}", None)


def whole(state: object, file: IO[bytes]) -> None:
    file.write(b"weights")


def killed(state: object, file: IO[bytes]) -> None:
    file.write(b"wei")
    raise KeyboardInterrupt


def test_what_is_left_of_a_checkpoint_that_was_never_whole_fills_no_volume(
    packages: dict[str, MagicMock], tmp_path: Path
) -> None:
    """Preemptions occur at any step, so each could leave its own file."""
    torch = packages["torch"]
    torch.save = whole
    checkpoints: Any = import_module(f"{TRAINING}.checkpoints").Checkpoints(tmp_path)
    checkpoints.save(100, {})
    torch.save = killed
    for step in (131, 152):
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(step, {})
        assert names(tmp_path) == ["step-00000100.pt", f"step-{step:08d}.partial"]
    torch.save = whole
    for step in (200, 300):
        checkpoints.save(step, {})
    assert names(tmp_path) == ["step-00000200.pt", "step-00000300.pt"]


def test_weights_that_may_run_code_are_not_loaded(packages: dict[str, MagicMock], tmp_path: Path) -> None:
    packages["transformers"].AutoModelForCausalLM.from_pretrained.side_effect = KeyboardInterrupt
    options = Namespace(model="somebody/model", model_revision=COMMIT, folder=tmp_path, rank=16)
    with pytest.raises(KeyboardInterrupt):
        import_module(f"{TRAINING}.finetune").Tuning(options)
    ((model,), asked) = packages["transformers"].AutoModelForCausalLM.from_pretrained.call_args
    assert model == "somebody/model"
    assert asked["use_safetensors"] is True
    assert "trust_remote_code" not in asked


def test_model_tokenizer_and_data_are_of_the_revisions_that_were_named(
    packages: dict[str, MagicMock], tmp_path: Path
) -> None:
    """The adapter, too, says which weights it belongs to: PEFT loads it onto them."""
    options = Namespace(model="somebody/model", model_revision=COMMIT, dataset="somebody/data", dataset_revision="v2")
    vars(options).update(subset=None, folder=tmp_path, rank=16, learning_rate=1e-4, context=512)
    packages["datasets"].load_dataset.return_value = [{"question": "Why?"}]
    import_module(f"{TRAINING}.finetune").Tuning(options)
    hub = packages["transformers"]
    for loaded in (hub.AutoTokenizer.from_pretrained, hub.AutoModelForCausalLM.from_pretrained):
        assert loaded.call_args.args == ("somebody/model",)
        assert loaded.call_args.kwargs["revision"] == COMMIT
    assert packages["peft"].get_peft_model.call_args.kwargs == {"revision": COMMIT}
    loaded = packages["datasets"].load_dataset.call_args
    assert loaded.args == ("somebody/data", None)
    assert loaded.kwargs == {"split": "train", "revision": "v2"}, "no code of the data set's either"


def test_checkpoints_of_another_revision_are_refused(packages: dict[str, MagicMock], tmp_path: Path) -> None:
    program = import_module(f"{TRAINING}.finetune")
    options = {"model": "somebody/model", "dataset": "somebody/data", "dataset_revision": "main", "subset": None}
    options |= {"folder": tmp_path, "rank": 16, "learning_rate": 1e-4, "context": 512}
    packages["datasets"].load_dataset.return_value = [{"question": "Why?"}]
    before = program.Tuning(Namespace(**options, model_revision="main"))._state(100)
    after = program.Tuning(Namespace(**options, model_revision=COMMIT))
    after.checkpoints.newest = lambda: before
    with pytest.raises(ValueError, match=f"somebody/model at main .*This is somebody/model at {COMMIT}"):
        after._resume()


def test_what_leaves_no_room_for_an_answer_is_not_trained_on(packages: dict[str, MagicMock], tmp_path: Path) -> None:
    """The loss of a batch of such texts is the mean of no values, which would get into the weights."""
    module = import_module(f"{TRAINING}.finetune")

    def tokenizer(text: str) -> dict[str, list[str]]:
        return {"input_ids": text.split()}

    entries = [{"question": "what " * words} for words in (1, 8, 5, 6)]
    assert module.with_room(entries, tokenizer, 8) == [0, 2], "two words are around each question"
    packages["transformers"].AutoTokenizer.from_pretrained.return_value = MagicMock(side_effect=tokenizer)
    packages["datasets"].load_dataset.return_value = entries
    options = Namespace(model="a/model", model_revision="main", dataset="a/dataset", dataset_revision="main")
    vars(options).update(subset=None, folder=tmp_path, rank=4, context=3, learning_rate=0.1)
    with pytest.raises(ValueError, match="no question of a/dataset leaves room for an answer in 3 tokens"):
        module.Tuning(options)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
