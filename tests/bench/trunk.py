#!/usr/bin/env python3
"""The trunk on a GPU: our whole pass beside PyTorch's (cuDNN), on the same shapes in the same run.

    python3 tests/bench/trunk.py PATH/TO/bench_gpu [bench_gpu's arguments]

PyTorch runs what we run: 36 convolutions with folded batch normalisation, residuals and ReLU, in a CUDA graph, with
cudnn.benchmark, in the faster of both memory layouts. Prints microseconds per 10 s window and the ratio.
"""
import json
import statistics
import subprocess
import sys

import torch
from torch import nn

STAGES = [(32, 3), (64, 4), (128, 6), (256, 3)]


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = self.conv2(torch.relu_(self.conv1(x)))
        return torch.relu_(y.add_(self.shortcut(x)))


def trunk():
    layers, inputs = [nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU(inplace=True)], 32
    for stage, (channels, blocks) in enumerate(STAGES):
        for index in range(blocks):
            layers.append(Block(inputs, channels, 2 if stage and not index else 1))
            inputs = channels
    return nn.Sequential(*layers)


def microseconds(model, x):
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
        times = []
        for _ in range(8):
            begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
            begin.record()
            for _ in range(10):
                graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 100)
    return statistics.median(times[1:])


def main():
    lines = [json.loads(line) for line in subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout.splitlines()]
    for line in lines:
        print(json.dumps(line))
    ours = {(line["pass"], line["batch"]): line["us"] for line in lines if line.get("width") == 998}
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    for precision in ("fp32", "tf32", "fp16"):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        dtype = torch.float16 if precision == "fp16" else torch.float32
        for batch in (1, 8, 32):
            best = float("inf")
            for memory in (torch.contiguous_format, torch.channels_last):
                model = trunk().cuda().to(dtype).to(memory_format=memory).eval()
                x = torch.rand(batch, 1, 80, 998, device="cuda", dtype=dtype).to(memory_format=memory)
                best = min(best, microseconds(model, x) / batch)
            us = ours[precision, batch]
            print(f"{precision} batch {batch:2d}: cuDNN {best:7.1f} us/window, ours {us:7.1f}, {best / us:.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
