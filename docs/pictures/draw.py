#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Draws the pictures that are no plan: house and ring, and segment from the plan on standard input (README.md has the
# commands). The style is that of collectives/drawing/svg.cpp.
import json
import pathlib
import re
import sys
from xml.sax.saxutils import escape

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#555555"


class Svg:
    """A picture, drawn from back to front."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'class="torii" font-family="sans-serif" font-size="12">',
            "<style>@media(prefers-color-scheme:dark){.torii{filter:invert(.9)hue-rotate(180deg)}}</style>",
            '<rect width="100%" height="100%" fill="white"/>',
            f"<title>{escape(title)}</title>",
        ]
        for name, colour in (("blue", BLUE), ("orange", ORANGE), ("green", GREEN), ("grey", GREY)):
            self.parts.append(
                f'<defs><marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
                f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker></defs>')
        self.text(20, 30, title, size=18)

    def text(self, x, y, words, size=12, anchor="start", fill="black"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">'
                          f"{escape(words)}</text>")

    def rect(self, x, y, width, height, fill="#f4f4f4", stroke="#333333", dash=""):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
                          f'fill="{fill}" stroke="{stroke}"' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def circle(self, x, y, radius, fill="#f4f4f4", stroke="#333333"):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{stroke}"/>')

    def arrow(self, points, colour="grey", dash=""):
        stroke = {"blue": BLUE, "orange": ORANGE, "green": GREEN, "grey": GREY}[colour]
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="M{way}" fill="none" stroke="{stroke}" stroke-width="2" '
                          f'marker-end="url(#{colour})"' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def __str__(self):
        return "\n".join([*self.parts, "</svg>", ""])


def law():
    """The folders, their floors and rooms, as the test of the include law has them."""
    source = (pathlib.Path(__file__).resolve().parents[2] / "tests/tidy/include_rules.cpp").read_text()
    folders = re.findall(r'Folder\{"(\w+)", (\d), (true|false), (?:true|false)\}', source)
    rooms = re.findall(r'\{"(\w+)", "(\w+)", (\d)\}', source[source.index("kSubfolders"):])
    pure = int(re.search(r'kCollectives = \{"collectives/", (\d)', source).group(1))
    return [(name, int(level), inside == "true") for name, level, inside in folders], rooms, pure


def house():
    """One floor for each level of the law, and in it the rooms of the second level."""
    folders, rooms, pure = law()
    floors = 1 + max(level for _, level, _ in folders)
    tall, low, wide, left = 92, 46, 860, 20
    with_rooms = {level for name, level, _ in folders if any(folder == name for folder, _, _ in rooms)}
    heights = [tall if level in with_rooms else low for level in range(floors)]
    svg = Svg(900, 120 + sum(heights), "The house: folders and what they may include")
    for level in range(floors):
        height = heights[level]
        y = 50 + sum(heights[level + 1:])
        here = [(name, sees) for name, own, sees in folders if own == level]
        columns = {name: 1 + max([int(at) for folder, _, at in rooms if folder == name], default=0) for name, _ in here}
        unit = (wide - 12 * (len(here) - 1)) / sum(columns.values())
        x = left
        for name, sees in here:
            width = unit * columns[name]
            svg.rect(x, y, width, height - 12, "#ffffff" if sees else "#fff8e6", dash="" if sees else "5,3")
            own = [(room, int(at)) for folder, room, at in rooms if folder == name]
            svg.text(x + 10, y + (18 if own else height / 2 - 3), name + "/", size=13)
            for at in range(columns[name] if own else 0):
                same = [room for room, place in own if place == at]
                room_height = (height - 44) / len(same)
                for i, room in enumerate(same):
                    is_pure = name == "runtime" and at <= pure
                    svg.rect(x + 6 + at * (width - 12) / columns[name], y + 25 + i * room_height,
                             (width - 12) / columns[name] - 6, room_height - 2, "#dcebf5" if is_pure else "#f4f4f4")
                    svg.text(x + 3 + (at + 0.5) * (width - 12) / columns[name], y + 23 + (i + 0.5) * room_height + 4,
                             room, size=11 if len(same) < 3 else 10, anchor="middle")
            x += width + 12
    y = 58 + sum(heights)
    svg.text(left, y, "A folder includes from itself and from the floors below, a room also from rooms to its left; "
             "never from a folder beside it.")
    svg.text(left, y + 20, "Blue: all that collectives/ sees of runtime/, so that plans are arithmetic. "
             "Dashed: sees include/torii only (perf/ with a few exceptions).")
    svg.text(left, y + 40, "Drawn from kFolders, kSubfolders and kCollectives of tests/tidy/include_rules.cpp.",
             fill=GREY)
    return svg


def ring():
    """One stream of four slots at a moment: message 8 leaves, message 9 waits for a credit."""
    slots, taken = 4, 5  # the receiver has taken messages 0 to 4 and is taking message 5
    svg = Svg(900, 400, "One stream: a ring of slots, and credits on the way back")
    svg.text(20, 54, "Message n uses slot n mod 4. Its sender waits until the credit word of that slot is n - 3 or "
             "more: message n - 4 has been taken.")
    svg.rect(20, 76, 300, 300, "#ffffff")
    svg.text(34, 98, "sender", size=14)
    svg.text(34, 120, "credit words, written by the receiver", fill=GREY)
    svg.rect(560, 76, 320, 300, "#ffffff")
    svg.text(574, 98, "receiver", size=14)
    svg.text(574, 120, "slots: payload and its signal", fill=GREY)
    for slot in range(slots):
        y = 134 + slot * 58
        last = max(n for n in range(taken) if n % slots == slot)  # taken out of this slot
        following = last + slots
        free = following >= taken + slots - 1
        svg.rect(190, y, 110, 42)
        svg.text(245, y + 26, f"word {slot}: {last + 1}", anchor="middle")
        svg.rect(580, y, 280, 42, "#ffffff" if free else "#dcebf5")
        if free:
            svg.text(592, y + 26, f"slot {slot}: free, message {last} has been taken")
        elif following == taken:
            svg.text(592, y + 26, f"slot {slot}: message {following}, being taken")
        else:
            svg.text(592, y + 26, f"slot {slot}: message {following}, has arrived")
    first, second = taken + slots - 1, taken + slots
    y = 134 + first % slots * 58
    svg.arrow([(304, y + 14), (574, y + 14)], "blue")
    svg.text(440, y + 8, f"message {first}: payload, then its signal", anchor="middle", fill=BLUE)
    svg.text(34, y + 18, f"message {first} leaves:", fill=BLUE)
    svg.text(34, y + 34, f"word {first % slots} >= {first - slots + 1}", fill=BLUE)
    y = 134 + second % slots * 58
    svg.arrow([(574, y + 28), (304, y + 28)], "orange", "6,4")
    svg.text(440, y + 20, f"credit {taken + 1}, once message {taken} is taken", anchor="middle", fill=ORANGE)
    svg.text(34, y + 18, f"message {second} waits:", fill=ORANGE)
    svg.text(34, y + 34, f"word {second % slots} is {second - 2 * slots + 1}, not {second - slots + 1}", fill=ORANGE)
    svg.text(330, 360, "Numbers never restart,", fill=GREY)
    svg.text(330, 376, "so no call clears anything.", fill=GREY)
    return svg


def messages_of(answer):
    """All messages of one segment as (step in which it travels, sender, receiver, tree), one hop a step, and by
    (rank, tree) the step after which the rank has the result."""
    flows = []
    for plan in answer["plans"]:
        for lane in plan["lanes"]:
            for flow in lane["flows"]:
                flows.append((plan["rank"], int(flow["label"].split()[-1]), flow))
    arrives, messages, results = {}, [], {}
    while flows:
        ready = [one for one in flows
                 if all(s == "own" or (s["peer"], one[0], s["tag"]) in arrives for s in one[2]["sources"])]
        if not ready:
            raise SystemExit("the plan does not end")
        for rank, tree, flow in ready:
            step = max([0] + [arrives[s["peer"], rank, s["tag"]] for s in flow["sources"] if s != "own"])
            if flow["keep"]:
                results[rank, tree] = step
            for target in flow["targets"]:
                local = target["delivery"] == "local"
                arrives[rank, target["peer"], target["tag"]] = step if local else step + 1
                if not local:
                    messages.append((step + 1, rank, target["peer"], tree))
        flows = [one for one in flows if one not in ready]
    return messages, results


def segment(answer):
    """A panel for each step: the messages that travel, and who has what."""
    columns, rows = (int(word) for word in answer["topology"].split(":")[1].split("x"))
    messages, results = messages_of(answer)
    steps = max(step for step, *_ in messages)
    per_row, pitch, panel_x, panel_y = 3, 70, 290, 262
    height = 70 + -(-steps // per_row) * panel_y + 56
    svg = Svg(30 + per_row * panel_x, height, f"One segment of an {answer['collective']} through "
              f"{answer['algorithm']} on {answer['topology']}, step by step")
    svg.text(20, 54, "Each tree carries its part of the segment up to its root, which combines the last operands, and "
             "down again; no two trees share a cable.")
    colours = ("blue", "orange", "green")
    strokes = {"blue": BLUE, "orange": ORANGE, "green": GREEN}
    trees = sorted({tree for *_, tree in messages})
    for step in range(1, steps + 1):
        left = 60 + (step - 1) % per_row * panel_x
        top = 120 + (step - 1) // per_row * panel_y
        svg.text(left - 40, top - 34, f"step {step}", size=14)

        def place(rank, left=left, top=top):
            return left + 20 + rank % columns * pitch, top + rank // columns * pitch

        for at, sender, receiver, tree in messages:
            if at != step:
                continue
            (x, y), (to_x, to_y) = place(sender), place(receiver)
            colour = colours[tree]
            dx, dy = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
            side = 5 * (1 if tree % 2 == 0 else -1)
            if abs(to_x - x) > pitch or abs(to_y - y) > pitch:  # by the cable that wraps around
                dx, dy = -dx, -dy
                svg.arrow([(x + 17 * dx + side * abs(dy), y + 17 * dy + side * abs(dx)),
                           (x + 40 * dx + side * abs(dy), y + 40 * dy + side * abs(dx))], colour, "4,3")
                svg.arrow([(to_x - 40 * dx + side * abs(dy), to_y - 40 * dy + side * abs(dx)),
                           (to_x - 18 * dx + side * abs(dy), to_y - 18 * dy + side * abs(dx))], colour, "4,3")
            else:
                svg.arrow([(x + 17 * dx + side * abs(dy), y + 17 * dy + side * abs(dx)),
                           (to_x - 18 * dx + side * abs(dy), to_y - 18 * dy + side * abs(dx))], colour)
        for rank in range(columns * rows):
            x, y = place(rank)
            svg.circle(x, y, 16)
            svg.text(x, y - 1, str(rank), size=11, anchor="middle")
            for i, tree in enumerate(trees):
                colour = strokes[colours[tree]]
                has = results.get((rank, tree), 0) <= step
                gone = any(at <= step and sender == rank and tree == own for at, sender, _, own in messages)
                svg.circle(x - 4.5 * (len(trees) - 1) + 9 * i, y + 7, 3.2, colour if has else "#ffffff",
                           colour if has or gone else "#bbbbbb")
    y = height - 36
    for i, tree in enumerate(trees):
        svg.arrow([(20 + 110 * i, y - 4), (56 + 110 * i, y - 4)], colours[tree])
        svg.text(64 + 110 * i, y, f"tree {tree}")
    x = 30 + 110 * len(trees)
    svg.text(x, y, "dashed: by the cable that wraps around")
    svg.text(20, y + 22, "Small circle of a rank: grey while it waits, coloured once its sum has left, full when it "
             "has the result. The next segment follows one step behind.")
    return svg


def main():
    kinds = {"house": house, "ring": ring, "segment": lambda: segment(json.load(sys.stdin))}
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        raise SystemExit("use: draw.py house | ring | segment, the last with a plan on standard input")
    sys.stdout.write(str(kinds[sys.argv[1]]()))


if __name__ == "__main__":
    main()
