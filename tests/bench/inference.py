#!/usr/bin/env python3
"""The inference part of one recording on a GPU: ours beside PyTorch (cuDNN) running the same two networks.

    python3 tests/bench/inference.py PATH/TO/speakrs-app RECORDING.wav [--precision tf32]

PyTorch does what pyannote.audio's pipeline does: windows of 10 s every second in batches of 32; segmentation; then, for
each of the three local speakers of a window, features, one pass of the trunk, and statistics weighted by the speaker's
mask. Its weights are random, which does not change its speed, and the samples are on the GPU from the start. Ours are the
stages `segmentation` and `embedding` of `speakrs-app bench`, which include the copies to the GPU and back.
"""
import argparse
import json
import math
import statistics
import subprocess
import time

import torch
from torch import nn

from trunk import trunk

RATE, WINDOW, STEP, BATCH, SPEAKERS, FRAMES = 16_000, 160_000, 16_000, 32, 3, 589


class Segmentation(nn.Module):
    """segmentation-3.0: its layers and sizes."""

    def __init__(self):
        super().__init__()
        self.wav_norm = nn.InstanceNorm1d(1, affine=True)
        self.convolutions = nn.ModuleList([nn.Conv1d(1, 80, 251, 10, bias=False), nn.Conv1d(80, 60, 5), nn.Conv1d(60, 60, 5)])
        self.norms = nn.ModuleList([nn.InstanceNorm1d(channels, affine=True) for channels in (80, 60, 60)])
        self.lstm = nn.LSTM(60, 128, 4, bidirectional=True, batch_first=True)
        self.linear = nn.ModuleList([nn.Linear(256, 128), nn.Linear(128, 128)])
        self.classifier = nn.Linear(128, 7)

    def forward(self, x):
        x = self.wav_norm(x)
        for index, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            x = convolution(x)
            x = nn.functional.max_pool1d(x.abs() if index == 0 else x, 3)
            x = nn.functional.leaky_relu(norm(x))
        x, _ = self.lstm(x.transpose(1, 2))
        for linear in self.linear:
            x = nn.functional.leaky_relu(linear(x))
        return self.classifier(x).log_softmax(-1)


class Embedding(nn.Module):
    """The trunk with Kaldi features before it, masked statistics and a linear layer behind it."""

    def __init__(self):
        super().__init__()
        self.trunk, self.linear = trunk(), nn.Linear(5120, 256)
        self.register_buffer("window", torch.hamming_window(400, periodic=False))
        self.register_buffer("mel", torch.rand(257, 80))

    def forward(self, samples, mask):
        frames = (samples * 32768).unfold(-1, 400, 160)
        frames = frames - frames.mean(-1, keepdim=True)
        before = nn.functional.pad(frames, (1, 0), mode="replicate")[..., :-1]
        power = torch.fft.rfft((frames - 0.97 * before) * self.window, 512).abs().square()
        features = (power @ self.mel).clamp_min(torch.finfo(torch.float32).eps).log()
        features = features - features.mean(1, keepdim=True)
        maps = self.trunk(features.transpose(1, 2).unsqueeze(1)).flatten(1, 2)
        weights = nn.functional.interpolate(mask.unsqueeze(1), maps.shape[-1], mode="nearest")
        total = weights.sum(-1) + 1e-8
        mean = (maps * weights).sum(-1) / total
        spread = (weights * (maps - mean.unsqueeze(-1)).square()).sum(-1)
        deviation = (spread / (total - weights.square().sum(-1) / total + 1e-8)).sqrt()
        return self.linear(torch.cat([mean, deviation], -1))


def seconds(segmentation, embedding, windows):
    begin = time.perf_counter()
    with torch.inference_mode():
        scores = torch.cat([segmentation(batch.unsqueeze(1)).cpu() for batch in windows.split(BATCH)])
        middle = time.perf_counter()
        tracks = (scores.argmax(-1, keepdim=True) % torch.tensor([2, 3, 5]) > 0).float().transpose(1, 2)
        pairs = [(window, track) for window in range(len(windows)) for track in range(SPEAKERS)]
        for first in range(0, len(pairs), BATCH):
            batch = pairs[first : first + BATCH]
            masks = torch.stack([tracks[window, track] for window, track in batch]).cuda()
            embedding(torch.stack([windows[window] for window, _ in batch]), masks).cpu()
    end = time.perf_counter()
    return middle - begin, end - middle


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("recording")
    arguments.add_argument("--precision", default="tf32", choices=["fp32", "tf32"])
    arguments = arguments.parse_args()
    ours = {}
    for mode in ("accurate", "fast"):
        command = [arguments.program, "bench", "--format", "json", "--device", "cuda", "--mode", mode, "--precision", arguments.precision, arguments.recording]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        duration = report["audio"]
        ours[mode] = {name: report["stages"][name] for name in ("segmentation", "embedding")}
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = arguments.precision == "tf32"
    count = max(math.ceil((duration * RATE - WINDOW) / STEP) + 1, 1)
    samples = torch.randn(WINDOW + (count - 1) * STEP, device="cuda") * 0.05
    windows = samples.unfold(0, WINDOW, STEP)
    segmentation, embedding = Segmentation().cuda().eval(), Embedding().cuda().eval()
    seconds(segmentation, embedding, windows[:64])
    runs = [seconds(segmentation, embedding, windows) for _ in range(2)]
    peer = [statistics.median(part) for part in zip(*runs)]
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {arguments.precision}, {duration:.0f} s of audio")
    print(f"PyTorch: segmentation {peer[0]:.3f} s, embedding {peer[1]:.3f} s")
    for mode, stages in ours.items():
        ratio = sum(peer) / sum(stages.values())
        print(f"ours, {mode}: segmentation {stages['segmentation']:.3f} s, embedding {stages['embedding']:.3f} s, {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
