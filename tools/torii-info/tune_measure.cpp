// SPDX-License-Identifier: Apache-2.0
// Regret in passes; or a search for faster rows, then passes of both tables by turns, isolated and in a row.
#include "tools/torii-info/tune_measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "collectives/selection/catalogue.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/devices/control_groups.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-info/machine.hpp"
#include "tools/torii-info/tune.hpp"
#include "tools/torii-info/tune_jobs.hpp"
#include "tools/torii-info/tune_regret.hpp"
#include "tools/torii-info/tune_rows.hpp"
#include "tools/torii-info/whole_file.hpp"

namespace torii::tools {
namespace {

/// The search for faster rows has the first part of the time, passes of both tables by turns have the second one with
/// isolated calls and the rest with calls in a row.
constexpr double kSearchPart = 0.7, kTurnsPart = 0.18;
constexpr int kTurnPasses = 3;
constexpr int kCheckPasses = 3;

std::string cells_text(const std::vector<TuneCell>& cells) {
  std::string text;
  for (const TuneCell& cell : cells) {
    text += (text.empty() ? "" : ",") + std::string(name(cell.collective));
    if (cell.collective != Collective::barrier) text += ":" + std::to_string(cell.bytes);
  }
  return text;
}

/// CPUs whose time this process may use.
int usable_cpus(const Machine& machine) {
  double cpus = machine.cpus_allowed;
  for (const CpuQuota& quota : cpu_quotas()) cpus = std::min(cpus, quota.cpus);
  return static_cast<int>(cpus);
}

/// One kind of run over all numbers of ranks, few ranks first; time is divided by ranks.
class Campaign {
 public:
  explicit Campaign(const TuneRequest& request) : jobs_(request.minutes * 60, request.command) {
    const Machine machine = read_machine();
    ranks_ = read_ranks(request.ranks, usable_cpus(machine), request.oversubscribe);
    shape_ = {std::max(machine.cpus_allowed, 1), machine.l3_groups, machine.numa_nodes, ranks_.back()};
    for (const int ranks : ranks_) cells_.push_back(read_cells(request, ranks));
    flags_ = {"--rounds", std::to_string(request.rounds), "--block-ms", fmt::format("{}", request.block_ms)};
    if (!request.algorithms.empty()) flags_.insert(flags_.end(), {"--algorithms", request.algorithms});
  }

  /// `cells[i]` on the i-th number of ranks, so often, until `end_s` seconds are left. Returns 0 or the code with which
  /// all must end.
  int run(const std::vector<std::vector<TuneCell>>& cells, int passes, double end_s,
          const std::vector<std::string>& flags, const std::string& label) {
    double weight = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) weight += cells[i].empty() ? 0 : passes * ranks_[i];
    for (int pass = 1; pass <= passes; ++pass) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i].empty()) continue;
        TuneJob job = {ranks_[i], (jobs_.left_s() - end_s) * ranks_[i] / weight, flags_};
        weight -= ranks_[i];
        job.flags.insert(job.flags.end(), flags.begin(), flags.end());
        job.flags.insert(job.flags.end(), {"--cells", cells_text(cells[i])});
        const std::string text = passes == 1 ? label : fmt::format("{}, pass {} of {}", label, pass, passes);
        const int code = jobs_.run(job, text + ": ");
        if (code != kDone) return code;
      }
    }
    return kDone;
  }

  std::size_t cell_count() const {
    return std::accumulate(cells_.begin(), cells_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& cells) { return sum + cells.size(); });
  }
  const std::vector<int>& ranks() const { return ranks_; }
  const std::vector<std::vector<TuneCell>>& cells() const { return cells_; }
  const MachineShape& shape() const { return shape_; }
  TuneJobs& jobs() { return jobs_; }

 private:
  TuneJobs jobs_;
  std::vector<int> ranks_;
  std::vector<std::vector<TuneCell>> cells_;  ///< by number of ranks
  std::vector<std::string> flags_;
  MachineShape shape_;
};

/// After Ctrl-C, or when ranks failed, which they have said. A report without JSON is not published.
Report ended(int code) {
  std::fprintf(stderr, "torii-info: %s; nothing was written\n", code >= 128 ? "ended by a signal" : "the ranks failed");
  Report report;
  report.code = code;
  return report;
}

