// SPDX-License-Identifier: Apache-2.0
// A job of two ranks of which rank 0 reads the memory of rank 1, which becomes another program, forbids that, or has
// its vectors at the addresses of rank 0's. What test_reading starts; the exit code is 0 if all is as it should be, and
// 3 if this machine does not let ranks read.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <torii/torii.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

/// The same address in both programs, and more than a message carries.
constexpr std::uintptr_t kAddress = 0x600000000000;
constexpr std::size_t kBytes = std::size_t{4} << 20;

[[noreturn]] void end(int code, const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(code);
}

void check(torii_status status, const char* what) {
  if (status != TORII_OK) end(1, std::string(what) + ": " + torii_last_error());
}

std::byte* make_buffer(int value) {
  void* const place = reinterpret_cast<void*>(kAddress);
  void* const made =
      mmap(place, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (made != place) end(1, "no memory at the address");
  std::memset(made, value, kBytes);
  return static_cast<std::byte*>(made);
}

void wait_for(const std::string& file, bool is_there) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::filesystem::exists(file) != is_there) {
    if (std::chrono::steady_clock::now() > deadline) end(1, "no news of " + file);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

struct Job {
  torii_context* context = nullptr;
  torii_team* team = nullptr;
  explicit Job(const std::string& settings = "") {
    torii_context_options options = {};
    options.size = sizeof(options);
    const std::string all = "ARENA=256M\nTIMEOUT=10\nCROSS_MEMORY=on\n" + settings;
    options.settings = all.c_str();
    if (torii_context_create(&options, &context) == TORII_UNSUPPORTED) end(3, torii_last_error());
    check(torii_team_create(context, nullptr, &team), "team");
  }
  int rank() const { return torii_team_rank(team); }
};

bool all_are(const std::byte* bytes, int value, std::size_t count = kBytes) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] != static_cast<std::byte>(value)) return false;
  }
  return true;
}

/// Rank 1 announces a send, and is another program when rank 0 comes to read.
void become_another(const char* program, const std::string& file) {
  const Job job;
  std::byte* const buffer = make_buffer(0x11);
  if (job.rank() == 1) {
    torii_request* request = nullptr;
    check(torii_start_send(job.team, buffer, kBytes, TORII_U8, 0, 0, &request), "send");
    execl(program, program, "another", file.c_str(), nullptr);
    end(1, "cannot exec");
  }
  wait_for(file, true);
  const torii_status status = torii_recv(job.team, buffer, kBytes, TORII_U8, 1, 0, nullptr);
  const std::string text = torii_last_error();
  std::filesystem::remove(file);
  if (status != TORII_PEER_LOST) end(1, std::string("the receive is ") + torii_status_name(status) + ": " + text);
  std::printf("peer lost: %s\n", text.c_str());
}

void be_another(const std::string& file) {
  (void)make_buffer(0x77);
  std::ofstream(file) << "here";
  wait_for(file, false);
}

/// Rank 1 forbids what rank 0 has done before.
void forbid() {
  if (geteuid() == 0) {  // whom nothing is forbidden
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) end(3, "cannot be another user");
    prctl(PR_SET_DUMPABLE, 1);
  }
  const Job job("ALGORITHM=node");
  std::byte* const buffer = make_buffer(0);
  for (int round = 0; round < 3; ++round) {
    std::memset(buffer, job.rank() == 1 ? 0x21 + round : 0, kBytes);
    if (job.rank() == 1) {
      check(torii_send(job.team, buffer, kBytes, TORII_U8, 0, 0), "send");
      prctl(PR_SET_DUMPABLE, 0);
    } else {
      check(torii_recv(job.team, buffer, kBytes, TORII_U8, 1, 0, nullptr), "recv");
      if (!all_are(buffer, 0x21 + round)) end(1, "wrong bytes");
    }
    check(torii_barrier(job.team), "barrier");
  }
  std::vector<std::byte> all(2 * kBytes);
  torii_status status = TORII_OK;
  for (int call = 0; call < 200 && status == TORII_OK; ++call) {
    status = torii_all_gather(job.team, buffer, all.data(), kBytes, TORII_U8);
  }
  std::printf("rank %d: %s: %s\n", job.rank(), torii_status_name(status), torii_last_error());
}

/// Both ranks have their vectors at the same address, as programs without address space randomization often do. Enough
/// calls for trials of both ways.
void share_addresses() {
  constexpr std::size_t kHalf = kBytes / 2;
  const Job job("ALGORITHM=node");
  std::byte* const buffer = make_buffer(0);
  for (int call = 1; call <= 40; ++call) {
    std::memset(buffer, job.rank() == 1 ? call : 0, kBytes);
    check(torii_broadcast(job.team, buffer, kBytes, TORII_U8, 1), "broadcast");
    if (!all_are(buffer, call)) end(1, "wrong bytes of broadcast " + std::to_string(call));
  }
  for (int call = 1; call <= 40; ++call) {
    std::byte* const own = buffer + static_cast<std::size_t>(job.rank()) * kHalf;
    std::memset(buffer, 0, kBytes);
    std::memset(own, 2 * call + job.rank(), kHalf);
    check(torii_all_gather(job.team, own, buffer, kHalf, TORII_U8), "all_gather");
    if (!all_are(buffer, 2 * call, kHalf) || !all_are(buffer + kHalf, 2 * call + 1, kHalf)) {
      end(1, "wrong bytes of all_gather " + std::to_string(call));
    }
  }
}

}  // namespace

/// reading_rank become FILE | another FILE | forbid | addresses
int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "become") become_another(argv[0], argv[2]);
  if (mode == "another") be_another(argv[2]);
  if (mode == "forbid") forbid();
  if (mode == "addresses") share_addresses();
  return 0;
}
