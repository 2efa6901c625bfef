// SPDX-License-Identifier: Apache-2.0
// Writes reports to the places of the command line.
#include "tools/torii-info/report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void cannot_write(const std::string& path) {
  throw Error(Status::invalid_argument, "cannot write '" + path + "': " + std::strerror(errno));
}

}  // namespace

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) cannot_write("stdout");
    return;
  }
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "we"));
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0) {
    cannot_write(path);
  }
}

void publish(const Report& report, const std::string& json_path, const std::string& svg_path) {
  if (json_path == "-" && svg_path == "-") {
    throw Error(Status::invalid_argument, "--json - and --svg - both want stdout: give one of them a file");
  }
  // File names and variables may contain bytes that are not UTF-8; JSON may not.
  if (!json_path.empty())
    write_text(json_path, report.json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  write_text(svg_path, report.svg);
  if (json_path != "-" && svg_path != "-") write_text("-", report.text);
}

}  // namespace torii::tools