Report check_table(const TuneRequest& request, const std::string& tune_file, Campaign& campaign) {
  std::vector<std::string> flags = {"--rivals", "algorithms"};
  if (!tune_file.empty()) flags.insert(flags.end(), {"--tune-file", tune_file});
  const int passes = request.passes == 0 ? kCheckPasses : request.passes;
  const int code = campaign.run(campaign.cells(), passes, 0, flags, "regret");
  if (code != kDone) return ended(code);
  if (!request.raw.empty()) write_whole(request.raw, campaign.jobs().raw());
  const std::string table = tune_file.empty() ? "the built-in table" : tune_file;
  return report_regret({table, campaign.cell_count(), passes}, campaign.jobs().lines());
}

/// The origin of the figures. Settings of the user that were in force are part of it.
Json provenance(const TuneRequest& request, const Settings& settings, Campaign& campaign) {
  const std::string& raw = campaign.jobs().raw();
  const Json line = Json::parse(raw.substr(0, raw.find('\n')));
  Json json;
  for (const char* key : {"host", "commit", "version", "command"}) json[key] = line.at(key);
  json["minutes"] = request.minutes;
  json["ranks"] = campaign.ranks();
  json["bytes"] = {request.least, request.most};
  for (const SettingView& setting : settings.list()) {
    if (setting.origin == Origin::environment) json["settings"][setting.name] = setting.value;
  }
  return json;
}

std::string sizes_text(const TuneRow& row) {
  if (row.collective == Collective::barrier) return "-";
  return bytes_text(row.bytes_min) + ".." + bytes_text(row.bytes_max);
}

Report report_rows(const TuneRequest& request, const std::vector<TunedRow>& rows, std::size_t measured,
                   std::size_t cells) {
  Report report;
  report.json = {{"cells", cells}, {"measured", measured}, {"rows", Json::array()}};
  std::vector<double> gains;
  if (!rows.empty()) {
    report.text = fmt::format("{:<15} {:>7} {:>16}  {:<19} {:<32} {:>5}\n", "collective", "ranks", "bytes", "built-in",
                              "new row", "gain");
  }
  for (const TunedRow& tuned : rows) {
    gains.push_back(tuned.gain);
    const Tuning& tuning = tuned.row.tuning;
    report.text += fmt::format("{:<15} {:>7} {:>16}  {:<19} {:<32} {:>5.2f}\n", name(tuned.row.collective),
                               fmt::format("{}..{}", tuned.row.ranks_min, tuned.row.ranks_max), sizes_text(tuned.row),
                               tuned.before,
                               fmt::format("{} {}/{}/{}{}", tuned.row.algorithm, bytes_text(tuning.segment_bytes),
                                           tuning.slots, tuning.window, tuning.one_shot ? " one_shot" : ""),
                               tuned.gain);
    Json json = row_json(tuned.row);
    json["gain"] = tuned.gain;
    json["before"] = tuned.before;
    report.json["rows"].push_back(json);
  }
  if (measured < cells) {
    report.text +=
        fmt::format("{} of {} cells were not measured, because {:g} minutes were over; built-in rows serve them\n",
                    cells - measured, cells, request.minutes);
  }
  if (rows.empty()) {
    report.text += fmt::format("no row is faster here by {:.0f} % or more: the built-in rows serve all cells\n",
                               100 * (kGainLeast - 1));
  } else {
    report.text += fmt::format(
        "{} of {} cells are faster: time with the built-in table over time with the new one, by turns: median {:.2f}, "
        "most {:.2f}\n",
        rows.size(), measured, median_of(gains), *std::ranges::max_element(gains));
  }
  if (request.output != "-") {
    report.text += fmt::format("written to {}; to use it: export TORII_TUNE_FILE={}\n", request.output,
                               std::filesystem::absolute(request.output).string());
  }
  return report;
}

