// SPDX-License-Identifier: Apache-2.0
// The project obeys its style rules, and every rule catches a planted violation.
// REUSE-IgnoreStart: the licence lines below are data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/support/places.hpp"
#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "// SPDX-License-Identifier: Apache-2.0\n// A planted file.\n";
constexpr std::string_view kHeaderHead = "// SPDX-License-Identifier: Apache-2.0\n// A planted file.\n#pragma once\n";

std::string repeat(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string describe(const std::vector<Violation>& violations) {
  std::ostringstream text;
  for (const Violation& v : violations) {
    text << v.path << ':' << v.line << ": [" << v.rule << "] " << v.message << '\n';
  }
  return text.str();
}

TEST(Project, ObeysItsRules) {
  const fs::path root = tests::source_dir();
  ASSERT_GT(read_tree(root).size(), 10u) << "the tree was not found";
  std::ifstream stream(root / "tests/tidy/exceptions.txt");
  std::ostringstream exceptions;
  exceptions << stream.rdbuf();
  const auto violations = check_tree(root, exceptions.str());
  EXPECT_TRUE(violations.empty()) << describe(violations);
}

/// A small tree in a temporary folder that goes away with the test.
class Planted : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("torii_test_tidy_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void plant(const std::string& path, std::string_view text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  void expect_clean(const std::string& path, std::string_view text) {
    plant(path, text);
    const auto violations = check_tree(root_, "");
    EXPECT_TRUE(violations.empty()) << describe(violations);
  }

  /// Exactly one violation, of that rule, in that file and line.
  void expect_caught(std::string_view rule, int line, const std::string& path, std::string_view text) {
    plant(path, text);
    const auto violations = check_tree(root_, "");
    ASSERT_EQ(violations.size(), 1u) << describe(violations) << "expected one of " << rule;
    EXPECT_EQ(violations[0].rule, rule);
    EXPECT_EQ(violations[0].path, path);
    EXPECT_EQ(violations[0].line, line);
    fs::remove(root_ / path);
  }

  std::string head(std::string_view rest) { return std::string(kHead) + std::string(rest); }
  std::string header(std::string_view rest) { return std::string(kHeaderHead) + std::string(rest); }

  fs::path root_;
};

