// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_TZIF_ZONE_HPP
#define WEIR_SCHEDULE_TZIF_ZONE_HPP

#include "weir/schedule/zone.hpp"

#include <boost/endian/conversion.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

namespace detail {

/// The rule of a TZif file's footer, for the time after its last change (POSIX, and RFC 9636).
struct posix_zone {
  /// A day of the year, and a time from its beginning.
  struct change {
    enum class kind : std::uint8_t { julian, zero_based, weekday } by = kind::weekday;
    int month = 1;  // of a weekday
    int week = 1;   // 5: the last one
    int day = 0;    // of the week or of the year
    std::chrono::seconds time{std::chrono::hours{2}};

    [[nodiscard]] std::chrono::local_seconds in(std::chrono::year y) const {
      using namespace std::chrono;
      local_days const first{y / 1 / 1};
      switch (by) {
        case kind::julian:  // 29 February is not counted
          return first + days{day - 1 + (y.is_leap() && day >= 60 ? 1 : 0)} + time;
        case kind::zero_based: return first + days{day} + time;
        case kind::weekday: break;
      }
      auto const of_month = y / month;
      weekday const of_week{static_cast<unsigned>(day)};
      local_days const at = week == 5 ? local_days{of_month / of_week[last]}
                                      : local_days{of_month / of_week[static_cast<unsigned>(week)]};
      return at + time;
    }
  };

  std::chrono::seconds standard{0};
  std::optional<std::chrono::seconds> summer;  // its offset, if there is one
  change summer_begins;
  change summer_ends;

  /// Adds the changes of a year, in order: from when on, which offset.
  void add_changes(
      std::chrono::year y,
      std::vector<std::pair<std::chrono::sys_seconds, std::chrono::seconds>>& to) const {
    using std::chrono::sys_seconds;
    to.emplace_back(sys_seconds{summer_ends.in(y).time_since_epoch() - *summer}, standard);
    to.emplace_back(sys_seconds{summer_begins.in(y).time_since_epoch() - standard}, *summer);
    auto const last = std::prev(to.end());
    if (last->first < std::prev(last)->first) std::iter_swap(last, std::prev(last));
  }

  class parser;
};

/// Reads `EST5EDT,M3.2.0,M11.1.0`.
class posix_zone::parser {
 public:
  explicit parser(std::string_view text) : rest_{text} {}

  [[nodiscard]] std::optional<posix_zone> zone() {
    posix_zone made;
    name();
    made.standard = -time(24);
    if (!rest_.empty()) {
      name();
      bool const given = !rest_.empty() && rest_.front() != ',';
      made.summer = given ? -time(24) : made.standard + std::chrono::hours{1};
      made.summer_begins = day();
      made.summer_ends = day();
    }
    if (!good_ || !rest_.empty()) return std::nullopt;
    return made;
  }

 private:
  [[nodiscard]] bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void want(bool right) { good_ = good_ && right; }

  void name() {
    bool const quoted = skip('<');
    std::size_t length = 0;
    while (length < rest_.size() && is_of_name(rest_[length], quoted)) ++length;
    want(length >= 3);
    rest_.remove_prefix(length);
    if (quoted) want(skip('>'));
  }
  [[nodiscard]] static bool is_of_name(char c, bool quoted) {
    bool const letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return letter || (quoted && ((c >= '0' && c <= '9') || c == '+' || c == '-'));
  }

  [[nodiscard]] int number(int least, int most) {
    int n = 0;
    std::size_t length = 0;
    for (; length < rest_.size() && length < 3 && rest_[length] >= '0' && rest_[length] <= '9';
         ++length) {
      n = n * 10 + (rest_[length] - '0');
    }
    rest_.remove_prefix(length);
    bool const right = length > 0 && n >= least && n <= most;
    want(right);
    return right ? n : least;
  }

  /// `[+-]hh[:mm[:ss]]`.
  [[nodiscard]] std::chrono::seconds time(int most_hours) {
    bool const negative = skip('-');
    if (!negative) static_cast<void>(skip('+'));
    int n = number(0, most_hours) * 3600;
    if (skip(':')) n += number(0, 59) * 60;
    if (skip(':')) n += number(0, 59);
    return std::chrono::seconds{negative ? -n : n};
  }

  /// `,M3.2.0/2`, `,J60/2` or `,59/2`.
  [[nodiscard]] change day() {
    change made;
    want(skip(','));
    if (skip('M')) {
      made.by = change::kind::weekday;
      made.month = number(1, 12);
      want(skip('.'));
      made.week = number(1, 5);
      want(skip('.'));
      made.day = number(0, 6);
    } else if (skip('J')) {
      made.by = change::kind::julian;
      made.day = number(1, 365);
    } else {
      made.by = change::kind::zero_based;
      made.day = number(0, 365);
    }
    if (skip('/')) made.time = time(167);
    return made;
  }

