// SPDX-License-Identifier: Apache-2.0
// Errors in tests: the status, and the words that the message must contain.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "tessera/types.hpp"

namespace tsr {

template <class F>
void expect_error(const F& f, tessera::Status status, std::initializer_list<std::string> words) {
  try {
    f();
  } catch (const tessera::Error& e) {
    EXPECT_EQ(static_cast<int>(e.status()), static_cast<int>(status)) << e.what();
    for (const std::string& w : words)
      EXPECT_NE(std::string(e.what()).find(w), std::string::npos) << "no '" << w << "' in: " << e.what();
    return;
  }
  std::string wanted;
  for (const std::string& w : words) wanted += "'" + w + "' ";
  ADD_FAILURE() << "no error; expected one with " << wanted;
}

}  // namespace tsr
