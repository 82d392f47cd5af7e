#!/usr/bin/env python3
"""Checks the CUDA kernels of segmentation-3.0 against references in FP64 and times them.

    python3 tests/bench/segmentation.py [--batches 32,64,128,264] [--no-time] [--model FILE] [--audio FILE]

Needs an NVIDIA GPU, PyTorch with CUDA and an NVRTC library. The weights are the real ones, the audio is a file of raw FP32
samples or made up. Errors are printed beside those of PyTorch in FP32 on the same input; results must have the same bits
on repeat and whatever the batch.
"""
import argparse
import ctypes
import math
import os
import sys

import torch
from torch.nn import functional as F

from kernels import T, ceil, launch, microseconds, stream

HERE = os.path.dirname(os.path.abspath(__file__))
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
SAMPLES, FRAMES, SCALE = T["SEG_SAMPLES"], T["SEG_FRAMES"], T["SPLIT_SCALE"]
CAPABILITY = torch.cuda.get_device_capability(0)


def struct(name, fields):
    kinds = {"p": ctypes.c_void_p, "Q": ctypes.c_uint64, "I": ctypes.c_uint32, "f": ctypes.c_float}
    pairs = [field.split(":") for field in fields.split()]
    return type(name, (ctypes.Structure,), {"_fields_": [(n, kinds[k]) for n, k in pairs]})


WaveArgs = struct("WaveArgs", "samples:p count:Q first:Q step:Q norm:p gamma:f beta:f")
SincFilterArgs = struct("SincFilterArgs", "samples:p count:Q first:Q step:Q filters:p out:p outputs:I padding:I")
SincPoolArgs = struct("SincPoolArgs", "filtered:p norm:p sums:p out:p partial:p first:Q step:Q")
NormArgs = struct("NormArgs", "partial:p gamma:p beta:p norm:p frames:I tile:I channels:I width:I")
TimeConvArgs = struct("TimeConvArgs", "x:p norm:p w:p bias:p out:p partial:p frames_in:I frames_out:I")
SplitArgs = struct("SplitArgs", "x:p norm:p out:p frames:I batch:I")
ProjectArgs = struct("ProjectArgs", "x:p w:p bias:p out:p rows:I width:I")
LstmArgs = struct("LstmArgs", "projected:p w:p out:p batch:I steps:I")
ClassifyArgs = struct("ClassifyArgs", "x:p w1:p bias1:p w2:p bias2:p w3:p bias3:p log_probabilities:p classes:p rows:I padding:I")
SplitPackArgs = struct(
    "SplitPackArgs", "w:p bias:p packed:p packed_bias:p rows:I channels:I taps:I width:I columns:I first:I count:I gates:I"
)
RecurrentPackArgs = struct("RecurrentPackArgs", "w:p packed:p")


def empty(*shape, dtype=torch.float32):
    """Unwritten values show as NaN or -1."""
    return torch.full(shape, float("nan") if dtype.is_floating_point else 255, device="cuda", dtype=dtype)


def joined(split):
    """[.., 2, width] of FP16 to FP64."""
    return split.double().sum(-2)


# --- the model -----------------------------------------------------------------------------------------------------


def load(path):
    import safetensors.torch

    return {name: value.float().cuda().contiguous() for name, value in safetensors.torch.load_file(path).items()}


