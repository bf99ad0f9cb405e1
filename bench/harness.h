// What every program under bench/ shares: how two things are measured against each other, and how
// the outcome is printed.
//
// Machines are noisy, so ours and the other run in turn, at least seven pairs of them, in changing
// order; `ours` and `other` are the medians, `ratio` is the median of ours / other pair by pair.
// A side is a callable that runs once and answers its figure, in the unit named (ns, GB/s, ...).
//
//   int main(int argc, char** argv) {
//     vitrove::bench::Harness harness(argc, argv);
//     harness.compare({"local_hit", "ns", "bare lookup", vitrove::bench::ratio_at_most(3)},
//                     [&] { return ...; }, [&] { return ...; });
//     return harness.finish();
//   }
//
// Options of every program: --json (one object a line instead of a table), --pairs N,
// --only TEXT (measurements whose name holds it), --check (exit code 1 when a target is missed).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <time.h>

namespace vitrove::bench {

// What is promised, and of which of the two figures.
struct Target {
  enum class Of { ratio, ours };
  enum class Bound { at_least, at_most };
  Of of = Of::ratio;
  Bound bound = Bound::at_least;
  double value = 0;

  bool met_by(double ratio, double ours) const {
    const double figure = of == Of::ratio ? ratio : ours;
    return bound == Bound::at_least ? figure >= value : figure <= value;
  }

  // "ratio >= 0.75", "ours <= 250"
  std::string text() const {
    char number[32];
    std::snprintf(number, sizeof number, "%g", value);
    return std::string(of == Of::ratio ? "ratio " : "ours ") +
           (bound == Bound::at_least ? ">= " : "<= ") + number;
  }
};

inline Target ratio_at_least(double value) {
  return {Target::Of::ratio, Target::Bound::at_least, value};
}
inline Target ratio_at_most(double value) {
  return {Target::Of::ratio, Target::Bound::at_most, value};
}
inline Target ours_at_least(double value) {
  return {Target::Of::ours, Target::Bound::at_least, value};
}
inline Target ours_at_most(double value) {
  return {Target::Of::ours, Target::Bound::at_most, value};
}

struct Measurement {
  std::string name;
  std::string unit;
  std::string other_name = {};  // empty: nothing to compare with
  std::optional<Target> target = {};
};

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Keeps the compiler from dropping the computation of `value`.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

template <class Body>
double seconds_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  std::forward<Body>(body)();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The calling thread's own processor time: where the question is what something costs, and not
// how long somebody else had the core meanwhile.
template <class Body>
double processor_seconds_of(Body&& body) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  std::forward<Body>(body)();
  return now() - start;
}

// `body` performs `operations` of them.
template <class Body>
double nanoseconds_each(std::uint64_t operations, Body&& body) {
  return seconds_of(std::forward<Body>(body)) * 1e9 / static_cast<double>(operations);
}

template <class Body>
double gigabytes_per_second(std::uint64_t bytes, Body&& body) {
  return static_cast<double>(bytes) / 1e9 / seconds_of(std::forward<Body>(body));
}

class Harness {
 public:
  using Side = std::function<double()>;
  static constexpr int least_pairs = 7;

