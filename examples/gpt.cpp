// SPDX-License-Identifier: Apache-2.0
// A GPT-2 style language model, trained from scratch on the project's own documentation, then asked to write.
//
// Three graphs share one set of parameters: training (loss, gradients and AdamW in one graph), the forward pass of a
// whole sequence, and one step of decoding with a cache of keys and values. The last two must give the same logits.
//
//   example_gpt --steps 2000 --layers 4 --width 128 --context 128
//   example_gpt --device cuda --steps 2000 --layers 6 --width 384 --heads 6 --context 256 --batch 32
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "model.hpp"

using namespace tessera;
using namespace model;

namespace {

struct Config {
  int64_t vocabulary, layers, width, heads, context, batch;
  int64_t depth() const { return width / heads; }
};

// --- the model

// Attention of one layer; how earlier keys and values come in is up to the graph. All tensors are [batch, heads, steps,
// depth].
using Attend = std::function<Tensor(int64_t layer, Tensor q, Tensor k, Tensor v)>;

class Gpt {
 public:
  Gpt(const Config& c, Parameters& p) : c_(c), p_(p) {}

  // tokens and positions [batch * steps] -> logits [batch * steps, vocabulary]
  Tensor logits(Tensor tokens, Tensor positions, int64_t batch, const Attend& attend) {
    Tensor table = p_.normal("tokens", {c_.vocabulary, c_.width}, 0.1);
    Tensor x = embedding(table, tokens) + embedding(p_.normal("positions", {c_.context, c_.width}, 0.1), positions);
    for (int64_t i = 0; i < c_.layers; ++i) {
      std::string layer = "layer" + std::to_string(i) + ".";
      Tensor h = norm(x, layer + "norm1");
      Tensor o = attend(i, heads(linear(h, layer + "q", c_.width), batch),
                        heads(linear(h, layer + "k", c_.width), batch), heads(linear(h, layer + "v", c_.width), batch));
      x = x + linear(reshape(o, h.dims(), ReshapeMode::view), layer + "o", c_.width, residual());
      Tensor wide = gelu_tanh(linear(norm(x, layer + "norm2"), layer + "up", 4 * c_.width));
      x = x + linear(wide, layer + "down", c_.width, residual());
    }
    return matmul(norm(x, "norm"), transpose(table, {1, 0}));  // the head is the embedding, transposed
  }

 private:
  // What is added to the residual stream starts small, the smaller the more layers add to it.
  double residual() const { return 1 / std::sqrt(2.0 * static_cast<double>(c_.layers)); }

  Tensor linear(Tensor x, const std::string& name, int64_t out, double scale = 1) {
    int64_t in = x.dims()[1];
    Tensor w = p_.normal(name + ".weight", {in, out}, scale / std::sqrt(static_cast<double>(in)));
    return matmul(x, w) + p_.constant(name + ".bias", {1, out}, 0);
  }
  Tensor norm(Tensor x, const std::string& name) {
    Ints dims{1, c_.width};
    return layer_norm(x, p_.constant(name + ".scale", dims, 1), p_.constant(name + ".bias", dims, 0));
  }
  // [batch * steps, width] seen as [batch, heads, steps, depth], without moving anything.
  Tensor heads(Tensor x, int64_t batch) const {
    return reshape(x, {batch, c_.heads, x.dims()[0] / batch, c_.depth()}, ReshapeMode::view).layout("bshd");
  }

  Config c_;
  Parameters& p_;
};

Attend causal(const Config& c) {
  SdpaOptions options{.scale = 1 / std::sqrt(static_cast<double>(c.depth())), .right = 0};
  return [=](int64_t, Tensor q, Tensor k, Tensor v) { return sdpa_fwd(q, k, v, options); };
}

Tensor ids(Graph& g, const char* name, int64_t rows) { return g.input(name, DType::i32, {rows}); }

// --- the three graphs

// Loss of a batch of sequences; with gradients and updates when training.
struct Training {
  Graph graph;
  Parameters parameters;
  Tensor tokens, positions, targets, loss;
  Training(const Config& c, Memory& memory, uint64_t seed) : parameters(graph, memory, seed) {
    int64_t rows = c.batch * c.context;
    tokens = ids(graph, "batch.tokens", rows);
    positions = ids(graph, "batch.positions", rows);
    targets = ids(graph, "batch.targets", rows);
    Tensor logits = Gpt(c, parameters).logits(tokens, positions, c.batch, causal(c));
    loss = graph.output(mean(cross_entropy(logits, targets)), "loss");
  }
};

struct Forward {
  Graph graph;
  Parameters parameters;
  Tensor tokens, positions, logits;
  Forward(const Config& c, Memory& memory) : parameters(graph, memory, 0) {
    tokens = ids(graph, "sequence.tokens", c.context);
    positions = ids(graph, "sequence.positions", c.context);
    logits = graph.output(Gpt(c, parameters).logits(tokens, positions, 1, causal(c)), "sequence.logits");
  }
};

// One token: its keys and values take their place in the cache, then it attends to all that are there.
struct Decode {
  Graph graph;
  Parameters parameters;
  Tensor token, position, logits;
  Decode(const Config& c, Memory& memory) : parameters(graph, memory, 0) {
    token = ids(graph, "step.token", 1);
    position = ids(graph, "step.position", 1);
    SdpaOptions options{.scale = 1 / std::sqrt(static_cast<double>(c.depth()))};
    Attend cached = [&](int64_t layer, Tensor q, Tensor k, Tensor v) {
      Tensor keys = keep(c, "cache.k" + std::to_string(layer), k),
             values = keep(c, "cache.v" + std::to_string(layer), v);
      return sdpa_fwd(q, keys, values, options, {{"seq_len_kv", position + 1}});
    };
    logits = graph.output(Gpt(c, parameters).logits(token, position, 1, cached), "step.logits");
  }

