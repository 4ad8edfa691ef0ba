// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SRC_HPP
#define WEIR_SRC_HPP

#include "weir/detail/config.hpp"

#if !defined(WEIR_SEPARATE_COMPILATION)
#error "weir/src.hpp is for programs that define WEIR_SEPARATE_COMPILATION in all translation units"
#endif

/// @file
/// What the primitives and the worker have in common for all stores, compiled: to be included in
/// one translation unit of a program that defines `WEIR_SEPARATE_COMPILATION`.

#include "weir/detail/explained.hpp"
#include "weir/log.hpp"
// After their declarations.
#include "weir/codec.hpp"
#include "weir/detail/explained_texts.hpp"
#include "weir/detail/log_state.hpp"
#include "weir/job_codec.hpp"
#include "weir/lease/src.hpp"
#include "weir/store/memory/src.hpp"
#include "weir/worker/run.hpp"

#include <nlohmann/json.hpp>

template std::string weir::detail::json_text(nlohmann::json const& json);
template nlohmann::json weir::detail::json_of(std::string_view text);
template std::string weir::detail::bytes_of(nlohmann::json const& json,
                                            weir::detail::binary_form form);
template nlohmann::json weir::detail::form_of(std::string_view bytes,
                                              weir::detail::binary_form form);

#endif