class Reference:
    """The network in PyTorch, in any precision."""

    def __init__(self, w, dtype):
        self.w, self.dtype = {name: value.to(dtype) for name, value in w.items()}, dtype
        self.lstm = torch.nn.LSTM(60, 128, 4, bidirectional=True, batch_first=True).to("cuda", dtype)
        with torch.no_grad():
            for name, value in self.lstm.named_parameters():
                value.copy_(self.w[f"lstm.{name}"])
        self.lstm.flatten_parameters()

    def norm(self, x, name):
        return F.instance_norm(x, weight=self.w[f"{name}.weight"], bias=self.w[f"{name}.bias"], eps=1e-5)

    def front(self, windows):
        """[batch, samples] to the raw outputs of the three poolings and the last normalised one, channels last."""
        w = self.w
        x = self.norm(windows.to(self.dtype)[:, None], "sincnet.wav_norm1d")
        raw = [F.max_pool1d(F.conv1d(x, w["sincnet.conv1d.0.materialised_filters"], stride=10).abs(), 3)]
        x = F.leaky_relu(self.norm(raw[0], "sincnet.norm1d.0"))
        for i in (1, 2):
            raw.append(F.max_pool1d(F.conv1d(x, w[f"sincnet.conv1d.{i}.weight"], w[f"sincnet.conv1d.{i}.bias"]), 3))
            x = F.leaky_relu(self.norm(raw[-1], f"sincnet.norm1d.{i}"))
        return [r.transpose(1, 2) for r in raw], x.transpose(1, 2)

    def recur(self, x):
        with torch.backends.cudnn.flags(enabled=self.dtype == torch.float32, allow_tf32=False):
            return self.lstm(x.contiguous())[0]

    def classify(self, x):
        w = self.w
        for i in (0, 1):
            x = F.leaky_relu(F.linear(x, w[f"linear.{i}.weight"], w[f"linear.{i}.bias"]))
        return F.log_softmax(F.linear(x, w["classifier.weight"], w["classifier.bias"]), -1)


