// SPDX-License-Identifier: Apache-2.0
// VARIANT_PACK: the pointers of one execution, and sizes that differ from the planned ones.
#include <algorithm>

#include "capi/backend/planning.hpp"

namespace tsr::capi {
namespace {

// Lists of lists are kept as one: the length of each before its numbers.
std::vector<int64_t> flatten(const std::vector<std::vector<int64_t>>& lists) {
  std::vector<int64_t> flat;
  for (const auto& list : lists) {
    flat.push_back(static_cast<int64_t>(list.size()));
    flat.insert(flat.end(), list.begin(), list.end());
  }
  return flat;
}

std::vector<std::vector<int64_t>> unflatten(const std::vector<int64_t>& flat) {
  std::vector<std::vector<int64_t>> lists;
  for (size_t at = 0; at < flat.size();) {
    auto n = static_cast<size_t>(flat[at++]);
    lists.emplace_back(flat.begin() + static_cast<int64_t>(at), flat.begin() + static_cast<int64_t>(at + n));
    at += n;
  }
  return lists;
}

std::vector<std::vector<int64_t>> lists_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
  return unflatten(d.list<int64_t>(name));
}

}  // namespace

// Programs give the address of a std::vector<std::vector<int64_t>> as that of the elements.
bool set_pack(Descriptor& d, cudnnBackendAttributeName_t name, const void* elements) {
  if (name != CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES && name != CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES) return false;
  d.put(name, flatten(*static_cast<const std::vector<std::vector<int64_t>>*>(elements)));
  return true;
}

void finalize_pack(Descriptor& d) {
  auto p = std::make_shared<MadePack>();
  p->ids = d.ints(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  p->pointers = d.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  p->workspace = d.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  demand(p->ids.size() == p->pointers.size(), CUDNN_STATUS_BAD_PARAM, "the variant pack has ", p->ids.size(),
         " unique ids but ", p->pointers.size(), " pointers");
  std::vector<int64_t> ids = p->ids;
  std::sort(ids.begin(), ids.end());
  auto twice = std::adjacent_find(ids.begin(), ids.end());
  demand(twice == ids.end(), CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "the variant pack has unique id ",
         twice == ids.end() ? 0 : *twice, " twice");
  size_t changed = d.ints(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS).size();
  auto shapes = lists_of(d, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES);
  auto strides = lists_of(d, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES);
  demand(shapes.size() == changed && strides.size() == changed, CUDNN_STATUS_BAD_PARAM,
         "the variant pack overrides the sizes of ", changed, " tensors, by ", shapes.size(), " shapes and ",
         strides.size(), " strides");
  for (size_t i = 0; i < changed; ++i)
    demand(shapes[i].size() == strides[i].size() && shapes[i].size() <= CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM,
           "override ", i, " has ", shapes[i].size(), " sizes and ", strides[i].size(), " strides, at most ",
           CUDNN_DIM_MAX, " are allowed");
  make(d, p);
}

std::vector<ShapeOverride> overrides(const Descriptor& pack, const Graph& g) {
  std::vector<ShapeOverride> result;
  if (!pack.has(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS)) return result;
  std::vector<int64_t> ids = pack.ints(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS);
  auto shapes = lists_of(pack, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES);
  auto strides = lists_of(pack, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES);
  for (size_t i = 0; i < ids.size(); ++i)
    for (int64_t id : {graph_uid(ids[i]), before_uid(ids[i]), bits_uid(ids[i])}) {
      TensorId t = g.find_uid(id);
      if (t == kNone) continue;
      demand(g.tensor(t).rank() == static_cast<int>(shapes[i].size()), CUDNN_STATUS_BAD_PARAM,
             "VARIANT_PACK_OVERRIDE_SHAPES: ", shapes[i].size(), " sizes for unique id ", ids[i], ", whose memory has ",
             g.tensor(t).rank(), " dimensions; those that hold vectors or are reordered keep their sizes");
      Dims dims(shapes[i]), steps(strides[i]);
      if (id == bits_uid(ids[i])) count_bits(dims, steps);
      result.push_back({id, dims, steps});
    }
  // Results that are not named keep their sizes; virtual tensors follow.
  for (TensorId t : g.outputs()) {
    const Tensor& y = g.tensor(t);
    if (std::none_of(result.begin(), result.end(), [&](const ShapeOverride& o) { return o.uid == y.uid; }))
      result.push_back({y.uid, y.dims, y.strides});
  }
  return result;
}

}  // namespace tsr::capi
