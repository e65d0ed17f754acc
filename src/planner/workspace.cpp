// SPDX-License-Identifier: Apache-2.0
#include "planner/workspace.hpp"

#include <algorithm>

#include "planner/device.hpp"

namespace tsr {

size_t place(std::vector<WorkspaceBlock>& blocks) {
  std::vector<size_t> order(blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<size_t> placed;  // by offset
  size_t total = 0;
  for (size_t i : order) {
    WorkspaceBlock& b = blocks[i];
    size_t at = 0;
    for (size_t k : placed) {
      const WorkspaceBlock& o = blocks[k];
      if (o.last < b.first || b.last < o.first) continue;
      if (at + b.bytes <= o.offset) break;
      at = std::max(at, align_up(o.offset + o.bytes));
    }
    b.offset = at;
    total = std::max(total, at + b.bytes);
    placed.insert(std::lower_bound(placed.begin(), placed.end(), i,
                                   [&](size_t x, size_t y) { return blocks[x].offset < blocks[y].offset; }),
                  i);
  }
  return align_up(total);
}

}  // namespace tsr
