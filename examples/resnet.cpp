// SPDX-License-Identifier: Apache-2.0
// A small residual network that tells patterns apart: convolutions with batch norm, trained on pictures made here, then
// used with its running statistics on pictures that it has not seen.
//
//   example_resnet --steps 300 --width 32 --size 32
//   example_resnet --device cuda --steps 300 --width 32 --size 32 --batch 128
#include <algorithm>

#include "model.hpp"

using namespace tessera;
using namespace model;

namespace {

struct Config {
  int64_t classes = 6, size, width, batch;
};

// --- the model

class ResNet {
 public:
  ResNet(const Config& c, Parameters& p, Phase phase) : c_(c), p_(p), phase_(phase) {}

  // [batch, 1, size, size] -> [batch, classes]
  Tensor logits(Tensor pictures) {
    Tensor x = relu(norm(conv(pictures, "stem", c_.width, 3, 1), "stem"));
    x = block(x, "block1", c_.width, 1);
    x = block(x, "block2", 2 * c_.width, 2);
    x = block(x, "block3", 4 * c_.width, 2);
    Tensor features = reshape(mean(x, {2, 3}), {c_.batch, 4 * c_.width});
    Tensor w = p_.normal("head.weight", {4 * c_.width, c_.classes}, 0.05);
    return matmul(features, w) + p_.constant("head.bias", {1, c_.classes}, 0);
  }

 private:
  // Two convolutions next to a shortcut, which is a 1x1 convolution where the sizes change.
  Tensor block(Tensor x, const std::string& name, int64_t channels, int64_t stride) {
    Tensor y = relu(norm(conv(x, name + ".1", channels, 3, stride), name + ".1"));
    y = norm(conv(y, name + ".2", channels, 3, 1), name + ".2");
    bool same = x.dims()[1] == channels && stride == 1;
    Tensor shortcut = same ? x : norm(conv(x, name + ".0", channels, 1, stride), name + ".0");
    return relu(y + shortcut);
  }

  Tensor conv(Tensor x, const std::string& name, int64_t channels, int64_t taps, int64_t stride) {
    int64_t inputs = x.dims()[1], pad = taps / 2;
    double stddev = std::sqrt(2.0 / static_cast<double>(inputs * taps * taps));
    Tensor w = p_.normal(name + ".weight", {channels, inputs, taps, taps}, stddev);
    return conv_fprop(x, w, {.stride = {stride, stride}, .pad = {pad, pad}});
  }

  // Training computes statistics and moves the running ones on; inference uses those.
  Tensor norm(Tensor x, const std::string& name) {
    Ints dims{1, x.dims()[1], 1, 1};
    Tensor scale = p_.constant(name + ".scale", dims, 1), bias = p_.constant(name + ".bias", dims, 0);
    Tensor mean = p_.state(name + ".mean", dims, 0), variance = p_.state(name + ".variance", dims, 1);
    if (phase_ == Phase::inference)
      return batch_norm(x, scale, bias, {.phase = phase_}, {{"mean", mean}, {"variance", variance}});
    Results r = batch_norm(x, scale, bias, {}, {{"running_mean", mean}, {"running_var", variance}},
                           {"new_running_mean", "new_running_var"});
    p_.graph().output(r["new_running_mean"], "next." + mean.name());
    p_.graph().output(r["new_running_var"], "next." + variance.name());
    return r;
  }