/// Cells of these rows, by number of ranks.
std::vector<std::vector<TuneCell>> cells_of(const std::vector<TunedRow>& rows, const std::vector<int>& ranks) {
  std::vector<std::vector<TuneCell>> cells(ranks.size());
  for (const TunedRow& tuned : rows) {
    const auto at = std::ranges::find(ranks, tuned.cell.ranks) - ranks.begin();
    cells[static_cast<std::size_t>(at)].push_back(tuned.cell);
  }
  return cells;
}

/// Passes of both tables by turns.
struct Turns {
  int code = kDone;
  std::vector<TuneLine> lines;
  std::size_t asked = 0;  ///< lines of all passes, some of which may be missing because time was over
};

/// Over the cells of `rows`, until `end_s` seconds are left.
Turns run_turns(Campaign& campaign, const std::vector<TunedRow>& rows, const Json& measured, double end_s,
                const std::string& timing, const std::string& label) {
  Turns turns;
  if (rows.empty()) return turns;
  const TuneJobs& jobs = campaign.jobs();
  const auto before = static_cast<std::ptrdiff_t>(jobs.lines().size());
  const MemoryFile table("torii-info tune table");
  table.write(tune_file_text(rows, measured, campaign.shape()));
  turns.asked = kTurnPasses * rows.size();
  turns.code = campaign.run(cells_of(rows, campaign.ranks()), kTurnPasses, end_s,
                            {"--rivals", "table", "--other", table.path(), "--timing", timing}, label);
  turns.lines.assign(jobs.lines().begin() + before, jobs.lines().end());
  return turns;
}

Report make_table(const TuneRequest& request, const Settings& settings, Campaign& campaign) {
  const TuneJobs& jobs = campaign.jobs();
  const double seconds = jobs.seconds();
  const int code = campaign.run(campaign.cells(), 1, (1 - kSearchPart) * seconds, {"--rivals", "tunings"}, "search");
  if (code != kDone) return ended(code);
  const std::vector<TuneLine> search = jobs.lines();
  if (search.empty()) {
    throw Error(Status::timeout, fmt::format("no cell was measured in {:g} minutes; give more", request.minutes));
  }
  const Json measured = provenance(request, settings, campaign);
  const std::vector<TunedRow> found = faster_rows(search);
  const Turns isolated =
      run_turns(campaign, found, measured, (1 - kSearchPart - kTurnsPart) * seconds, "isolated", "by turns");
  if (isolated.code != kDone) return ended(isolated.code);
  const std::vector<TunedRow> confirmed = confirmed_rows(found, isolated.lines);
  const Turns in_a_row = run_turns(campaign, confirmed, measured, 0, "loop", "in a row");
  if (in_a_row.code != kDone) return ended(in_a_row.code);
  const std::vector<TunedRow> rows = rows_good_in_a_row(confirmed, in_a_row.lines);
  if (!request.raw.empty()) write_whole(request.raw, jobs.raw());
  write_whole(request.output, tune_file_text(rows, measured, campaign.shape()));
  Report report = report_rows(request, rows, search.size(), campaign.cell_count());
  const std::size_t asked = isolated.asked + in_a_row.asked;
  const std::size_t made = isolated.lines.size() + in_a_row.lines.size();
  const bool is_whole = search.size() == campaign.cell_count() && made == asked;
  if (made < asked) {
    report.text += fmt::format(
        "{} of {} comparisons by turns and in a row were not made, because {:g} minutes were over; "
        "rows without them were dropped\n",
        asked - made, asked, request.minutes);
  }
  report.json["complete"] = is_whole;
  if (request.output == "-") {
    std::fputs(report.text.c_str(), stderr);
    report.text.clear();
  }
  report.code = is_whole ? kDone : kTimedOut;
  return report;
}

}  // namespace

Report measure_tune(const TuneRequest& request) {
  require_sense(request);
  clear_settings(request);
  const Settings settings = Settings::load({}, nullptr, algorithm_names());
  const std::string tune_file = request.tune_file.empty() ? settings.tune_file : request.tune_file;
  // Refuses a table that no team could load.
  (void)TuneTable::load(tune_file);
  Campaign campaign(request);
  return request.check ? check_table(request, tune_file, campaign) : make_table(request, settings, campaign);
}

}  // namespace torii::tools
