// SPDX-License-Identifier: Apache-2.0
// hwloc lists the devices and the CPUs near them; the kernel's files contain state and speed.
#include "runtime/devices/nics.hpp"

#include <hwloc.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"
#include "runtime/devices/address.hpp"

namespace torii {
namespace {

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Tree = std::unique_ptr<hwloc_topology, FreeTopology>;

/// nullptr if hwloc cannot read the machine.
Tree load_devices() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Tree tree(raw);
  // hwloc's GPU components start threads and take seconds. libpciaccess leaks, and hwloc finds the place of network
  // devices in the kernel's files without it.
  for (const char* const component : {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl", "pci"}) {
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return hwloc_topology_load(raw) == 0 ? std::move(tree) : nullptr;
}

std::vector<int> numbers_in(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return numbers;
  for (int number = hwloc_bitmap_first(set); number >= 0; number = hwloc_bitmap_next(set, number)) {
    numbers.push_back(number);
  }
  return numbers;
}

/// The number at the beginning of a line; 0 if there is none or it is negative.
double leading_number(std::string_view line) { return std::max(take_number<double>(line).value_or(0), 0.0); }

void add_facts(const std::filesystem::path& system, const std::vector<Interface>& interfaces, MachineNic& device) {
  if (device.is_openfabrics) {
    const std::filesystem::path port = system / "class/infiniband" / device.nic.name / "ports/1";
    device.is_up = first_line(port / "state").ends_with("ACTIVE");
    device.nic.mbit_per_s = 1000 * leading_number(first_line(port / "rate"));  // "100 Gb/sec (4X EDR)"
    return;
  }
  const std::filesystem::path folder = system / "class/net" / device.nic.name;
  device.is_up = first_line(folder / "operstate") == "up";
  device.nic.mbit_per_s = leading_number(first_line(folder / "speed"));  // -1 where the driver does not know
  for (const Interface& one : interfaces) {
    if (device.is_up && one.name == device.nic.name) device.addresses.push_back(one.address.host());
  }
}

}  // namespace

std::vector<MachineNic> nics_of_machine(const std::filesystem::path& system) {
  // Ranks may be threads of one process, and libudev, which hwloc uses, is not thread-safe.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::vector<MachineNic> devices;
  const Tree tree = load_devices();
  if (tree == nullptr) return devices;
  std::vector<Interface> interfaces;
  try {
    interfaces = interfaces_of_host();
  } catch (const Error&) {
    interfaces.clear();  // devices without addresses are still worth showing
  }
  for (hwloc_obj_t object = hwloc_get_next_osdev(tree.get(), nullptr); object != nullptr;
       object = hwloc_get_next_osdev(tree.get(), object)) {
    const hwloc_obj_osdev_type_t type = object->attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    MachineNic device;
    device.nic.name = object->name;
    device.is_openfabrics = type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    if (const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(tree.get(), object)) {
      device.nic.near_cpus = numbers_in(place->cpuset);
      device.numa_nodes = numbers_in(place->nodeset);
    }
    add_facts(system, interfaces, device);
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace torii