 private:
  Tensor keep(const Config& c, const std::string& name, Tensor fresh) {
    Tensor old = graph.input(name, DType::f32, {1, c.heads, c.context, c.depth()});
    Tensor step = pointwise(PointwiseMode::gen_index, {old}, {.axis = 2});
    return graph.output(select(pointwise(PointwiseMode::cmp_eq, {step, position}), fresh, old), "next." + name);
  }
};

// --- text

// All Markdown files of a folder, with the bytes that occur as vocabulary.
struct Text {
  std::vector<int> tokens;
  std::vector<char> letters;

  explicit Text(const std::string& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".md") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::string all;
    for (const auto& file : files) {
      std::stringstream text;
      text << std::ifstream(file).rdbuf();
      all += text.str();
    }
    letters.assign(all.begin(), all.end());
    std::sort(letters.begin(), letters.end());
    letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
    for (char c : all) tokens.push_back(id(c));
  }
  int id(char c) const {
    auto it = std::lower_bound(letters.begin(), letters.end(), c);
    return it != letters.end() && *it == c ? static_cast<int>(it - letters.begin()) : 0;
  }
  std::string printable(int token) const { return std::string(1, letters[static_cast<size_t>(token)]); }
};

// Random pieces of [from, to) and, as targets, the same pieces one letter on.
void fill_batch(const Config& c, const Text& text, size_t from, size_t to, std::mt19937_64& random, const Training& t,
                Memory& memory) {
  std::uniform_int_distribution<size_t> start(from, to - static_cast<size_t>(c.context) - 1);
  std::vector<double> tokens, positions, targets;
  for (int64_t b = 0; b < c.batch; ++b) {
    size_t first = start(random);
    for (int64_t i = 0; i < c.context; ++i) {
      size_t at = first + static_cast<size_t>(i);
      tokens.push_back(text.tokens[at]);
      targets.push_back(text.tokens[at + 1]);
      positions.push_back(static_cast<double>(i));
    }
  }
  memory.at(t.tokens).set(tokens);
  memory.at(t.positions).set(positions);
  memory.at(t.targets).set(targets);
}

// --- training and writing

struct Trained {
  double first = 0, last = 0;  // mean loss of the first and the last ten steps
};

Trained train(const Config& c, const Text& text, Memory& memory, int64_t steps, double rate, uint64_t seed) {
  Training t(c, memory, seed);
  AdamW optimiser(t.parameters, t.loss, {.decay = 0.1});
  Program program(t.graph, memory);
  std::printf("%lld parameters, %d steps in the plan, %.1f MB workspace\n",
              static_cast<long long>(t.parameters.count()), program.plan().steps(),
              static_cast<double>(program.plan().workspace_bytes()) / 1e6);
  std::mt19937_64 random(seed);
  std::vector<double> losses;
  double begin = seconds();
  int64_t warmup = std::max<int64_t>(1, steps / 10), report = std::max<int64_t>(1, steps / 10);
  for (int64_t step = 0; step < steps; ++step) {
    fill_batch(c, text, 0, text.tokens.size() * 9 / 10, random, t, memory);
    double rise = std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(warmup));
    double fall = 0.55 + 0.45 * std::cos(3.14159 * static_cast<double>(step) / static_cast<double>(steps));
    optimiser.step(program, memory, rate * rise * fall);
    losses.push_back(memory.at(t.loss).get(0));
    if ((step + 1) % report == 0) {
      double tokens = static_cast<double>(step + 1) * static_cast<double>(c.batch * c.context);
      std::printf("step %5lld  loss %.3f  %.0f tokens/s\n", static_cast<long long>(step + 1), losses.back(),
                  tokens / (seconds() - begin));
      std::fflush(stdout);
    }
  }
  Trained r;
  size_t n = std::min<size_t>(10, losses.size());
  for (size_t i = 0; i < n; ++i) {
    r.first += losses[i] / static_cast<double>(n);
    r.last += losses[losses.size() - 1 - i] / static_cast<double>(n);
  }
  return r;
}

