// SPDX-License-Identifier: Apache-2.0
// The counts of members in planted classes, and the rule on top of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/folder_test.hpp"
#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

/// Every class of `text` as "name functions data", in the order in which the classes end.
std::vector<std::string> sizes(std::string_view text) {
  std::vector<std::string> found;
  const SourceFile file = parse_source("planted.hpp", Kind::cpp, text);
  for (const ClassSize& size : class_sizes(file)) {
    found.push_back(size.name + ' ' + std::to_string(size.functions) + ' ' + std::to_string(size.data));
  }
  return found;
}

using Expected = std::vector<std::string>;

TEST(ClassSizes, FunctionsOfAllKinds) {
  EXPECT_EQ(sizes("class C final : public Base<int, decltype(f())> {\n"
                  " public:\n"
                  "  C() = default;\n"
                  "  explicit C(int a, std::vector<int> b = {}) : a_{a}, Base<int, X>(b), c_(b)... {}\n"
                  "  explicit(sizeof(int) == 4) C(long);\n"
                  "  C(const C&) = delete;\n"
                  "  virtual ~C() noexcept(kIsSafe < 3) override;\n"
                  "  [[nodiscard]] virtual int\n"
                  "  on_two_lines(int a,\n"
                  "               int b) const noexcept = 0;\n"
                  "  static auto trailing(int (*f)(int)) -> std::map<int, int> { return {{1, 2}}; }\n"
                  "  decltype(auto) deduced() const& { if (a_ < b_) { return a_; } return b_; }\n"
                  "  __attribute__((noinline)) void attributed();\n"
                  "  void (*returns_a_pointer(int))(int);\n"
                  "};\n"),
            Expected({"C 10 0"}));
}

TEST(ClassSizes, Operators) {
  EXPECT_EQ(sizes("struct C {\n"
                  "  bool operator()(int a) const;\n"
                  "  bool operator<(const C& other) const;\n"
                  "  auto operator<=>(const C&) const = default;\n"
                  "  C& operator=(C&&) = delete;\n"
                  "  int operator[](int i) { return a < i; }\n"
                  "  C* operator->();\n"
                  "  explicit operator bool() const { return true; }\n"
                  "  operator std::map<int, int>() const;\n"
                  "  void* operator new(std::size_t);\n"
                  "  C& operator,(int);\n"
                  "  int a;\n"
                  "};\n"),
            Expected({"C 10 1"}));
}

TEST(ClassSizes, DataOfAllKinds) {
  EXPECT_EQ(sizes("class C {\n"
                  "  int a_, *b_ = nullptr, c_[3] = {1, 2, 3};\n"
                  "  unsigned d_ : 3, e_ : 5 = 1;\n"
                  "  std::map<int, std::vector<int>> f_{{1, {2, 3}}};\n"
                  "  static constexpr int kG = kA < 3 ? kB : kC;\n"
                  "  static inline std::map<int, int> h_ = std::map<int, int>({});\n"
                  "  int (*i_)(int, int) = nullptr;\n"
                  "  void (C::*j_)() noexcept;\n"
                  "  std::function<void(int, int)> k_ = [](int a, int b) { if (a < b) { return; } };\n"
                  "  alignas(64) std::atomic<int> l_;\n"
                  "  struct stat m_;\n"
                  "  enum Way n_ = Way::left;\n"
                  "  const char* const o_ = \"; int p() {\";\n"
                  "  std::array<std::byte, (kA > 2 ? 8 : 16)>\n"
                  "      q_;\n"
                  "  int (&r_)[3];\n"
                  "  decltype(f(1)) s_;\n"
                  "};\n"),
            Expected({"C 0 18"}));
}

TEST(ClassSizes, WhatIsNoMember) {
  EXPECT_EQ(sizes("class C {\n"
                  "  using Map = std::map<int, int>;\n"
                  "  using Base::Base;\n"
                  "  typedef int (*Function)(int);\n"
                  "  static_assert(sizeof(int) < 8 && kA > 2);\n"
                  "  friend class D;\n"
                  "  friend struct E::F;\n"
                  "  friend bool operator==(const C& a, const C& b) { return a.x < b.x; }\n"
                  "  friend void f(C);\n"
                  "  enum class Way : std::uint8_t { left, right = 3 };\n"
                  "  enum Later : int;\n"
                  "  class Announced;\n"
                  "  template <class T>\n"
                  "  friend class G;\n"
                  "  int f_();\n"
                  "};\n"
                  "int C::f_() { struct L { int x; }; return 0; }\n"
                  "class Elsewhere;\n"
                  "int global = 3;\n"),
            Expected({"C 1 0"}));
}

