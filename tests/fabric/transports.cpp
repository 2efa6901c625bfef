// SPDX-License-Identifier: Apache-2.0
// Opens each transport with an arena of its own.
#include "tests/fabric/transports.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include "transports/shared_memory/shared_memory.hpp"
#ifdef TORII_TEST_LIBFABRIC
#include "tests/fabric/imposed_modes.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/mixed/mixed.hpp"
#endif
#ifdef TORII_TEST_UCX
#include "transports/ucx/transport.hpp"
#endif

namespace torii::tests {
namespace {

/// Engines use the loopback interface, which no RDMA device stands on.
std::vector<std::string> source_addresses() { return {rdma_address() != nullptr ? rdma_address() : "127.0.0.1"}; }

class OnSharedMemory final : public OpenTransport {
 public:
  OnSharedMemory(Bootstrap& bootstrap, int engines)
      : nodes_(bootstrap),
        arena_(shared_memory::make_arena(bootstrap, nodes_, shared_memory::kArenaBytesMin)),
        offset_(arena_->allocate(kArenaBytes, shared_memory::Backing::on_touch)),
        peers_(bootstrap, nodes_, *arena_, 20),
        transport_(bootstrap, *arena_, peers_, engines) {
    if (offset_ != 0) throw Error(Status::internal, "the arena's first allocation is not at its beginning");
  }
  Transport& transport() noexcept override { return transport_; }
  std::byte* arena() noexcept override { return arena_->base(); }

 private:
  shared_memory::Nodes nodes_;
  std::unique_ptr<shared_memory::Arena> arena_;
  std::size_t offset_;
  shared_memory::NodePeers peers_;
  shared_memory::SharedMemory transport_;
};

#if defined(TORII_TEST_LIBFABRIC) || defined(TORII_TEST_UCX)
class Memory {
 public:
  Memory()
      : base_(static_cast<std::byte*>(
            mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (base_ == MAP_FAILED) throw Error(Status::no_resource, "cannot map an arena");
  }
  ~Memory() { munmap(base_, kArenaBytes); }
  std::byte* base() const noexcept { return base_; }

 private:
  std::byte* base_;
};

/// A transport of engines over memory of the test. `more` is what its constructor takes behind the options.
template <class Made, class Options>
class OnEngines final : public OpenTransport {
 public:
  template <class... More>
  OnEngines(Bootstrap& bootstrap, int engines, const std::string& provider, Options options, const More&... more)
      : transport_(bootstrap, fill(std::move(options), memory_, engines, provider), more...) {}
  Transport& transport() noexcept override { return transport_; }
  std::byte* arena() noexcept override { return memory_.base(); }

 private:
  static Options fill(Options options, const Memory& memory, int engines, const std::string& provider) {
    options.arena = memory.base();
    options.arena_bytes = kArenaBytes;
    options.engines = engines;
    options.provider = provider;
    options.source_addresses = source_addresses();
    options.oversubscribed = !options.alone_in_process;
    return options;
  }

  Memory memory_;
  Made transport_;
};
#endif
#ifdef TORII_TEST_LIBFABRIC
using OnLibfabric = OnEngines<libfabric::Fabric, libfabric::Options>;
#endif
#ifdef TORII_TEST_UCX
using OnUcx = OnEngines<ucx::UcxTransport, ucx::Options>;

/// A provider, and whether its payloads are put even where messages suit it better.
struct UcxRow {
  std::string provider;
  ucx::Way way;
};
const std::map<std::string, UcxRow>& ucx_rows() {
  static const std::map<std::string, UcxRow> rows = {
      {"ucx_rc", {"rc", ucx::Way::by_ability}},       {"ucx_tcp", {"tcp", ucx::Way::by_ability}},
      {"ucx_posix", {"posix", ucx::Way::by_ability}}, {"ucx_posix_cma", {"posix;cma", ucx::Way::by_ability}},
      {"ucx_tcp_puts", {"tcp", ucx::Way::puts}},      {"ucx_posix_puts", {"posix", ucx::Way::puts}}};
  return rows;
}
#endif

#ifdef TORII_TEST_LIBFABRIC
/// Two nodes, ranks dealt to them in turn: peers of both kinds for most ranks.
class OnMixed final : public OpenTransport {
 public:
  OnMixed(Bootstrap& bootstrap, int engines)
      : nodes_(bootstrap, bootstrap.rank() % 2 == 0 ? "even" : "odd"),
        arena_(shared_memory::make_arena(bootstrap, nodes_, shared_memory::kArenaBytesMin)),
        offset_(arena_->allocate(kArenaBytes, shared_memory::Backing::on_touch)),
        peers_(bootstrap, nodes_, *arena_, 20) {
    if (offset_ != 0) throw Error(Status::internal, "the arena's first allocation is not at its beginning");
    auto inside = std::make_unique<shared_memory::SharedMemory>(bootstrap, *arena_, peers_, engines);
    libfabric::Options options;
    options.arena = arena_->base();
    options.arena_bytes = arena_->bytes();
    options.engines = engines;
    options.provider = "tcp;ofi_rxm";
    options.source_addresses = source_addresses();
    transport_ = std::make_unique<mixed::Mixed>(nodes_, std::move(inside),
                                                std::make_unique<libfabric::Fabric>(bootstrap, options));
  }
  Transport& transport() noexcept override { return *transport_; }
  std::byte* arena() noexcept override { return arena_->base(); }