// Loss on text that training did not see.
double held_out(const Config& c, const Text& text, Memory& memory) {
  Training t(c, memory, 0);
  Program program(t.graph, memory);
  std::mt19937_64 random(7);
  double sum = 0;
  constexpr int kBatches = 4;
  for (int i = 0; i < kBatches; ++i) {
    fill_batch(c, text, text.tokens.size() * 9 / 10, text.tokens.size(), random, t, memory);
    program.run();
    sum += memory.at(t.loss).get(0);
  }
  return sum / kBatches;
}

class Writer {
 public:
  Writer(const Config& c, Memory& memory) : graph_(c, memory), memory_(memory), program_(graph_.graph, memory) {}

  // Logits of what follows the token at this position.
  std::vector<double> step(int token, int64_t position) {
    memory_.at(graph_.token).set(0, token);
    memory_.at(graph_.position).set(0, static_cast<double>(position));
    program_.run();
    return memory_.at(graph_.logits).values();
  }

 private:
  Decode graph_;
  Memory& memory_;
  Program program_;
};

// Largest difference between the logits of cached decoding and those of a forward pass of the whole sequence.
double cache_error(const Config& c, const Text& text, Memory& memory, Writer& writer) {
  Forward f(c, memory);
  Program program(f.graph, memory);
  std::vector<double> tokens(text.tokens.begin(), text.tokens.begin() + c.context), positions;
  for (int64_t i = 0; i < c.context; ++i) positions.push_back(static_cast<double>(i));
  memory.at(f.tokens).set(tokens);
  memory.at(f.positions).set(positions);
  program.run();
  std::vector<double> whole = memory.at(f.logits).values();
  double worst = 0;
  for (int64_t i = 0; i < c.context; ++i) {
    std::vector<double> step = writer.step(text.tokens[static_cast<size_t>(i)], i);
    for (int64_t k = 0; k < c.vocabulary; ++k) {
      double difference = std::fabs(step[static_cast<size_t>(k)] - whole[static_cast<size_t>(i * c.vocabulary + k)]);
      if (!(difference <= worst)) worst = difference;
    }
  }
  return worst;
}

std::string write(const Config& c, const Text& text, Writer& writer, const std::string& prompt, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string written = prompt;
  double begin = seconds();
  for (int64_t i = 0; i + 1 < c.context; ++i) {
    std::vector<double> weights = writer.step(text.id(written[static_cast<size_t>(i)]), i);
    if (i + 1 < static_cast<int64_t>(written.size())) continue;  // still reading the prompt
    for (double& w : weights) w = std::exp(w / 0.7);
    written += text.letters[std::discrete_distribution<size_t>(weights.begin(), weights.end())(random)];
  }
  std::printf("%.0f tokens/s decoding\n", static_cast<double>(c.context) / (seconds() - begin));
  return written;
}

}  // namespace

static int run(int argc, char** argv) {
  Flags flags(argc, argv);
  std::string pages = flags.text("text", "docs");
  Config c{.vocabulary = 0,  // as many letters as the pages have
           .layers = flags.integer("layers", 2),
           .width = flags.integer("width", 64),
           .heads = flags.integer("heads", 4),
           .context = flags.integer("context", 64),
           .batch = flags.integer("batch", 8)};
  int64_t steps = flags.integer("steps", 300);
  auto seed = static_cast<uint64_t>(flags.integer("seed", 1));
  double rate = flags.number("rate", 6e-3), expected = flags.number("expect", 0);
  std::string prompt = flags.text("prompt", "The graph ");
  Memory memory(flags.text("device", "cpu"));
  flags.refuse_others();
  Text text(pages);
  c.vocabulary = static_cast<int64_t>(text.letters.size());
  double guessing = std::log(static_cast<double>(c.vocabulary));
  if (expected == 0) expected = 0.6 * guessing;
  std::printf("%zu letters of text, %lld different\n", text.tokens.size(), static_cast<long long>(c.vocabulary));

  Trained loss = train(c, text, memory, steps, rate, seed);
  double unseen = held_out(c, text, memory);
  std::printf("loss %.3f -> %.3f, on unseen text %.3f\n", loss.first, loss.last, unseen);

  Writer writer(c, memory);
  double error = cache_error(c, text, memory, writer);
  std::printf("cached decoding differs from the full forward pass by at most %.2g\n", error);
  std::printf("---\n%s\n---\n", write(c, text, writer, prompt, seed).c_str());

  bool start = std::fabs(loss.first - guessing) < 1.2;
  if (!start || !(loss.last < expected) || !(error < 1e-3)) {
    std::printf("FAILED: the loss must begin near %.2f and fall below %.2f, decoding must agree within 0.001\n",
                guessing, expected);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) { return guarded(run, argc, argv); }
