"""One model, many threads and processes: the bits of each call alone."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import random_batch, save

import locant

SMALL = {"vocab_size": 50, "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 48}
ROTATED = {**SMALL, "num_key_value_heads": 1, "max_position_embeddings": 64, "eos_token_id": None}


@pytest.fixture(scope="module", params=["bert", "llama"])
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    if request.param == "bert":
        save(hf.BertModel, hf.BertConfig(**SMALL), path)
    else:
        save(hf.LlamaForCausalLM, hf.LlamaConfig(**ROTATED), path)
    return path


def result(model, n):
    ids, mask, _ = random_batch(50, [n + 1, 30 - n], seed=n)
    out = model(ids, mask)
    return np.asarray(out.logits if out.get("logits") is not None else out.last_hidden_state)


def run_together(*works):
    """All at once; the first error of any of them."""
    errors = []

    def guarded(work):
        try:
            work()
        except Exception as error:  # noqa: BLE001: told by the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_beside_torch_s_pool_and_changing_counts(folder):
    model = locant.load(folder)
    expected = [result(model, n) for n in range(6)]
    a = torch.randn(200, 200, dtype=torch.float64)
    product = a @ a

    def ours(n):
        for _ in range(8):
            np.testing.assert_array_equal(result(model, n), expected[n])

    def theirs():
        for _ in range(30):
            assert torch.allclose(a @ a, product)

    def settings():
        for threads in (1, 3, 64, 2) * 5:
            locant.set_num_threads(threads)

    run_together(*[lambda n=n: ours(n) for n in range(6)], theirs, settings)


def test_errors_stay_with_their_thread(folder):
    model = locant.load(folder)
    expected = result(model, 3)

    def right():
        for _ in range(20):
            np.testing.assert_array_equal(result(model, 3), expected)

    def wrong():
        for _ in range(20):
            with pytest.raises(ValueError, match=r"\[model\] ids\[0\]\[1\] is 50 but must be"):
                model([[1, 50]])

    run_together(right, wrong, right, wrong)


def test_a_forked_child_runs_the_model_of_its_parent(folder):
    """Also one that torch has started threads in."""
    code = (
        "import os, sys, numpy, torch, locant\n"
        f"model = locant.load({str(folder)!r})\n"
        "locant.set_num_threads(3)\n"
        "torch.randn(300, 300) @ torch.randn(300, 300)\n"
        "run = lambda: next(iter(model([[1, 2, 3], [4, 5, 6]]).values()))\n"
        "want = numpy.asarray(run())\n"
        "pids = []\n"
        "for _ in range(3):\n"
        "    pids.append(os.fork())\n"
        "    if pids[-1] == 0: os._exit(0 if numpy.array_equal(run(), want) else 1)\n"
        "codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]\n"
        "sys.exit(any(codes) or not numpy.array_equal(run(), want))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
