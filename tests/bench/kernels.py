#!/usr/bin/env python3
"""Checks every CUDA kernel of kernels/ against a reference in FP64 and times it, beside cuDNN on the same shapes.

    python3 tests/bench/kernels.py [PATTERN] [--batches 1,32] [--no-check] [--cudnn]

Needs an NVIDIA GPU, PyTorch with CUDA and an NVRTC library (that of PyTorch's CUDA packages serves). Inputs are fresh
random numbers; a kernel fails if its error exceeds the bound for its arithmetic and the length of its contraction, if a
repeat gives other bits, or if an output is left unwritten.
"""
import argparse
import ctypes
import glob
import os
import re
import statistics
import sys

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernels")
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.zeros(1, device="cuda")
cuda = ctypes.CDLL("libcuda.so.1")
SMS = torch.cuda.get_device_properties(0).multi_processor_count
CAPABILITY = torch.cuda.get_device_capability(0)


def nvrtc():
    found = [p for d in sys.path for p in glob.glob(os.path.join(d, "nvidia", "*", "lib", "libnvrtc.so.1[23]"))]
    return ctypes.CDLL((found + ["libnvrtc.so"])[0])


def compiled(file, cache={}):
    """The loaded module of one source file."""
    if file in cache:
        return cache[file]
    lib, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    source = open(os.path.join(ROOT, file), "rb").read()
    lib.nvrtcCreateProgram(ctypes.byref(program), source, file.encode(), 0, None, None)
    arch = "sm_90a" if CAPABILITY == (9, 0) else "sm_%d%d" % CAPABILITY
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"-I{ROOT}", "-default-device"]
    status = lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    if status:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, cubin)
    module = ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), cubin), file)
    return cache.setdefault(file, module)


def check(status, what):
    if status:
        raise RuntimeError(f"{what}: CUDA error {status}")


def constants():
    return {m[1]: int(m[2]) for m in re.finditer(r"^#define (\w+) (\d+)", open(os.path.join(ROOT, "tiles.h")).read(), re.M)}


T = constants()


class ConvArgs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in "x w bias residual y overflow".split()] + [
        (n, ctypes.c_uint) for n in "batch cin cout h_in w_in h_out w_out relu".split()
    ]


class BlockArgs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in "x w0 w1 bias0 bias1 y overflow".split()] + [
        (n, ctypes.c_uint) for n in "batch height width padding".split()
    ]


class PackArgs(ctypes.Structure):
    _fields_ = [("w", ctypes.c_void_p), ("packed", ctypes.c_void_p)] + [(n, ctypes.c_uint) for n in "cin cout kernel tile".split()]


class PoolArgs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in "maps jobs statistics".split()] + [
        (n, ctypes.c_uint) for n in "jobs_count height".split()
    ]


class DenseArgs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in "in_ w bias partial out".split()] + [
        (n, ctypes.c_uint) for n in "rows inputs outputs splits".split()
    ]


def launch(file, entry, grid, threads, shared, stream, *arguments):
    function = ctypes.c_void_p()
    check(cuda.cuModuleGetFunction(ctypes.byref(function), compiled(file), entry.encode()), entry)
    if shared > 48 * 1024:
        check(cuda.cuFuncSetAttribute(function, 8, shared), entry)
    pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
    check(cuda.cuLaunchKernel(function, *grid, threads, 1, 1, shared, ctypes.c_void_p(stream), pointers, None), entry)


def stream():
    return torch.cuda.current_stream().cuda_stream


