// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/onednn.hpp"

#include "engines/cpu/onednn/families.hpp"
#include "engines/cpu/onednn/readiness.hpp"
#include "engines/cpu/onednn/sequence.hpp"
#include "graph/op.hpp"

namespace tsr::onednn {
namespace {

constexpr double kCallSeconds = 1e-6;  // measured: arguments and dispatch

constexpr const FamilyEntry* kFamilies[] = {&kMatmul, &kConvolution, &kRecurrent, &kResample, &kReorder};

class OneDnnEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    // The same bits for the same number of threads only, and a step that finds the threads busy runs on one.
    static constexpr EngineInfo kInfo = {"onednn", 3, DeviceKind::cpu, false,
                                         "matrix products, convolutions and other heavy work by oneDNN"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    const FamilyEntry* f = find_family(r);
    if (!f) return Reason::no(spelling(r.graph->node(r.nodes[0])), " is not done by oneDNN");
    if (Reason why = f->check(r); !why) return why;
    if (const Reason& why = readiness().works; !why) return why;
    return one_way(f->seconds(r, d) + kCallSeconds, [f, &r] { return f->build(r); });
  }
};

}  // namespace

const FamilyEntry* find_family(const Region& r) {
  for (const FamilyEntry* f : kFamilies)
    if (f->handles(r.graph->node(r.nodes[0]))) return f;
  return nullptr;
}

const Engine& engine() {
  static const OneDnnEngine e;
  return e;
}

}  // namespace tsr::onednn