  Config c_;
  Parameters& p_;
  Phase phase_;
};

// Pictures and, when training, their classes and the loss.
struct Network {
  Graph graph;
  Parameters parameters;
  Tensor pictures, labels, logits, loss;
  Network(const Config& c, Memory& memory, Phase phase, uint64_t seed) : parameters(graph, memory, seed) {
    pictures = graph.input("pictures", DType::f32, {c.batch, 1, c.size, c.size});
    logits = ResNet(c, parameters, phase).logits(pictures);
    if (phase == Phase::inference) {
      graph.output(logits, "logits");
      return;
    }
    labels = graph.input("labels", DType::i32, {c.batch, 1});
    loss = graph.output(mean(cross_entropy(logits, labels)), "loss");
  }
};

// --- pictures

// A pattern at (x, y) in -1..1, turned, moved and of some frequency.
double pattern(int kind, double x, double y, double frequency, double phase) {
  auto wave = [&](double t) { return std::sin(frequency * t + phase) > 0 ? 1.0 : -1.0; };
  double r = std::hypot(x - 0.3 * std::sin(phase), y - 0.3 * std::cos(phase));
  switch (kind) {
    case 0:
      return wave(x);  // stripes
    case 1:
      return wave(y);
    case 2:
      return wave(0.7 * (x + y));
    case 3:
      return wave(x) * wave(y);  // a chessboard
    case 4:
      return r < 0.5 ? 1 : -1;  // a disc
    default:
      return std::fabs(r - 0.5) < 0.15 ? 1 : -1;  // a ring
  }
}

// New pictures in `pictures`; returns what they show.
std::vector<double> draw(const Config& c, std::mt19937_64& random, Buffer& pictures) {
  std::uniform_real_distribution<double> unit;
  std::normal_distribution<double> noise(0, 0.5);
  std::vector<double> pixels, kinds;
  for (int64_t b = 0; b < c.batch; ++b) {
    int kind = static_cast<int>(random() % static_cast<uint64_t>(c.classes));
    kinds.push_back(kind);
    double frequency = 6 + 6 * unit(random), phase = 6.283 * unit(random), contrast = 0.5 + unit(random);
    for (int64_t i = 0; i < c.size; ++i)
      for (int64_t j = 0; j < c.size; ++j) {
        auto place = [&](int64_t k) { return 2 * static_cast<double>(k) / static_cast<double>(c.size - 1) - 1; };
        pixels.push_back(contrast * pattern(kind, place(j), place(i), frequency, phase) + noise(random));
      }
  }
  pictures.set(pixels);
  return kinds;
}

// --- training and testing

void train(const Config& c, Memory& memory, int64_t steps, double rate, uint64_t seed) {
  Network n(c, memory, Phase::training, seed);
  AdamW optimiser(n.parameters, n.loss, {});
  Program program(n.graph, memory);
  std::printf("%lld parameters, %d steps in the plan, %.1f MB workspace\n",
              static_cast<long long>(n.parameters.count()), program.plan().steps(),
              static_cast<double>(program.plan().workspace_bytes()) / 1e6);
  std::mt19937_64 random(seed);
  double begin = seconds();
  int64_t report = std::max<int64_t>(1, steps / 10);
  for (int64_t step = 0; step < steps; ++step) {
    memory.at(n.labels).set(draw(c, random, memory.at(n.pictures)));
    double left = 1 - static_cast<double>(step) / static_cast<double>(steps);
    optimiser.step(program, memory, rate * left);
    if ((step + 1) % report == 0) {
      double loss = memory.at(n.loss).get(0), pictures = static_cast<double>((step + 1) * c.batch);
      std::printf("step %5lld  loss %.3f  %.0f pictures/s\n", static_cast<long long>(step + 1), loss,
                  pictures / (seconds() - begin));
      std::fflush(stdout);
    }
  }
}

// Fraction of new pictures that are told right.
double accuracy(const Config& c, Memory& memory, int batches, uint64_t seed) {
  Network n(c, memory, Phase::inference, seed);
  Program program(n.graph, memory);
  std::mt19937_64 random(99);
  int64_t right = 0;
  for (int i = 0; i < batches; ++i) {
    std::vector<double> kinds = draw(c, random, memory.at(n.pictures));
    program.run();
    std::vector<double> logits = memory.at(n.logits).values();
    for (int64_t b = 0; b < c.batch; ++b) {
      auto row = logits.begin() + b * c.classes;
      auto best = static_cast<double>(std::max_element(row, row + c.classes) - row);
      right += best == kinds[static_cast<size_t>(b)];
    }
  }
  return static_cast<double>(right) / static_cast<double>(batches * c.batch);
}

}  // namespace

static int run(int argc, char** argv) {
  Flags flags(argc, argv);
  Config c{.size = flags.integer("size", 16), .width = flags.integer("width", 8), .batch = flags.integer("batch", 32)};
  int64_t steps = flags.integer("steps", 60);
  auto seed = static_cast<uint64_t>(flags.integer("seed", 1));
  double rate = flags.number("rate", 5e-3), expected = flags.number("expect", 0.9);
  Memory memory(flags.text("device", "cpu"));
  flags.refuse_others();

  double before = accuracy(c, memory, 4, seed);
  train(c, memory, steps, rate, seed);
  double after = accuracy(c, memory, 8, seed);
  std::printf("accuracy on new pictures %.1f %% -> %.1f %%\n", 100 * before, 100 * after);
  if (!(before < 0.5) || !(after > expected)) {
    std::printf("FAILED: it must rise from below 50 %% to more than %.0f %%\n", 100 * expected);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) { return guarded(run, argc, argv); }