def ceil(a, b):
    return -(-a // b)


def unit(math):
    return 8 if math == "f16" else 4


def to_map(x, math):
    n, c, h, w = x.shape
    dtype = torch.float16 if math == "f16" else torch.float32
    return x.view(n, c // unit(math), unit(math), h, w).permute(0, 1, 3, 4, 2).to(dtype).contiguous()


def from_map(m):
    n, g, h, w, u = m.shape
    return m.permute(0, 1, 4, 2, 3).reshape(n, g * u, h, w)


def packed(w, math, tile):
    cout, cin, k, _ = w.shape
    parts = 2 if math == "tf32x3" else 1
    out = torch.full((parts * w.numel(),), float("nan"), device="cuda", dtype=torch.float16 if math == "f16" else torch.float32)
    entry = "pack_f32" if math == "f32" else f"pack_units_{math}"
    launch("pack.cu", entry, (ceil(w.numel(), 256), 1, 1), 256, 0, stream(), PackArgs(w.data_ptr(), out.data_ptr(), cin, cout, k, tile))
    return out


def tensor_map(x, width, height, planes, cols, lines, units):
    """Describes a map to the copy engine as words of 8 bytes, so that 66 pixels fit a box."""
    raw = (ctypes.c_char * 256)()
    tensor = (ctypes.c_char * 128).from_buffer(raw, -ctypes.addressof(raw) % 64)
    tensor.keep = raw
    dims = (ctypes.c_uint64 * 3)(2 * width, height, planes)
    strides = (ctypes.c_uint64 * 2)(width * 16, height * width * 16)
    box = (ctypes.c_uint32 * 3)(2 * cols, lines, units)
    float64, l2_128 = 8, 2
    check(
        cuda.cuTensorMapEncodeTiled(
            ctypes.byref(tensor), float64, 3, ctypes.c_void_p(x.data_ptr()), dims, strides, box, (ctypes.c_uint32 * 3)(1, 1, 1), 0, 0, l2_128, 0
        ),
        "tensor map",
    )
    return tensor


def math_of(entry):
    return entry.split("_")[1]


def conv(entry, x, w, bias, residual, stride):
    """A function that launches the convolution, its output and what must stay alive meanwhile."""
    math, family = math_of(entry), entry.split("_")[0]
    n, cout, cin, kernel = x.shape[0], *w.shape[:3]
    h, width = x.shape[2:4]
    ho, wo = (h - 1) // stride + 1, (width - 1) // stride + 1
    y = torch.full((n, cout // unit(math), ho, wo, unit(math)), float("nan"), device="cuda", dtype=x.dtype)
    tile, rows = T[f"{entry}_NT"], T[f"{entry}_ROWS"]
    weights, overflow = packed(w, math, tile), torch.zeros(1, dtype=torch.int32, device="cuda")
    args = ConvArgs(
        x.data_ptr(), weights.data_ptr(), bias.data_ptr(), residual.data_ptr() if residual is not None else None, y.data_ptr(),
        overflow.data_ptr(), n, cin, cout, h, width, ho, wo, 1,
    )
    keep = [x, weights, bias, residual, y, overflow, args]
    if family == "wgmma":
        columns = T["WGMMA_COLS"] + (2 if stride == 1 else 1)
        tensor = tensor_map(x, width, h, n * cin // unit(math), columns, stride * (rows - 1) + 3, T[f"{entry}_UNITS"])
        tiles = ceil(wo, 64) * ceil(ho, rows) * (cout // tile) * n
        return lambda s: launch("conv_wgmma.cu", entry, (min(tiles, SMS), 1, 1), T["WGMMA_THREADS"], T[f"{entry}_SHARED"], s, args, tensor), y, keep
    if family == "mma":
        cols, shared, file = T[f"{entry}_COLS"], T[f"{entry}_STAGE"] * T[f"{entry}_STAGES"], "conv_mma.cu"
    else:
        cols, shared, file = T["F32_COLS"], T[f"{entry}_SHARED"], "conv_f32.cu"
    grid = (ceil(wo, cols), ceil(ho, rows), n * (cout // tile))
    return lambda s: launch(file, entry, grid, T[f"{entry}_THREADS"], shared, s, args), y, keep


def microseconds(go, repeats=20):
    """Median time of one launch, from replays of a CUDA graph."""
    for _ in range(3):
        go(stream())
    graph, times = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            go(stream())
    graph.replay()
    for _ in range(7):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / repeats)
    return statistics.median(times)


# name: channels in, out, kernel, stride, height, width, how often in the trunk
LAYERS = {
    "s1_32": (32, 32, 3, 1, 80, 998, 6), "s1_64": (64, 64, 3, 1, 40, 499, 7),
    "s1_128": (128, 128, 3, 1, 20, 250, 11), "s1_256": (256, 256, 3, 1, 10, 125, 5),
    "s2_32": (32, 64, 3, 2, 80, 998, 1), "s2_64": (64, 128, 3, 2, 40, 499, 1), "s2_128": (128, 256, 3, 2, 20, 250, 1),
    "1x1_32": (32, 64, 1, 2, 80, 998, 1), "1x1_64": (64, 128, 1, 2, 40, 499, 1), "1x1_128": (128, 256, 1, 2, 20, 250, 1),
}


def serves(entry, layer):
    kind = "1x1" if "1x1" in entry else "s2" if "s2_" in entry else "s1"
    if layer.split("_")[0] != kind:
        return False
    cin, cout = LAYERS[layer][:2]
    only = re.search(r"wgmma_\w+_c(\d+)(_|$)", entry)
    if only:
        return cin == int(only[1])
    if T[f"{entry}_NT"] == 32 and cout > 64 and "small" not in entry:
        return False
    return cout % T[f"{entry}_NT"] == 0


# Unit roundoff of the operands. The sums are FP32, but the tensor cores truncate them at every step, so their share grows
# with the length of the contraction: 2^-23 for every step of 8 products.
ROUNDOFF = {"f32": 2.0**-24, "tf32": 2.0**-10, "f16": 2.0**-11, "tf32x3": 2.0**-21}


def bound(math, magnitude, length):
    """Largest error of a sum of `length` products with magnitudes that sum to `magnitude`."""
    steps = length if math == "f32" else length / 8 * (3 if math == "tf32x3" else 1)
    return magnitude * (2 * ROUNDOFF[math] + steps * 2.0**-23) + (magnitude * 2.0**-11 + 2.0**-24 if math == "f16" else 0)


def over(error, bound):
    return (error.abs() / bound).nan_to_num(nan=float("inf")).max().item()


def error_over_bound(entry, x, w, bias, residual, stride, y):
    """Largest error over its bound: roundoff of both operands and of the sum, times the sum of the products' magnitudes."""
    math, padding = math_of(entry), w.shape[2] // 2
    args = dict(stride=stride, padding=padding)
    reference = torch.nn.functional.conv2d(x, w.double(), bias.double(), **args)
    magnitude = torch.nn.functional.conv2d(x.abs(), w.double().abs(), bias.double().abs(), **args)
    if residual is not None:
        reference, magnitude = reference + residual, magnitude + residual.abs()
    return over(y - torch.relu(reference), bound(math, magnitude, w[0].numel()))


def block_error(math, x, w, bias, y):
    """The same for a block: the error of the hidden map is a sum's, and the second convolution adds it up."""
    conv2d = lambda x, k, b: torch.nn.functional.conv2d(x, w[k].double() if b is not None else w[k].double().abs(), b, padding=1)
    magnitudes = lambda x, k: torch.nn.functional.conv2d(x, w[k].double().abs(), bias[k].double().abs(), padding=1)
    length = w[0][0].numel()
    hidden = torch.relu(conv2d(x, 0, bias[0].double()))
    error = bound(math, magnitudes(x.abs(), 0), length)
    reference = torch.relu(conv2d(hidden, 1, bias[1].double()) + x)
    return over(y - reference, conv2d(error, 1, None) + bound(math, magnitudes(hidden + error, 1) + x.abs(), length))


def conv_entry(entry, batches, checked):
    failures = 0
    for name, (cin, cout, k, stride, h, width, _) in LAYERS.items():
        if not serves(entry, name):
            continue
        math, line = math_of(entry), f"{entry:24s} {name:8s}"
        w, bias = torch.randn(cout, cin, k, k, device="cuda") / (cin * k * k) ** 0.5, torch.randn(cout, device="cuda")
        out = ((h - 1) // stride + 1, (width - 1) // stride + 1)
        for b in checked:
            x = to_map(torch.randn(b, cin, h, width, device="cuda"), math)
            residual = to_map(torch.randn(b, cout, *out, device="cuda"), math) if b % 2 == 0 else None
            go, y, keep = conv(entry, x, w, bias, residual, stride)
            go(stream())
            first = y.clone()
            go(stream())
            same, worst = torch.equal(first, y), 0.0
            if b > 1:  # another batch, the same bits
                alone, one, keep_alone = conv(entry, x[-1:], w, bias, residual[-1:] if residual is not None else None, stride)
                alone(stream())
                same &= torch.equal(one, y[-1:])
            for i in range(0, b, 4):
                r = from_map(residual[i : i + 4]).double() if residual is not None else None
                worst = max(worst, error_over_bound(entry, from_map(x[i : i + 4]).double(), w, bias, r, stride, from_map(y[i : i + 4]).double()))
            ok = same and worst <= 1
            failures += not ok
            line += f" b{b} {worst:.2f}{'' if ok else ' FAILED'}"
        for b in batches:
            x = to_map(torch.rand(b, cin, h, width, device="cuda"), math)
            residual = to_map(torch.rand(b, cout, *out, device="cuda"), math) if stride == 1 else None
            go, y, keep = conv(entry, x, w, bias, residual, stride)
            us = microseconds(go)
            flop = 2 * b * cin * cout * k * k * out[0] * out[1]
            line += f" | b{b} {us / b:.2f} us/window {flop / us / 1e6:.0f} TFLOP/s"
        print(line, flush=True)
    return failures


def cudnn(batches):
    torch.backends.cudnn.benchmark = True
    for math in ("fp32", "tf32", "fp16"):
        torch.backends.cudnn.allow_tf32 = math == "tf32"
        dtype = torch.float16 if math == "fp16" else torch.float32
        total = dict.fromkeys(batches, 0.0)
        for name, (cin, cout, k, stride, h, width, count) in LAYERS.items():
            line = f"cudnn {math} {name:8s}"
            for b in batches:
                best = float("inf")
                for memory in (torch.contiguous_format, torch.channels_last):
                    x = torch.rand(b, cin, h, width, device="cuda", dtype=dtype).to(memory_format=memory)
                    layer = torch.nn.Conv2d(cin, cout, k, stride, k // 2, device="cuda", dtype=dtype).to(memory_format=memory)
                    with torch.no_grad():
                        best = min(best, microseconds(lambda _: layer(x), 10))
                total[b] += best / b * count
                line += f" | b{b} {best / b:.2f} us/window"
            print(line, flush=True)
        print(f"cudnn {math} convolutions alone: " + ", ".join(f"b{b} {t:.0f} us/window" for b, t in total.items()), flush=True)


BLOCKS = {"b32": (32, 80, 998)}


def block_entry(entry, batches, checked):
    failures, math = 0, math_of(entry)

    def prepare(x, w, bias):
        n, _, h, width = x.shape[:4]
        y = torch.full_like(x, float("nan"))
        weights, overflow = [packed(v, math, 32) for v in w], torch.zeros(1, dtype=torch.int32, device="cuda")
        args = BlockArgs(x.data_ptr(), weights[0].data_ptr(), weights[1].data_ptr(), bias[0].data_ptr(), bias[1].data_ptr(), y.data_ptr(), overflow.data_ptr(), n, h, width, 0)
        tensor = tensor_map(x, width, h, n * 32 // unit(math), T["WGMMA_COLS"] + 2, 1, 32 // unit(math))
        go = lambda s: launch("block.cu", entry, (SMS, 1, 1), T[f"{entry}_THREADS"], T[f"{entry}_SHARED"], s, args, tensor)
        return go, y, overflow, [x, weights, bias, args]

    for name, (c, h, width) in BLOCKS.items():
        line = f"{entry:24s} {name:8s}"
        w = [torch.randn(c, c, 3, 3, device="cuda") / (c * 9) ** 0.5 for _ in range(2)]
        bias = [torch.randn(c, device="cuda") for _ in range(2)]
        for b in checked:
            x = to_map(torch.randn(b, c, h, width, device="cuda"), math)
            go, y, overflow, keep = prepare(x, w, bias)
            go(stream())
            first = y.clone()
            go(stream())
            same, worst = torch.equal(first, y) and overflow.item() == 0, 0.0
            if b > 1:  # another batch, the same bits
                alone, one, _, keep_alone = prepare(x[-1:], w, bias)
                alone(stream())
                same &= torch.equal(one, y[-1:])
            for i in range(0, b, 4):
                worst = max(worst, block_error(math, from_map(x[i : i + 4]).double(), w, bias, from_map(y[i : i + 4]).double()))
            x[b - 1] = 65504.0
            go(stream())
            same &= overflow.item() == (math == "f16")
            ok = same and worst <= 1
            failures += not ok
            line += f" b{b} {worst:.2f}{'' if ok else ' FAILED'}"
        for b in batches:
            go, y, _, keep = prepare(to_map(torch.rand(b, c, h, width, device="cuda"), math), w, bias)
            us = microseconds(go)
            line += f" | b{b} {us / b:.2f} us/window {4 * b * c * c * 9 * h * width / us / 1e6:.0f} TFLOP/s"
        print(line, flush=True)
    return failures


def stem(math):
    x, w, bias = torch.randn(32, 998, 80, device="cuda"), torch.randn(32, 1, 3, 3, device="cuda"), torch.randn(32, device="cuda")
    y = torch.full((32, 32 // unit(math), 80, 998, unit(math)), float("nan"), device="cuda", dtype=torch.float16 if math == "f16" else torch.float32)
    overflow = torch.zeros(1, dtype=torch.int32, device="cuda")
    args = ConvArgs(x.data_ptr(), w.data_ptr(), bias.data_ptr(), None, y.data_ptr(), overflow.data_ptr(), 32, 1, 32, 80, 998, 80, 998, 1)
    go = lambda s: launch("stem.cu", f"stem_{math}", (ceil(998, 32), ceil(80, T["STEM_ROWS"]), 32), T["STEM_THREADS"], 0, s, args)
    go(stream())
    reference = torch.relu(torch.nn.functional.conv2d(x.double().transpose(1, 2)[:, None], w.double(), bias.double(), padding=1))
    error = (from_map(y).double() - reference).abs().max().item()
    ok = error <= (2e-2 if math == "f16" else 2e-5)
    print(f"stem_{math:19s} largest error {error:.1e}{'' if ok else ' FAILED'} | b32 {microseconds(go) / 32:.2f} us/window", flush=True)
    return not ok


def pool(math):
    maps = to_map(torch.rand(16, 256, 10, 125, device="cuda"), math)
    # unit0, pitch0, count0, unit1, pitch1 and 3 masks of 4 words: all frames, every other one, none
    size = maps[0].numel() // unit(math)
    masks = sum(([word] * 4 for word in (-1, 0x55555555, 0)), [])
    jobs = [[m * size, 125, 125, 0, 0] + masks for m in range(15)] + [[14 * size + 25, 125, 100, 15 * size, 125] + masks]
    jobs = torch.tensor(jobs, dtype=torch.int32, device="cuda")
    out = torch.full((16, 3, 2, 2560), float("nan"), device="cuda")
    args = PoolArgs(maps.data_ptr(), jobs.data_ptr(), out.data_ptr(), 16, 10)
    go = lambda s: launch("pooling.cu", f"pool_{math}", (16, ceil(256 // unit(math) * 10, T["POOL_THREADS"] // 32), 1), T["POOL_THREADS"], 0, s, args)
    go(stream())
    frames = from_map(maps).double().reshape(16, 2560, 125)
    frames[15] = torch.cat([frames[14][:, 25:], frames[15][:, :25]], 1)
    worst = 0.0
    for k, chosen in enumerate((frames, frames[:, :, ::2])):
        worst = max(worst, (out[:, k, 0] - chosen.mean(2)).abs().max().item(), (out[:, k, 1] - chosen.std(2)).abs().max().item())
    worst = max(worst, out[:, 2].abs().max().item())
    ok = worst <= 1e-5
    print(f"pool_{math:19s} largest error {worst:.1e}{'' if ok else ' FAILED'} | {microseconds(go) / 16:.2f} us/window", flush=True)
    return not ok


def dense():
    failures = 0
    for rows in (1, 7, 96, 192):
        x, w, bias = torch.randn(rows, 5120, device="cuda"), torch.randn(256, 5120, device="cuda") / 72, torch.randn(256, device="cuda")
        splits = T["DENSE_SPLITS"]
        partial, out = torch.empty(splits, rows, 256, device="cuda"), torch.full((rows, 256), float("nan"), device="cuda")
        args = DenseArgs(x.data_ptr(), w.data_ptr(), bias.data_ptr(), partial.data_ptr(), out.data_ptr(), rows, 5120, 256, splits)

        def go(s):
            launch("dense.cu", "dense_f32", (ceil(256, T["DENSE_TILE"]), ceil(rows, T["DENSE_TILE"]), splits), T["DENSE_THREADS"], 0, s, args)
            launch("dense.cu", "dense_reduce", (ceil(rows * 256, T["DENSE_THREADS"]), 1, 1), T["DENSE_THREADS"], 0, s, args)

        go(stream())
        error = (out.double() - (x.double() @ w.double().T + bias.double())).abs().max().item()
        ok = error <= 1e-4
        failures += not ok
        print(f"dense_f32 rows {rows:4d}          largest error {error:.1e}{'' if ok else ' FAILED'} | {microseconds(go):.1f} us", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--checked", default="1,4,7,32,33,64")
    parser.add_argument("--cudnn", action="store_true")
    options = parser.parse_args()
    batches = [int(b) for b in options.batches.split(",")]
    checked = [int(b) for b in options.checked.split(",") if b]
    print(torch.cuda.get_device_name(0), "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version(), flush=True)
    print("per batch: largest error over its bound", flush=True)
    failures = 0
    for entry in sorted(name[: -len("_NT")] for name in T if name.endswith("_NT")):
        if re.search(options.pattern, entry) and (CAPABILITY == (9, 0) or not entry.startswith("wgmma")):
            failures += conv_entry(entry, batches, checked)
    for entry in sorted(name[: -len("_SHARED")] for name in T if re.match(r"block_\w+_SHARED", name)):
        if re.search(options.pattern, entry) and CAPABILITY == (9, 0):
            failures += block_entry(entry, batches, checked)
    for name, test in (("stem", stem), ("pool", pool)):
        if re.search(options.pattern, name):
            failures += test("f32") + test("f16")
    if re.search(options.pattern, "dense"):
        failures += dense()
    if options.cudnn:
        cudnn(batches)
    print("FAILED:" if failures else "all passed:", failures, "failures")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
