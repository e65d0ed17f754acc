// SPDX-License-Identifier: Apache-2.0
// Work that may end the process it runs in is tried in a child first.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace tsr {

// Unknown: no child could be made, it was still running at the limit, or somebody else ended it.
enum class Fate : uint8_t { survived, died, unknown };

struct Trial {
  Fate fate;
  std::string how;  // unless it survived: "was ended by signal 4 (Illegal instruction)"
};

// Runs `work` in a fork of this process, and says how it ended; an exception counts as death. The child has one thread,
// whatever this process has: the work must wait for no other, and for no lock that another may hold. It prints nothing,
// leaves no core file and calls none of the program's signal handlers.
Trial try_in_child(const std::function<void()>& work, std::chrono::milliseconds limit);

}  // namespace tsr