class Segmentation:
    """The network through the kernels; buffers for at most `batch` windows."""

    def __init__(self, w, batch):
        self.w = w
        filters = w["sincnet.conv1d.0.materialised_filters"].view(80, 251)
        self.filters = F.pad(filters.T, (0, 0, 0, T["SINC_TAPS_PADDED"] - 251)).contiguous()
        self.sums = filters.double().sum(1).float()
        self.convs = [self.pack(f"sincnet.conv1d.{i}", 64, c, taps=5, width=p) for i, c, p in ((1, 80, 80), (2, 60, 64))]
        self.projections = [self.pack_projections(layer) for layer in range(4)]
        self.recurrent = [self.pack_recurrent(layer) for layer in range(4)]
        self.linears = [self.pack(f"linear.{i}", 128, c) for i, c in ((0, 256), (1, 128))]
        self.tiles = [ceil(T["SINC_FRAMES"], T["SINC_POOL_TILE"]), ceil(T["SINC_FRAMES2"], 32), ceil(FRAMES, 32)]
        self.frames, self.widths = [T["SINC_FRAMES"], T["SINC_FRAMES2"], FRAMES], [80, 64, 64]
        self.wave = empty(batch, 2)
        self.raw = [empty(batch, f, c) for f, c in zip(self.frames, self.widths)]
        self.partial = [empty(batch, t, c, 2) for t, c in zip(self.tiles, self.widths)]
        self.norms = [empty(batch, c, 4) for c in self.widths]
        self.x0 = empty(batch * FRAMES, 2, 64, dtype=torch.float16)
        self.projected = empty(batch * FRAMES, 1024)
        self.x = [empty(batch * FRAMES, 2, 256, dtype=torch.float16) for _ in range(2)]
        self.log_probabilities, self.classes = empty(batch, FRAMES, 7), empty(batch, FRAMES, dtype=torch.uint8)
        self.filtered = None

    def launch_pack(self, w, bias, packed, packed_bias, rows, channels, taps, width, columns, first, count, gates):
        threads = taps * width // 16 * count // 8 * 32
        args = SplitPackArgs(w.data_ptr(), bias.data_ptr(), packed.data_ptr(), packed_bias.data_ptr(), rows, channels, taps, width, columns, first, count, gates)
        launch("split_pack.cu", "pack_split", (ceil(threads, 256), 1, 1), 256, 0, stream(), args)

    def pack(self, name, columns, channels, taps=1, width=None):
        w, bias, width = self.w[f"{name}.weight"], self.w[f"{name}.bias"], width or channels
        packed, packed_bias = empty(taps * width // 16, columns // 8, 32, 4), empty(columns)
        self.launch_pack(w, bias, packed, packed_bias, len(bias), channels, taps, width, columns, 0, columns, 0)
        return packed, packed_bias

    def pack_projections(self, layer):
        channels, width = (60, 64) if layer == 0 else (256, 256)
        packed, packed_bias = empty(width // 16, 128, 32, 4), empty(1024)
        for direction, suffix in enumerate(("", "_reverse")):
            bias = self.w[f"lstm.bias_ih_l{layer}{suffix}"] + self.w[f"lstm.bias_hh_l{layer}{suffix}"]
            w = self.w[f"lstm.weight_ih_l{layer}{suffix}"]
            self.launch_pack(w, bias, packed, packed_bias, 512, channels, 1, width, 1024, 512 * direction, 512, 1)
        torch.cuda.synchronize()
        return packed, packed_bias

    def pack_recurrent(self, layer):
        packed = empty(2, 2, 8, 4, 8, 32, 4)
        for direction, suffix in enumerate(("", "_reverse")):
            args = RecurrentPackArgs(self.w[f"lstm.weight_hh_l{layer}{suffix}"].data_ptr(), packed[direction].data_ptr())
            launch("split_pack.cu", "pack_recurrent", (32, 1, 1), 256, 0, stream(), args)
        return packed

    def stages(self, samples, first, step, batch):
        """Names and launches of all stages for `batch` windows, `step` samples apart."""
        w, shared = self.w, step % 10 == 0
        segments, outputs = (1, (batch - 1) * step // 10 + T["SINC_OUTPUTS"]) if shared else (batch, T["SINC_OUTPUTS"])
        if self.filtered is None or len(self.filtered) != segments * outputs:
            self.filtered = empty(segments * outputs, 80)
        count, rows = len(samples), batch * FRAMES
        wave = WaveArgs(samples.data_ptr(), count, first, step, self.wave.data_ptr(), w["sincnet.wav_norm1d.weight"].item(), w["sincnet.wav_norm1d.bias"].item())
        filters = SincFilterArgs(samples.data_ptr(), count, first, step, self.filters.data_ptr(), self.filtered.data_ptr(), outputs, 0)
        pool = SincPoolArgs(self.filtered.data_ptr(), self.wave.data_ptr(), self.sums.data_ptr(), self.raw[0].data_ptr(), self.partial[0].data_ptr(),
                            0, step // 10 if shared else outputs)
        stages = [
            ("wave_moments", lambda s: launch("sincnet.cu", "wave_moments", (batch, 1, 1), T["MOMENT_THREADS"], 0, s, wave)),
            ("sinc_filter", lambda s: launch("sincnet.cu", "sinc_filter", (ceil(outputs, T["SINC_TILE"]), segments, 1), T["SINC_THREADS"], 0, s, filters)),
            ("sinc_pool", lambda s: launch("sincnet.cu", "sinc_pool", (self.tiles[0], batch, 1), T["SINC_POOL_THREADS"], 0, s, pool)),
        ]

        def finish(i):
            name, tile, channels = f"sincnet.norm1d.{i}", T["SINC_POOL_TILE"] if i == 0 else 32, 80 if i == 0 else 60
            args = NormArgs(self.partial[i].data_ptr(), w[f"{name}.weight"].data_ptr(), w[f"{name}.bias"].data_ptr(), self.norms[i].data_ptr(),
                            self.frames[i], tile, channels, self.widths[i])
            stages.append(("norm_factors", lambda s: launch("sincnet.cu", "norm_factors", (batch, 1, 1), T["NORM_THREADS"], 0, s, args)))

        finish(0)
        for i, entry in ((0, "time_conv80"), (1, "time_conv60")):
            packed, bias = self.convs[i]
            args = TimeConvArgs(self.raw[i].data_ptr(), self.norms[i].data_ptr(), packed.data_ptr(), bias.data_ptr(), self.raw[i + 1].data_ptr(),
                                self.partial[i + 1].data_ptr(), self.frames[i], self.frames[i + 1])
            stages.append((entry, lambda s, entry=entry, args=args, i=i: launch("sincnet.cu", entry, (self.tiles[i + 1], batch, 1), T["TIME_CONV_THREADS"], 0, s, args)))
            finish(i + 1)
        split = SplitArgs(self.raw[2].data_ptr(), self.norms[2].data_ptr(), self.x0.data_ptr(), FRAMES, batch)
        stages.append(("normalise_split", lambda s: launch("sincnet.cu", "normalise_split", (ceil(rows * 16, 256), 1, 1), 256, 0, s, split)))
        x = self.x0
        for layer in range(4):
            out = self.x[layer % 2]
            packed, bias = self.projections[layer]
            project = ProjectArgs(x.data_ptr(), packed.data_ptr(), bias.data_ptr(), self.projected.data_ptr(), rows, x.shape[2])
            recur = LstmArgs(self.projected.data_ptr(), self.recurrent[layer].data_ptr(), out.data_ptr(), batch, FRAMES)
            shared_bytes = T["PROJECT_SHARED" if CAPABILITY >= (8, 0) else "PROJECT_SHARED_75"]
            stages.append(("lstm_project", lambda s, a=project: launch("lstm.cu", "lstm_project", (8, ceil(rows, T["PROJECT_TILE"]), 1), T["PROJECT_THREADS"], shared_bytes, s, a)))
            stages.append(("lstm", lambda s, a=recur: launch("lstm.cu", "lstm", (ceil(batch, T["LSTM_WINDOWS"]), 2, 1), T["LSTM_THREADS"], T["LSTM_SHARED"], s, a)))
            x = out
        (w1, b1), (w2, b2) = self.linears
        args = ClassifyArgs(x.data_ptr(), w1.data_ptr(), b1.data_ptr(), w2.data_ptr(), b2.data_ptr(), w["classifier.weight"].data_ptr(), w["classifier.bias"].data_ptr(),
                            self.log_probabilities.data_ptr(), self.classes.data_ptr(), rows, 0)
        stages.append(("classify", lambda s: launch("classify.cu", "classify", (ceil(rows, T["CLASSIFY_ROWS"]), 1, 1), T["CLASSIFY_THREADS"], 0, s, args)))
        return stages

    def run(self, samples, first, step, batch):
        for _, go in self.stages(samples, first, step, batch):
            go(stream())
        torch.cuda.synchronize()
        return self.log_probabilities[:batch].clone(), self.classes[:batch].clone()


def made_up(seconds):
    """Bursts of tones in noise at changing loudness, with silence and an offset."""
    n = seconds * 16000
    t = torch.arange(n, device="cuda", dtype=torch.float64) / 16000
    loud = (torch.sin(2 * math.pi * 0.13 * t) * torch.sin(2 * math.pi * 1.7 * t)).clamp(min=0) ** 2
    voice = sum(torch.sin(2 * math.pi * k * (120 + 30 * torch.sin(2 * math.pi * 0.3 * t)) * t) / k for k in range(1, 20))
    return (0.1 * loud * voice + 0.003 * torch.randn(n, device="cuda") + 0.002).float()


def cut(samples, first, step, batch):
    padded = F.pad(samples, (0, max(0, first + (batch - 1) * step + SAMPLES - len(samples))))
    return torch.stack([padded[first + i * step :][:SAMPLES] for i in range(batch)])


def worst(a, b):
    return (a.double() - b.double()).abs().nan_to_num(nan=float("inf")).max().item()


def report(name, ok, text):
    print(f"{name:34s} {text}{'' if ok else ' FAILED'}", flush=True)
    return not ok


def check_segmentation(w, samples):
    failures, batch, step, first = 0, 6, 16000, 1234
    samples = samples[: first + (batch - 1) * step + SAMPLES - 40000]  # the last windows end in zeros
    ours, exact, plain = Segmentation(w, batch), Reference(w, torch.float64), Reference(w, torch.float32)
    scores, classes = ours.run(samples, first, step, batch)
    windows = cut(samples, first, step, batch)
    with torch.no_grad():
        raw, x = exact.front(windows)
        plain_raw, plain_x = plain.front(windows)
        for i, name in enumerate(("sinc", "conv1", "conv2")):
            c = 80 if i == 0 else 60
            size = raw[i].abs().max().item()
            e, f = worst(ours.raw[i][..., :c], raw[i]) / size, worst(plain_raw[i], raw[i]) / size
            failures += report(f"raw {name}", e <= 2e-5 and e == e, f"error over largest value {e:.1e}, PyTorch FP32 {f:.1e}")
        got = joined(ours.x0).view(batch, FRAMES, 64)[..., :60]
        e, f = worst(got, x), worst(plain_x, x)
        failures += report("front, end to end", e <= 2e-4, f"largest error {e:.1e}, PyTorch FP32 {f:.1e}, largest value {x.abs().max().item():.1f}")
        hidden, last = exact.recur(x), joined(ours.x[1]).view(batch, FRAMES, 256)
        e, f = worst(last, hidden), worst(plain.recur(plain_x), hidden)
        failures += report("LSTM, end to end", e <= 1e-4, f"largest error {e:.1e}, cuDNN FP32 {f:.1e}")
        alone, f = exact.recur(got), worst(plain.recur(got.float()), exact.recur(got.float().double()))
        failures += report("LSTM, of our front", worst(last, alone) <= 5e-5, f"largest error {worst(last, alone):.1e}, cuDNN FP32 {f:.1e}")
        e, f = worst(scores, exact.classify(last)), worst(plain.classify(last.float()), exact.classify(last))
        failures += report("linears, of our LSTM", e <= 5e-5, f"largest error {e:.1e}, PyTorch FP32 {f:.1e}")
        truth = exact.classify(hidden)
        e, f = worst(scores, truth), worst(plain.classify(plain.recur(plain_x)), truth)
        wrong, plain_wrong = [(s.argmax(-1) != truth.argmax(-1)).sum().item() for s in (scores, plain.classify(plain.recur(plain_x)))]
        failures += report("log-probabilities, end to end", e <= 5e-4, f"largest error {e:.1e}, PyTorch FP32 {f:.1e}; other classes {wrong}, {plain_wrong} of {batch * FRAMES}")
    failures += report("classes are the first maximum", torch.equal(classes.long(), scores.argmax(-1)), f"{classes.unique().tolist()}")
    again = ours.run(samples, first, step, batch)
    failures += report("equal bits on repeat", torch.equal(again[0], scores), "")
    alone = ours.run(samples, first + 4 * step, step, 1)
    failures += report("equal bits alone", torch.equal(alone[0][0], scores[4]), "")
    odd = ours.run(samples, first, 16001, 2)
    failures += report("step not a multiple of 10", torch.equal(odd[0][0], scores[0]) and not odd[0].isnan().any().item(), "")
    with torch.no_grad():
        w2 = cut(samples, first, 16001, 2)
        e = worst(odd[0], exact.classify(exact.recur(exact.front(w2)[1])))
    failures += report("  log-probabilities", e <= 5e-4, f"largest error {e:.1e}")
    return failures


def time_segmentation(w, samples, batches):
    plain = Reference(w, torch.float32)
    for batch in batches:
        ours, step = Segmentation(w, batch), 16000
        need = (batch - 1) * step + SAMPLES
        audio = samples.repeat(ceil(need, len(samples)))[:need].contiguous()
        stages, times = ours.stages(audio, 0, step, batch), {}
        for _, go in stages:
            go(stream())
        for name, go in stages:
            times[name] = times.get(name, 0.0) + microseconds(go, 3 if name == "lstm" else 5)
        total = microseconds(lambda s: [go(s) for _, go in stages], 2)
        line = ", ".join(f"{name} {t / batch:.2f}" for name, t in times.items())
        print(f"b{batch}: {total / batch:.1f} us/window together ({total / 1e3:.2f} ms); {line}", flush=True)
        x = torch.randn(batch, FRAMES, 60, device="cuda")
        with torch.no_grad():
            plain.recur(x)
            library = []
            for _ in range(3):
                begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
                begin.record()
                plain.recur(x)
                end.record()
                end.synchronize()
                library.append(begin.elapsed_time(end) * 1e3)
        print(f"     cuDNN LSTM FP32 {min(library) / batch:.1f} us/window; ours {(times['lstm_project'] + times['lstm']) / batch:.1f}", flush=True)
        del ours, stages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="32,64,128,264")
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--model", default=os.path.join(HERE, "..", "..", "models", "segmentation-3.0", "segmentation-3.0.safetensors"))
    parser.add_argument("--audio")
    options = parser.parse_args()
    torch.manual_seed(os.getpid())
    print(torch.cuda.get_device_name(0), "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version(), flush=True)
    samples = made_up(60)
    if options.audio:
        samples = torch.frombuffer(bytearray(open(options.audio, "rb").read()), dtype=torch.float32).cuda()
    w = load(options.model)
    failures = check_segmentation(w, samples)
    if not options.no_time:
        time_segmentation(w, samples, [int(b) for b in options.batches.split(",")])
    print("FAILED:" if failures else "all passed:", failures, "failures")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
