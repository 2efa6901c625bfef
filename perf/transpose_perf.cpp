// SPDX-License-Identifier: Apache-2.0
// Transpose of a matrix of f64 that is dealt by rows: torii, a plain version over MPI_Alltoall, and FFTW's, in turn on
// the same input, each result checked element by element. Started by mpirun; torii joins through MPI_Allgather.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/job.hpp"
#include "perf/mpi_calls.hpp"
#include "runtime/base/output.hpp"
#include "tools/command_line.hpp"
#ifdef TORII_HAVE_FFTW
#include <fftw3-mpi.h>
#endif

namespace torii::perf {
namespace {

struct Shape {
  size_t rows = 8192;
  size_t columns = 8192;
  int calls = 10;
  std::string json;
};

/// This rank's part: equally many rows of the matrix and of its transpose on every rank, as FFTW and MPI_Alltoall want.
struct Part {
  size_t rows;
  size_t columns;
  size_t own_rows;
  size_t own_columns;
  size_t rank;
  size_t ranks;
  size_t elements() const { return own_rows * columns; }
};

double element(size_t i, size_t j) { return static_cast<double>(i) * 65536.0 + static_cast<double>(j); }

/// One way to transpose: reads the input, which it may not change, and leaves the transpose in result().
class Way {
 public:
  virtual ~Way() = default;
  virtual const char* name() const = 0;
  virtual void call() = 0;
  virtual double* result() = 0;
};

class ToriiWay : public Way {
 public:
  ToriiWay(const Job& job, const Part& part, const double* input)
      : team_(job.team()), part_(part), input_(input), result_(part.elements()) {}
  const char* name() const override { return "torii"; }
  void call() override {
    check(torii_transpose(team_, input_, result_.data(), part_.rows, part_.columns, sizeof(double)),
          "the transpose failed");
  }
  double* result() override { return result_.data(); }

 private:
  torii_team* team_;
  const Part part_;
  const double* input_;
  std::vector<double> result_;
};

/// What a program does that has nothing but MPI: blocks transposed in tiles, exchanged, put side by side.
class AlltoallWay : public Way {
 public:
  AlltoallWay(const Part& part, const double* input)
      : part_(part), input_(input), packed_(part.elements()), came_(part.elements()), result_(part.elements()) {}
  const char* name() const override { return "MPI_Alltoall"; }
  void call() override {
    const size_t block = part_.own_rows * part_.own_columns;
    for (size_t to = 0; to < part_.ranks; ++to) pack(to, packed_.data() + to * block);
    const int count = static_cast<int>(block);
    MPI_Alltoall(packed_.data(), count, MPI_DOUBLE, came_.data(), count, MPI_DOUBLE, MPI_COMM_WORLD);
    for (size_t from = 0; from < part_.ranks; ++from) {
      for (size_t j = 0; j < part_.own_columns; ++j) {
        std::memcpy(result_.data() + j * part_.rows + from * part_.own_rows,
                    came_.data() + from * block + j * part_.own_rows, part_.own_rows * sizeof(double));
      }
    }
  }
  double* result() override { return result_.data(); }

 private:
  void pack(size_t to, double* block) const {
    constexpr size_t kTile = 32;
    const double* from = input_ + to * part_.own_columns;
    for (size_t row = 0; row < part_.own_rows; row += kTile) {
      for (size_t column = 0; column < part_.own_columns; column += kTile) {
        const size_t last_row = std::min(row + kTile, part_.own_rows);
        const size_t last_column = std::min(column + kTile, part_.own_columns);
        for (size_t j = column; j < last_column; ++j) {
          for (size_t i = row; i < last_row; ++i) block[j * part_.own_rows + i] = from[i * part_.columns + j];
        }
      }
    }
  }

  const Part part_;
  const double* input_;
  std::vector<double> packed_, came_, result_;
};

#ifdef TORII_HAVE_FFTW
/// Planned with FFTW_MEASURE, on memory of FFTW's own.
class FftwWay : public Way {
 public:
  FftwWay(const Part& part, const double* input) {
    fftw_mpi_init();
    const auto rows = static_cast<ptrdiff_t>(part.rows);
    const auto columns = static_cast<ptrdiff_t>(part.columns);
    ptrdiff_t own_rows = 0, first_row = 0, own_columns = 0, first_column = 0;
    const ptrdiff_t needed = fftw_mpi_local_size_2d_transposed(rows, columns, MPI_COMM_WORLD, &own_rows, &first_row,
                                                               &own_columns, &first_column);
    const auto elements = std::max(static_cast<size_t>(2 * needed), part.elements());
    input_ = fftw_alloc_real(elements);
    result_ = fftw_alloc_real(elements);
    plan_ = fftw_mpi_plan_transpose(rows, columns, input_, result_, MPI_COMM_WORLD, FFTW_MEASURE);
    if (plan_ == nullptr || static_cast<size_t>(own_rows) != part.own_rows) {
      throw Failure(kNotPossible, "FFTW has no plan for this matrix");
    }
    std::copy_n(input, part.elements(), input_);  // planning writes over it
  }
  ~FftwWay() override {
    fftw_destroy_plan(plan_);
    fftw_free(input_);
    fftw_free(result_);
  }
  const char* name() const override { return "FFTW"; }
  void call() override { fftw_execute(plan_); }
  double* result() override { return result_; }

