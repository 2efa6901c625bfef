// SPDX-License-Identifier: Apache-2.0
// Opens the module of an MPI.
#include "perf/mpi_calls.hpp"

#include <dlfcn.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "perf/common/failure.hpp"

namespace torii::perf {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& program, const std::string& reason) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), reason.c_str());
  std::exit(kNotPossible);
}

const MpiModule* open_module(const fs::path& program) {
  // A name with two dots, or none behind the last slash, is of nobody.
  const std::string name = program.extension().string();
  if (name.size() < 2) refuse(program, "its name must end in that of an MPI, as in compare_mpi.openmpi");
  // mpirun starts a program by the path that it was given; a shell may have found it by its name alone.
  const fs::path here =
      program.has_parent_path() ? program.parent_path() : fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path file = here / ("torii_mpi_" + name.substr(1) + ".so");
  // Components that an MPI opens later look for its symbols among all.
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (opened == nullptr) refuse(program, std::string("cannot open the module of its MPI: ") + dlerror());
  const void* const found = dlsym(opened, kMpiModuleSymbol);
  if (found == nullptr) refuse(program, "'" + file.string() + "' is no module of an MPI: " + dlerror());
  return static_cast<const MpiModule*>(found);
}

/// MPI_Init starts a daemon where no mpirun has started the program, which the build of a manual page cannot rely on.
bool asks_for_text(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  return word == "--help" || word == "--version";
}

}  // namespace

const MpiModule* Mpi::module_ = nullptr;

Mpi::Mpi(int& argc, char**& argv) {
  module_ = open_module(argc > 0 ? argv[0] : "");
  if (asks_for_text(argc, argv)) return;
  module_->init(&argc, &argv);
  is_initialized_ = true;
  rank_ = module_->rank();
  ranks_ = module_->ranks();
}

Mpi::~Mpi() {
  if (is_initialized_) module_->finalize();
}

std::string Mpi::version() {
  // The library says "Open MPI v4.1.4, package: ..." or "MPICH Version: <blanks> 4.0.2" and more lines of itself.
  // It may be of another release than the headers that the module was compiled with.
  std::array<char, 1024> text{};
  module_->library_version(text.data(), text.size());
  std::string version;
  for (const char c : std::string(text.data())) {
    if (c == ',' || c == '\n') break;
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      version += c;
    } else if (!version.empty() && version.back() != ' ') {
      version += ' ';
    }
  }
  for (const char* const word : {"Version: ", " v"}) {
    const size_t at = version.find(word);
    if (at != std::string::npos) version.replace(at, std::strlen(word), *word == ' ' ? " " : "");
  }
  return version;
}

void Mpi::abort(int exit_code) {
  module_->abort(exit_code);
  std::exit(exit_code);
}

}  // namespace torii::perf
