# SPDX-License-Identifier: Apache-2.0
# Makes one source file of the fragments of a page. Each becomes a function with the names that pages use as parameters.
"""Fragments of C and C++ as source files that a compiler can check."""

_C_BEGIN = """#include <stdint.h>
#include <stdio.h>
#include <torii/torii.h>
typedef int MPI_Comm;
enum { MPI_BYTE };
int MPI_Allgather(const void*, int, int, void*, int, int, MPI_Comm);
"""
_C_FUNCTION = """void fragment_%d(torii_context* context, torii_team* team, int rank, int ranks, const float* input,
    float* result, float* values, float* tensor[], const size_t* count, const size_t* counts, void* a, void* b, void* c,
    MPI_Comm comm) {
  {
"""
_CPP_BEGIN = """#include <cstdio>
#include <optional>
#include <span>
#include <vector>
#include <torii/torii.hpp>
void compute();
"""
_CPP_FUNCTION = """void fragment_%d(const torii::Context& context, torii::Team& team, std::span<const float> input,
    std::span<float> result, std::vector<float>& gradients, std::vector<float>& sums, float* mine, std::size_t count,
    long step) {
  {
"""


def source_of(blocks, language):
    """The fragments of one language, with #line so that a compiler names the page."""
    text = _C_BEGIN if language == "c" else _CPP_BEGIN
    function = _C_FUNCTION if language == "c" else _CPP_FUNCTION
    for number, block in enumerate(blocks):
        if block.language != language or block.is_program:
            continue
        if not block.is_declaration:
            text += function % number
        text += f'#line {block.line} "{block.page}"\n{block.text}'
        if not block.is_declaration:
            text += "  }\n}\n"
    return text