 private:
  fftw_plan plan_ = nullptr;
  double* input_ = nullptr;
  double* result_ = nullptr;
};
#endif

size_t count_wrong(const Part& part, const double* result) {
  size_t wrong = 0;
  for (size_t j = 0; j < part.own_columns; ++j) {
    for (size_t i = 0; i < part.rows; ++i) {
      if (result[j * part.rows + i] != element(i, part.rank * part.own_columns + j)) ++wrong;
    }
  }
  return wrong;
}

/// The time of the slowest rank, for each call.
struct Outcome {
  std::string name;
  std::vector<double> times_ms;
  int64_t wrong = 0;
  double median_ms() const {
    std::vector<double> sorted = times_ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::vector<Outcome> measure(const Job& job, const Part& part, const std::vector<std::unique_ptr<Way>>& ways,
                             int calls) {
  std::vector<Outcome> outcomes;
  for (const auto& way : ways) {
    std::fill_n(way->result(), part.elements(), -1.0);
    way->call();
    outcomes.push_back({way->name(), {}, job.sum(static_cast<int64_t>(count_wrong(part, way->result())))});
  }
  for (int call = 0; call < calls; ++call) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t w = (i + static_cast<size_t>(call)) % ways.size();
      job.barrier();
      const auto start = std::chrono::steady_clock::now();
      ways[w]->call();
      const auto took = std::chrono::steady_clock::now() - start;
      const int64_t slowest = job.max(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
      outcomes[w].times_ms.push_back(static_cast<double>(slowest) / 1e6);
    }
  }
  for (size_t w = 0; w < ways.size(); ++w) {
    outcomes[w].wrong += job.sum(static_cast<int64_t>(count_wrong(part, ways[w]->result())));
  }
  return outcomes;
}

void report(const Part& part, const Shape& shape, const std::vector<Outcome>& outcomes) {
  std::printf("%zu x %zu f64, %zu ranks, %d calls; %s\n", part.rows, part.columns, part.ranks, shape.calls,
              Mpi::version().c_str());
  std::printf("%-14s %12s %12s %10s %8s\n", "", "median ms", "least ms", "over torii", "wrong");
  nlohmann::json json = {
      {"rows", part.rows}, {"columns", part.columns}, {"ranks", part.ranks}, {"mpi", Mpi::version()}};
  for (const Outcome& one : outcomes) {
    const double least_ms = *std::min_element(one.times_ms.begin(), one.times_ms.end());
    std::printf("%-14s %12.3f %12.3f %10.2f %8lld\n", one.name.c_str(), one.median_ms(), least_ms,
                one.median_ms() / outcomes.front().median_ms(), static_cast<long long>(one.wrong));
    json["ways"].push_back(
        {{"name", one.name}, {"median_ms", one.median_ms()}, {"least_ms", least_ms}, {"wrong", one.wrong}});
  }
  Output(shape.json, Output::Mode::append).write(json.dump() + "\n");
}

/// False when all has been said, as for --help. Throws Failure, on all ranks alike.
bool read_shape(int argc, char** argv, const Mpi& mpi, Shape& shape) {
  const tools::CommandLine app(
      "Transposes a matrix of f64 by torii, over MPI_Alltoall, and by FFTW where it was found.", "transpose_perf");
  app.add_option("--rows", shape.rows, "a multiple of the ranks");
  app.add_option("--columns", shape.columns, "a multiple of the ranks");
  app.add_option("--calls", shape.calls, "timed calls of each way").range(1, 1'000'000);
  app.add_option("--json", shape.json, "append the figures as one line of JSON to this file");
  if (!app.parse(argc, argv, mpi.rank() == 0)) return false;
  const auto ranks = static_cast<size_t>(mpi.ranks());
  for (const auto& [flag, value] : {std::pair{"--rows", shape.rows}, std::pair{"--columns", shape.columns}}) {
    if (value != 0 && value % ranks == 0) continue;
    throw Failure(kBadCommandLine, std::string(flag) + " is " + std::to_string(value) +
                                       "; it must be a multiple of the " + std::to_string(ranks) + " ranks");
  }
  if (shape.rows / ranks > INT_MAX / (shape.columns / ranks)) {
    throw Failure(kBadCommandLine, "a block has more than " + std::to_string(INT_MAX) + " elements, MPI's limit");
  }
  return true;
}

int run(const Shape& shape, const Mpi& mpi) {
  const auto ranks = static_cast<size_t>(mpi.ranks());
  const Job job("", Mpi::exchange, mpi.rank(), mpi.ranks());
  const Part part = {
      shape.rows, shape.columns, shape.rows / ranks, shape.columns / ranks, static_cast<size_t>(mpi.rank()), ranks};
  std::vector<double> input(part.elements());
  for (size_t i = 0; i < part.own_rows; ++i) {
    for (size_t j = 0; j < part.columns; ++j) {
      input[i * part.columns + j] = element(part.rank * part.own_rows + i, j);
    }
  }
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(std::make_unique<ToriiWay>(job, part, input.data()));
  ways.push_back(std::make_unique<AlltoallWay>(part, input.data()));
#ifdef TORII_HAVE_FFTW
  ways.push_back(std::make_unique<FftwWay>(part, input.data()));
#endif
  const std::vector<Outcome> outcomes = measure(job, part, ways, shape.calls);
  if (mpi.rank() == 0) report(part, shape, outcomes);
  return std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& one) { return one.wrong != 0; }) ? 1 : 0;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  Mpi mpi(argc, argv);
  Shape shape;
  try {
    if (!read_shape(argc, argv, mpi, shape)) return kOk;
  } catch (const std::exception& error) {
    if (mpi.rank() == 0) std::fprintf(stderr, "transpose_perf: %s\n", error.what());
    return exit_code_of(error);
  }
  try {
    return run(shape, mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), error.what());
    Mpi::abort(exit_code_of(error));
  }
}