TEST_F(Planted, Licence) {
  expect_caught("licence", 1, "runtime/base/a.cpp", "// Only a comment.\nint x;\n");
  expect_caught("licence", 2, "runtime/base/a.cpp", "// SPDX-License-Identifier: Apache-2.0\nint x;\n");
  expect_caught("licence", 2, "tools/run", "#!/bin/sh\necho\n");
  expect_clean("tools/run", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n# Says what it is.\n");
}

TEST_F(Planted, LineLength) {
  expect_caught("line_length", 3, "runtime/base/a.cpp", head("// " + repeat("x", 118) + "\n"));
  expect_clean("runtime/base/a.cpp", head("// " + repeat("\u00e9", 117) + "\n"));
  const std::string word = repeat("x", 121);
  const std::string link = "[the words of a link](https://example.org/" + word + ")";
  for (const std::string& broken :
       {"a " + word, word + " a", "- a " + word, "12. a " + word, "  a " + word, "`a` " + word, link + " a",
        "`a " + word, "[a " + word, "[a] b " + link, "```\n```\na " + word}) {
    const int line = broken.starts_with("```") ? 3 : 1;
    expect_caught("line_length", line, "docs/a.md", broken + "\n");
  }
  for (const std::string& whole : {word, "- " + word, "  12. " + word, "- `a " + word + "`", "``a ` " + word + "``",
                                   "# a " + word, "| a | " + word, "  | a | " + word, "```\na " + word + "\n```",
                                   "- " + link, "!" + link, "a " + repeat("\u00e9", 118)}) {
    expect_clean("docs/a.md", whole + "\n");
  }
}

TEST_F(Planted, FileLength) {
  expect_caught("file_length", 401, "runtime/base/a.cpp", head(repeat("extern int x;\n", 399)));
  expect_clean("runtime/base/a.cpp", head(repeat("extern int x;\n", 398)));
  expect_caught("file_length", 401, "tests/runtime/a.cpp", head(repeat("extern int x;\n", 399)));
  const std::string script = "# SPDX-License-Identifier: Apache-2.0\n# What it is.\n";
  expect_caught("file_length", 501, "tools/a.py", script + repeat("x = 1\n", 499));
  expect_clean("tools/a.py", script + repeat("x = 1\n", 498));
}

TEST_F(Planted, WhiteSpace) {
  expect_caught("white_space", 3, "runtime/base/a.cpp", head("\tint x;\n"));
  expect_caught("white_space", 3, "runtime/base/a.cpp", head("int x; \n"));
  expect_caught("white_space", 3, "runtime/base/a.cpp", head("int x;\r\n"));
  expect_caught("white_space", 1, "docs/a.md", "no end of line");
}

TEST_F(Planted, Unfinished) {
  expect_caught("unfinished", 3, "runtime/base/a.cpp", head("// TODO: later\n"));
  expect_caught("unfinished", 1, "docs/a.md", "FIXME\n");
  expect_caught("unfinished", 3, "runtime/base/a.cpp", head("int x;  // HACK\n"));
  expect_clean("runtime/base/a.cpp", head("const char* name = \"/dev/shm/torii-XXXXXX\";\n"));
}

TEST_F(Planted, MachinePath) {
  plant("runtime/plan/plan.hpp", header(""));
  const std::string elsewhere = "/some" + std::string("where/x");
  expect_caught("machine_path", 1, "docs/a.md", "see `" + elsewhere + "/torii`\n");
  expect_caught("machine_path", 1, "perf/results/a.json", "{\"path\": \"" + elsewhere + "\"}\n");
  expect_caught("machine_path", 1, "docs/a.md", "[notes](.." + std::string("/../notes.md)\n"));
  expect_clean("docs/a.md",
               "[plan](../runtime/plan/plan.hpp), /dev/shm, /proc/self/maps, and/or, 3 / 4 / 5, https://a.org/b\n");
}

TEST_F(Planted, Vocabulary) {
  expect_caught("vocabulary", 3, "runtime/base/a.cpp", head("int chunk_bytes;\n"));
  expect_caught("vocabulary", 3, "transports/shared_memory/a.cpp", head("class Endpoint;\n"));
  expect_clean("transports/ucx/a.cpp", head("class Endpoint;\n"));
}

TEST_F(Planted, DeadNames) {
  expect_caught("dead_names", 3, "runtime/base/a.cpp", head("class Door;\n"));
  expect_clean("runtime/base/a.cpp", head("class Doorbell;  // no Door, no Standing\nint doors;\n"));
}

TEST_F(Planted, PragmaOnce) {
  expect_caught("pragma_once", 1, "runtime/base/a.hpp", head("// #pragma once\n"));
  expect_clean("reduce_kernels/fold-inl.hpp", head("inline int x;\n"));
}

TEST_F(Planted, UsingNamespace) {
  expect_caught("using_namespace", 4, "runtime/base/a.hpp", header("using namespace std;\n"));
  expect_clean("runtime/base/a.cpp", head("using namespace std::literals;\n"));
}

TEST_F(Planted, CommentedCode) {
  expect_caught("commented_code", 3, "runtime/base/a.cpp", head("// run(x);\nint x;\n"));
  expect_caught("commented_code", 3, "runtime/base/a.cpp", head("/* x = 3; */\nint x;\n"));
  expect_caught("commented_code", 3, "runtime/base/a.cpp", head("// const int y = run(x);\nint x;\n"));
  expect_caught("commented_code", 3, "runtime/base/a.cpp", head("// return x;\nint x;\n"));
  expect_caught("commented_code", 3, "runtime/base/a.cpp", head("// if (x < 3) {\nint x;\n"));
  expect_caught("commented_code", 3, "runtime/base/a.cpp", head("// #include <vector>\n"));
  expect_clean("runtime/base/a.cpp",
               head("// A segment waits for run(x); the lane (all of it, in place included);\nint x;\n"));
}

TEST_F(Planted, FunctionLength) {
  const std::string body = repeat("  x++;\n", 59);
  expect_caught("function_length", 4, "runtime/base/a.cpp", head("int x;\nvoid f() {\n" + body + "}\n"));
  expect_caught("function_length", 4, "runtime/base/a.cpp",
                head("namespace n {\ntemplate <class T>\nint C::f(T t = {}) {\n" + body + "}\n}\n"));
  expect_caught("function_length", 5, "runtime/base/a.hpp",
                header("struct C {\n  C() : a_{1}, b_{2} {\n" + body + "  }\n};\n"));
  expect_clean("runtime/base/a.cpp",
               head("void f() {\n" + repeat("  x++;\n", 58) + "}\nvoid g() {\n" + body.substr(7) + "}\n"));
  expect_caught("function_length", 3, "tests/runtime/a.cpp", head("void f() {\n" + repeat("  x++;\n", 59) + "}\n"));
  expect_clean("tests/runtime/a.cpp", head("void f() {\n" + repeat("  x++;\n", 58) + "}\n"));
  expect_clean("runtime/base/a.cpp", head("const int kTable[] = {\n" + repeat("  1,\n", 100) + "};\n"));
}

TEST_F(Planted, IncludeFromRoot) {
  plant("runtime/base/b.hpp", header(""));
  expect_caught("include_from_root", 3, "runtime/base/a.cpp", head("#include \"b.hpp\"\n"));
  expect_caught("include_from_root", 3, "runtime/base/a.cpp", head("#include <runtime/base/b.hpp>\n"));
  expect_caught("include_from_root", 3, "tools/a.cpp", head("#include <torii/none.h>\n"));
  expect_clean("runtime/base/a.cpp", head("#include <vector>\n\n#include \"runtime/base/b.hpp\"\n"));
}

TEST_F(Planted, IncludeLaw) {
  for (const char* folder :
       {"reduce_kernels", "runtime/base", "collectives/trees", "transports/ucx", "api/context", "tools", "perf"}) {
    plant(std::string(folder) + "/b.hpp", header(""));
  }
  plant("runtime/base/numbers.hpp", header(""));
  plant("tools/command_line.hpp", header(""));
  plant("collectives/drawing/draw.hpp", header(""));
  plant("include/torii/torii.hpp", header(""));
  const auto caught = [&](const std::string& path, std::string_view target) {
    expect_caught("include_law", 3, path, head("#include " + std::string(target) + "\n"));
  };
  caught("reduce_kernels/a.cpp", "\"runtime/base/b.hpp\"");
  caught("runtime/base/a.cpp", "\"collectives/trees/b.hpp\"");
  caught("runtime/base/a.cpp", "<torii/torii.hpp>");
  caught("collectives/proof/verify.cpp", "\"transports/ucx/b.hpp\"");
  caught("transports/ucx/a.cpp", "\"collectives/trees/b.hpp\"");
  caught("transports/ucx/a.cpp", "\"api/context/b.hpp\"");
  caught("api/context/a.cpp", "\"tools/b.hpp\"");
  caught("perf/a.cpp", "\"api/context/b.hpp\"");
  caught("perf/a.cpp", "\"reduce_kernels/b.hpp\"");
  caught("perf/a.cpp", "\"runtime/base/b.hpp\"");
  caught("perf/a.cpp", "\"collectives/drawing/draw.hpp\"");
  caught("perf/transports/a.cpp", "\"api/context/b.hpp\"");
  caught("perf/a.cpp", "\"transports/ucx/b.hpp\"");
  caught("examples/a.cpp", "\"runtime/base/b.hpp\"");
  caught("plugins/openmpi/coll_torii_state.c", "\"api/context/b.hpp\"");
  caught("perf/a.cpp", "\"tools/b.hpp\"");
  caught("tools/a.cpp", "\"perf/b.hpp\"");
  expect_clean("runtime/base/a.cpp", head("#include \"reduce_kernels/b.hpp\"\n"));
  expect_clean("api/context/a.cpp", head("#include <torii/torii.hpp>\n\n#include \"collectives/trees/b.hpp\"\n"));
  expect_clean("perf/kernels/a.cpp", head("#include \"reduce_kernels/b.hpp\"\n"));
  expect_clean("perf/transports/a.cpp", head("#include \"transports/ucx/b.hpp\"\n#include \"runtime/base/b.hpp\"\n"));
  expect_clean("perf/a.cpp", head("#include \"runtime/base/numbers.hpp\"\n"));
  expect_clean("perf/a.cpp", head("#include \"tools/command_line.hpp\"\n"));
  expect_clean("tools/a.cpp", head("#include \"runtime/base/b.hpp\"\n"));
  expect_clean("tests/x/a.cpp", head("#include \"perf/b.hpp\"\n"));
}

TEST_F(Planted, OneParser) {
  expect_caught("one_parser", 3, "perf/a.cpp", head("#include <CLI/CLI.hpp>\n"));
  expect_caught("one_parser", 3, "tools/b.cpp", head("#include <CLI/App.hpp>\n"));
  expect_clean("tools/command_line.cpp", head("#include <CLI/CLI.hpp>\n"));
}

TEST_F(Planted, OwnHeaderFirst) {
  plant("runtime/base/c.hpp", header(""));
  plant("runtime/base/d.hpp", header(""));
  expect_caught("own_header_first", 3, "runtime/base/c.cpp",
                head("#include <vector>\n\n#include \"runtime/base/c.hpp\"\n"));
  expect_caught("own_header_first", 1, "runtime/base/d.cpp", head("int x;\n"));
  expect_clean("runtime/base/c.cpp", head("#include \"runtime/base/c.hpp\"\n\n#include <vector>\n"));
  plant("tools/e.h", header(""));
  expect_caught("own_header_first", 3, "tools/e.c", head("#include <stdio.h>\n\n#include \"tools/e.h\"\n"));
}

TEST_F(Planted, OpenMpiOrder) {
  const std::string folder = "plugins/openmpi/coll_torii_";
  for (const char* name : {"state", "report", "slots"}) plant(folder + name + ".h", header(""));
  const auto including = [&](const std::string& name) { return head("#include \"" + folder + name + ".h\"\n"); };
  expect_caught("openmpi_order", 4, folder + "state.c",
                head("#include \"" + folder + "state.h\"\n#include \"" + folder + "report.h\"\n"));
  expect_caught("openmpi_order", 1, "plugins/openmpi/other.c", head("int x;\n"));
  expect_caught("openmpi_order", 1, folder + "other.h", header(""));
  expect_clean(folder + "component.c", including("slots"));
  expect_clean(folder + "state.c", including("state"));
  fs::remove(root_ / (folder + "state.c"));
  expect_caught("openmpi_order", 4, folder + "state.h", header("#include \"" + folder + "slots.h\"\n"));
}

TEST_F(Planted, InnerLaw) {
  for (const char* folder : {"runtime/plan", "runtime/bootstrap", "collectives/building", "collectives/proof",
                             "transports/libfabric", "api/installation", "api/team"}) {
    plant(std::string(folder) + "/b.hpp", header(""));
  }
  const auto caught = [&](const std::string& path, const std::string& target) {
    expect_caught("inner_law", 3, path, head("#include \"" + target + "\"\n"));
  };
  caught("runtime/base/a.cpp", "runtime/plan/b.hpp");
  caught("runtime/devices/a.cpp", "runtime/bootstrap/b.hpp");
  caught("collectives/trees/a.cpp", "collectives/building/b.hpp");
  caught("collectives/drawing/a.cpp", "collectives/proof/b.hpp");
  caught("transports/ucx/a.cpp", "transports/libfabric/b.hpp");
  caught("api/context/a.cpp", "api/team/b.hpp");
  caught("api/calls/a.cpp", "api/installation/b.hpp");
  expect_caught("inner_law", 1, "runtime/a.cpp", head("int x;\n"));
  expect_clean("runtime/execution/a.cpp",
               head("#include \"runtime/bootstrap/b.hpp\"\n#include \"runtime/plan/b.hpp\"\n"));
  expect_clean("collectives/algorithms/a.cpp", head("#include \"collectives/building/b.hpp\"\n"));
  expect_clean("api/c/a.cpp", head("#include \"api/team/b.hpp\"\n"));
}

TEST_F(Planted, PureCollectives) {
  plant("runtime/execution/executor.hpp", header(""));
  plant("runtime/plan/plan.hpp", header(""));
  for (const char* path : {"collectives/algorithms/a.cpp", "collectives/building/a.cpp", "collectives/proof/a.cpp"}) {
    expect_caught("pure_collectives", 3, path, head("#include \"runtime/execution/executor.hpp\"\n"));
    expect_clean(path, head("#include \"runtime/plan/plan.hpp\"\n"));
  }
}

TEST_F(Planted, BlindTransports) {
  plant("runtime/execution/executor.hpp", header(""));
  plant("runtime/fabric/words.hpp", header(""));
  expect_caught("blind_transports", 3, "transports/simulated/a.cpp",
                head("#include \"runtime/execution/executor.hpp\"\n"));
  expect_clean("transports/simulated/a.cpp", head("#include \"runtime/fabric/words.hpp\"\n"));
}

TEST_F(Planted, EmbedderHeaders) {
  expect_caught("embedder_headers", 4, "include/torii/torii.hpp", header("#include <hwloc.h>\n"));
  expect_caught("embedder_headers", 4, "include/torii/torii.hpp", header("#include <fmt/core.h>\n"));
  expect_clean("include/torii/torii.hpp", header("#include <vector>\n"));
}

TEST_F(Planted, StandardHeaders) {
  const auto caught = [&](int line, std::string_view rest) {
    expect_caught("standard_headers", line, "runtime/base/a.hpp", header(rest));
  };
  caught(4, "std::vector<int> f();\n");
  caught(6, "#include <string>\n\nstd::vector<std::vector<std::string>> f();\n");
  caught(4, "using torii_none = std::no_such_name;\n");
  caught(5, "// std::vector\nstd::size_t f();\nstd::size_t g();\n");
  plant("runtime/base/c.hpp", header("#include <vector>\n"));
  plant("runtime/base/b.hpp", header("#include \"runtime/base/c.hpp\"\n"));
  expect_clean("runtime/base/a.hpp", header("#include \"runtime/base/b.hpp\"\n\nstd::vector<int> f();\n"));
  expect_clean("runtime/base/a.hpp", header("#include <cstring>\n\nstd::size_t f();  // or std::vector\n"));
  expect_clean("runtime/base/a.hpp", header("#include <chrono>\n\nstd::chrono::nanoseconds f(my_std::vector x);\n"));
  expect_clean("runtime/base/d.cpp", head("std::vector<int> f();\n"));
}

TEST_F(Planted, StandardHeadersOfTheInterface) {
  plant("include/torii/types.h", header("#include <stddef.h>\n"));
  plant("include/torii/vectors.hpp", header("#include <vector>\n"));
  expect_caught("standard_headers", 6, "include/torii/torii.h",
                header("#include <torii/types.h>\n\nsize_t f(int32_t x);\n"));
  expect_clean("include/torii/torii.h",
               header("#include <torii/types.h>\n\n#include <stdint.h>\n\nsize_t f(int32_t x);  // or bool\n"));
  expect_caught("standard_headers", 6, "include/torii/torii.hpp",
                header("#include <torii/types.h>\n\nstd::size_t f();\n"));
  expect_clean("include/torii/torii.hpp", header("#include <torii/vectors.hpp>\n\nstd::vector<int> f();\n"));
}

TEST_F(Planted, TopOfTree) {
  expect_caught("top_of_tree", 1, "fabric_parts.80s-5470,vm.btr", "# a back trace\n");
  expect_caught("top_of_tree", 1, "core",
                std::string_view("\x7f"
                                 "ELF\0",
                                 5));
  expect_clean("VERSION", "0.1.0\n");
}

TEST_F(Planted, Documents) {
  plant("tools/a.cpp", head("const char* option = \"--depth\";\nconst char* name = \"TORII_DEPTH\";\n"));
  plant("runtime/base/a.cpp", head("const char* setting = \"WIDTH\";\n"));
  plant("docs/b.md", "# The `first` heading, of two\n");
  expect_caught("documents", 2, "docs/a.md", "`run --depth 3`\n`run --depht 3`\n");
  expect_caught("documents", 1, "docs/a.md", "`run --depth=3 --depths`\n");
  expect_caught("documents", 1, "docs/a.md", "TORII_DEPHT\n");
  expect_caught("documents", 1, "docs/a.md", "[b](c.md)\n");
  expect_caught("documents", 1, "docs/a.md", "[b](b.md#second)\n");
  expect_caught("documents", 1, "docs/a.md", "[a](#no-such)\n");
  expect_clean("docs/a.md",
               "# A\nTORII_DEPTH, TORII_WIDTH, --depth, [b](b.md#the-first-heading-of-two) [a](#a)\n"
               "`cmake --preset x` [d](https://example.org/d)\n");
}

TEST_F(Planted, SettingsAreDocumented) {
  plant("docs/embedding.md", "| setting | default |\n|---|---|\n| DEPTH | 1 |\n");
  expect_clean("runtime/base/settings.cpp", head("Row depth() { return integer(\"DEPTH\", 1); }\n"));
  expect_caught("documents", 3, "runtime/base/settings.cpp", head("Row width() { return integer(\"WIDTH\", 1); }\n"));
  expect_caught("documents", 4, "runtime/base/settings.cpp", head("Row width() {\n  return {\"WIDTH\", 1};\n}\n"));
}

TEST_F(Planted, ExceptionsNeedAReasonAndANeed) {
  plant("runtime/base/a.hpp", head("int f();\n"));
  EXPECT_EQ(check_tree(root_, "").size(), 1u);
  EXPECT_TRUE(check_tree(root_, "# why\n\npragma_once runtime/base/a.hpp it is read by a tool\n").empty());
  const auto rule_of = [&](std::string_view text) {
    const auto violations = check_tree(root_, text);
    return violations.empty() ? std::string("none") : violations.back().rule;
  };
  EXPECT_EQ(rule_of("pragma_once runtime/base/a.hpp\n"), "exceptions");
  EXPECT_EQ(rule_of("pragma_twice runtime/base/a.hpp because\n"), "exceptions");
  EXPECT_EQ(rule_of("pragma_once runtime/base/a.hpp because\npragma_once runtime/base/b.hpp because\n"), "exceptions");
}

TEST(Separator, KeepsCodeFromCommentsAndLiterals) {
  const SourceFile file = parse_source("a.cpp", Kind::cpp,
                                       "int a = 1'000; // one { two\n"
                                       "char b = '\\''; /* \" */ char c = '{';\n"
                                       "auto d = R\"x(// } )\" )x\"; f(\"}\\\"\");\n");
  ASSERT_EQ(file.code.size(), 3u);
  EXPECT_EQ(file.code[0], "int a = 1'000;             ");
  EXPECT_EQ(file.comments[0], "               // one { two");
  EXPECT_EQ(file.code[1], "char b = '  ';         char c = ' ';");
  EXPECT_EQ(file.code[2].find_first_of("}/"), std::string::npos);
  EXPECT_NE(file.code[2].find("; f(\"   \");"), std::string::npos);
}

}  // namespace
}  // namespace torii::tidy
