"""Several processes: gradients averaged over copies of a model, and parameters that are sharded, on the processor."""
import json
import subprocess
import sys

import numpy
import pytest

from conftest import EXAMPLES, example

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `pip install torch` into the environment to test with it")


@pytest.mark.parametrize("shard", [False, True], ids=["copied", "sharded"])
@pytest.mark.parametrize("style", ["operators", "compile"])
def test_two_processes_follow_the_losses_of_one(style, shard):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", EXAMPLES / "distributed.py",
               "--style", style, "--steps", "10", *(["--shard"] if shard else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=on_the_processor())
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert report["processes"] == 2 and report["shard"] == shard
    gpt = example("distributed")
    numpy.testing.assert_allclose(report["losses"], gpt.train(gpt.make("eager", "cpu"), "cpu", steps=10), rtol=1e-3)


def on_the_processor():
    import os
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
