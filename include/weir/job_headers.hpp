// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_HEADERS_HPP
#define WEIR_JOB_HEADERS_HPP

#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace weir {

/// The headers of a job: names, each with a value. They go with the job and are not part of it: the
/// trace that it belongs to (`traceparent`), its tenant, what it was caused by. No store reads
/// them; names and values are any bytes.
///
/// This is a view, of `job_headers` or of the text that a store keeps: names and values in turn,
/// each as a netstring (`7:tenant…`). Of a text that is none, the headers before the damage are
/// seen. Source of the form: D. J. Bernstein, Netstrings, 1997.
///
/// Thread-safety: reading is safe in any thread while the text stands.
class job_headers_view {
 public:
  /// A header: its name and its value, both views of the text.
  using value_type = std::pair<std::string_view, std::string_view>;

  /// Goes through the headers in their order.
  class iterator {
   public:
    using iterator_concept = std::forward_iterator_tag;  ///< how often it may pass
    using difference_type = std::ptrdiff_t;              ///< required of an iterator
    using value_type = job_headers_view::value_type;     ///< a name and its value

    iterator() = default;
    /// The header here.
    [[nodiscard]] value_type const& operator*() const noexcept { return here_; }
    /// The same, by its members `first` and `second`.
    [[nodiscard]] value_type const* operator->() const noexcept { return &here_; }
    /// The next one.
    iterator& operator++() noexcept {
      read();
      return *this;
    }
    /// The next one; gives the one before.
    iterator operator++(int) noexcept {
      auto const before = *this;
      read();
      return before;
    }
    /// At the same header of the same text?
    friend bool operator==(iterator const& a, iterator const& b) noexcept {
      return a.at_end_ == b.at_end_ && (a.at_end_ || a.rest_.size() == b.rest_.size());
    }

   private:
    friend class job_headers_view;
    explicit iterator(std::string_view text) noexcept : rest_{text} { read(); }

    void read() noexcept {
      auto const name = take();
      auto const value = name ? take() : std::nullopt;
      at_end_ = !value;
      here_ = at_end_ ? value_type{} : value_type{*name, *value};
    }
    std::optional<std::string_view> take() noexcept {
      std::size_t size = 0;
      auto const* const end = rest_.data() + rest_.size();
      auto const [at, ec] = std::from_chars(rest_.data(), end, size);
      auto const digits = static_cast<std::size_t>(at - rest_.data());
      if (ec != std::errc{} || at == end || *at != ':' || size >= rest_.size() - digits - 1 ||
          rest_[digits + 1 + size] != ',') {
        return std::nullopt;
      }
      auto const out = rest_.substr(digits + 1, size);
      rest_.remove_prefix(digits + 2 + size);
      return out;
    }

    std::string_view rest_;
    value_type here_;
    bool at_end_ = true;
  };

  job_headers_view() = default;
  /// @param text as a store keeps it; must outlive the view
  explicit job_headers_view(std::string_view text) noexcept : text_{text} {}

  /// The first header; `end()` where there is none.
  [[nodiscard]] iterator begin() const noexcept { return iterator{text_}; }
  /// Behind the last one.
  [[nodiscard]] static iterator end() noexcept { return {}; }
  /// Is there no header?
  [[nodiscard]] bool empty() const noexcept { return begin() == end(); }

  /// The value of the first header of this name, letter by letter; empty: there is none.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    for (auto const& [known, value] : *this) {
      if (known == name) return value;
    }
    return std::nullopt;
  }

  /// As a store keeps it.
  [[nodiscard]] std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// Headers that are to go with a job: see `job_headers_view`. Their text may have up to
/// `limits::headers_size` bytes; an enqueue with more is refused (`payload_too_large`).
class job_headers {
 public:
  job_headers() = default;
  /// @param headers names, each with its value; of a name that comes twice the last counts
  job_headers(std::initializer_list<job_headers_view::value_type> headers) {
    for (auto const& [name, value] : headers) set(name, value);
  }
  /// Those of another job, to be passed on.
  explicit job_headers(job_headers_view others) {
    for (auto const& [name, value] : others) append(text_, name, value);
  }

  /// Adds a header, behind the others; one of this name is taken away.
  void set(std::string_view name, std::string_view value) {
    job_headers kept;
    for (auto const& [other, its] : job_headers_view{text_}) {
      if (other != name) append(kept.text_, other, its);
    }
    append(kept.text_, name, value);
    text_ = std::move(kept.text_);
  }

  /// A view, which is good as long as this stands and is not changed.
  [[nodiscard]] operator job_headers_view() const noexcept { return job_headers_view{text_}; }
  /// As a store keeps it.
  [[nodiscard]] std::string const& text() const noexcept { return text_; }

 private:
  static void append(std::string& to, std::string_view name, std::string_view value) {
    for (auto const part : {name, value}) {
      to.append(std::to_string(part.size())).append(":").append(part).append(",");
    }
  }

  std::string text_;
};

}  // namespace weir

#endif