 private:
  shared_memory::Nodes nodes_;
  std::unique_ptr<shared_memory::Arena> arena_;
  std::size_t offset_;
  shared_memory::NodePeers peers_;
  std::unique_ptr<mixed::Mixed> transport_;
};
#endif

using Open = std::function<std::unique_ptr<OpenTransport>(Bootstrap& bootstrap, int engines)>;

/// One row per transport; "+" before a name: also with ranks as processes; "-": only so.
const std::map<std::string, Open>& table() {
  static const std::map<std::string, Open> rows = [] {
    std::map<std::string, Open> made;
    made["+shared_memory"] = [](Bootstrap& bootstrap, int engines) {
      return std::make_unique<OnSharedMemory>(bootstrap, engines);
    };
#ifdef TORII_TEST_LIBFABRIC
    made["+mixed"] = [](Bootstrap& bootstrap, int engines) { return std::make_unique<OnMixed>(bootstrap, engines); };
    std::vector<std::string> providers = {"+tcp;ofi_rxm", "+net", "+shm"};
    if (rdma_address() != nullptr) providers.emplace_back("+verbs;ofi_rxm");
    for (const std::string& provider : providers) {
      made[provider] = [provider](Bootstrap& bootstrap, int engines) {
        return std::make_unique<OnLibfabric>(bootstrap, engines, provider.substr(provider[0] == '+'),
                                             libfabric::Options{}, libfabric::Api{});
      };
    }
    // A rank with a CPU of its own, which spins for long and has no descriptor to sleep on.
    made["-rxm_alone"] = [](Bootstrap& bootstrap, int engines) {
      libfabric::Options options;
      options.alone_in_process = true;
      return std::make_unique<OnLibfabric>(bootstrap, engines, "tcp;ofi_rxm", options, libfabric::Api{});
    };
    for (const auto& [name, modes] : imposed_modes()) {
      made[name] = [modes = modes](Bootstrap& bootstrap, int engines) {
        return std::make_unique<OnLibfabric>(bootstrap, engines, provider_of(modes), libfabric::Options{},
                                             impose(modes));
      };
    }
#endif
#ifdef TORII_TEST_UCX
    for (const auto& [name, row] : ucx_rows()) {
      if (name == "ucx_rc" && rdma_address() == nullptr) continue;
      made["+" + name] = [row = row](Bootstrap& bootstrap, int engines) {
        ucx::Options options;
        options.way = row.way;
        return std::make_unique<OnUcx>(bootstrap, engines, row.provider, options);
      };
    }
#endif
    return made;
  }();
  return rows;
}

}  // namespace

const char* rdma_address() { return std::getenv("TORII_TEST_RDMA_ADDRESS"); }

std::unique_ptr<OpenTransport> open_transport(const std::string& name, Bootstrap& bootstrap, int engines) {
  const auto& rows = table();
  auto row = rows.find(name);
  for (const char* const mark : {"+", "-"}) {
    if (row == rows.end()) row = rows.find(mark + name);
  }
  if (row == rows.end()) throw Error(Status::invalid_argument, "no transport is called '" + name + "'");
  return row->second(bootstrap, engines);
}

std::string obstacle([[maybe_unused]] const std::string& name) {
#ifdef TORII_TEST_UCX
  // Containers may refuse what cma stands on.
  const auto row = ucx_rows().find(name);
  if (row == ucx_rows().end()) return {};
  for (const ucx::ProviderReport& one : ucx::list_providers({"127.0.0.1"})) {
    if (one.name == row->second.provider && !one.usable) return one.reason;
  }
#endif
  return {};
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const auto& [name, open] : table()) {
    if (name[0] != '-') names.push_back(name.substr(name[0] == '+'));
  }
  return names;
}

bool is_imposed([[maybe_unused]] const std::string& name) {
#ifdef TORII_TEST_LIBFABRIC
  for (const auto& [each, modes] : imposed_modes()) {
    if (each == name) return true;
  }
#endif
#ifdef TORII_TEST_UCX
  const auto row = ucx_rows().find(name);
  if (row != ucx_rows().end()) return row->second.way != ucx::Way::by_ability;
#endif
  return false;
}

std::vector<std::string> process_transport_names() {
  std::vector<std::string> names;
  for (const auto& [name, open] : table()) {
    if (name[0] == '+' || name[0] == '-') names.push_back(name.substr(1));
  }
  return names;
}

}  // namespace torii::tests
