// SPDX-License-Identifier: Apache-2.0
// Where temporaries lie in a plan's workspace.
#pragma once

#include <cstddef>
#include <vector>

namespace tsr {

struct WorkspaceBlock {
  size_t bytes;
  int first, last;  // steps that need it
  size_t offset = 0;
};

// Places blocks so that those alive together do not overlap, large ones first; the bytes that all need.
size_t place(std::vector<WorkspaceBlock>& blocks);

}  // namespace tsr
