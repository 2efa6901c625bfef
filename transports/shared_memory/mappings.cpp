// SPDX-License-Identifier: Apache-2.0
// Parses /proc/self/maps and /proc/self/smaps.
#include "transports/shared_memory/mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"

namespace torii::shared_memory {
namespace {

std::string read_file(const char* path) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    throw Error(Status::unsupported, std::string("cannot read ") + path + " (" + std::strerror(errno) +
                                         "), which tells what may be adopted; mount /proc, or use torii_allocate");
  }
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t got = read(file.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(Status::unsupported, std::string("reading ") + path + ": " + std::strerror(errno));
    if (got == 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

/// Removes a number and the character behind it from the front of `line`; if `after` is 0, the number only.
bool take_field(std::string_view& line, int base, char after, std::uint64_t& number) {
  const auto value = take_number<std::uint64_t>(line, base);
  if (!value) return false;
  number = *value;
  if (after == 0) return true;
  if (line.empty() || line.front() != after) return false;
  line.remove_prefix(1);
  return true;
}

/// "7f01-7f02 rw-p 00000000 00:01 17 /memfd:name (deleted)"
bool parse_line(std::string_view line, MappedRange& mapping) {
  std::uint64_t first = 0, end = 0;
  if (!take_field(line, 16, '-', first) || !take_field(line, 16, ' ', end) || first >= end) return false;
  if (line.size() < 5 || line[4] != ' ') return false;
  mapping.range = {first, end};
  mapping.readable = line[0] == 'r';
  mapping.writable = line[1] == 'w';
  mapping.executable = line[2] == 'x';
  mapping.is_shared = line[3] == 's';
  line.remove_prefix(5);
  if (!take_field(line, 16, ' ', mapping.offset) || !take_field(line, 16, ':', mapping.device_major) ||
      !take_field(line, 16, ' ', mapping.device_minor) || !take_field(line, 10, 0, mapping.inode)) {
    return false;
  }
  const std::size_t name = line.find_first_not_of(' ');
  mapping.name = name == std::string_view::npos ? "" : std::string(line.substr(name));
  return true;
}

/// Whether any memory of the process is locked. smaps tells which memory is locked, but is slow to read.
bool any_locked(std::string_view status) {
  const std::size_t at = status.find("VmLck:");
  if (at == std::string_view::npos) return false;
  const std::size_t digit = status.find_first_not_of(" \t", at + 6);
  return digit != std::string_view::npos && status[digit] != '0';
}

/// What is wrong with a mapping; nullptr if nothing is.
const char* fault_of(const MappedRange& mapping) {
  if (mapping.name.find("hugepage") != std::string::npos) return "huge pages";
  if (mapping.is_shared) return "a shared mapping";
  if (mapping.inode != 0) return "a private mapping of a file";
  if (mapping.name == "[stack]") return "the stack";
  if (mapping.executable) return "executable";
  if (!mapping.readable || !mapping.writable) return "not both readable and writable";
  if (mapping.locked) return "locked (mlock)";
  return nullptr;
}

}  // namespace

std::string hex(std::uintptr_t address) {
  char text[2 * sizeof(address)];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), address, 16);
  return "0x" + std::string(text, error == std::errc() ? end : text);
}

std::vector<MappedRange> parse_mappings(std::string_view text) {
  std::vector<MappedRange> mappings;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    MappedRange mapping;
    if (parse_line(line, mapping)) {
      mappings.push_back(std::move(mapping));
    } else if (line.starts_with("VmFlags:") && !mappings.empty()) {
      mappings.back().locked = line.find(" lo") != std::string_view::npos;
    }
  }
  return mappings;
}

std::vector<MappedRange> read_mappings() {
  return parse_mappings(read_file(any_locked(read_file("/proc/self/status")) ? "/proc/self/smaps" : "/proc/self/maps"));
}

std::string why_not_adoptable(const std::vector<MappedRange>& mappings, AddressRange range) {
  std::uintptr_t at = range.first;
  for (const MappedRange& mapping : mappings) {
    if (mapping.range.end <= at) continue;
    if (mapping.range.first > at) break;
    if (const char* const fault = fault_of(mapping)) {
      return "memory at " + hex(at) + " is " + fault + (mapping.name.empty() ? "" : ", " + mapping.name);
    }
    at = mapping.range.end;
    if (at >= range.end) return "";
  }
  return at >= range.end ? "" : "memory at " + hex(at) + " is not mapped";
}

}  // namespace torii::shared_memory
