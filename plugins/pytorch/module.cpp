// SPDX-License-Identifier: Apache-2.0
// The extension module torii._torch: groups for torch.distributed, and what they offer beyond it.
#include <torch/csrc/utils/pybind.h>

#include <pthread.h>
#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include "plugins/pytorch/caller.hpp"
#include "plugins/pytorch/failure.hpp"
#include "plugins/pytorch/group.hpp"

namespace torii_torch {
namespace {

c10::intrusive_ptr<Group> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
                                     std::chrono::milliseconds timeout, const std::string& determinism,
                                     const std::string& algorithm, const std::string& settings, int channels) {
  const GroupOptions options{determinism, algorithm, settings, channels};
  return c10::make_intrusive<Group>(store, rank, ranks, clamped(timeout), options);
}

}  // namespace

PYBIND11_MODULE(_torch, module) {
  // Registers the classes that Group derives from and takes.
  const py::module_ base = py::module_::import("torch._C._distributed_c10d");
  const auto no_gil = py::call_guard<py::gil_scoped_release>();
  module.doc() = "Process groups of torch.distributed over torii.";
  py::class_<Group, GroupBase, c10::intrusive_ptr<Group>>(module, "Group",
                                                          "A process group over a team of torii: torii.torch.")
      .def("_abort", &Group::abort_group, py::arg("reason"), no_gil)
      .def("_members", &Group::members, no_gil)
      .def(
          "_lost", [](const Group& self) { return self.team().lost(); }, no_gil)
      .def("_ill", &Group::ill, no_gil)
      .def(
          "_absent", [](const Group& self) { return self.team().absent(); }, no_gil)
      .def("_survivors", &Group::survivors, py::arg("without"), py::arg("allow_minority"), no_gil)
      .def("_rest", &Group::rest, no_gil)
      .def("_has_thread", &Group::has_thread, no_gil)
      .def(
          "_monitored_barrier",
          [](Group& self, std::chrono::milliseconds timeout, bool wait_all_ranks) {
            c10d::BarrierOptions options;
            options.timeout = timeout;
            self.monitoredBarrier(options, wait_all_ranks);
          },
          py::arg("timeout"), py::arg("wait_all_ranks"), no_gil);
  module.def("make_group", make_group, py::arg("store"), py::arg("rank"), py::arg("ranks"), py::arg("timeout"),
             py::arg("determinism"), py::arg("algorithm"), py::arg("settings"), py::arg("channels"), no_gil);
  module.def("wait_for_busy_threads", &ProgressThread::wait_for_busy_threads, no_gil);
  pthread_atfork(nullptr, nullptr, &ProgressThread::forget_busy_threads);
  module.def("install", [](const py::object& class_of_status, const py::str& caller_file) {
    set_failure_classes(class_of_status.ptr());
    set_caller_file(caller_file.ptr());
  });
  module.attr("built_for") = TORCH_VERSION;
  py::register_exception_translator(translate_failure);
}

}  // namespace torii_torch
