// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/rnn.hpp"

#include "engines/cuda/rnn/network.hpp"

namespace tsr::cuda {
namespace {

class RnnStep : public Step {
 public:
  RnnStep(const Region& r, const Device& d, const RnnWay& way)
      : network_(r, d, way), launches_(network_.count_launches()) {}
  size_t workspace_bytes() const override { return network_.workspace_bytes(); }
  int kernels() const override { return launches_; }
  void run(const StepArgs& a) const override { network_.run(a); }

 private:
  RnnNetwork network_;
  int launches_;
};

class RnnMatch : public Match {
 public:
  RnnMatch(const Region& r, const Device& d) : r_(r), d_(d) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const auto& [way, seconds] : rnn_ways(r_, d_))
      list.push_back(
          {{{"tensor", way.tensor}, {"resident", way.resident}, {"rows", way.tile.rows}, {"columns", way.tile.columns}},
           seconds});
    return list;
  }
  std::unique_ptr<Step> build(const Config& c) const override {
    RnnWay way{c.knob("tensor") != 0, c.knob("resident") != 0, {c.knob("rows"), c.knob("columns")}};
    return std::make_unique<RnnStep>(r_, d_, way);
  }

 private:
  const Region& r_;
  const Device& d_;
};

class RnnEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"rnn_cuda", 110, DeviceKind::cuda, true,
                                         "recurrent networks, forward and backward"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_rnn_region(r, true); !why) return why;
    if (Reason why = check_elements(r); !why) return why;
    return std::make_unique<RnnMatch>(r, d);
  }
};

}  // namespace

const Engine& rnn_engine() {
  static const RnnEngine e;
  return e;
}

}  // namespace tsr::cuda
