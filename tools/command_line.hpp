// SPDX-License-Identifier: Apache-2.0
// The command lines of all programs. Only command_line.cpp includes CLI11, whose templates take seconds to compile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace torii::tools {

/// The flags of a program, or of one of its commands. Copies stand for the same flags. Variables must outlive parse().
class CommandLine {
 public:
  /// One flag or argument. Each function returns the option, for the next one.
  class Option {
   public:
    explicit Option(CLI::Option* option) : option_(option) {}
    Option required() const;
    /// --help shows the value that the variable has now.
    Option show_default() const;
    /// Both ends are allowed. The type says what the program reads.
    Option range(int least, int most) const;
    Option range(std::size_t least, std::size_t most) const;
    Option range(double least, double most) const;
    Option not_negative() const;
    Option one_of(const std::vector<std::string>& values) const;
    Option excludes(const Option& other) const;
    Option needs(const Option& other) const;
    /// One word may have several values with this character between.
    Option delimiter(char character) const;
    /// Each flag takes one word; it may be given several times.
    Option repeated() const;
    /// The value is bytes, and may end with K, M or G (1024).
    Option bytes() const;

   private:
    CLI::Option* option_;
  };

  /// `program` is the name in --help; "" for the one under which the program was started.
  explicit CommandLine(const std::string& description, const std::string& program = "");

  /// `names` is one name, as "--ranks" or "ranks" for an argument without a flag, or several with commas.
  Option add_option(const std::string& names, int& value, const std::string& help) const;
  Option add_option(const std::string& names, std::size_t& value, const std::string& help) const;
  Option add_option(const std::string& names, double& value, const std::string& help) const;
  Option add_option(const std::string& names, std::string& value, const std::string& help) const;
  Option add_option(const std::string& names, std::vector<double>& values, const std::string& help) const;
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& help) const;
  Option add_option(const std::string& names, std::optional<int>& value, const std::string& help) const;
  Option add_option(const std::string& names, std::optional<std::size_t>& value, const std::string& help) const;
  Option add_option(const std::string& names, std::optional<double>& value, const std::string& help) const;
  Option add_option(const std::string& names, std::optional<std::string>& value, const std::string& help) const;
  Option add_option(const std::string& names, const std::function<void(const std::string&)>& take,
                    const std::string& help) const;
  /// The flag makes `value` true.
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;
  /// The flag makes `value` false.
  Option add_off_flag(const std::string& names, bool& value, const std::string& help) const;

  /// What --version prints.
  void set_version(const std::string& text) const;
  /// The lines at the end of --help.
  void set_examples(const std::string& text) const;
  CommandLine add_command(const std::string& name, const std::string& help) const;
  /// How many commands a command line must have.
  void require_commands(std::size_t least, std::size_t most) const;
  /// Flags of the program are understood behind a command, too.
  void share_flags() const;
  /// Reading ends at the first word that is no flag; remaining() has that word and all behind it.
  void take_program() const;

  /// Reads the words into the variables. Returns false after --help and --version, which are printed if `prints`.
  /// Throws Error{invalid_argument}.
  bool parse(int argc, const char* const* argv, bool prints = true) const;

  /// What parse() has found: the command's name, whether it was called, how often a flag was given, which flags were
  /// given.
  std::string name() const;
  bool is_called() const;
  std::size_t count(const std::string& flag) const;
  std::vector<std::string> given() const;
  std::vector<std::string> remaining() const;

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

  std::shared_ptr<CLI::App> app_;
};

/// Parses; an exit code means that the program is done: kDone after --help or --version, kBadInput after an error,
/// which is printed behind the program's name.
std::optional<int> parse(const CommandLine& line, int argc, const char* const* argv);

}  // namespace torii::tools