  // `own_options`: names of the program's own options ("--threads"), each followed by a value.
  Harness(int argc, char** argv, const std::vector<std::string_view>& own_options = {}) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view name = argv[i];
      const auto value = [&]() -> std::string {
        if (i + 1 >= argc) usage(argv[0], own_options);
        return argv[++i];
      };
      if (name == "--json") {
        json_ = true;
      } else if (name == "--check") {
        check_ = true;
      } else if (name == "--pairs") {
        pairs_ = std::max(least_pairs, std::atoi(value().c_str()));
      } else if (name == "--only") {
        only_ = value();
      } else if (std::find(own_options.begin(), own_options.end(), name) != own_options.end()) {
        own_[std::string(name)] = value();
      } else {
        usage(argv[0], own_options);
      }
    }
  }

  std::string option(const std::string& name, const std::string& fallback) const {
    const auto found = own_.find(name);
    return found == own_.end() ? fallback : found->second;
  }

  bool json() const { return json_; }
  int pairs() const { return pairs_; }
  // Ask before a costly preparation.
  bool wants(std::string_view name) const { return name.find(only_) != std::string_view::npos; }

  // Runs both sides once unmeasured, then in pairs.
  void compare(const Measurement& what, const Side& ours, const Side& other) {
    if (!wants(what.name)) return;
    std::vector<double> of_ours, of_other, ratios;
    ours();
    other();
    for (int pair = 0; pair < pairs_; ++pair) {
      // Taking turns at going first cancels what the first does to the second.
      const bool ours_first = pair % 2 == 0;
      const double first = ours_first ? ours() : other();
      const double second = ours_first ? other() : ours();
      of_ours.push_back(ours_first ? first : second);
      of_other.push_back(ours_first ? second : first);
      ratios.push_back(of_ours.back() / of_other.back());
    }
    add(what, median(of_ours), median(of_other), median(ratios), spread(ratios));
  }

  // A figure with nothing beside it.
  void measure(const Measurement& what, const Side& ours) {
    if (!wants(what.name)) return;
    std::vector<double> figures;
    ours();
    for (int i = 0; i < pairs_; ++i) figures.push_back(ours());
    add(what, median(figures), {}, {}, spread(figures));
  }

  // A figure that is counted and not timed, with what it is compared with if there is any.
  void record(const Measurement& what, double ours, std::optional<double> other = {}) {
    if (!wants(what.name)) return;
    std::optional<double> ratio;
    if (other && *other != 0) ratio = ours / *other;
    add(what, ours, other, ratio, 0);
  }

  // The program's exit code.
  int finish() const { return check_ && missed_ > 0 ? 1 : 0; }

 private:
  [[noreturn]] static void usage(const char* program,
                                 const std::vector<std::string_view>& own_options) {
    std::fprintf(stderr, "usage: %s [--json] [--pairs N] [--only TEXT] [--check]", program);
    for (const auto option : own_options) {
      std::fprintf(stderr, " [%.*s VALUE]", static_cast<int>(option.size()), option.data());
    }
    std::fputc('\n', stderr);
    std::exit(2);
  }

  // Half of the distance between the quartiles, as a part of the median.
  static double spread(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const double middle = median(values);
    const double quartiles = values[values.size() * 3 / 4] - values[values.size() / 4];
    return middle == 0 ? 0 : quartiles / 2 / middle;
  }

  void add(const Measurement& what, double ours, std::optional<double> other,
           std::optional<double> ratio, double scatter) {
    std::optional<bool> ok;
    if (what.target) ok = what.target->met_by(ratio.value_or(0), ours);
    if (ok == false) ++missed_;
    if (json_) {
      print_json(what, ours, other, ratio, ok);
    } else {
      print_row(what, ours, other, ratio, ok, scatter);
    }
    std::fflush(stdout);
  }

  static void print_json(const Measurement& what, double ours, std::optional<double> other,
                         std::optional<double> ratio, std::optional<bool> ok) {
    const auto or_null = [](const auto& value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json line;
    line["name"] = what.name;
    line["unit"] = what.unit;
    line["ours"] = ours;
    line["other"] = or_null(other);
    line["other_name"] = what.other_name.empty() ? nlohmann::ordered_json(nullptr)
                                                 : nlohmann::ordered_json(what.other_name);
    line["ratio"] = or_null(ratio);
    line["target"] =
        what.target ? nlohmann::ordered_json(what.target->text()) : nlohmann::ordered_json(nullptr);
    line["ok"] = or_null(ok);
    std::printf("%s\n", line.dump().c_str());
  }

  static std::string number(std::optional<double> value) {
    if (!value) return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", *value);
    return text;
  }

  void print_row(const Measurement& what, double ours, std::optional<double> other,
                 std::optional<double> ratio, std::optional<bool> ok, double scatter) {
    constexpr const char* row = "%-42s %10s %-7s %10s %-28s %8s %6s  %-16s %s\n";
    if (!header_printed_) {
      std::printf(row, "name", "ours", "unit", "other", "other is", "ratio", "+-", "target", "");
      header_printed_ = true;
    }
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.1f%%", scatter * 100);
    std::printf(row, what.name.c_str(), number(ours).c_str(), what.unit.c_str(),
                number(other).c_str(), what.other_name.empty() ? "-" : what.other_name.c_str(),
                number(ratio).c_str(), percent, what.target ? what.target->text().c_str() : "-",
                !ok   ? ""
                : *ok ? "ok"
                      : "MISSED");
  }

  bool json_ = false;
  bool check_ = false;
  int pairs_ = 9;
  std::string only_;
  std::map<std::string, std::string> own_;
  bool header_printed_ = false;
  int missed_ = 0;
};

}  // namespace vitrove::bench