TEST(ClassSizes, Templates) {
  EXPECT_EQ(sizes("template <class T, int N = (3 > 2), class = std::enable_if_t<true>>\n"
                  "  requires std::is_same_v<T, int> && (N > 1)\n"
                  "class C {\n"
                  "  template <class U>\n"
                  "    requires requires(U u) { u.f(); { u.g() } -> std::same_as<int>; } || Other<U>\n"
                  "  void f(U u);\n"
                  "  void g() requires(N > 1) { int x{}; }\n"
                  "  void h() requires Other<T>;\n"
                  "  template <class U>\n"
                  "  static constexpr U kZero = U{};\n"
                  "};\n"
                  "template <>\n"
                  "struct C<int, 3> {\n"
                  "  int a;\n"
                  "};\n"
                  "template <class T>\n"
                  "concept Other = requires(T t) { { t.f() } -> std::same_as<int>; };\n"
                  "template class C<int, 4>;\n"
                  "struct D { int a; };\n"),
            Expected({"C 3 1", "C 0 1", "D 0 1"}));
}

TEST(ClassSizes, NestedClassesCountForThemselves) {
  EXPECT_EQ(sizes("#define STRUCT struct X {   \\\n"
                  "  int a;\n"
                  "namespace a::b {\n"
                  "namespace {\n"
                  "class C {\n"
                  "  struct Inner { int a; int f() { return 1; } };\n"
                  "  struct Named { int a, b; } c_, d_;\n"
                  "  union { int e_; float f_; };\n"
                  "  enum { left, right } g_;\n"
                  "  static const struct { int a; } h_;\n"
                  "};\n"
                  "}  // namespace\n"
                  "}\n"
                  "extern \"C\" {\n"
                  "struct alignas(8) API_MACRO Plain { int a; };\n"
                  "}\n"
                  "inline namespace v1 { struct Outer::Later final : Base { int a; }; }\n"),
            Expected({"a::b::C::Inner 1 1", "a::b::C::Named 0 2", "a::b::C::(unnamed) 0 1", "a::b::C 0 6", "Plain 0 1",
                      "v1::Outer::Later 0 1"}));
}

class ClassRule : public tests::FolderTest {
 protected:
  static std::string repeat(const std::string& text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) result += text;
    return result;
  }

  /// A header with a class of so many members.
  void plant(const std::string& header, const std::string& name, int functions, int data) {
    const fs::path folder = folder_ / "runtime" / "base";
    fs::create_directories(folder);
    std::ofstream(folder / header) << "// SPDX-License-Identifier: Apache-2.0\n// A planted file.\n#pragma once\n"
                                   << "namespace planted {\nstruct " << name << " {\n"
                                   << repeat("  int a;\n", data) << repeat("  int f();\n", functions) << "};\n}\n";
  }

  std::vector<std::string> broken(const std::string& exceptions = "") {
    std::vector<std::string> rules;
    for (const Violation& violation : check_tree(folder_, exceptions)) {
      rules.push_back(violation.rule + ' ' + violation.path + ':' + std::to_string(violation.line));
    }
    return rules;
  }
};

TEST_F(ClassRule, HasTwoLimits) {
  plant("a.hpp", "C", 40, 20);
  EXPECT_EQ(broken(), Expected());
  plant("a.hpp", "C", 41, 0);
  EXPECT_EQ(broken(), Expected({"class_size runtime/base/a.hpp:5"}));
  EXPECT_EQ(broken("class_size runtime/base/a.hpp it mirrors a table\n"), Expected());
  plant("a.hpp", "C", 1, 21);
  EXPECT_EQ(broken(), Expected({"class_size runtime/base/a.hpp:5"}));
  plant("a.hpp", "C", 0, 100);
  EXPECT_EQ(broken(), Expected());
}

TEST_F(ClassRule, LeavesTestsAndSourcesAlone) {
  plant("a.hpp", "C", 41, 0);
  fs::create_directories(folder_ / "tests" / "x");
  fs::copy(folder_ / "runtime" / "base" / "a.hpp", folder_ / "tests" / "x" / "a.hpp");
  fs::rename(folder_ / "runtime" / "base" / "a.hpp", folder_ / "runtime" / "base" / "a.cpp");
  EXPECT_EQ(broken(), Expected());
}

TEST_F(ClassRule, AllowsFiveExceptions) {
  std::string exceptions;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    plant(std::string(name) + ".hpp", "C", 41, 0);
    exceptions += "class_size runtime/base/" + std::string(name) + ".hpp it mirrors a table\n";
  }
  EXPECT_EQ(broken(exceptions), Expected({"exceptions tests/tidy/exceptions.txt:6"}));
}

TEST_F(ClassRule, ExcusesNoCoreClass) {
  plant("a.hpp", "Execution", 41, 0);
  const std::string core = "core_class_size runtime/base/a.hpp:5", listed = "exceptions tests/tidy/exceptions.txt:1";
  EXPECT_EQ(broken("class_size runtime/base/a.hpp it is large\n"), Expected({core, listed}));
  EXPECT_EQ(broken("core_class_size runtime/base/a.hpp it is large\n"), Expected({listed}));
}

}  // namespace
}  // namespace torii::tidy
