# SPDX-License-Identifier: Apache-2.0
# One loss curve at any number of ranks. Run: python3 leaves_training.py [picture.svg]
"""A small network whose micro-batches are leaves, trained on 1, 2, 3, 4, 6 and 8 ranks in two ways.

With an ordinary allreduce, every number of ranks adds the gradients in another order: losses drift apart, and each run
has a hash of its own. With Team.leaves() the micro-batches are added by one expression, whoever has them: one hash.

    ranks   ordinary allreduce   sum over 24 leaves
        1     ................     ................
        8     ................     ................
"""
import hashlib
import os
import subprocess
import sys

import numpy

MICRO_BATCHES, SAMPLES, INPUTS, HIDDEN, STEPS, RATE = 24, 16, 8, 32, 300, numpy.float32(1)
RANKS = (1, 2, 3, 4, 6, 8)


def gradients(weights, leaf, step):
    """Gradients and loss of one micro-batch, in one vector. They depend on the number of the leaf and not on ranks."""
    random = numpy.random.default_rng([leaf, step % 10])
    inputs = random.standard_normal((SAMPLES, INPUTS), "float32")
    targets = numpy.sin(inputs.sum(axis=1, keepdims=True))
    first = weights[:INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
    second = weights[INPUTS * HIDDEN:].reshape(HIDDEN, 1)
    hidden = numpy.tanh(inputs @ first)
    errors = hidden @ second - targets
    back = (errors @ second.T) * (1 - hidden * hidden)
    return numpy.concatenate([(inputs.T @ back).ravel(), (hidden.T @ errors).ravel(), (errors * errors).sum(axis=0)])


def train(team, over_leaves):
    """The losses of all steps."""
    leaves = team.leaves(MICRO_BATCHES)
    weights = numpy.random.default_rng(1).standard_normal(INPUTS * HIDDEN + HIDDEN, "float32") / numpy.float32(4)
    sums = numpy.zeros(weights.size + 1, "float32")
    losses = []
    for step in range(STEPS):
        if over_leaves:
            leaves.allreduce(lambda leaf, step=step: gradients(weights, leaf, step), out=sums)
        else:
            sums[:] = 0
            for leaf in leaves:
                sums += gradients(weights, leaf, step)
            team.allreduce(sums, out=sums)
        weights -= RATE * sums[:-1] / numpy.float32(MICRO_BATCHES * SAMPLES)
        losses.append(sums[-1] / numpy.float32(MICRO_BATCHES * SAMPLES))
    return numpy.array(losses)


def as_rank():
    import torii

    team = torii.world()
    curves = [train(team, over_leaves) for over_leaves in (False, True)]
    if team.rank == 0:
        numpy.save(sys.argv[2], curves)
    team.barrier()


def run(ranks):
    """Both curves on so many ranks: ordinary, and over leaves."""
    path = f"curves-{os.getpid()}-{ranks}.npy"
    try:
        subprocess.run([sys.executable, "-m", "torii.run", "-n", str(ranks), __file__, "--rank", path], check=True)
        return numpy.load(path)
    finally:
        if os.path.exists(path):
            os.remove(path)


def draw(curves):
    """How far each curve is from that of one rank, as an SVG picture: the difference of losses, step by step."""
    width, height, left = 640, 220, 70
    most = max(abs(curves[ranks][0] - curves[1][0]).max() for ranks in RANKS) or 1
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {2 * height}" class="torii" '
             'font-family="sans-serif" font-size="12">',
             "<style>@media(prefers-color-scheme:dark){.torii{filter:invert(.9)hue-rotate(180deg)}}</style>",
             f'<rect width="{width}" height="{2 * height}" fill="white"/>']
    for row, title in enumerate(("ordinary allreduce", f"sum over {MICRO_BATCHES} leaves")):
        middle = row * height + height / 2 + 10
        parts.append(f'<text x="{left}" y="{row * height + 20}">{title}: loss minus the loss on 1 rank, by step</text>')
        parts.append(f'<text x="5" y="{middle - 76}">{most:.1e}</text><text x="5" y="{middle + 4}">0</text>')
        for color, ranks in zip(("#888888", "#1b6ca8", "#d1495b", "#2e8b57", "#edae49", "#7b4ea3"), RANKS):
            differences = (curves[ranks][row] - curves[1][row]) / most
            points = " ".join(f"{left + step * (width - left - 90) / STEPS:.1f},{middle - 80 * difference:.1f}"
                              for step, difference in enumerate(differences))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
            parts.append(f'<text x="{width - 80}" y="{middle - 60 + 16 * RANKS.index(ranks)}" fill="{color}">'
                         f'{ranks} rank{"s" if ranks > 1 else ""}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    curves = {ranks: run(ranks) for ranks in RANKS}
    print("ranks   ordinary allreduce   sum over", MICRO_BATCHES, "leaves")
    hashes = {ranks: [hashlib.sha256(curve.tobytes()).hexdigest()[:16] for curve in curves[ranks]] for ranks in RANKS}
    for ranks, (ordinary, leaves) in hashes.items():
        print(f"{ranks:5}     {ordinary}     {leaves}")
    print(f"loss: {curves[1][1][0]:.4f} at first, {curves[1][1][-1]:.4f} at last")
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as picture:
            picture.write(draw(curves))
    if len({leaves for _, leaves in hashes.values()}) != 1:
        sys.exit("the curves over leaves differ")
    print("one curve over leaves on any number of ranks;", len({ordinary for ordinary, _ in hashes.values()}),
          "curves by ordinary allreduces")


if __name__ == "__main__":
    as_rank() if sys.argv[1:2] == ["--rank"] else main()
