// SPDX-License-Identifier: Apache-2.0
// Opens libtorii_pmix.so and wraps it as a Bootstrap.
#include "runtime/bootstrap/pmix.hpp"

#include <dlfcn.h>

#include <array>
#include <string>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

using Text = std::array<char, 512>;

class PmixBootstrap final : public Bootstrap {
 public:
  PmixBootstrap(const PmixModule& module, double timeout_s) : module_(module), timeout_s_(timeout_s) {
    Text text{};
    const int code = module_.open(&rank_, &ranks_, text.data(), text.size());
    if (code != 0) throw Error(static_cast<Status>(code), text.data());
  }
  ~PmixBootstrap() override { module_.close(); }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return ranks_; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_sizes(mine.size(), all.size());
    Text text{};
    int about = -1;
    const int code =
        module_.all_gather(mine.data(), all.data(), mine.size(), timeout_s_, &about, text.data(), text.size());
    if (code != 0) throw Error(static_cast<Status>(code), text.data(), about);
  }

 private:
  const PmixModule& module_;
  double timeout_s_;
  int rank_ = 0;
  int ranks_ = 1;
};

/// Opens the module in the folder torii beside the library or program that contains this code, or else in the system's
/// search path.
void* open_library() {
  // Never unloaded: threads of libpmix may still run when a context ends, and a later context opens the module again.
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const std::string name = "libtorii_pmix.so";
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&open_library), &self) != 0 && self.dli_fname != nullptr) {
    const std::string own = self.dli_fname;
    const std::size_t folder = own.rfind('/') + 1;  // 0 when there is none
    if (void* const library = dlopen((own.substr(0, folder) + "torii/" + name).c_str(), kFlags)) return library;
  }
  return dlopen(name.c_str(), kFlags);
}

const PmixModule& open_module() {
  void* const library = open_library();
  if (library == nullptr) {
    throw Error(Status::unsupported,
                "a PMIx launcher has started this rank (PMIX_RANK is set), but the module to join through it cannot be "
                "opened: " +
                    std::string(dlerror()) +
                    "; build torii where libpmix-dev is installed, or hand an exchange function to the context, or set "
                    "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  const auto* const module = static_cast<const PmixModule*>(dlsym(library, "torii_pmix_module"));
  if (module == nullptr || module->version != kPmixModuleVersion) {
    throw Error(Status::unsupported, "the libtorii_pmix.so that was found belongs to another version of torii");
  }
  return *module;
}

}  // namespace

std::unique_ptr<Bootstrap> join_pmix(const Settings& settings) {
  return std::make_unique<PmixBootstrap>(open_module(), settings.timeout_s);
}

}  // namespace torii
