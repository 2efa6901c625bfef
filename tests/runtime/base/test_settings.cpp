// SPDX-License-Identifier: Apache-2.0
// Settings: defaults, origins, every bad value with a message of its own, unknown names, the digest, the log.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/base/log.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::string_view kAlgorithms[] = {"trinaryx3", "ring"};

/// Settings from these variables alone.
Settings load(const std::vector<const char*>& environment, std::string_view overrides = {}) {
  std::vector<const char*> terminated = environment;
  terminated.push_back(nullptr);
  return Settings::load(overrides, terminated.data(), kAlgorithms);
}

/// The message that these variables or overrides are refused with.
std::string refusal(const std::vector<const char*>& environment, std::string_view overrides = {}) {
  try {
    load(environment, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

SettingView row(const Settings& settings, const std::string& name) {
  for (const SettingView& view : settings.list()) {
    if (view.name == name) return view;
  }
  ADD_FAILURE() << name << " is not in the list";
  return {};
}

TEST(Settings, DefaultsAreThoseOfTheTable) {
  const Settings settings = load({});
  EXPECT_EQ(settings.engines, 4);
  EXPECT_EQ(settings.segment_bytes, 0u);
  EXPECT_EQ(settings.timeout_s, 30);
  EXPECT_EQ(settings.arena_bytes, std::size_t{64} << 30);
  EXPECT_EQ(settings.log, LogLevel::error);
  for (const SettingView& view : settings.list()) {
    EXPECT_EQ(view.value, view.fallback) << view.name;
    EXPECT_EQ(view.origin, Origin::fallback) << view.name;
    EXPECT_FALSE(view.help.empty()) << view.name;
  }
}

TEST(Settings, OverridesBeatTheEnvironmentAndOriginsAreKept) {
  const Settings settings = load({"TORII_ENGINES=2", "TORII_WAIT=yield", "PATH=/bin"}, "ENGINES=3\n\nTORII_WIRE=f32");
  EXPECT_EQ(settings.engines, 3);
  EXPECT_EQ(settings.wait, WaitMode::yield);
  EXPECT_TRUE(settings.wide_wire);
  EXPECT_EQ(row(settings, "TORII_ENGINES").origin, Origin::option);
  EXPECT_EQ(row(settings, "TORII_WAIT").origin, Origin::environment);
  EXPECT_EQ(row(settings, "TORII_SLOTS").origin, Origin::fallback);
  EXPECT_TRUE(settings.warnings.empty());
}

TEST(Settings, EveryShownValueCanBeSetAgain) {
  const Settings settings =
      load({},
           "ENGINES=7\nSEGMENT=96K\nALGORITHM=ring\nTOPOLOGY=torus:2x2x2\nRANK_MAP=list:1,0\nTRANSPORT=shared_memory\n"
           "PROVIDER=tcp;ofi_rxm\n"
           "DETERMINISM=canonical\nWIRE=f32\nISA=avx2\nTIMEOUT=0.25\nLOG=debug\nCHANNELS=8\nSLOTS=16\nWINDOW=5\n"
           "TUNE_FILE=/a "
           "b\nARENA=512M\nWAIT=sleep\nHOP=0\nCROSS_MEMORY=off\nHELPERS=2\nHELPER_CPUS=0-3,8\nINSECURE=1\n"
           "RENDEZVOUS=file:/a b\nINTERFACE=^docker,veth\nPORTS=20000-20100");
  std::string lines;
  for (const SettingView& view : settings.list()) {
    if (view.value.empty()) continue;
    lines += view.name + "=" + view.value + "\n";
    EXPECT_NE(view.value, view.fallback) << view.name << ": this test must set it to something else";
  }
  const Settings again = load({}, lines);
  EXPECT_EQ(again.digest_text(), settings.digest_text());
  EXPECT_EQ(again.segment_bytes, 96u * 1024);
  EXPECT_EQ(again.timeout_s, 0.25);
  EXPECT_EQ(again.arena_bytes, std::size_t{512} << 20);
  EXPECT_EQ(again.tune_file, "/a b");
  EXPECT_TRUE(again.insecure);
}

/// Bad values, and a part of what is said about them.
struct Case {
  const char* variable;
  const char* right;
};
const Case kBadValues[] = {{"TORII_ENGINES=0", "a whole number from 1 to 16"},
                           {"TORII_ENGINES=17", "a whole number from 1 to 16"},
                           {"TORII_ENGINES=4x", "a whole number from 1 to 16"},
                           {"TORII_ENGINES=", "a whole number from 1 to 16"},
                           {"TORII_SEGMENT=100", "a multiple of 64"},
                           {"TORII_SEGMENT=-64", "auto, or bytes from 64 to 1G"},
                           {"TORII_SEGMENT=2G", "auto, or bytes from 64 to 1G"},
                           {"TORII_SEGMENT=1T", "with K, M or G"},
                           {"TORII_SEGMENT=99999999999999999999", "auto, or bytes from 64 to 1G"},
                           {"TORII_ALGORITHM=trinary", "one of auto trinaryx3 ring"},
                           {"TORII_TOPOLOGY=ring:4", "torus:XxYxZ"},
                           {"TORII_TOPOLOGY=torus:", "torus:XxYxZ"},
                           {"TORII_TRANSPORT=tcp", "one of auto shared_memory"},
                           {"TORII_PROVIDER=", "auto, or a libfabric provider"},
                           {"TORII_PROVIDER=tcp ofi_rxm", "auto, or a libfabric provider"},
                           {"TORII_NODE=a\nb", "one line of at most 63 bytes"},
                           {"TORII_DETERMINISM=always", "one of run canonical"},
                           {"TORII_WIRE=f64", "one of type f32"},
                           {"TORII_ISA=mmx", "one of auto reference sse4"},
                           {"TORII_TIMEOUT=0", "seconds above 0"},
                           {"TORII_TIMEOUT=-1", "seconds above 0"},
                           {"TORII_TIMEOUT=nan", "seconds above 0"},
                           {"TORII_TIMEOUT=inf", "seconds above 0"},
                           {"TORII_TIMEOUT=5s", "seconds above 0"},
                           {"TORII_LOG=loud", "one of error warn info debug"},
                           {"TORII_CHANNELS=9", "a whole number from 1 to 8"},
                           {"TORII_SLOTS=257", "a whole number from 0 to 256"},
                           {"TORII_WINDOW=33", "a whole number from 0 to 32"},
                           {"TORII_ARENA=1M", "bytes from 256M to"},
                           {"TORII_WAIT=busy", "one of auto spin yield sleep shared"},
                           {"TORII_HOP=no", "one of 0 1"},
                           {"TORII_CROSS_MEMORY=yes", "one of auto on off"},
                           {"TORII_HELPERS=-1", "a whole number from 0 to 16"},
                           {"TORII_HELPER_CPUS=all", "CPU numbers like 0-3,8"},
                           {"TORII_HELPER_CPUS=", "CPU numbers like 0-3,8"},
                           {"TORII_INSECURE=yes", "one of 0 1"},
                           {"TORII_RENDEZVOUS=meeting", "auto or file:PATH"},
                           {"TORII_RENDEZVOUS=file:", "auto or file:PATH"},
                           {"TORII_INTERFACE=", "beginnings of names"},
                           {"TORII_INTERFACE=eth,,ib", "beginnings of names"},
                           {"TORII_INTERFACE=^=", "beginnings of names"},
                           {"TORII_PORTS=0-5", "LOW-HIGH"},
                           {"TORII_PORTS=500", "LOW-HIGH"},
                           {"TORII_PORTS=500-400", "LOW-HIGH"},
                           {"TORII_PORTS=500-70000", "LOW-HIGH"}};

TEST(Settings, EveryBadValueIsNamedWithWhatWouldBeRight) {
  std::set<std::string> messages;
  for (const Case& one : kBadValues) {
    const std::string text = one.variable;
    const std::size_t equals = text.find('=');
    const std::string message = refusal({one.variable});
    EXPECT_NE(message.find(text.substr(0, equals) + " is '" + text.substr(equals + 1) + "' (environment)"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find(one.right), std::string::npos) << message;
    messages.insert(message);
  }
  EXPECT_EQ(messages.size(), std::size(kBadValues)) << "two kBadValues have the same message";
}

/// The catalogue says which algorithms there are; without it the table takes any word.
TEST(Settings, NamesOfAlgorithmsComeFromTheCaller) {
  const auto algorithm = [](const Settings& settings) { return row(settings, "TORII_ALGORITHM"); };
  EXPECT_EQ(algorithm(load({})).accepts, "one of auto trinaryx3 ring");
  EXPECT_EQ(refusal({"TORII_ALGORITHM=line"}),
            "TORII_ALGORITHM is 'line' (environment); it must be one of auto trinaryx3 ring");
  EXPECT_EQ(refusal({}, "ALGORITHM="), "TORII_ALGORITHM is '' (option); it must be one of auto trinaryx3 ring");
  const char* const environment[] = {"TORII_ALGORITHM=line", nullptr};
  const Settings settings = Settings::load({}, environment);
  EXPECT_EQ(settings.algorithm, "line");
  EXPECT_EQ(algorithm(settings).accepts, "auto or the name of an algorithm");
}

TEST(Settings, UnknownVariablesWarnWithTheNearestName) {
  const Settings settings = load({"TORII_ENGINSE=2", "TORII_TIME_OUT=3", "TORII_RANK=0", "TORII_RANKS=1",
                                  "TORII_JOB_FD=3", "TORII_TEST_FULL=1", "TORII_TORCH_X=1", "TORIIX=1"});
  ASSERT_EQ(settings.warnings.size(), 2u);
  EXPECT_EQ(settings.warnings[0], "TORII_ENGINSE is not a setting; the nearest one is TORII_ENGINES");
  EXPECT_EQ(settings.warnings[1], "TORII_TIME_OUT is not a setting; the nearest one is TORII_TIMEOUT");
}

TEST(Settings, UnknownOrBrokenOverridesAreErrors) {
  EXPECT_EQ(refusal({}, "SLOT=2"), "TORII_SLOT is not a setting; the nearest one is TORII_SLOTS");
  EXPECT_EQ(refusal({}, "ENGINES"), "the settings line 'ENGINES' must be NAME=value");
  EXPECT_NE(refusal({}, "WINDOW=99").find("TORII_WINDOW is '99' (option)"), std::string::npos);
}

TEST(Settings, DigestHoldsWhatMustBeEqualAndNothingElse) {
  const std::string digest = load({}).digest_text();
  for (const char* job : {"ENGINES=2", "SEGMENT=4K", "ALGORITHM=ring", "TOPOLOGY=node", "DETERMINISM=canonical",
                          "WIRE=f32", "CHANNELS=1", "SLOTS=3", "WINDOW=3", "TRANSPORT=ucx", "CROSS_MEMORY=on"}) {
    EXPECT_NE(load({}, job).digest_text(), digest) << job;
  }
  for (const char* own : {"ISA=reference", "TIMEOUT=1", "LOG=debug", "ARENA=1G", "WAIT=spin", "HOP=0", "HELPERS=1",
                          "JOB_TOKEN=x", "NODE=a"}) {
    EXPECT_EQ(load({}, own).digest_text(), digest) << own;
  }
  EXPECT_EQ(load({}, "SEGMENT=64K").digest_text(), load({"TORII_SEGMENT=65536"}).digest_text());
}

TEST(Settings, SecretsAreNotShown) {
  const Settings settings = load({"TORII_JOB_TOKEN=hush"});
  EXPECT_EQ(settings.job_token, "hush");
  EXPECT_EQ(row(settings, "TORII_JOB_TOKEN").value, "(set)");
  EXPECT_EQ(settings.digest_text().find("hush"), std::string::npos);
}

TEST(Settings, BytesReadBackWhatTheyPrint) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{1024},
                                  std::size_t{3} << 20, std::size_t{5} << 30, std::size_t{6} << 40, SIZE_MAX}) {
    EXPECT_EQ(parse_bytes(bytes_text(bytes)), bytes) << bytes_text(bytes);
  }
  for (const char* bad : {"", "K", "1k", "1KB", "1.5M", "-1", " 1", "18446744073709551615G"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Numbers, AreTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<int>("7f", 16), 127);
  EXPECT_EQ(parse_number<double>("2.5e3"), 2500);
  for (const char* bad : {"", " 1", "1 ", "+1", "x", "1x", "2147483648", "0.5"}) {
    EXPECT_FALSE(parse_number<int>(bad)) << bad;
  }
  EXPECT_FALSE(parse_number<std::size_t>("-1"));
}

TEST(Numbers, AreTakenOffTheFront) {
  std::string_view text = "12x";
  EXPECT_EQ(take_number<int>(text), 12);
  EXPECT_EQ(text, "x");
  EXPECT_FALSE(take_number<int>(text));
  EXPECT_EQ(text, "x") << "untouched";
}

TEST(Log, LevelsAndCallback) {
  std::vector<std::string> seen;
  const auto keep = [](LogLevel level, std::string_view message, void* data) {
    static_cast<std::vector<std::string>*>(data)->push_back(std::string(name(level)) + ":" + std::string(message));
  };
  set_log_function(keep, &seen);
  log(LogLevel::warn, "dropped");
  log(LogLevel::error, "kept");
  set_log_level(LogLevel::info);
  log(LogLevel::info, "kept too");
  log(LogLevel::debug, "dropped");
  set_log_level(LogLevel::error);
  set_log_function(nullptr, nullptr);
  EXPECT_EQ(seen, (std::vector<std::string>{"error:kept", "info:kept too"}));
  testing::internal::CaptureStderr();
  log(LogLevel::error, "to stderr");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "torii error: to stderr\n");
}

}  // namespace
}  // namespace torii