  std::string_view rest_;
  bool good_ = true;
};

/// Reads a file of numbers in network byte order, and never past its end.
class tzif_reader {
 public:
  explicit tzif_reader(std::string_view bytes) : rest_{bytes} {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) good_ = false;
    auto const taken = rest_.substr(0, good_ ? count : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <class Int>
  [[nodiscard]] Int number() {
    auto const from = bytes(sizeof(Int));
    if (from.size() != sizeof(Int)) return 0;
    std::array<unsigned char, sizeof(Int)> raw;
    std::memcpy(raw.data(), from.data(), raw.size());
    return boost::endian::endian_load<Int, sizeof(Int), boost::endian::order::big>(raw.data());
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace detail

/// A zone of the system's database of time zones, read from its file (TZif, version 2 or later).
///
/// A zone that was read does not change any more: after an update of the system, `load` it again.
/// Copies share it, and may be used by several threads at once.
class tzif_zone {
 public:
  /// The largest file that is read, in bytes.
  static constexpr std::size_t max_size = std::size_t{1} << 20U;

  /// Reads the zone `name`, such as "Europe/Oslo", below `folder`; if that is empty, below what the
  /// environment's `TZDIR` says, or `/usr/share/zoneinfo`.
  ///
  /// Errors: `invalid_argument` (the name is no path of letters, digits, `_`, `+` and `-`),
  /// `no_such_file_or_directory` (there is no such zone that can be read), `illegal_byte_sequence`
  /// (its file is damaged, counts leap seconds or has version 1).
  [[nodiscard]] static boost::system::result<tzif_zone> load(std::string_view name,
                                                             std::string folder = {}) {
    namespace errc = boost::system::errc;
    if (!is_name(name)) return errc::make_error_code(errc::invalid_argument);
    std::ifstream file{folder_or_default(std::move(folder)).append("/").append(name),
                       std::ios::binary};
    std::string bytes(max_size + 1, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    if (bytes.empty()) return errc::make_error_code(errc::no_such_file_or_directory);
    return parse(bytes);
  }

  /// Reads a zone from the bytes of its file. Errors: `illegal_byte_sequence`, as `load`.
  [[nodiscard]] static boost::system::result<tzif_zone> parse(std::string_view bytes) {
    if (auto made = read(bytes)) return tzif_zone{std::make_shared<data const>(*std::move(made))};
    return boost::system::errc::make_error_code(boost::system::errc::illegal_byte_sequence);
  }

  /// Which release of the database the folder has, such as "2026f"; empty if it does not say so.
  [[nodiscard]] static std::string release(std::string folder = {}) {
    std::ifstream file{folder_or_default(std::move(folder)).append("/tzdata.zi")};
    std::string hash;
    std::string word;
    std::string release;
    file >> hash >> word >> release;
    return hash == "#" && word == "version" ? release : std::string{};
  }

  /// The period that `t` is in.
  [[nodiscard]] zone_period period_at(std::chrono::sys_seconds t) const {
    auto const& changes = data_->changes;
    auto const next = std::upper_bound(changes.begin(), changes.end(), t,
                                       [](auto at, auto const& c) { return at < c.first; });
    if (next == changes.end() && data_->after && data_->after->summer) return by_rule(t);
    if (next == changes.begin()) {
      return {earliest_instant, end_of(next), data_->first_offset};
    }
    auto const& [begin, offset] = *std::prev(next);
    return {begin, end_of(next), offset};
  }

 private:
  using changes_type = std::vector<std::pair<std::chrono::sys_seconds, std::chrono::seconds>>;

  struct data {
    std::chrono::seconds first_offset{0};
    changes_type changes;  // in order: from when on, which offset
    std::optional<detail::posix_zone> after;
  };

  explicit tzif_zone(std::shared_ptr<data const> read) : data_{std::move(read)} {}

  [[nodiscard]] static bool is_name(std::string_view name) {
    auto const part_of_name = [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '+' || c == '-' || c == '/';
    };
    return !name.empty() && name.size() <= 255 && name.front() != '/' && name.back() != '/' &&
           std::all_of(name.begin(), name.end(), part_of_name);
  }

  [[nodiscard]] static std::string folder_or_default(std::string folder) {
    if (!folder.empty()) return folder;
    if (auto const* const named = std::getenv("TZDIR"); named != nullptr && *named != '\0') {
      return named;
    }
    return "/usr/share/zoneinfo";
  }

  [[nodiscard]] static std::optional<data> read(std::string_view bytes) {
    using std::chrono::seconds;
    using std::chrono::sys_seconds;
    if (bytes.size() > max_size) return std::nullopt;
    detail::tzif_reader in{bytes};
    auto const first = read_counts(in);
    in.bytes(first.size_of_block(4));  // of 32 bits, for older readers
    auto const counts = read_counts(in);
    if (!in.good() || first.version < '2' || counts.types == 0 || counts.leaps != 0 ||
        counts.size_of_block(8) > in.rest().size()) {
      return std::nullopt;
    }
    data made;
    made.changes.resize(counts.times);
    for (auto& [at, offset] : made.changes) at = sys_seconds{seconds{in.number<std::int64_t>()}};
    std::vector<unsigned char> types(counts.times);
    for (auto& type : types) type = in.number<std::uint8_t>();
    std::vector<seconds> offsets(counts.types);
    for (auto& offset : offsets) {
      offset = seconds{in.number<std::int32_t>()};
      in.bytes(2);  // whether it is summer time, and where its name is
      if (abs(offset) >= std::chrono::hours{26}) return std::nullopt;
    }
    in.bytes(counts.names + counts.standards + counts.universals);
    auto footer = in.rest();
    if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') return std::nullopt;
    footer = footer.substr(1, footer.size() - 2);
    if (!footer.empty()) {
      made.after = detail::posix_zone::parser{footer}.zone();
      if (!made.after) return std::nullopt;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      auto const in_order = i == 0 || made.changes[i - 1].first < made.changes[i].first;
      if (types[i] >= offsets.size() || !in_order) return std::nullopt;
      made.changes[i].second = offsets[types[i]];
    }
    made.first_offset = made.changes.empty() && made.after ? made.after->standard : offsets.front();
    keep_known_instants(made);
    return made;
  }

  struct counts_type {
    char version = '\0';
    std::size_t universals = 0, standards = 0, leaps = 0, times = 0, types = 0, names = 0;

    [[nodiscard]] std::size_t size_of_block(std::size_t time_size) const {
      return times * (time_size + 1) + types * 6 + names + leaps * (time_size + 4) + standards +
             universals;
    }
  };
  [[nodiscard]] static counts_type read_counts(detail::tzif_reader& in) {
    counts_type c;
    if (in.bytes(4) != "TZif") return c;
    c.version = static_cast<char>(in.number<std::uint8_t>());
    in.bytes(15);
    for (auto* const count :
         {&c.universals, &c.standards, &c.leaps, &c.times, &c.types, &c.names}) {
      *count = in.number<std::uint32_t>();
    }
    return c;
  }

  /// Changes before `earliest_instant` are the past of all, those from `latest_instant` on are
  /// nobody's.
  static void keep_known_instants(data& made) {
    auto& changes = made.changes;
    while (!changes.empty() && changes.back().first >= latest_instant) changes.pop_back();
    auto const known = std::find_if(changes.begin(), changes.end(),
                                    [](auto const& c) { return c.first > earliest_instant; });
    if (known != changes.begin()) made.first_offset = std::prev(known)->second;
    changes.erase(changes.begin(), known);
  }

  [[nodiscard]] std::chrono::sys_seconds end_of(changes_type::const_iterator next) const {
    if (next != data_->changes.end()) return next->first;
    if (!data_->after || !data_->after->summer) return latest_instant;
    // The first change by the rule after the last one that is listed.
    auto const last = data_->changes.empty() ? earliest_instant : data_->changes.back().first;
    return by_rule(last).end;
  }

  /// The period of an instant at or after the last change that is listed.
  [[nodiscard]] zone_period by_rule(std::chrono::sys_seconds t) const {
    using namespace std::chrono;
    auto const listed = data_->changes.empty() ? std::pair{earliest_instant, data_->first_offset}
                                               : data_->changes.back();
    changes_type changes;
    auto const y = year_month_day{floor<days>(t)}.year();
    for (int of = -1; of <= 2; ++of) data_->after->add_changes(y + years{of}, changes);
    // In order, and those of one instant as they came. (libstdc++'s stable sort warns, with clang.)
    auto const earlier = [](auto const& a, auto const& b) { return a.first < b.first; };
    for (auto i = changes.begin(); i != changes.end(); ++i) {
      std::rotate(std::upper_bound(changes.begin(), i, *i, earlier), i, std::next(i));
    }
    changes.pop_back();  // what comes next may replace it
    zone_period found{listed.first, latest_instant, listed.second};
    for (auto change = changes.begin(); change != changes.end(); ++change) {
      auto const& [at, offset] = *change;
      // Where it is always summer, each ends when the next begins.
      bool const replaced = std::next(change) != changes.end() && std::next(change)->first == at;
      if (replaced || at <= listed.first || at >= latest_instant || offset == found.offset)
        continue;
      if (at > t) {
        found.end = at;
        break;
      }
      found = {at, latest_instant, offset};
    }
    return found;
  }

  std::shared_ptr<data const> data_;
};

}  // namespace weir

#endif
