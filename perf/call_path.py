# SPDX-License-Identifier: Apache-2.0
# Lists the functions that a call passes, in order, from what callgrind counted.
"""The functions that a call passes, from a file of callgrind: perf/instructions --path runs this.

callgrind says which instructions ran, how often, and where jumps and calls went. A walk along them finds each
instruction in the order in which a call comes to it first, and addr2line the function that it belongs to, also where
the compiler put that function into another one.
"""
import collections
import os
import re
import subprocess
import sys

LIBRARY = re.compile(r"/libtorii\.so")
FOREIGN = ("/usr/", "??")  # headers of the standard library and of others: their instructions count for their user
FOLDERS = re.compile(r".*/((api|collectives|include|reduce_kernels|runtime|transports)/.*)")
LEAVES = re.compile(r"((bnd|notrack|rep|repz) )?(ret|retq|jmp|jmpq|b|br)\b")  # the next instruction does not follow


class Profile:
    """What callgrind saw inside the library."""

    def __init__(self, lines):
        self.library = ""
        self.entry = None
        self.cost = collections.Counter()  # address: times
        self.jumps = collections.defaultdict(list)  # address: addresses
        self.calls = collections.defaultdict(list)
        where = {"ob": "", "cob": ""}
        edge = None
        for line in lines:
            key, _, value = line.rstrip("\n").partition("=")
            if key == "ob":
                where = {"ob": value, "cob": value}
                if LIBRARY.search(value):
                    self.library = value
            elif key in ("cob", "cfn"):
                where[key] = value
            elif key in ("calls", "jump", "jcnd"):
                edge = (key, value.split()[1])
            elif line.startswith("0x"):
                self._add(where, edge, line.split())
                if edge and edge[0] == "calls":
                    where["cob"] = where["ob"]
                edge = None

    def _add(self, where, edge, words):
        inside = LIBRARY.search(where["ob"]) is not None
        if edge and edge[0] == "calls" and where.get("cfn") == "torii_run" and not inside:
            self.entry = int(edge[1], 16)
        if not inside:
            return
        address = int(words[0], 16)
        if not edge:
            self.cost[address] += int(words[2])
        elif edge[0] != "calls":
            self.jumps[address].append(int(edge[1], 16))
        elif LIBRARY.search(where["cob"]):
            self.calls[address].append(int(edge[1], 16))


def following(profile):
    """{address: that of the next instruction}, of all behind which a program may simply go on."""
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--start-address={min(profile.cost)}",
         f"--stop-address={max(profile.cost) + 16}", profile.library], check=True, capture_output=True, text=True)
    found = [(int(one[1], 16), one[2]) for one in re.finditer(r"^ *([0-9a-f]+):\t(.*)$", shown.stdout, re.MULTILINE)]
    return {address: behind for (address, words), (behind, _) in zip(found, found[1:]) if not LEAVES.match(words)}


class Walk:
    """The addresses in the order in which a call comes to them first."""

    def __init__(self, profile):
        self._profile = profile
        self._following = following(profile)
        self.addresses = {}
        self._pass_function(profile.entry)

    def _nexts(self, address):
        """Where a function goes on, the way taken less often first; a loop's body is taken more often than its end."""
        nexts = [*self._profile.jumps[address], self._following.get(address, 0)]
        return sorted((one for one in nexts if one in self._profile.cost), key=self._profile.cost.__getitem__)

    def _order(self, entry):
        """One function's addresses. Where two ways meet again, both stand before what follows."""
        seen, done, open_ones = {entry}, [], [(entry, iter(self._nexts(entry)))]
        while open_ones:
            address, nexts = open_ones[-1]
            another = next((one for one in nexts if one not in seen), None)
            if another is None:
                done.append(address)
                open_ones.pop()
            else:
                seen.add(another)
                open_ones.append((another, iter(self._nexts(another))))
        return reversed(done)

    def _pass_function(self, entry):
        for address in self._order(entry):
            if address in self.addresses:
                continue
            self.addresses[address] = True
            for callee in self._profile.calls[address]:
                if callee in self._profile.cost and callee not in self.addresses:
                    self._pass_function(callee)


def plain(name):
    """A function's name without its result, arguments, template arguments and the namespaces that all have."""
    name = name.replace("(anonymous namespace)::", "").replace("torii::", "")
    before = None
    while name != before:
        before = name
        name = re.sub(r"<[^<>]*>|\([^()]*\)( const)?", "", name)
    return name if "operator " in name else name.split(" ")[-1]


def frames(library, addresses):
    """For each address the functions that it is in, the outer ones first: [(name, file)], without foreign ones."""
    answer = subprocess.run(["addr2line", "-a", "-i", "-f", "-C", "-e", library], check=True, capture_output=True,
                            text=True, input="\n".join(map(hex, addresses)))
    for block in re.split(r"^0x[0-9a-f]+\n", answer.stdout, flags=re.MULTILINE)[1:]:
        lines = block.splitlines()
        chain = []
        for name, place in zip(lines[::2], lines[1::2]):
            path = os.path.normpath(place.rpartition(":")[0])
            inside = FOLDERS.match(path)
            if not path.startswith(FOREIGN) and inside:
                chain.append((plain(name), inside[1]))
        yield chain[::-1]


def main():
    path, calls = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="utf-8") as file:
        profile = Profile(file)
    if profile.entry is None:
        sys.exit("perf/call_path.py: callgrind did not see a call of torii_run in libtorii.so")
    addresses = list(Walk(profile).addresses)
    own = {}
    for address, chain in zip(addresses, frames(profile.library, addresses)):
        for function in chain:
            own.setdefault(function, 0)
        if chain:
            own[chain[-1]] += profile.cost[address] / calls
    if not own:
        print(f"perf/call_path.py: {profile.library} has no debug information: build torii with -g1", file=sys.stderr)
        return 3
    for (name, file), count in own.items():
        print(f"{count:6.1f}  {name}  {file}")
    print(f"# {len(own)} functions in {len({file for _, file in own})} files, {sum(own.values()):.1f} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
