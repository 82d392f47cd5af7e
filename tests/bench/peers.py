"""Compares our CPU backend with rten and ONNX Runtime on the same weights, in one go.

usage: peers.py [--threads N] [--rounds N] [--check REFERENCE_DIR]

Every round runs each program once, one after the other, so that a change in the load of the machine touches all of
them; the table shows the median over the rounds of each program's median. Run it from anywhere in the repository.
Needs numpy, onnx, onnxruntime, safetensors.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "bench"
# Network, batch, repetitions a round.
CASES = (("trunk", 1, 5), ("segmentation", 1, 15), ("segmentation", 8, 3))


def shape(what, batch):
    return (batch, 998, 80) if what == "trunk" else (batch, 1, 160_000)


def run(command, **environment):
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def build(peers_only):
    crate = ROOT / "tests/bench/rten/Cargo.toml"
    run(["cargo", "build", "--release", "--locked", "--manifest-path", crate, "--target-dir", WORK / "rten"])
    if not peers_only:
        run(["cargo", "build", "--release", "--example", "bench_cpu"])


def ours(threads):
    """Milliseconds a window by network; the program prints one JSON object a line."""
    text = run(["cargo", "run", "--quiet", "--release", "--example", "bench_cpu"], RAYON_NUM_THREADS=str(threads))
    rows = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return {row["what"]: row["ms_per_window"] for row in rows if "ms_per_window" in row}


def rten(what, batch, repetitions, threads):
    program = WORK / "rten/release/bench-rten"
    size = "x".join(map(str, shape(what, batch)))
    command = [program, WORK / f"{what}.onnx", size, str(repetitions)]
    return statistics.median(json.loads(run(command, RTEN_NUM_THREADS=str(threads)))) / batch


def onnxruntime(what, batch, repetitions, threads):
    command = [sys.executable, __file__, "--ort", what, str(batch), str(repetitions), "--threads", str(threads)]
    return statistics.median(json.loads(run(command))) / batch


def time_onnxruntime(what, batch, repetitions, threads):
    """Runs in a process of its own, like the others. Waiting threads sleep: spinning ones suffer on a busy machine."""
    import time

    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(WORK / f"{what}.onnx", options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    data = np.random.default_rng(1).random(shape(what, batch), np.float32) - np.float32(0.5)
    times = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        session.run(None, {name: data})
        times.append(1000 * (time.perf_counter() - start))
    print(json.dumps(times[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", metavar="REFERENCE_DIR", help="compare the exported graphs with reference outputs")
    parser.add_argument("--peers-only", action="store_true", help="leave our own program out")
    parser.add_argument("--ort", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ort:
        return time_onnxruntime(args.ort[0], int(args.ort[1]), int(args.ort[2]), args.threads)

    export = [sys.executable, ROOT / "tests/bench/export_onnx.py", ROOT / "models", WORK]
    print(run(export + (["--check", args.check] if args.check else [])), end="")
    build(args.peers_only)
    found = {}
    for number in range(args.rounds):
        load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
        print(f"round {number + 1} of {args.rounds}, load {load}", flush=True)
        if not args.peers_only:
            for what, ms in ours(args.threads).items():
                found.setdefault((what, "speakrs-app"), []).append(ms)
        for what, batch, repetitions in CASES:
            for engine in (rten, onnxruntime):
                label = engine.__name__ + (f" (batch {batch})" if batch > 1 else "")
                found.setdefault((what, label), []).append(engine(what, batch, repetitions, args.threads))

    print(f"\nms a window of 10 s, {args.threads} threads, median of {args.rounds} rounds")
    print(f"{'network':14} {'engine':24} {'median':>8} {'min':>8} {'max':>8} {'time / ours':>12}")
    for what in ("trunk", "segmentation"):
        ours_ms = found.get((what, "speakrs-app"))
        for (network, engine), times in found.items():
            if network == what:
                mid = statistics.median(times)
                ratio = f"{mid / statistics.median(ours_ms):.2f}" if ours_ms else "-"
                print(f"{what:14} {engine:24} {mid:8.1f} {min(times):8.1f} {max(times):8.1f} {ratio:>12}")


if __name__ == "__main__":
    main()
