// SPDX-License-Identifier: Apache-2.0
// A program that only carries the precompiled headers of all tests; nobody builds or runs it.
int main() { return 0; }
