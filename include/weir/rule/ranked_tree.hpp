// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_RANKED_TREE_HPP
#define WEIR_RULE_RANKED_TREE_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

namespace weir::rule::detail {

/// Where a `T` stands in a ranked tree.
template <class T>
struct ranked_links {
  T* up = nullptr;
  T* left = nullptr;
  T* right = nullptr;
  std::size_t size = 0;      ///< of the subtree, itself included
  std::uint64_t weight = 0;  ///< none below is heavier
};

/// Elements in an order in which their places are counted: which one is the k-th, and which place
/// has this one, are O(log n), as all else.
///
/// A treap (Aragon and Seidel, "Randomized search trees", 1989): a search tree by key that is a
/// heap by random weights, and so as deep as one that was filled in random order, whatever the
/// order was. It owns nothing and allocates nothing. Boost.MultiIndex's ranked indices do the same
/// and more, but cost everybody who includes weir as much to compile as a quarter of Asio.
///
/// @tparam Links where in a `T` the tree keeps what it needs
/// @tparam Key   `Key{}(T const&)` is what it goes by: unique, and the same as long as it is in the
///         tree
template <class T, ranked_links<T> T::* Links, class Key>
class ranked_tree {
 public:
  /// Nothing.
  ranked_tree() = default;
  ranked_tree(ranked_tree const&) = delete;
  ranked_tree& operator=(ranked_tree const&) = delete;

  /// Adds one that is in no such tree.
  void insert(T& added) noexcept {
    added.*Links = {nullptr, nullptr, nullptr, 1, next_weight()};
    T** place = &root_;
    for (T* at = root_; at != nullptr; at = *place) {
      ++(at->*Links).size;
      (added.*Links).up = at;
      place = Key{}(added) < Key{}(*at) ? &(at->*Links).left : &(at->*Links).right;
    }
    *place = &added;
    for (T* up = (added.*Links).up; up != nullptr && (up->*Links).weight < (added.*Links).weight;
         up = (added.*Links).up) {
      rotate_up(added);
    }
  }

  /// Removes one that is in the tree.
  void erase(T& gone) noexcept {
    auto& links = gone.*Links;
    while (links.left != nullptr || links.right != nullptr) {
      bool const lift_left =
          links.right == nullptr ||
          (links.left != nullptr && (links.right->*Links).weight < (links.left->*Links).weight);
      rotate_up(lift_left ? *links.left : *links.right);
    }
    place_of(gone) = nullptr;
    for (T* up = links.up; up != nullptr; up = (up->*Links).up) --(up->*Links).size;
  }

  /// The one with this key; null: there is none.
  template <class K>
  [[nodiscard]] T* find(K const& key) const noexcept {
    T* at = root_;
    while (at != nullptr && !(Key{}(*at) == key)) {
      at = key < Key{}(*at) ? (at->*Links).left : (at->*Links).right;
    }
    return at;
  }

  /// How many come before it.
  [[nodiscard]] std::size_t rank(T const& of) const noexcept {
    std::size_t before = size((of.*Links).left);
    for (T const* at = &of; (at->*Links).up != nullptr; at = (at->*Links).up) {
      T const& up = *(at->*Links).up;
      if (at == (up.*Links).right) before += size((up.*Links).left) + 1;
    }
    return before;
  }

  /// The one with `k` before it; null: there are not so many.
  [[nodiscard]] T* nth(std::size_t k) const noexcept {
    T* at = root_;
    while (at != nullptr) {
      auto const before = size((at->*Links).left);
      if (k == before) break;
      at = k < before ? (at->*Links).left : (at->*Links).right;
      if (k > before) k -= before + 1;
    }
    return at;
  }

  /// The first one; null: there is none.
  [[nodiscard]] T* first() const noexcept { return nth(0); }

  /// The one after it; null: it is the last one.
  [[nodiscard]] T* after(T const& one) const noexcept {
    if (T* at = (one.*Links).right) {
      while ((at->*Links).left != nullptr) at = (at->*Links).left;
      return at;
    }
    T const* from = &one;
    T* up = (one.*Links).up;
    while (up != nullptr && from == (up->*Links).right) from = std::exchange(up, (up->*Links).up);
    return up;
  }

 private:
  static std::size_t size(T const* tree) noexcept {
    return tree == nullptr ? 0 : (tree->*Links).size;
  }

  // What points to it.
  T*& place_of(T const& one) noexcept {
    T* const up = (one.*Links).up;
    if (up == nullptr) return root_;
    return (up->*Links).left == &one ? (up->*Links).left : (up->*Links).right;
  }

  // Changes places with the one above it; the order stays as it is.
  void rotate_up(T& child) noexcept {
    T& parent = *(child.*Links).up;
    bool const from_left = (parent.*Links).left == &child;
    T*& inner = from_left ? (child.*Links).right : (child.*Links).left;
    (from_left ? (parent.*Links).left : (parent.*Links).right) = inner;
    if (inner != nullptr) (inner->*Links).up = &parent;
    place_of(parent) = &child;
    (child.*Links).up = std::exchange((parent.*Links).up, &child);
    inner = &parent;
    (child.*Links).size = (parent.*Links).size;
    (parent.*Links).size = size((parent.*Links).left) + size((parent.*Links).right) + 1;
  }

  // Xorshift64 (G. Marsaglia, 2003). The weights need not be secret: nobody chooses them by
  // choosing keys.
  std::uint64_t next_weight() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }

  T* root_ = nullptr;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace weir::rule::detail

#endif
