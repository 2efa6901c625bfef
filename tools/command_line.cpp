// SPDX-License-Identifier: Apache-2.0
// Command lines, read by CLI11.
#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"

namespace torii::tools {
namespace {

/// Refuses what CLI11 accepts: an empty value, mostly of an unset shell variable; text that is no number, which CLI11
/// finds inside every range; and numbers that an unsigned variable cannot hold, which CLI11 wraps or cuts.
void refuse_value(const CLI::Option& option, std::string value) {
  const auto refuse = [&](const std::string& why) { throw CLI::ValidationError(option.get_name(), why); };
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  if (value.empty()) refuse("its value is empty; leave it out or give one");
  if (value == "nan" || value == "-nan" || value == "+nan") refuse(value + " is no number");
  if (!option.get_type_name().starts_with("UINT")) return;
  const std::size_t begin = value.find_first_not_of(" \t\n\v\f\r");
  if (begin != std::string::npos && value[begin] == '-') refuse(value + " is negative; the least is 0");
  errno = 0;
  std::strtoull(value.c_str(), nullptr, 0);
  if (errno == ERANGE) {
    refuse(value + " is too large; the most is " + std::to_string(std::numeric_limits<std::uint64_t>::max()));
  }
}

void refuse_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) refuse_value(*option, value);
  }
  for (const CLI::App* command : app.get_subcommands({})) refuse_values(*command);
}

}  // namespace

using Option = CommandLine::Option;

Option Option::required() const {
  option_->required();
  return *this;
}
Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}
Option Option::range(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option Option::range(std::size_t least, std::size_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option Option::range(double least, double most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}
Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}
Option Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}
Option Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}
Option Option::delimiter(char character) const {
  option_->delimiter(character);
  return *this;
}
Option Option::repeated() const {
  option_->take_all()->allow_extra_args(false);
  return *this;
}
Option Option::bytes() const {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}

CommandLine::CommandLine(const std::string& description, const std::string& program)
    : app_(std::make_shared<CLI::App>(description, program)) {}

Option CommandLine::add_option(const std::string& names, int& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, std::size_t& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, double& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, std::string& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, std::vector<double>& values, const std::string& help) const {
  return Option(app_->add_option(names, values, help));
}
Option CommandLine::add_option(const std::string& names, std::vector<std::string>& values,
                               const std::string& help) const {
  return Option(app_->add_option(names, values, help));
}
Option CommandLine::add_option(const std::string& names, std::optional<int>& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, std::optional<std::size_t>& value,
                               const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, std::optional<double>& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, std::optional<std::string>& value,
                               const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
Option CommandLine::add_option(const std::string& names, const std::function<void(const std::string&)>& take,
                               const std::string& help) const {
  return Option(app_->add_option_function<std::string>(names, take, help));
}
Option CommandLine::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}
Option CommandLine::add_off_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag_callback(
      names, [&value] { value = false; }, help));
}

void CommandLine::set_version(const std::string& text) const { app_->set_version_flag("--version", text); }
void CommandLine::set_examples(const std::string& text) const { app_->footer("Example:\n  " + text); }
CommandLine CommandLine::add_command(const std::string& name, const std::string& help) const {
  return CommandLine(app_->get_subcommand_ptr(app_->add_subcommand(name, help)));
}
void CommandLine::require_commands(std::size_t least, std::size_t most) const { app_->require_subcommand(least, most); }
void CommandLine::share_flags() const { app_->fallthrough(); }
void CommandLine::take_program() const { app_->prefix_command(); }

bool CommandLine::parse(int argc, const char* const* argv, bool prints) const {
  try {
    app_->parse(argc, argv);
    refuse_values(*app_);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw Error(Status::invalid_argument, error.what());
    if (prints) app_->exit(error);
    return false;
  }
  return true;
}

std::string CommandLine::name() const { return app_->get_name(); }
bool CommandLine::is_called() const { return app_->parsed(); }
std::size_t CommandLine::count(const std::string& flag) const { return app_->count(flag); }
std::vector<std::string> CommandLine::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}
std::vector<std::string> CommandLine::remaining() const { return app_->remaining(); }

std::optional<int> parse(const CommandLine& line, int argc, const char* const* argv) {
  try {
    if (line.parse(argc, argv)) return std::nullopt;
    return kDone;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\nRun with --help for more information.\n", line.name().c_str(), error.what());
    return kBadInput;
  }
}

}  // namespace torii::tools
