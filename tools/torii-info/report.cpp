// SPDX-License-Identifier: Apache-2.0
// Writes reports to the paths of the command line.
#include "tools/torii-info/report.hpp"

#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {

void publish(const Report& report, const std::string& json_path, const std::string& svg_path) {
  if (json_path == "-" && svg_path == "-") {
    throw Error(Status::invalid_argument, "--json - and --svg - both want stdout: give one of them a file");
  }
  // File names and variables may contain bytes that are not UTF-8; JSON may not.
  const Output json(json_path);
  if (json) json.write(report.json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  const Output svg(svg_path);
  svg.write(report.svg);
  if (!json.is_stdout() && !svg.is_stdout()) Output("-").write(report.text);
}

}  // namespace torii::tools
