// SPDX-License-Identifier: Apache-2.0
// Whether the Python function that has called a group will wait for the operation at once.
#pragma once

#include <torch/csrc/python_headers.h>

namespace torii_torch {

/// Names the file whose functions are asked: that of torch.distributed.all_reduce and its like. With the GIL.
void set_caller_file(PyObject* name);

/// True if the innermost Python function is one of torch.distributed that waits: its local variable async_op is False,
/// or it is send() or recv(). False otherwise, also for calls from C++ threads. Takes the GIL for it.
bool python_caller_waits();

}  // namespace torii_torch
